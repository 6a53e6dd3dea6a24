import { IMPORTED_ROLES } from '../base/imported-roles.ts';
import { didYouMean } from '../base/nearest-name.ts';
import type { Queryable } from '../db/database.ts';
import { findRows } from '../db/rows.ts';
import { pluginRoleId } from '../graph/graph-ids.ts';
import type { CommandSettings } from './command-settings.ts';
import { type GraphRole, roleObject } from './graph-roles.ts';
import { compilePolicy } from './policy.ts';
import { type ASTNode, childrenOf, PolicyError } from './policy-ast.ts';
import { listStoredPolicies } from './stored-policies.ts';

/**
 * Warnings about roles that exist nowhere. Granting a role creates it, so a typing error cannot be refused as a
 * mistake.
 */

/** A role that a policy names, and its position. */
type AskedRole = { role: string; start: number; end: number };

/** Roles named in a policy as literals, in has_role, has_any_role and `"role" in user.roles`. */
function rolesAskedIn(root: ASTNode): AskedRole[] {
  const found: AskedRole[] = [];
  const add = (n: ASTNode | undefined): void => {
    if (n?.op === 'value' && typeof n.args === 'string') found.push({ role: n.args, ...n.range });
  };
  const visit = (node: ASTNode): void => {
    if (node.op === 'call' && (node.args[0] === 'has_role' || node.args[0] === 'has_any_role'))
      node.args[1].forEach(add);
    if (node.op === 'in' && node.args[1].op === '.' && node.args[1].args[1] === 'roles') add(node.args[0]);
    childrenOf(node).forEach(visit);
  };
  visit(root);
  return found;
}

function askedBy(expression: string): AskedRole[] {
  try {
    return expression === '' ? [] : rolesAskedIn(compilePolicy(expression).run.ast);
  } catch (error) {
    if (error instanceof PolicyError) return [];
    throw error;
  }
}

async function heldRoles(db: Queryable, besideUser: number | null): Promise<Set<string>> {
  const { rows } = await db.query<{ role: string }>(
    'SELECT DISTINCT role FROM user_roles WHERE $1::bigint IS NULL OR global_user_id <> $1',
    [besideUser],
  );
  return new Set([...rows.map(r => r.role), ...IMPORTED_ROLES]);
}

/** Warnings about roles that a policy names and no user has. */
export async function policyRoleWarnings(
  db: Queryable,
  expression: string,
): Promise<Array<{ message: string; start: number; end: number }>> {
  const asked = askedBy(expression);
  if (asked.length === 0) return [];
  const held = await heldRoles(db, null);
  return asked
    .filter(a => !held.has(a.role))
    .map(({ end, role, start }) => ({
      message: `no user has the role "${role}"${didYouMean(role, held)}`,
      start,
      end,
    }));
}

/** A warning about granting a user role; null if a policy names the role or another user has it. */
export async function grantWarning(db: Queryable, userId: number, role: string): Promise<string | null> {
  const [held, policies] = await Promise.all([heldRoles(db, userId), listStoredPolicies(db)]);
  const known = new Set([...held, ...policies.flatMap(p => askedBy(p.expression).map(a => a.role))]);
  if (known.has(role)) return null;
  return `no policy asks for the role "${role}" and no other user has it${didYouMean(role, known)}`;
}

/** Object ids of one kind of role that have a member other than the given user. */
async function heldObjects(db: Queryable, type: string, besideExternalId: string | null): Promise<string[]> {
  const { rows } = await db.query<{ resource_id: string }>(
    `SELECT DISTINCT resource_id FROM authz_tuples WHERE resource_type = $1 AND relation = 'member'
       AND ($2::text IS NULL OR subject_id <> $2)`,
    [type, besideExternalId],
  );
  return rows.map(r => r.resource_id);
}

const nameOf = (id: string): string => id.slice(id.indexOf('/') + 1);
const textOf = (r: GraphRole): string =>
  r.kind === 'plugin' ? `plugin role "${r.role}" of "${r.pluginId}"` : `${r.kind} role "${r.role}"`;

/** Names of roles of the same kind, for a suggestion; for a plugin role only those of the same plugin. */
const namesLike = (r: GraphRole, ids: readonly string[]): string[] =>
  r.kind === 'plugin' ? ids.filter(id => id.startsWith(pluginRoleId(r.pluginId, ''))).map(nameOf) : [...ids];

/** A warning about a command that requires a role no user has. */
export async function commandRoleWarning(db: Queryable, role: GraphRole): Promise<string | null> {
  const { resourceId, resourceType } = roleObject(role);
  const held = await heldObjects(db, resourceType, null);
  return held.includes(resourceId)
    ? null
    : `no user has the ${textOf(role)}${didYouMean(role.role, namesLike(role, held))}`;
}

/** A warning about granting a graph role; null if a command requires it or another user has it. */
export async function graphGrantWarning(db: Queryable, externalId: string, role: GraphRole): Promise<string | null> {
  const { resourceId, resourceType } = roleObject(role);
  const held = await heldObjects(db, resourceType, externalId);
  const rows = await findRows<
    Pick<CommandSettings, 'systemRole' | 'globalRoles' | 'pluginRole'> & { pluginId: string }
  >(db, 'SELECT plugin_id, system_role, global_roles, plugin_role FROM plugin_command_settings');
  const asked = rows.flatMap(r => {
    if (role.kind === 'global') return r.globalRoles;
    const name = role.kind === 'system' ? r.systemRole : r.pluginRole;
    if (name === null) return [];
    return [role.kind === 'plugin' ? pluginRoleId(r.pluginId, name) : name];
  });
  const known = [...new Set([...held, ...asked])];
  if (known.includes(resourceId)) return null;
  return `no command asks for the ${textOf(role)} and no other user has it${didYouMean(role.role, namesLike(role, known))}`;
}
