import type { Queryable } from '../db/database.ts';
import { compilePolicy } from './policy.ts';
import { PolicyError } from './policy-ast.ts';
import type { PolicyOwner } from './policy-revisions.ts';

type PolicySql = { plugin_id: string; kind: PolicyOwner['kind']; name: string; expression: string };

/** Every policy that is set, with what it belongs to. */
export async function listStoredPolicies(db: Queryable): Promise<Array<{ of: PolicyOwner; expression: string }>> {
  const { rows } = await db.query<PolicySql>(
    `SELECT plugin_id, 'trigger' AS kind, trigger_name AS name, policy_expression AS expression
       FROM plugin_trigger_settings WHERE policy_expression <> ''
     UNION ALL
     SELECT plugin_id, 'command', command, policy_expression FROM plugin_command_settings WHERE policy_expression <> ''`,
  );
  return rows.map(r => ({ of: { pluginId: r.plugin_id, kind: r.kind, name: r.name }, expression: r.expression }));
}

/** Compiled between two looks at other work. */
const AT_ONCE = 20;

/**
 * Looks for policies that this release does not take: they deny everybody, so an administrator must hear of them.
 *
 * @param report told of each one and why
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
