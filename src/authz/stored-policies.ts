import type { Queryable } from '../db/database.ts';
import { findRows } from '../db/rows.ts';
import { compilePolicy } from './policy.ts';
import { PolicyError } from './policy-ast.ts';
import type { PolicyOwner } from './policy-revisions.ts';

/** Lists all stored policies with the trigger or command they belong to. */
export async function listStoredPolicies(db: Queryable): Promise<Array<{ of: PolicyOwner; expression: string }>> {
  const rows = await findRows<PolicyOwner & { expression: string }>(
    db,
    `SELECT plugin_id, 'trigger' AS kind, trigger_name AS name, policy_expression AS expression
       FROM plugin_trigger_settings WHERE policy_expression <> ''
     UNION ALL
     SELECT plugin_id, 'command', command, policy_expression FROM plugin_command_settings WHERE policy_expression <> ''`,
  );
  return rows.map(({ expression, ...of }) => ({ of, expression }));
}

/** Policies compiled before other work gets a turn. */
const AT_ONCE = 20;

/**
 * Finds stored policies that do not compile in this release. They refuse every caller, so administrators must know of
 * them.
 *
 * @param report called with each one and the reason
 */
export async function findBrokenPolicies(
  db: Queryable,
  report: (of: PolicyOwner, reason: string) => void,
): Promise<void> {
  const policies = await listStoredPolicies(db);
  for (const [k, { expression, of }] of policies.entries()) {
    if (k % AT_ONCE === AT_ONCE - 1) await new Promise(resolve => setImmediate(resolve));
    try {
      compilePolicy(expression);
    } catch (error) {
      if (!(error instanceof PolicyError)) throw error;
      report(of, error.all.map(e => e.message).join('; '));
    }
  }
}
