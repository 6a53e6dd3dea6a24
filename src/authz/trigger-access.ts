/**
 * The access decision of docs/access.md "The decision" as a pure function of the principal, the settings and the policy
 * result. With a policy it is called twice: first without the result, to learn whether the policy must be evaluated.
 */
export type AccessSettings = {
  enabled: boolean;
  allowUserSession: boolean;
  allowServiceKey: boolean;
  policyExpression: string;
};
export type PrincipalKind = 'none' | 'user' | 'service';

export type AccessDecision =
  | { kind: 'allow'; as: 'public' | 'user' | 'service' }
  /** The policy must be evaluated; call again with its result. */
  | { kind: 'evaluate' }
  | { kind: 'refuse'; reason: 'disabled' | 'no_credential' | 'principal_kind' | 'policy' };

/**
 * The effect of a trigger's settings, for people. The words are values of the API that clients match; the third one
 * means that the settings accept no kind of principal.
 */
export const EFFECTIVE_ACCESS = ['disabled', 'public', 'nobody', 'user', 'service', 'user_or_service'] as const;
export type EffectiveAccess = (typeof EFFECTIVE_ACCESS)[number];

export function effectiveAccess(s: AccessSettings): EffectiveAccess {
  if (!s.enabled) return 'disabled';
  if (s.allowUserSession) return s.allowServiceKey ? 'user_or_service' : 'user';
  if (s.allowServiceKey) return 'service';
  return s.policyExpression === '' ? 'public' : 'nobody';
}

/**
 * @param settings of the trigger
 * @param principal kind of the caller, `none` without a valid credential
 * @param policyResult result of the policy, or undefined before it was evaluated
 */
export function decideAccess(
  settings: AccessSettings,
  principal: PrincipalKind,
  policyResult?: boolean,
): AccessDecision {
  const access = effectiveAccess(settings);
  if (access === 'disabled') return { kind: 'refuse', reason: 'disabled' };
  if (access === 'public') return { kind: 'allow', as: 'public' };
  if (principal === 'none') return { kind: 'refuse', reason: 'no_credential' };
  const accepted = principal === 'user' ? settings.allowUserSession : settings.allowServiceKey;
  if (!accepted) return { kind: 'refuse', reason: 'principal_kind' };
  if (settings.policyExpression === '') return { kind: 'allow', as: principal };
  if (policyResult === undefined) return { kind: 'evaluate' };
  return policyResult ? { kind: 'allow', as: principal } : { kind: 'refuse', reason: 'policy' };
}
