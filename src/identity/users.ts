import { type Actor, type AuditState, appendAudit } from '../audit/audit-log.ts';
import { ServiceError } from '../base/errors.ts';
import type { Database, Queryable } from '../db/database.ts';
import { LOCKS, lockForTransaction } from '../db/locks.ts';
import { findRow, loadRow } from '../db/rows.ts';
import { tupleText } from '../graph/tuple.ts';
import { holdGraph } from '../outbox/append.ts';
import { listRelationships } from '../outbox/mirror.ts';
import { endWithAccount } from './end-with-account.ts';
import { findUser, type GlobalUser } from './find-users.ts';
import { notifyIdentity, notifyUsers } from './identity-changes.ts';
import { decideLinks, type Link, type LinkCandidate, type LinkedPerson, type Links } from './link-persons.ts';
import type { UserAttributes } from './user-attributes.ts';
import { removeImportedRoles } from './user-roles.ts';

const NO_ATTRIBUTES: UserAttributes = {
  externalId: null,
  idpAccountsId: null,
  displayName: '',
  primaryChannel: null,
  locale: 'ru',
  nationalityType: null,
  fundingType: null,
  educationForm: null,
};

const valuesOf = (u: UserAttributes): unknown[] => [
  u.externalId,
  u.idpAccountsId,
  u.displayName,
  u.primaryChannel,
  u.locale,
  u.nationalityType,
  u.fundingType,
  u.educationForm,
];

/** Adds a user; absent attributes are unknown. Part of the caller's transaction, if there is one. */
export async function addUser(db: Queryable, attributes: Partial<UserAttributes>): Promise<GlobalUser> {
  return await loadRow<GlobalUser>(
    db,
    `INSERT INTO global_users (external_id, idp_accounts_id, display_name, primary_channel, locale, nationality_type, funding_type, education_form)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING *`,
    valuesOf({ ...NO_ATTRIBUTES, ...attributes }),
  );
}

/**
 * The user of an account of the identity provider; an account seen for the first time becomes an ordinary user
 * (docs/identity.md "Login with an identity provider"). The provider's name and language are used only for a new user.
 */
export async function findOrAddIdpUser(
  db: Queryable,
  account: { sub: string; name: string; locale: 'ru' | 'en' | null },
): Promise<GlobalUser> {
  return await loadRow<GlobalUser>(
    db,
    `INSERT INTO global_users (idp_accounts_id, display_name, locale) VALUES ($1, $2, coalesce($3, 'ru'))
     ON CONFLICT (idp_accounts_id) DO UPDATE SET
       display_name = CASE WHEN global_users.display_name = '' THEN EXCLUDED.display_name ELSE global_users.display_name END
     RETURNING *`,
    [account.sub, account.name, account.locale],
  );
}

/** Attributes with the names used in the API and in policies. */
export const userState = (u: UserAttributes) =>
  ({
    external_id: u.externalId,
    idp_accounts_id: u.idpAccountsId,
    display_name: u.displayName,
    primary_channel: u.primaryChannel,
    locale: u.locale,
    nationality_type: u.nationalityType,
    funding_type: u.fundingType,
    education_form: u.educationForm,
  }) satisfies AuditState;

function taken(error: unknown): never {
  if (error instanceof Error && 'constraint' in error) {
    const field = /^global_users_(external_id|idp_accounts_id)_key$/.exec(String(error.constraint))?.[1];
    if (field !== undefined)
      throw new ServiceError('conflict', `another user has this ${field}`, {
        errors: [{ pointer: `/${field}`, message: 'must not belong to another user', code: 'taken' }],
        cause: error,
      });
  }
  throw error;
}

/** Positions that are imported meanwhile would be missed. */
async function holdImports(client: Queryable): Promise<void> {
  await lockForTransaction(client, LOCKS.universityImport);
}

/** Gives the users of persons what the university's data give them (`university/settle`). @returns whose studies they say */
export type SettlePersons = (client: Queryable, externalIds: readonly string[]) => Promise<ReadonlySet<string>>;

/** The record of a user in the university's data. */
const OF_PERSON = 'FROM persons p WHERE p.external_id = global_users.external_id';

/**
 * A user whose external id is new has the roles, studies and attributes of that person, and none of another.
 *
 * @param given what the caller says, which counts more; what is written already stays where the data say nothing
 */
async function becomePerson(
  client: Queryable,
  { educationForm, externalId, fundingType, id }: GlobalUser,
  given: Partial<UserAttributes>,
  settle: SettlePersons,
): Promise<GlobalUser> {
  await removeImportedRoles(client, id);
  if (externalId !== null) await settle(client, [externalId]);
  return await loadRow<GlobalUser>(
    client,
    `UPDATE global_users SET funding_type = CASE WHEN $2 THEN $3 ELSE coalesce(funding_type, $3) END,
       education_form = CASE WHEN $4 THEN $5 ELSE coalesce(education_form, $5) END,
       nationality_type = CASE WHEN $6 THEN nationality_type ELSE coalesce((SELECT p.nationality_type ${OF_PERSON}), nationality_type) END,
       locale = CASE WHEN $7 THEN locale ELSE coalesce((SELECT p.locale ${OF_PERSON}), locale) END,
       primary_channel = CASE WHEN $8 THEN primary_channel ELSE coalesce((SELECT p.primary_channel ${OF_PERSON}), primary_channel) END
     WHERE id = $1 RETURNING *`,
    [
      id,
      given.fundingType !== undefined,
      fundingType,
      given.educationForm !== undefined,
      educationForm,
      given.nationalityType !== undefined,
      given.locale !== undefined,
      given.primaryChannel !== undefined,
    ],
  );
}

/** @throws ServiceError `conflict` when an id belongs to another user */
export async function createUser(
  db: Database,
  attributes: Partial<UserAttributes>,
  by: Actor,
  settle: SettlePersons,
): Promise<GlobalUser> {
  return await db
    .withTransaction(async client => {
      if (attributes.externalId != null) await holdImports(client);
      const added = await addUser(client, attributes);
      const user = added.externalId === null ? added : await becomePerson(client, added, attributes, settle);
      await appendAudit(client, by, {
        action: 'user.create',
        objectType: 'user',
        objectId: String(user.id),
        after: userState(user),
      });
      return user;
    })
    .catch(taken);
}

/**
 * Refuses to change an external id with manual relationships, which the next user with that id would inherit. @throws
 * ServiceError `conflict`
 */
async function assertNothingByHand(client: Queryable, externalId: string | null): Promise<void> {
  if (externalId === null) return;
  await holdGraph(client);
  const filter = { subjectType: 'user', subjectId: externalId, origin: 'manual' as const };
  const given = await listRelationships(client, filter, null, 5);
  if (given.length === 0) return;
  const examples = given.map(r => tupleText(r.tuple)).join(', ');
  throw new ServiceError(
    'conflict',
    `the next user with the external_id "${externalId}" would inherit its manual relationships; delete them first: ${examples}`,
    {
      errors: [
        { pointer: '/external_id', message: 'must stay while it has relationships of origin manual', code: 'in_use' },
      ],
    },
  );
}

/** Whether the university's data have a person with this id: what the user is called foreign by is theirs. */
const isPerson = async (client: Queryable, externalId: string): Promise<boolean> =>
  (await findRow(client, 'SELECT 1 AS one FROM persons WHERE external_id = $1', [externalId])) !== undefined;

/**
 * Changes the given attributes. With another external id the user is another person: what the university's data gave the
 * former one goes, and what they give this one comes. With another account what was opened with the former one ends.
 *
 * @returns undefined if there is no such user
 * @throws ServiceError `conflict` if an id belongs to another user, or the old external id has manual relationships
 */
export async function changeUser(
  db: Database,
  id: number,
  attributes: Partial<UserAttributes>,
  by: Actor,
  settle: SettlePersons,
): Promise<GlobalUser | undefined> {
  return await db
    .withTransaction(async client => {
      if (attributes.externalId !== undefined) await holdImports(client);
      await client.query('SELECT 1 FROM global_users WHERE id = $1 FOR UPDATE', [id]);
      const before = await findUser(client, id);
      if (before === undefined) return undefined;
      const isAnother = attributes.externalId !== undefined && attributes.externalId !== before.externalId;
      if (isAnother) await assertNothingByHand(client, before.externalId);
      const former = isAnother ? before.externalId : null;
      const isStudent = former !== null && (await settle(client, [former])).has(former);
      const studies = isStudent ? { fundingType: null, educationForm: null } : {};
      const ofData = former !== null && (await isPerson(client, former)) ? { nationalityType: null } : {};
      const written = await loadRow<GlobalUser>(
        client,
        `UPDATE global_users SET external_id = $1, idp_accounts_id = $2, display_name = $3, primary_channel = $4, locale = $5,
           nationality_type = $6, funding_type = $7, education_form = $8, updated_at = now() WHERE id = $9 RETURNING *`,
        [...valuesOf({ ...before, ...studies, ...ofData, ...attributes }), id],
      );
      const user = isAnother ? await becomePerson(client, written, attributes, settle) : written;
      await appendAudit(client, by, {
        action: 'user.change',
        objectType: 'user',
        objectId: String(id),
        before: userState(before),
        after: userState(user),
      });
      if (before.idpAccountsId !== null && before.idpAccountsId !== user.idpAccountsId)
        await endWithAccount(client, id);
      else await notifyIdentity(client, { what: 'user', id });
      return user;
    })
    .catch(taken);
}

/**
 * Creates or links the users of imported persons, with the accounts they log in with. A user who logged in before is
 * linked to the person. Part of a transaction.
 *
 * @returns the decisions; persons in `conflicts` were not changed
 */
export async function linkPersons(client: Queryable, persons: readonly LinkedPerson[]): Promise<Links> {
  const { rows } = await client.query<LinkCandidate>(
    `SELECT u.id, u.external_id, u.idp_accounts_id,
       EXISTS (SELECT 1 FROM sessions s WHERE s.global_user_id = u.id) OR EXISTS (SELECT 1 FROM user_tokens s WHERE s.global_user_id = u.id)
       OR EXISTS (SELECT 1 FROM files s WHERE s.user_id = u.id)
       OR EXISTS (SELECT 1 FROM messenger_accounts s WHERE s.global_user_id = u.id)
       OR EXISTS (SELECT 1 FROM user_roles s WHERE s.global_user_id = u.id AND s.origin = 'manual') AS is_used,
       EXISTS (SELECT 1 FROM admin_credentials s WHERE s.global_user_id = u.id) AS is_admin,
       EXISTS (SELECT 1 FROM persons p WHERE p.external_id = u.external_id AND p.is_active) AS is_person
     FROM global_users u WHERE u.external_id = ANY($1) OR u.idp_accounts_id = ANY($2) ORDER BY u.id FOR UPDATE OF u`,
    [persons.map(p => p.externalId), persons.map(p => p.idpAccountsId).filter(id => id !== null)],
  );
  const decided = decideLinks(persons, rows);
  const { absorbed, links, released } = decided;
  if (absorbed.length > 0) await client.query('DELETE FROM global_users WHERE id = ANY($1)', [absorbed]);
  const asRow = ({ id, idp, person: p }: Link) => ({
    id,
    external_id: p.externalId,
    idp_accounts_id: idp,
    display_name: p.displayName,
    primary_channel: p.primaryChannel,
    locale: p.locale,
    nationality_type: p.nationalityType,
  });
  const given = `jsonb_to_recordset($1::jsonb) AS g (id bigint, external_id text, idp_accounts_id text, display_name text,
    primary_channel text, locale text, nationality_type text)`;
  const present = JSON.stringify(links.filter(l => l.id !== null).map(asRow));
  // Clears changed accounts first, because users may exchange accounts.
  await client.query(
    `UPDATE global_users u SET idp_accounts_id = NULL FROM ${given}
     WHERE u.id = g.id AND u.idp_accounts_id IS DISTINCT FROM g.idp_accounts_id AND u.idp_accounts_id IS NOT NULL`,
    [present],
  );
  // Keeps attributes that the data do not have, because a user may have set them.
  await client.query('UPDATE global_users SET idp_accounts_id = NULL, updated_at = now() WHERE id = ANY($1)', [
    released,
  ]);
  const { rows: changed } = await client.query<{ id: string }>(
    `UPDATE global_users u SET external_id = g.external_id, idp_accounts_id = g.idp_accounts_id, display_name = g.display_name,
       primary_channel = coalesce(g.primary_channel, u.primary_channel), locale = coalesce(g.locale, u.locale),
       nationality_type = g.nationality_type, updated_at = now()
     FROM ${given} WHERE u.id = g.id AND (u.external_id, u.idp_accounts_id, u.display_name, u.primary_channel, u.locale, u.nationality_type)
       IS DISTINCT FROM (g.external_id, g.idp_accounts_id, g.display_name, coalesce(g.primary_channel, u.primary_channel), coalesce(g.locale, u.locale), g.nationality_type)
     RETURNING u.id`,
    [present],
  );
  await client.query(
    `INSERT INTO global_users (external_id, idp_accounts_id, display_name, primary_channel, locale, nationality_type)
     SELECT g.external_id, g.idp_accounts_id, g.display_name, g.primary_channel, coalesce(g.locale, 'ru'), g.nationality_type FROM ${given}`,
    [JSON.stringify(links.filter(l => l.id === null).map(asRow))],
  );
  await notifyUsers(client, [...changed.map(r => r.id), ...released]);
  return decided;
}

/** Sets the attributes of students that policies use, by external id. Part of a transaction. */
export async function setStudies(
  client: Queryable,
  studies: ReadonlyArray<{ externalId: string; fundingType: string | null; educationForm: string | null }>,
): Promise<void> {
  const { rows } = await client.query<{ id: string }>(
    `UPDATE global_users u SET funding_type = g.funding_type, education_form = g.education_form, updated_at = now()
     FROM jsonb_to_recordset($1::jsonb) AS g (external_id text, funding_type text, education_form text)
     WHERE u.external_id = g.external_id AND (u.funding_type, u.education_form) IS DISTINCT FROM (g.funding_type, g.education_form)
     RETURNING u.id`,
    [
      JSON.stringify(
        studies.map(s => ({ external_id: s.externalId, funding_type: s.fundingType, education_form: s.educationForm })),
      ),
    ],
  );
  const ids = rows.map(r => r.id);
  await notifyUsers(client, ids);
}

/** Removes a user with sessions, tokens, roles and linked accounts. What else names the user is taken away before. */
export async function eraseUser(client: Queryable, id: number): Promise<void> {
  await client.query('DELETE FROM global_users WHERE id = $1', [id]);
}
