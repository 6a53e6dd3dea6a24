import { type Actor, appendAudit } from '../audit/audit-log.ts';
import { ServiceError } from '../base/errors.ts';
import { IMPORTED_ROLES } from '../base/imported-roles.ts';
import { LIMITS } from '../base/limits.ts';
import type { Database, Queryable } from '../db/database.ts';
import { holdUser } from '../db/held-rows.ts';
import { findRows } from '../db/rows.ts';
import { notifyIdentity, notifyUsers } from './identity-changes.ts';

/**
 * A role in the database, which policies check with has_role (docs/authorization.md "What a policy knows"). Roles of
 * commands are in the graph.
 */
export type UserRole = {
  userId: number;
  role: string;
  grantedAt: Date;
  grantedBy: string;
  /** `import`: granted by university data, which also removes it. */
  origin: 'import' | 'manual';
};

const COLUMNS = 'global_user_id AS user_id, role, granted_at, granted_by, origin';

/** Lists the roles of a user, ordered by name. */
export async function listUserRoles(db: Queryable, userId: number): Promise<UserRole[]> {
  return await findRows<UserRole>(db, `SELECT ${COLUMNS} FROM user_roles WHERE global_user_id = $1 ORDER BY role`, [
    userId,
  ]);
}

/** A user who has a role. */
export type RoleHolder = Omit<UserRole, 'userId' | 'role'> & {
  id: number;
  displayName: string;
  externalId: string | null;
};

/** Lists the holders of a role, newest users first. */
export async function listRoleHolders(
  db: Queryable,
  role: string,
  before: number,
  limit: number,
): Promise<RoleHolder[]> {
  return await findRows<RoleHolder>(
    db,
    `SELECT u.id, u.display_name, u.external_id, r.origin, r.granted_at, r.granted_by
     FROM user_roles r JOIN global_users u ON u.id = r.global_user_id
     WHERE r.role = $1 AND u.id < $2 ORDER BY u.id DESC LIMIT $3`,
    [role, before, limit],
  );
}

/** Lists all granted roles, and those that imports give, with the number of holders. */
export async function listRoleNames(
  db: Queryable,
): Promise<Array<{ role: string; holders: number; imported: boolean }>> {
  return await findRows<{ role: string; holders: number; imported: boolean }>(
    db,
    `SELECT role, count(global_user_id) AS holders, role = ANY($1) AS imported
     FROM (SELECT role, global_user_id FROM user_roles UNION ALL SELECT unnest($1::text[]), NULL) AS known
     GROUP BY role ORDER BY role`,
    [IMPORTED_ROLES],
  );
}

/**
 * Grants a role to a user. A role from an import becomes manual, so that an import does not remove it any more.
 *
 * @returns whether the role is new
 * @throws ServiceError `conflict` if the user has the maximum number of roles
 */
export async function grantUserRole(db: Database, userId: number, role: string, by: Actor): Promise<boolean> {
  return await db.withTransaction(async client => {
    // Locks the user, so that concurrent grants are counted one after another.
    await holdUser(client, userId);
    const before = await listUserRoles(client, userId);
    const known = before.find(r => r.role === role);
    if (known?.origin === 'manual') return false;
    if (known === undefined && before.length >= LIMITS.userRolesMax)
      throw new ServiceError(
        'conflict',
        `user ${userId} has ${LIMITS.userRolesMax} roles, the maximum (userRolesMax); revoke one first`,
      );
    await client.query(
      `INSERT INTO user_roles (global_user_id, role, granted_by) VALUES ($1, $2, $3)
       ON CONFLICT (global_user_id, role) DO UPDATE SET origin = 'manual', granted_by = excluded.granted_by, granted_at = now()`,
      [userId, role, by.name],
    );
    await appendAudit(client, by, {
      action: 'user.grant_role',
      objectType: 'user',
      objectId: String(userId),
      after: { kind: 'database', role },
    });
    await notifyIdentity(client, { what: 'user', id: userId });
    return true;
  });
}

/** @returns whether the user had it */
export async function revokeUserRole(db: Database, userId: number, role: string, by: Actor): Promise<boolean> {
  return await db.withTransaction(async client => {
    const { rowCount } = await client.query('DELETE FROM user_roles WHERE global_user_id = $1 AND role = $2', [
      userId,
      role,
    ]);
    if (rowCount === 0) return false;
    await appendAudit(client, by, {
      action: 'user.revoke_role',
      objectType: 'user',
      objectId: String(userId),
      before: { kind: 'database', role },
    });
    await notifyIdentity(client, { what: 'user', id: userId });
    return true;
  });
}

/** Takes the roles that imports gave from a user who is another person now. Part of a transaction, which notifies. */
export async function removeImportedRoles(client: Queryable, userId: number): Promise<void> {
  await client.query("DELETE FROM user_roles WHERE global_user_id = $1 AND origin = 'import'", [userId]);
}

/**
 * Grants a role to persons who have it according to the university's data, and revokes it from persons who had it only
 * from an import. Part of a transaction.
 *
 * @param persons external ids of all persons to check
 * @param holders external ids of those who have the role
 */
export async function setImportedRole(
  client: Queryable,
  role: string,
  persons: readonly string[],
  holders: ReadonlySet<string>,
): Promise<void> {
  const { rows: given } = await client.query<{ id: string }>(
    `INSERT INTO user_roles (global_user_id, role, granted_by, origin)
     SELECT id, $1, 'university import', 'import' FROM global_users WHERE external_id = ANY($2) ORDER BY id
     ON CONFLICT DO NOTHING RETURNING global_user_id AS id`,
    [role, persons.filter(p => holders.has(p))],
  );
  const { rows: taken } = await client.query<{ id: string }>(
    `DELETE FROM user_roles r USING global_users u
     WHERE r.global_user_id = u.id AND r.role = $1 AND r.origin = 'import' AND u.external_id = ANY($2)
     RETURNING u.id`,
    [role, persons.filter(p => !holders.has(p))],
  );
  await notifyUsers(
    client,
    [...given, ...taken].map(r => r.id),
  );
}
