import { type Actor, appendAudit } from '../audit/audit-log.ts';
import { ServiceError } from '../base/errors.ts';
import { LIMITS } from '../base/limits.ts';
import type { Database, Queryable } from '../db/database.ts';
import { notifyIdentity, notifyUsers } from './identity-changes.ts';

/** Roles of the database, which policies ask for with has_role (docs/authorization.md "What a policy knows"). Roles of commands are in the graph. */
export type UserRole = {
  userId: number;
  role: string;
  grantedAt: Date;
  grantedBy: string;
  /** `import`: university data gave it, and takes it away again. */
  origin: 'import' | 'manual';
};

type RoleSql = {
  global_user_id: string;
  role: string;
  granted_at: Date;
  granted_by: string;
  origin: UserRole['origin'];
};

const toRole = (r: RoleSql): UserRole => ({
  userId: Number(r.global_user_id),
  role: r.role,
  grantedAt: r.granted_at,
  grantedBy: r.granted_by,
  origin: r.origin,
});

/** Roles of a user in the order of their names. */
export async function listUserRoles(db: Queryable, userId: number): Promise<UserRole[]> {
  const { rows } = await db.query<RoleSql>('SELECT * FROM user_roles WHERE global_user_id = $1 ORDER BY role', [
    userId,
  ]);
  return rows.map(toRole);
}

/** Who has a role, newest users first. */
export async function listRoleHolders(db: Queryable, role: string, before: number, limit: number): Promise<UserRole[]> {
  const { rows } = await db.query<RoleSql>(
    'SELECT * FROM user_roles WHERE role = $1 AND global_user_id < $2 ORDER BY global_user_id DESC LIMIT $3',
    [role, before, limit],
  );
  return rows.map(toRole);
}

/** Every role that is held, with the number of its holders. */
export async function listRoleNames(db: Queryable): Promise<Array<{ role: string; holders: number }>> {
  const { rows } = await db.query<{ role: string; holders: string }>(
    'SELECT role, count(*) AS holders FROM user_roles GROUP BY role ORDER BY role',
  );
  return rows.map(r => ({ role: r.role, holders: Number(r.holders) }));
}

/**
 * Gives a user a role; one that is there stays as it is, but for one of an import, which an import cannot take away any more.
 *
 * @returns whether it is new
 * @throws ServiceError `conflict` when the user has as many as one may have
 */
export async function grantUserRole(db: Database, userId: number, role: string, by: Actor): Promise<boolean> {
  return await db.withTransaction(async client => {
    // Two grants at the same time are counted one after the other.
    await client.query('SELECT 1 FROM global_users WHERE id = $1 FOR UPDATE', [userId]);
    const before = await listUserRoles(client, userId);
    const known = before.find(r => r.role === role);
    if (known?.origin === 'manual') return false;
    if (known === undefined && before.length >= LIMITS.userRolesMax)
      throw new ServiceError(
        'conflict',
        `user ${userId} has ${LIMITS.userRolesMax} roles, which is as many as one may have`,
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

/**
 * Gives a role to those persons who have it by the university's data, and takes it from those who had it by them alone. Part of a
 * transaction.
 *
 * @param persons external ids of all who are asked about
 * @param holders those of them who have it
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
