import { z } from 'zod';
import { compilePolicy, type GraphMemo, type PolicySubject, passPolicy } from '../authz/policy.ts';
import { type AccessSettings, decideAccess } from '../authz/trigger-access.ts';
import type { HttpAuth } from '../base/principal.ts';
import { checkKey } from '../graph/graph.ts';
import type { SuggestedAccess } from '../plugins/manifest.ts';

/** Access that a plugin suggests, for tests of its author: the service's own decision, about users who exist in a test alone. */

const texts = z.array(z.string()).default([]);
const attribute = z.string().default('');

/** What policies see of the caller of a test (docs/authorization.md "What a policy knows"). */
export const testCaller = z.strictObject({
  roles: texts,
  /** Study groups the user is a member of. */
  groups: texts,
  /** What the relationship graph gives, like `admin faculty:physics`: a permission or relation, and an object. */
  permissions: z.array(z.string().regex(/^\w+ \w+:.+$/, 'must be like "admin faculty:physics"')).default([]),
  external_id: z.string().default('test'),
  locale: z.enum(['ru', 'en']).default('en'),
  primary_channel: attribute,
  nationality_type: attribute,
  funding_type: attribute,
  education_form: attribute,
});
/** As it is written in a test; what is left out is empty. */
export type TestCaller = z.input<typeof testCaller>;

/** A call that does not reach the plugin. */
export type Refusal = { status: 401 | 403; text: string };

/** Settings of a trigger whose suggestion was accepted; without one the trigger is for logged-in users. */
const settingsOf = (access: SuggestedAccess | undefined): AccessSettings => ({
  enabled: true,
  allowUserSession: access?.users ?? true,
  allowServiceKey: access?.service_keys ?? false,
  policyExpression: access?.policy ?? '',
});

function subjectOf(auth: HttpAuth, caller: z.output<typeof testCaller>): PolicySubject {
  if (auth.kind === 'service') return { kind: 'service', keyId: auth.service_key_id };
  const { permissions: _, ...facts } = caller;
  return { kind: 'user', user: { ...facts, id: BigInt(auth.user_id) }, roles: new Set(caller.roles) };
}

/** @throws PolicyError for a policy that cannot be evaluated for this caller */
function evaluate(
  source: string,
  subject: PolicySubject,
  { groups, permissions }: z.output<typeof testCaller>,
): boolean {
  const held = new Set([...permissions, ...groups.map(group => `member study_group:${group}`)]);
  const policy = compilePolicy(source);
  const memo: GraphMemo = new Map();
  for (;;) {
    const pass = passPolicy(policy, subject, memo);
    if (pass.kind === 'result') return pass.allowed;
    if (pass.kind === 'failed') throw pass.error;
    for (const check of pass.checks.values())
      memo.set(checkKey(check), held.has(`${check.permission} ${check.resourceType}:${check.resourceId}`));
  }
}

/**
 * Decides as the service would if an administrator accepted what the plugin suggests.
 *
 * @returns null when the caller is let in
 * @throws ZodError when the caller is not described as `TestCaller` says
 */
export function refusalOf(
  access: SuggestedAccess | undefined,
  auth: HttpAuth | null,
  caller: TestCaller,
): Refusal | null {
  const settings = settingsOf(access);
  const described = testCaller.parse(caller);
  const principal = auth?.kind ?? 'none';
  let decision = decideAccess(settings, principal);
  let why = '';
  if (decision.kind === 'evaluate' && auth !== null)
    try {
      const allowed = evaluate(settings.policyExpression, subjectOf(auth, described), described);
      decision = decideAccess(settings, principal, allowed);
    } catch (error) {
      // As in the service, a policy that fails denies.
      decision = decideAccess(settings, principal, false);
      why = `: ${error instanceof Error ? error.message : String(error)}`;
    }
  if (decision.kind !== 'refuse') return null;
  if (decision.reason === 'no_credential') return { status: 401, text: 'the trigger needs a user or a service key' };
  return {
    status: 403,
    text:
      decision.reason === 'policy'
        ? `the policy ${settings.policyExpression} is not true for this caller${why}`
        : `the trigger is not for ${principal === 'user' ? 'users' : 'service keys'}`,
  };
}
