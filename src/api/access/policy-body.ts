import { z } from 'zod';
import { compileForSaving, compilePolicy } from '../../authz/policy.ts';
import { PolicyError } from '../../authz/policy-ast.ts';
import { appendRevision, findRevision, listRevisions, type PolicyOwner } from '../../authz/policy-revisions.ts';
import { policyRoleWarnings } from '../../authz/role-warnings.ts';
import { ServiceError } from '../../base/errors.ts';
import { LIMITS } from '../../base/limits.ts';
import type { Database } from '../../db/database.ts';
import type { GraphSchema } from '../../graph/graph-schema.ts';
import type { TriggerPolicies } from '../../plugins/install-access.ts';
import { id, time, warning } from '../contract/fields.ts';
import { loadPage, pageOf } from '../contract/paging.ts';

/** Text of a policy; empty for none. */
export const policyText = z
  .string()
  .max(LIMITS.policyCharsMax, `must have at most ${LIMITS.policyCharsMax} characters`);

const count = z.int().nonnegative();

export const policyPosition = z
  .object({
    start: count.describe('Characters before it'),
    end: count.describe('Characters before what follows it'),
    line: z.int().positive(),
    column: z.int().positive(),
  })
  .meta({ id: 'PolicyPosition', description: 'Where in a policy something is' });

export const policyProblem = z
  .object({ message: z.string(), position: policyPosition })
  .meta({ id: 'PolicyProblem', description: 'A mistake in a policy' });

export const policyWarning = warning
  .extend({ position: policyPosition })
  .meta({ id: 'PolicyWarning', description: 'A place of a policy that is odd, and does not stop the request' });

export const policyRevision = z
  .object({
    id,
    expression: z.string().describe('The policy; empty where it was removed'),
    author_user_id: id.nullable(),
    author: z.string(),
    at: time,
  })
  .meta({ id: 'PolicyRevision' });

export const revisionPage = pageOf(policyRevision);

/** Where in a policy something is, in characters from 0, and as people count lines and columns. */
export function positionOf(source: string, start: number, end: number) {
  const before = source.slice(0, start).split('\n');
  return { start, end, line: before.length, column: (before.at(-1) ?? '').length + 1 };
}

/** Every mistake of a policy with its place. */
export const problemsOf = (source: string, e: PolicyError) =>
  e.all.map(({ end, message, start }) => ({ message, position: positionOf(source, start, end) }));

/** What is odd about a policy although it may be saved: roles no user has. */
export async function policyWarnings(db: Database, source: string, pointer: string) {
  const found = await policyRoleWarnings(db, source);
  return found.map(({ end, message, start }) => ({ pointer, message, position: positionOf(source, start, end) }));
}

/** What is wrong with a policy, each place; empty when it may be saved. */
export function policyProblems(source: string, schema: GraphSchema) {
  if (source === '') return [];
  try {
    compileForSaving(source, schema);
    return [];
  } catch (error) {
    if (error instanceof PolicyError) return problemsOf(source, error);
    throw error;
  }
}

/** Why a stored policy denies every caller: each mistake this release finds in it; empty when it is evaluated. */
export function storedPolicyProblems(source: string) {
  if (source === '') return [];
  try {
    compilePolicy(source);
    return [];
  } catch (error) {
    if (error instanceof PolicyError) return problemsOf(source, error);
    throw error;
  }
}

/**
 * A policy that may be saved.
 *
 * @param pointer of the policy in the body
 * @throws ServiceError `validation_failed` with the position
 */
export function assertPolicy(source: string, schema: GraphSchema, pointer: string): void {
  if (source === '') return;
  try {
    compileForSaving(source, schema);
  } catch (error) {
    if (error instanceof PolicyError) throw policyRefused(source, error, pointer);
    throw error;
  }
}

/** A refusal that names every mistake with its place. */
export function policyRefused(source: string, e: PolicyError, pointer: string): ServiceError {
  const problems = problemsOf(source, e);
  const errors = problems.map(({ message, position }) => ({
    pointer,
    message: `line ${position.line}, column ${position.column}: ${message}`,
  }));
  const more = errors.length === 1 ? '' : ` (and ${errors.length - 1} more)`;
  return new ServiceError('validation_failed', `the policy is refused at ${errors[0]?.message}${more}`, {
    errors,
    extra: { position: problems[0]?.position },
    cause: e,
  });
}

/** A page of what a policy was, newest first. */
export const loadRevisions = (db: Database, of: PolicyOwner, query: { limit: number; cursor?: number | undefined }) =>
  loadPage(
    query,
    (before, limit) => listRevisions(db, of, before, limit),
    r => ({ id: r.id, expression: r.expression, author_user_id: r.authorUserId, author: r.authorName, at: r.at }),
  );

/**
 * The expression of a revision.
 *
 * @throws ServiceError `not_found`, or `validation_failed` when this release would not take it any more
 */
export async function revisionToRestore(
  db: Database,
  schema: GraphSchema,
  of: PolicyOwner,
  revisionId: number,
): Promise<string> {
  const revision = await findRevision(db, of, revisionId);
  if (revision === undefined)
    throw new ServiceError('not_found', `the policy of ${of.kind} "${of.name}" has no revision ${revisionId}`);
  assertPolicy(revision.expression, schema, '');
  return revision.expression;
}

/** Policies of triggers, as the installation of a plugin checks and keeps them. */
export function triggerPolicies(schema: GraphSchema): TriggerPolicies {
  return {
    check: (expression, pointer) => assertPolicy(expression, schema, pointer),
    changed: (client, pluginId, name, expression, by) =>
      appendRevision(client, { pluginId, kind: 'trigger', name }, expression, by),
  };
}
