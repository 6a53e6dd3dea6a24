import { z } from 'zod';

/** What a record keeps of the decision that was made of its caller, and what the API says of it. */

const graphCheck = z.object({ check: z.string(), allowed: z.boolean(), ms: z.number() });
const VERDICTS = ['allowed', 'denied', 'failed', 'unavailable'] as const;

/** A verdict of a policy, as it is recorded and as it was given. */
const givenVerdict = z.object({
  kind: z.enum(VERDICTS),
  reason: z.string(),
  rounds: z.int(),
  checks: z.array(graphCheck).readonly(),
  contextAgeMs: z.number().nullable(),
});

/** The verdict of a policy in the API. */
export const policyVerdict = z.object({
  verdict: z.enum(VERDICTS),
  reason: z.string().nullable(),
  graph_rounds: z.int(),
  graph_checks: z.array(graphCheck),
  context_age_ms: z.number().nullable(),
});

/** The verdict of a policy as the API gives it. */
export const verdictJson = (v: z.output<typeof givenVerdict>): z.output<typeof policyVerdict> => ({
  verdict: v.kind,
  reason: v.reason === '' ? null : v.reason,
  graph_rounds: v.rounds,
  graph_checks: [...v.checks],
  context_age_ms: v.contextAgeMs,
});

const REASONS = [
  'open',
  'allowed',
  'disabled',
  'unknown_user',
  'roles',
  'policy',
  'policy_failed',
  'unavailable',
] as const;
const ROLE_KINDS = ['system', 'global', 'plugin'] as const;

/** The decision about a command, as it is recorded. */
const givenDecision = z.object({
  reason: z.enum(REASONS),
  detail: z.string(),
  roles: z.array(z.object({ role: z.object({ kind: z.enum(ROLE_KINDS), role: z.string() }), held: z.boolean() })),
  policy: givenVerdict.nullable(),
});

/** How it was decided about the caller of an execution. */
export const recordedDecision = z
  .object({
    reason: z.enum(REASONS).describe('What decided; policy: it was false'),
    detail: z.string().nullable().describe('Why a policy failed, or what was unavailable'),
    roles: z
      .array(z.object({ kind: z.enum(ROLE_KINDS), role: z.string(), held: z.boolean() }))
      .describe('The roles that a command asked for'),
    policy: policyVerdict.nullable().describe('What the policy said, with all it asked; null if it was not evaluated'),
  })
  .meta({ id: 'RecordedDecision' });

const REASON_OF = {
  allowed: 'allowed',
  denied: 'policy',
  failed: 'policy_failed',
  unavailable: 'unavailable',
} as const;

/**
 * The decision of a record in the API.
 *
 * @param stored the verdict of a trigger's policy, or the decision about a command
 * @returns null where there was none
 */
export function decisionJson(stored: object | null): z.output<typeof recordedDecision> | null {
  const verdict = givenVerdict.safeParse(stored);
  if (verdict.success) {
    const { kind, reason } = verdict.data;
    const detail = reason === '' ? null : reason;
    return { reason: REASON_OF[kind], detail, roles: [], policy: verdictJson(verdict.data) };
  }
  const decision = givenDecision.safeParse(stored);
  if (!decision.success) return null;
  const { detail, policy, reason, roles } = decision.data;
  return {
    reason,
    detail: detail === '' ? null : detail,
    roles: roles.map(r => ({ kind: r.role.kind, role: r.role.role, held: r.held })),
    policy: policy === null ? null : verdictJson(policy),
  };
}
