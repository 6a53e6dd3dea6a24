import { type Actor, appendAudit } from '../audit/audit-log.ts';
import { LIMITS } from '../base/limits.ts';
import type { Database, Queryable } from '../db/database.ts';
import { pluginRoleId } from '../graph/graph-ids.ts';
import type { GraphSchema } from '../graph/graph-schema.ts';
import type { Tuple } from '../graph/tuple.ts';
import { type Appended, appendGraphChanges, type GraphChange } from '../outbox/append.ts';
import { listByPrefix, listRelationships } from '../outbox/mirror.ts';

/** A role commands ask for (docs/authorization.md "Commands"). Those of a plugin are its own. */
export type GraphRole =
  | { kind: 'system' | 'global'; role: string }
  | { kind: 'plugin'; pluginId: string; role: string };

/** The object of the graph a role is. */
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

/** Gives or takes a role, through the outbox. @returns null when nothing changes */
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
    // A role that an import brought becomes one that was given by hand, and stays.
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

/** The roles of a plugin that is uninstalled go with it: another plugin of that id must not find holders of its roles. */
export async function removePluginRoles(client: Queryable, schema: GraphSchema, pluginId: string): Promise<void> {
  const all = await listByPrefix(client, 'plugin_role', pluginRoleId(pluginId, ''));
  // One that the schema no longer knows must not keep the plugin.
  const tuples = all.filter(tuple => schema.problems(tuple).length === 0);
  const changes: GraphChange[] = [];
  for (let i = 0; i < tuples.length; i += LIMITS.outboxTuplesMax)
    changes.push({ operation: 'DELETE', tuples: tuples.slice(i, i + LIMITS.outboxTuplesMax) });
  if (changes.length > 0) await appendGraphChanges(client, schema, 'manual', changes);
}

const filterOf = ({ subjectRelation: _, ...filter }: Tuple) => filter;

/** The roles of a user as the graph should have them. */
export async function listGraphRoles(db: Database, externalId: string): Promise<GraphRole[]> {
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
    list.map(({ tuple: { resourceId } }): GraphRole => {
      const kind = kinds[k] ?? 'system';
      if (kind !== 'plugin') return { kind, role: resourceId };
      const slash = resourceId.indexOf('/');
      return { kind, pluginId: resourceId.slice(0, slash), role: resourceId.slice(slash + 1) };
    }),
  );
}
