/**
 * The access decision of docs/access.md "The decision", as a pure function: who asks, what is set, what the policy
 * said. It is asked twice when there is a policy: first without its result, to learn whether it has to be evaluated.
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
  /** The policy has to be evaluated; ask again with its result. */
  | { kind: 'evaluate' }
  | { kind: 'refuse'; reason: 'disabled' | 'no_credential' | 'principal_kind' | 'policy' };

/** What a trigger's settings amount to, for people. */
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
 * @param policyResult what the policy gave, or undefined while it has not been evaluated
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
