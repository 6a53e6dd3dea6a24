import type { Queryable } from '../db/database.ts';
import { unknownUser } from '../db/held-rows.ts';
import { findRow, findRows } from '../db/rows.ts';
import type { UserAttributes } from './user-attributes.ts';

/** A person (docs/identity.md "Users"). */
export type GlobalUser = UserAttributes & { id: number; createdAt: Date; updatedAt: Date };

export async function findUser(db: Queryable, id: number): Promise<GlobalUser | undefined> {
  return await findRow<GlobalUser>(db, 'SELECT * FROM global_users WHERE id = $1', [id]);
}

/** @throws ServiceError `not_found` */
export async function requireUser(db: Queryable, id: number): Promise<GlobalUser> {
  const user = await findUser(db, id);
  if (user === undefined) throw unknownUser(id);
  return user;
}

/** The user with an id in the university's systems. */
export async function findUserByExternalId(db: Queryable, externalId: string): Promise<GlobalUser | undefined> {
  return await findRow<GlobalUser>(db, 'SELECT * FROM global_users WHERE external_id = $1', [externalId]);
}

/**
 * Lists users in descending order of ids.
 *
 * @param search part of the name, of the email that the university's data have or of the one an administrator logs in with; or
 *   a whole id: the university's, the account's, or ours as records of executions write it (`user:7`, `#7`); empty for all
 */
export async function listUsers(db: Queryable, search: string, before: number, limit: number): Promise<GlobalUser[]> {
  return await findRows<GlobalUser>(
    db,
    `SELECT * FROM global_users
     WHERE id < $1 AND ($3 = '' OR strpos(lower(display_name), lower($3)) > 0 OR external_id = $3 OR idp_accounts_id = $3
       OR $3 IN ('user:' || id, '#' || id)
       OR external_id IN (SELECT p.external_id FROM persons p WHERE strpos(lower(p.email), lower($3)) > 0)
       OR id IN (SELECT c.global_user_id FROM admin_credentials c WHERE strpos(lower(c.email), lower($3)) > 0))
     ORDER BY id DESC LIMIT $2`,
    [before, limit, search],
  );
}

/** How many users there are. */
export async function countUsers(db: Queryable): Promise<number> {
  const { rows } = await db.query<{ users: number }>('SELECT count(*)::int AS users FROM global_users');
  return rows[0]?.users ?? 0;
}
