import { type Actor, appendAudit } from '../audit/audit-log.ts';
import { ServiceError } from '../base/errors.ts';
import { LIMITS } from '../base/limits.ts';
import type { Database, Queryable } from '../db/database.ts';
import { holdPlugin, holdUser } from '../db/held-rows.ts';
import { findRows } from '../db/rows.ts';
import { pluginRoleId } from '../graph/graph-ids.ts';
import type { GraphSchema } from '../graph/graph-schema.ts';
import type { Tuple } from '../graph/tuple.ts';
import { type Appended, appendGraphChanges, type GraphChange, type Origin } from '../outbox/append.ts';
import { listByPrefix, listRelationships } from '../outbox/mirror.ts';

/** A role that commands can require (docs/authorization.md "Commands"). Each plugin has its own plugin roles. */
export type GraphRole =
  | { kind: 'system' | 'global'; role: string }
  | { kind: 'plugin'; pluginId: string; role: string };

/** The graph object that represents a role. */
export function roleObject(r: GraphRole): { resourceType: string; resourceId: string } {
  return r.kind === 'plugin'
    ? { resourceType: 'plugin_role', resourceId: pluginRoleId(r.pluginId, r.role) }
    : { resourceType: `${r.kind}_role`, resourceId: r.role };
}

/** The role that a graph object represents. */
function roleOf(kind: GraphRole['kind'], resourceId: string): GraphRole {
  if (kind !== 'plugin') return { kind, role: resourceId };
  const slash = resourceId.indexOf('/');
  return { kind, pluginId: resourceId.slice(0, slash), role: resourceId.slice(slash + 1) };
}

const membership = (r: GraphRole, externalId: string): Tuple => ({
  ...roleObject(r),
  relation: 'member',
  subjectType: 'user',
  subjectId: externalId,
  subjectRelation: '',
});

/**
 * Grants or revokes a role, through the outbox.
 *
 * @returns null if nothing changes
 * @throws ServiceError `conflict` when the user has got another external id
 */
export async function changeGraphRole(
  db: Database,
  schema: GraphSchema,
  user: { id: number; externalId: string },
  role: GraphRole,
  give: boolean,
  by: Actor,
): Promise<Appended | null> {
  const tuple = membership(role, user.externalId);
  return await db.withTransaction(async client => {
    // What is written for a former id the next user with that id would have.
    if ((await holdUser(client, user.id)) !== user.externalId)
      throw new ServiceError('conflict', `the external_id of user ${user.id} was changed meanwhile; try again`);
    if (give && role.kind === 'plugin') await holdPlugin(client, role.pluginId);
    const there = (await listRelationships(client, filterOf(tuple), null, 1))[0];
    // A role from an import becomes a manual one, so that later imports keep it.
    if (give ? there?.origin === 'manual' : there === undefined) return null;
    await appendAudit(client, by, {
      action: give ? 'user.grant_role' : 'user.revoke_role',
      objectType: 'user',
      objectId: String(user.id),
      [give ? 'after' : 'before']: role,
    });
    return await appendGraphChanges(client, schema, 'manual', [
      { operation: give ? 'TOUCH' : 'DELETE', tuples: [tuple] },
    ]);
  });
}

/**
 * Removes the roles of an uninstalled plugin, so that another plugin with the same id does not inherit their holders.
 */
export async function removePluginRoles(client: Queryable, schema: GraphSchema, pluginId: string): Promise<void> {
  const all = await listByPrefix(client, 'plugin_role', pluginRoleId(pluginId, ''));
  // A tuple that the schema does not allow any more must not prevent the uninstallation.
  const tuples = all.filter(tuple => schema.problems(tuple).length === 0);
  const changes: GraphChange[] = [];
  for (let i = 0; i < tuples.length; i += LIMITS.outboxTuplesMax)
    changes.push({ operation: 'DELETE', tuples: tuples.slice(i, i + LIMITS.outboxTuplesMax) });
  if (changes.length > 0) await appendGraphChanges(client, schema, 'manual', changes);
}

const filterOf = ({ subjectRelation: _, ...filter }: Tuple) => filter;

/** A role of a user with who gave it and when. */
export type HeldGraphRole = GraphRole & { origin: Origin; grantedAt: Date };

/** The roles of a user according to the mirror. */
export async function listGraphRoles(db: Database, externalId: string): Promise<HeldGraphRole[]> {
  const kinds = ['system', 'global', 'plugin'] as const;
  const lists = await Promise.all(
    kinds.map(kind =>
      listRelationships(
        db,
        { resourceType: `${kind}_role`, relation: 'member', subjectType: 'user', subjectId: externalId },
        null,
        1000,
      ),
    ),
  );
  return lists.flatMap((list, k) =>
    list.map(({ createdAt: grantedAt, origin, tuple: { resourceId } }): HeldGraphRole => {
      return { ...roleOf(kinds[k] ?? 'system', resourceId), origin, grantedAt };
    }),
  );
}

const HOLDERS = `authz_tuples a JOIN global_users u ON u.external_id = a.subject_id
  WHERE a.resource_type = $1 AND a.relation = 'member' AND a.subject_type = 'user' AND a.subject_relation = ''`;
const LISTED_MAX = 1000;

/** Lists the roles of a kind that users have, with the number of holders. */
export async function listGraphRoleNames(
  db: Queryable,
  kind: GraphRole['kind'],
): Promise<Array<GraphRole & { holders: number; imported: boolean }>> {
  const rows = await findRows<{ id: string; holders: number; imported: boolean }>(
    db,
    `SELECT a.resource_id AS id, count(*) AS holders, bool_or(a.origin = 'import') AS imported
     FROM ${HOLDERS} GROUP BY a.resource_id ORDER BY a.resource_id LIMIT ${LISTED_MAX}`,
    [`${kind}_role`],
  );
  return rows.map(({ id, ...of }) => ({ ...roleOf(kind, id), ...of }));
}

/** A user who has a role; the graph does not say who gave it. */
export type GraphRoleHolder = {
  id: number;
  displayName: string;
  externalId: string;
  origin: Origin;
  grantedAt: Date;
  grantedBy: null;
};

/** Lists the holders of a role, newest users first. */
export async function listGraphRoleHolders(
  db: Queryable,
  role: GraphRole,
  before: number,
  limit: number,
): Promise<GraphRoleHolder[]> {
  const { resourceId, resourceType } = roleObject(role);
  return await findRows<GraphRoleHolder>(
    db,
    `SELECT u.id, u.display_name, u.external_id, a.origin, a.created_at AS granted_at, NULL AS granted_by
     FROM ${HOLDERS} AND a.resource_id = $2 AND u.id < $3 ORDER BY u.id DESC LIMIT $4`,
    [resourceType, resourceId, before, limit],
  );
}
