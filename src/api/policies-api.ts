import { z } from 'zod';
import type { Policies, PolicyTrial } from '../authz/policies.ts';
import { PolicyError } from '../authz/policy-ast.ts';
import { ServiceError } from '../base/errors.ts';
import type { Database } from '../db/database.ts';
import type { GraphSchema } from '../graph/graph-schema.ts';
import { GraphError } from '../graph/graph-store.ts';
import { jsonReply } from '../http/message.ts';
import { parseBody } from './body.ts';
import { policyProblems, policyRefused, policyText, policyWarnings, positionOf } from './policy-body.ts';
import type { Route } from './route.ts';

export type PoliciesApiParts = { db: Database; policies: Policies; schema: GraphSchema };

const checkBody = z.strictObject({ expression: policyText });

const names = z.array(z.string().max(250)).max(1000);
/** Attributes as policies name them; what is left out is the user's own. */
const tryBody = z.strictObject({
  expression: policyText.min(1, 'must not be empty: without a policy there is nothing to try'),
  user: z.int().positive(),
  attributes: z
    .strictObject({
      external_id: z.string().max(250),
      groups: names,
      roles: names,
      primary_channel: z.enum(['TELEGRAM', 'VK', '']),
      locale: z.enum(['ru', 'en']),
      nationality_type: z.enum(['domestic', 'foreign', '']),
      funding_type: z.enum(['budget', 'contract', '']),
      education_form: z.enum(['full_time', 'part_time', 'remote', '']),
    })
    .partial()
    .default({}),
});

/** Members that are there. */
function present<T extends object>(o: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(o).filter(([, v]) => v !== undefined)) as {
    [K in keyof T]: Exclude<T[K], undefined>;
  };
}

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
      ...(error !== undefined ? { error } : value === undefined ? { not_needed: true } : { value }),
    })),
    // Null: the graph does not answer, and who is in which group is not known.
    user: { ...context.user, id: Number(context.user.id), groups: context.hasGroups ? context.user.groups : null },
    context_age_ms: verdict.contextAgeMs,
  };
}

/** Policies before they are saved (docs/authorization.md "Policies"). */
export function policyRoutes({ db, policies, schema }: PoliciesApiParts): Route[] {
  return [
    {
      method: 'POST',
      path: '/api/admin/policies/check',
      guard: 'admin',
      key: ['read', 'access'],
      async handle({ json }) {
        const { expression } = parseBody(checkBody, await json());
        const errors = policyProblems(expression, schema);
        const valid = errors.length === 0;
        const warnings = valid ? await policyWarnings(db, expression, '/expression') : [];
        return jsonReply(200, { valid, type: valid ? 'bool' : null, errors, warnings });
      },
    },
    {
      method: 'POST',
      path: '/api/admin/policies/try',
      guard: 'admin',
      key: ['read', 'access'],
      async handle({ json }) {
        const body = parseBody(tryBody, await json());
        try {
          const trial = await policies.tryOut(body.expression, body.user, present(body.attributes));
          if (trial === null) throw new ServiceError('not_found', `there is no user ${body.user}`);
          const warnings = await policyWarnings(db, body.expression, '/expression');
          return jsonReply(200, { ...trialJson(body.expression, trial), warnings });
        } catch (error) {
          if (error instanceof PolicyError) throw policyRefused(body.expression, error, '/expression');
          if (error instanceof GraphError) throw graphAway(error);
          throw error;
        }
      },
    },
  ];
}

/** What an administrator is told when the graph does not answer. */
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
