import { didYouMean } from '../base/nearest-name.ts';
import type { Queryable } from '../db/database.ts';
import { pluginRoleId } from '../graph/graph-ids.ts';
import { type GraphRole, roleObject } from './graph-roles.ts';
import { compilePolicy } from './policy.ts';
import { type ASTNode, childrenOf, PolicyError } from './policy-ast.ts';
import { listStoredPolicies } from './stored-policies.ts';

/** Roles are made by giving them, so a name with a typing error is no mistake, only a role that exists nowhere: a warning. */

/** A role a policy asks for, and where. */
type AskedRole = { role: string; start: number; end: number };

/** What an import of university data gives (university/settle): known before anybody has it. */
const IMPORTED_ROLES = ['student', 'teacher'];

/** Roles that stand in a policy as texts, in has_role, has_any_role and `"role" in user.roles`. */
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

/** Roles a policy asks for that no user has. */
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

/** What is odd about giving a user a role of the database; null when a command asks for it, or other users have it. */
export async function grantWarning(db: Queryable, userId: number, role: string): Promise<string | null> {
  const [held, policies] = await Promise.all([heldRoles(db, userId), listStoredPolicies(db)]);
  const known = new Set([...held, ...policies.flatMap(p => askedBy(p.expression).map(a => a.role))]);
  if (known.has(role)) return null;
  return `no policy asks for the role "${role}" and no other user has it${didYouMean(role, known)}`;
}

type CommandRolesSql = {
  plugin_id: string;
  system_role: string | null;
  global_roles: string[];
  plugin_role: string | null;
};

/** Ids of the objects of one kind of role that have a member, beside one of them. */
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

/** Names of one kind of role, for a suggestion; of a plugin's own roles alone. */
const namesLike = (r: GraphRole, ids: readonly string[]): string[] =>
  r.kind === 'plugin' ? ids.filter(id => id.startsWith(pluginRoleId(r.pluginId, ''))).map(nameOf) : [...ids];

/** What is odd about a command that asks for a role: no user has it. */
export async function commandRoleWarning(db: Queryable, role: GraphRole): Promise<string | null> {
  const { resourceId, resourceType } = roleObject(role);
  const held = await heldObjects(db, resourceType, null);
  return held.includes(resourceId)
    ? null
    : `no user has the ${textOf(role)}${didYouMean(role.role, namesLike(role, held))}`;
}

/** What is odd about giving a user a role of the graph; null when a command asks for it, or others have it. */
export async function graphGrantWarning(db: Queryable, externalId: string, role: GraphRole): Promise<string | null> {
  const { resourceId, resourceType } = roleObject(role);
  const held = await heldObjects(db, resourceType, externalId);
  const { rows } = await db.query<CommandRolesSql>(
    'SELECT plugin_id, system_role, global_roles, plugin_role FROM plugin_command_settings',
  );
  const asked = rows.flatMap(r => {
    if (role.kind === 'global') return r.global_roles;
    const name = role.kind === 'system' ? r.system_role : r.plugin_role;
    if (name === null) return [];
    return [role.kind === 'plugin' ? pluginRoleId(r.plugin_id, name) : name];
  });
  const known = [...new Set([...held, ...asked])];
  if (known.includes(resourceId)) return null;
  return `no command asks for the ${textOf(role)} and no other user has it${didYouMean(role.role, namesLike(role, known))}`;
}
