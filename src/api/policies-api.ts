import { z } from 'zod';
import { comparePolicies } from '../authz/compare-policies.ts';
import type { Policies, PolicyTrial } from '../authz/policies.ts';
import { compileForSaving } from '../authz/policy.ts';
import { PolicyError } from '../authz/policy-ast.ts';
import { ServiceError } from '../base/errors.ts';
import { makeSemaphore } from '../base/semaphore.ts';
import type { Database } from '../db/database.ts';
import type { GraphSchema } from '../graph/graph-schema.ts';
import { GraphError } from '../graph/graph-store.ts';
import { sampleUsers } from '../identity/users.ts';
import { resource } from './contract.ts';
import { type Handle, serve } from './endpoint.ts';
import {
  policyPosition,
  policyProblem,
  policyProblems,
  policyRefused,
  policyText,
  policyWarning,
  policyWarnings,
  positionOf,
} from './policy-body.ts';
import { present } from './query.ts';
import type { Route } from './route.ts';

export type PoliciesApiParts = { db: Database; policies: Policies; schema: GraphSchema };

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

/** How long a comparison may take, and how many users it looks at and names. */
const COMPARE_MS = 4000;
const SAMPLE_MAX = 500;
const NAMED_MAX = 20;
const changedAccess = z
  .object({
    count: z.int(),
    users: z.array(z.object({ id: z.int(), display_name: z.string() })).describe(`${NAMED_MAX} of them at most`),
  })
  .meta({ id: 'ChangedAccess' });

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
    key: ['read', 'access'],
    summary: 'Tell which users of a sample gain or lose access by a change of a policy',
    description: `Users are picked at random; after ${COMPARE_MS / 1000} s it answers what it has.`,
    body: z.strictObject({
      before: policyText.describe('The policy as it is; empty for none'),
      after: policyText.describe('The policy as it would be; empty for none'),
      users: z.int().min(1).max(SAMPLE_MAX).default(100).describe('How many to look at'),
    }),
    replies: {
      200: z.object({
        examined: z.int().describe('Users for whom both policies were decided'),
        undecided: z.int().describe('Users for whom the graph did not answer'),
        gains: changedAccess,
        loses: changedAccess,
      }),
    },
    example: { body: { before: '', after: 'has_role("editor")' } },
  },
  try: {
    method: 'POST',
    path: '/api/admin/policies/try',
    guard: 'admin',
    key: ['read', 'access'],
    summary: 'Try a policy with a user',
    description: 'Tells the value of every part and each question to the graph.',
    body: trial,
    replies: { 200: trialResult },
    refusals: ['not_found'],
    example: { body: { expression: 'is_member("study_group", "g-1")', user: 7, attributes: { locale: 'en' } } },
  },
});

/** Others wait: each asks hundreds of questions. */
const comparing = makeSemaphore(1);

const compare: Handle<typeof policies.compare, PoliciesApiParts> = async ({ db, policies, schema }, { body }) => {
  const { after, before, users } = await body();
  for (const [expression, pointer] of [
    [before, '/before'],
    [after, '/after'],
  ] as const)
    if (expression !== '') assertCompiles(expression, pointer, schema);
  const sample = await sampleUsers(db, users);
  const ids = sample.map(u => u.id);
  const found = await comparing(() => comparePolicies(policies, before, after, ids, performance.now() + COMPARE_MS));
  const named = (ids: readonly number[]) =>
    sample
      .filter(u => ids.includes(u.id))
      .slice(0, NAMED_MAX)
      .map(u => ({ id: u.id, display_name: u.displayName }));
  const json = {
    examined: found.examined,
    undecided: found.undecided,
    gains: { count: found.gains.length, users: named(found.gains) },
    loses: { count: found.loses.length, users: named(found.loses) },
  };
  return { status: 200, json };
};

function assertCompiles(expression: string, pointer: string, schema: GraphSchema): void {
  try {
    compileForSaving(expression, schema);
  } catch (error) {
    if (error instanceof PolicyError) throw policyRefused(expression, error, pointer);
    throw error;
  }
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
  serve(policies, parts, { check, compare, try: tryOut });

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
