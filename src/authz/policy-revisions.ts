import type { Actor } from '../audit/audit-log.ts';
import type { Queryable } from '../db/database.ts';
import { findRow, findRows } from '../db/rows.ts';

/** The trigger or command a policy belongs to. */
export type PolicyOwner = { pluginId: string; kind: 'trigger' | 'command'; name: string };

/** One stored revision of a policy. */
export type PolicyRevision = {
  id: number;
  expression: string;
  authorUserId: number | null;
  authorName: string;
  at: Date;
};

/**
 * Stores a revision of a policy, in the transaction that changes the policy. An empty expression means that it was
 * removed.
 */
export async function appendRevision(client: Queryable, of: PolicyOwner, expression: string, by: Actor): Promise<void> {
  await client.query(
    `INSERT INTO policy_revisions (plugin_id, kind, name, expression, author_user_id, author_name)
     VALUES ($1, $2, $3, $4, $5, $6)`,
    [of.pluginId, of.kind, of.name, expression, by.userId, by.name],
  );
}

/** Lists revisions, newest first. */
export async function listRevisions(
  db: Queryable,
  of: PolicyOwner,
  before: number,
  limit: number,
): Promise<PolicyRevision[]> {
  return await findRows<PolicyRevision>(
    db,
    `SELECT id, expression, author_user_id, author_name, at FROM policy_revisions
     WHERE plugin_id = $1 AND kind = $2 AND name = $3 AND id < $4 ORDER BY id DESC LIMIT $5`,
    [of.pluginId, of.kind, of.name, before, limit],
  );
}

export async function findRevision(db: Queryable, of: PolicyOwner, id: number): Promise<PolicyRevision | undefined> {
  return await findRow<PolicyRevision>(
    db,
    `SELECT id, expression, author_user_id, author_name, at FROM policy_revisions
     WHERE plugin_id = $1 AND kind = $2 AND name = $3 AND id = $4`,
    [of.pluginId, of.kind, of.name, id],
  );
}
