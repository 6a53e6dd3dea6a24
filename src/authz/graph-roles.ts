import { type Actor, appendAudit } from '../audit/audit-log.ts';
import { LIMITS } from '../base/limits.ts';
import type { Database, Queryable } from '../db/database.ts';
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

const membership = (r: GraphRole, externalId: string): Tuple => ({
  ...roleObject(r),
  relation: 'member',
  subjectType: 'user',
  subjectId: externalId,
  subjectRelation: '',
});

/** Grants or revokes a role, through the outbox. @returns null if nothing changes */
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
      const kind = kinds[k] ?? 'system';
      if (kind !== 'plugin') return { kind, role: resourceId, origin, grantedAt };
      const slash = resourceId.indexOf('/');
      return { kind, pluginId: resourceId.slice(0, slash), role: resourceId.slice(slash + 1), origin, grantedAt };
    }),
  );
}
