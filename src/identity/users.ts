import type { Queryable } from '../db/database.ts';

/** A person (service.md 2.7, 2.11). */
export type GlobalUser = {
  id: number;
  externalId: string | null;
  idpAccountsId: string | null;
  displayName: string;
  locale: 'ru' | 'en';
};

type UserSql = {
  id: string;
  external_id: string | null;
  idp_accounts_id: string | null;
  display_name: string;
  locale: 'ru' | 'en';
};

const toUser = (r: UserSql): GlobalUser => ({
  id: Number(r.id),
  externalId: r.external_id,
  idpAccountsId: r.idp_accounts_id,
  displayName: r.display_name,
  locale: r.locale,
});

export async function addUser(db: Queryable, displayName: string): Promise<GlobalUser> {
  const { rows } = await db.query<UserSql>('INSERT INTO global_users (display_name) VALUES ($1) RETURNING *', [
    displayName,
  ]);
  const row = rows[0];
  if (row === undefined) throw new Error('INSERT returned no row');
  return toUser(row);
}

export async function findUser(db: Queryable, id: number): Promise<GlobalUser | undefined> {
  const { rows } = await db.query<UserSql>('SELECT * FROM global_users WHERE id = $1', [id]);
  return rows[0] === undefined ? undefined : toUser(rows[0]);
}
