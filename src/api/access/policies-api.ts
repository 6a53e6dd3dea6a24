import { z } from 'zod';
import { comparePolicies } from '../../authz/compare-policies.ts';
import type { Policies, PolicyTrial } from '../../authz/policies.ts';
import { PolicyError } from '../../authz/policy-ast.ts';
import { nameSubjects, type SubjectName } from '../../authz/read-subjects.ts';
import { type OtherwiseDecided, rehearsePolicy } from '../../authz/rehearse-policy.ts';
import { ServiceError } from '../../base/errors.ts';
import { makeSemaphore } from '../../base/semaphore.ts';
import type { Database } from '../../db/database.ts';
import type { Graph } from '../../graph/graph.ts';
import type { GraphSchema } from '../../graph/graph-schema.ts';
import { GraphError } from '../../graph/graph-store.ts';
import { countUsers } from '../../identity/find-users.ts';
import type { PluginRegistry } from '../../plugins/registry.ts';
import { listRecordedCallers, RECORDED_CALLS_MAX } from '../../records/recorded-callers.ts';
import { resource } from '../contract/contract.ts';
import { type Handle, serve } from '../contract/endpoint.ts';
import { CURSOR, present } from '../contract/query.ts';
import type { Route } from '../contract/route.ts';
import {
  assertPolicy,
  policyPosition,
  policyProblem,
  policyProblems,
  policyRefused,
  policyText,
  policyWarning,
  policyWarnings,
  positionOf,
} from './policy-body.ts';

export type PoliciesApiParts = {
  db: Database;
  graph: Graph;
  policies: Policies;
  registry: PluginRegistry;
  schema: GraphSchema;
};

const names = z.array(z.string().max(250)).max(1000);
const channel = z.enum(['TELEGRAM', 'VK', '']);
const nationality = z.enum(['domestic', 'foreign', '']);
const funding = z.enum(['budget', 'contract', '']);
const education = z.enum(['full_time', 'part_time', 'remote', '']);

const trial = z.strictObject({
  expression: policyText.min(1, 'must not be empty: without a policy there is nothing to try'),
  user: z.int().positive().describe('Id of the user'),
  attributes: z
    .strictObject({
      external_id: z.string().max(250),
      groups: names,
      roles: names,
      primary_channel: channel,
      locale: z.enum(['ru', 'en']),
      nationality_type: nationality,
      funding_type: funding,
      education_form: education,
    })
    .partial()
    .default({})
    .describe("Attributes as policies name them, instead of the user's own"),
});

const verdict = z.enum(['allowed', 'denied', 'failed', 'unavailable']);
const graphCheck = z.object({ check: z.string(), allowed: z.boolean(), ms: z.number() }).meta({ id: 'GraphCheck' });

const trialResult = z
  .object({
    result: z.boolean().describe('Whether the policy is true for this user'),
    verdict,
    reason: z.string().nullable().describe('Why it failed, or what is away'),
    position: policyPosition.optional().describe('Where it failed'),
    graph_rounds: z.int(),
    graph_checks: z.array(graphCheck),
    parts: z
      .array(
        z.object({
          expression: z.string(),
          position: policyPosition,
          value: z.unknown().optional(),
          error: z.string().optional(),
          not_needed: z.literal(true).optional(),
        }),
      )
      .describe('Every part of the policy by itself, outermost first'),
    user: z.object({
      id: z.int(),
      external_id: z.string(),
      groups: z.array(z.string()).nullable().describe('Null when the graph does not answer'),
      roles: z.array(z.string()),
      primary_channel: z.string(),
      locale: z.string(),
      nationality_type: z.string(),
      funding_type: z.string(),
      education_form: z.string(),
    }),
    context_age_ms: z.number().nullable(),
    warnings: z.array(policyWarning),
  })
  .meta({ id: 'PolicyTrial' });

/** How long one part may take. */
const PART_MS = 4000;
const PART_USERS_MAX = 5000;
/** Callers that are decided again, and those that are named. */
const CALLERS_MAX = 5000;
const CALLERS_NAMED_MAX = 100;
const DAYS_MAX = 366;

const policySubject = z
  .object({
    id: z.int(),
    display_name: z.string(),
    external_id: z.string(),
    groups: z.array(z.object({ id: z.string(), name: z.string() })).describe('Study groups'),
  })
  .meta({ id: 'PolicySubject' });

const decidedOtherwise = z
  .object({
    calls: z.int(),
    callers: z.int(),
    most: z
      .array(
        z.object({
          principal: z.string().describe('user:<id>, service:<id> or public'),
          calls: z.int(),
          user: policySubject.optional(),
        }),
      )
      .describe(`Those with the most calls, ${CALLERS_NAMED_MAX} at most`),
  })
  .meta({ id: 'DecidedOtherwise' });

/** Policies before they are saved (docs/authorization.md "Policies"). */
export const policies = resource('Policies', 'Policies before they are saved.', {
  check: {
    method: 'POST',
    path: '/api/admin/policies/check',
    guard: 'admin',
    key: ['read', 'access'],
    summary: 'Check a policy without saving it',
    body: z.strictObject({ expression: policyText }),
    replies: {
      200: z.object({
        valid: z.boolean(),
        type: z.literal('bool').nullable(),
        errors: z.array(policyProblem),
        warnings: z.array(policyWarning),
      }),
    },
    example: { body: { expression: 'has_role("editor") && user.locale == "en"' } },
  },
  compare: {
    method: 'POST',
    path: '/api/admin/policies/compare',
    guard: 'admin',
    key: ['people', 'access'],
    summary: 'Tell which users gain or lose access by a change of a policy',
    description: `Goes over all users in parts: as long as there is a \`next_cursor\`, send it with the same policies. A part answers after ${PART_MS / 1000} s with what it has.`,
    body: z.strictObject({
      before: policyText.describe('The policy as it is; empty for none'),
      after: policyText.describe('The policy as it would be; empty for none'),
      limit: z.int().min(1).max(PART_USERS_MAX).default(1000).describe('How many users this part looks at'),
      cursor: z
        .string()
        .regex(/^\d{1,15}$/, CURSOR)
        .optional()
        .describe('The next_cursor of the part before'),
    }),
    replies: {
      200: z.object({
        users: z.int().describe('How many users there are'),
        examined: z.int().describe('Users of this part for whom both policies were decided'),
        undecided: z.int().describe('Users of this part for whom the graph did not answer'),
        gains: z.array(policySubject),
        loses: z.array(policySubject),
        next_cursor: z.string().nullable().describe('Cursor of the next part; null after the last one'),
      }),
    },
    example: { body: { before: '', after: 'has_role("editor")' } },
  },
  rehearse: {
    method: 'POST',
    path: '/api/admin/policies/rehearse',
    guard: 'admin',
    key: ['people', 'access'],
    summary: 'Tell which recorded calls a policy would have decided otherwise',
    description:
      `Decides the callers of the newest ${RECORDED_CALLS_MAX} records again, with what is known of them today. Of successful ` +
      'calls only a few per second are recorded (docs/plugins.md "Records").',
    body: z.strictObject({
      plugin: z.string().max(100),
      trigger: z.string().max(100).describe('Name of the trigger or the command'),
      expression: policyText.describe('The policy as it would be; empty for none'),
      days: z.int().min(1).max(DAYS_MAX).default(7),
    }),
    replies: {
      200: z.object({
        calls: z.int().describe('Recorded calls that were decided again'),
        callers: z.int(),
        undecided: z.int().describe('Callers that are not there any more, or could not be decided'),
        would_admit: decidedOtherwise.describe('Calls that were refused, and would have been let in'),
        would_refuse: decidedOtherwise.describe('Calls that were let in, and would have been refused'),
      }),
    },
    refusals: ['not_found'],
    example: { body: { plugin: 'hello', trigger: 'greet', expression: 'has_role("editor")', days: 7 } },
  },
  try: {
    method: 'POST',
    path: '/api/admin/policies/try',
    guard: 'admin',
    key: ['people', 'access'],
    summary: 'Try a policy with a user',
    description: 'Tells the value of every part and each question to the graph.',
    body: trial,
    replies: { 200: trialResult },
    refusals: ['not_found'],
    example: { body: { expression: 'is_member("study_group", "g-1")', user: 7, attributes: { locale: 'en' } } },
  },
});

/** Others wait: each asks hundreds of questions. */
const inTurn = makeSemaphore(1);

const subjectJson = (s: SubjectName) => ({
  id: s.id,
  display_name: s.displayName,
  external_id: s.externalId,
  groups: s.groups,
});

const compare: Handle<typeof policies.compare, PoliciesApiParts> = async (parts, { body }) => {
  const { after, before, cursor, limit } = await body();
  assertPolicy(before, parts.schema, '/before');
  assertPolicy(after, parts.schema, '/after');
  const part = { above: Number(cursor ?? 0), limit };
  const found = await inTurn(() => comparePolicies(parts, { before, after }, part, performance.now() + PART_MS));
  const json = {
    users: await countUsers(parts.db),
    examined: found.examined,
    undecided: found.undecided,
    gains: found.gains.map(subjectJson),
    loses: found.loses.map(subjectJson),
    next_cursor: found.nextAbove === null ? null : String(found.nextAbove),
  };
  return { status: 200, json };
};

const rehearse: Handle<typeof policies.rehearse, PoliciesApiParts> = async (parts, { body }) => {
  const { days, expression, plugin, trigger } = await body();
  assertPolicy(expression, parts.schema, '/expression');
  if (parts.registry.find(plugin)?.manifest.triggers.some(t => t.name === trigger) !== true)
    throw new ServiceError('not_found', `plugin "${plugin}" has no trigger or command "${trigger}"`);
  const since = new Date(Date.now() - days * 86_400_000);
  const found = await inTurn(async () => {
    const recorded = await listRecordedCallers(parts.db, { pluginId: plugin, trigger, since }, CALLERS_MAX);
    return await rehearsePolicy(parts, expression, recorded, performance.now() + PART_MS);
  });
  const json = {
    calls: found.calls,
    callers: found.callers,
    undecided: found.undecided,
    would_admit: await otherwiseJson(parts.db, found.wouldAdmit),
    would_refuse: await otherwiseJson(parts.db, found.wouldRefuse),
  };
  return { status: 200, json };
};

async function otherwiseJson(db: Database, found: readonly OtherwiseDecided[]) {
  const most = found.toSorted((a, b) => b.calls - a.calls).slice(0, CALLERS_NAMED_MAX);
  const names = await nameSubjects(
    db,
    most.flatMap(c => c.userId ?? []),
  );
  const users = new Map(names.map(n => [n.id, subjectJson(n)]));
  return {
    calls: found.reduce((n, c) => n + c.calls, 0),
    callers: found.length,
    most: most.map(({ calls, principal, userId }) => {
      const user = userId === null ? undefined : users.get(userId);
      return { principal, calls, ...(user === undefined ? {} : { user }) };
    }),
  };
}

const check: Handle<typeof policies.check, PoliciesApiParts> = async ({ db, schema }, { body }) => {
  const { expression } = await body();
  const errors = policyProblems(expression, schema);
  const valid = errors.length === 0;
  const warnings = valid ? await policyWarnings(db, expression, '/expression') : [];
  return { status: 200, json: { valid, type: valid ? 'bool' : null, errors, warnings } };
};

const tryOut: Handle<typeof policies.try, PoliciesApiParts> = async (parts, { body }) => {
  const { attributes, expression, user } = await body();
  try {
    const tried = await parts.policies.tryOut(expression, user, present(attributes));
    if (tried === null) throw new ServiceError('not_found', `there is no user ${user}`);
    const warnings = await policyWarnings(parts.db, expression, '/expression');
    return { status: 200, json: { ...trialJson(expression, tried), warnings } };
  } catch (error) {
    if (error instanceof PolicyError) throw policyRefused(expression, error, '/expression');
    if (error instanceof GraphError) throw graphAway(error);
    throw error;
  }
};

export const policyRoutes = (parts: PoliciesApiParts): Route[] =>
  serve(policies, parts, { check, compare, rehearse, try: tryOut });

function trialJson(source: string, { context, parts, verdict }: PolicyTrial) {
  const failure =
    verdict.start === undefined || verdict.end === undefined
      ? {}
      : { position: positionOf(source, verdict.start, verdict.end) };
  return {
    result: verdict.kind === 'allowed',
    verdict: verdict.kind,
    reason: verdict.reason === '' ? null : verdict.reason,
    ...failure,
    graph_rounds: verdict.rounds,
    graph_checks: verdict.checks.map(c => ({ ...c, ms: Math.round(c.ms * 100) / 100 })),
    parts: parts.map(({ error, expression, start, end, value }) => ({
      expression,
      position: positionOf(source, start, end),
      ...(error !== undefined ? { error } : value === undefined ? { not_needed: true as const } : { value }),
    })),
    // Null: the graph does not answer, and who is in which group is not known.
    user: {
      ...context.user,
      id: Number(context.user.id),
      groups: context.hasGroups ? [...context.user.groups] : null,
      roles: [...context.user.roles],
    },
    context_age_ms: verdict.contextAgeMs,
  };
}

/** The refusal when the graph does not answer. */
export function graphAway(error: GraphError): ServiceError {
  if (error.kind === 'refused')
    return new ServiceError('validation_failed', `the graph store refuses the question: ${error.message}`, {
      cause: error,
    });
  return new ServiceError('unavailable', `the graph store does not answer: ${error.message}`, {
    headers: [['Retry-After', '2']],
    cause: error,
  });
}
