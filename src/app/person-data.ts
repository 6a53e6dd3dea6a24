import { type Actor, appendAudit, eraseAuditOf, listAudit, listAuditAbout } from '../audit/audit-log.ts';
import { ServiceError } from '../base/errors.ts';
import { LIMITS } from '../base/limits.ts';
import type { Database, Queryable } from '../db/database.ts';
import { holdUser } from '../db/held-rows.ts';
import { LOCKS, lockForTransaction } from '../db/locks.ts';
import { eraseFilesOf, listFilesOf } from '../files/file-records.ts';
import { readGraphSchema } from '../graph/graph-schema.ts';
import { findAdmin } from '../identity/admin-accounts.ts';
import { findUser, findUserByExternalId, type GlobalUser } from '../identity/find-users.ts';
import { notifyIdentity } from '../identity/identity-changes.ts';
import { listAccounts } from '../identity/messenger-accounts.ts';
import { readSecondFactor } from '../identity/second-factor.ts';
import { listSessions } from '../identity/sessions.ts';
import { listUserRoles } from '../identity/user-roles.ts';
import { listUserTokens } from '../identity/user-tokens.ts';
import { eraseUser } from '../identity/users.ts';
import { eraseMessagesOf, listMessagesOf } from '../messaging/outgoing.ts';
import { eraseUpdatesOf, listUpdatesOf } from '../messaging/updates.ts';
import { appendGraphChanges } from '../outbox/append.ts';
import { listSubjectTuples } from '../outbox/mirror.ts';
import { eraseCaller, listExecutionsOf } from '../records/execution-records.ts';
import { eraseRequestsOf, listRequestsOf } from '../records/idempotent-requests.ts';
import { listRecordingsOf } from '../records/stored-recordings.ts';
import { eraseImportsOf } from '../university/import-log.ts';
import { erasePersonRecords, readPersonRecords } from '../university/person-records.ts';

/** A person as the service knows one: a user, or a record of the university, or both. */
export type Person = { user: GlobalUser | null; externalId: string | null; label: string };

/** At most that many rows of one kind; what is over ages out. */
const ROWS_MAX = 100_000;
const RECORDING_BYTES_MAX = 64 * 2 ** 20;
const LATEST = Number.MAX_SAFE_INTEGER;

function personOf(user: GlobalUser): Person {
  const { externalId, id } = user;
  return { user, externalId, label: `user ${id}${externalId === null ? '' : ` (${externalId})`}` };
}

/** The person with an account. */
export async function findPersonOfUser(db: Database, id: number): Promise<Person | undefined> {
  const user = await findUser(db, id);
  return user === undefined ? undefined : personOf(user);
}

/** The person with an external id, who may have no account. */
export async function findPerson(db: Database, externalId: string): Promise<Person | undefined> {
  const user = await findUserByExternalId(db, externalId);
  if (user !== undefined) return personOf(user);
  const isRecorded = (await readPersonRecords(db, externalId)).persons.length > 0;
  return isRecorded ? { user: null, externalId, label: `person ${externalId}` } : undefined;
}

const none = { items: [] as const };

/** Names of passkeys, and since when an app counts; never a secret. */
async function secondFactorOf(db: Database, userId: number) {
  const { passkeys, recoveryCodes, totpSince } = await readSecondFactor(db, userId);
  return {
    passkeys: passkeys.map(({ createdAt, lastUsedAt, name, rpId }) => ({ name, host: rpId, createdAt, lastUsedAt })),
    totp_since: totpSince,
    recovery_codes: recoveryCodes,
  };
}

/** Everything the service holds of a person but the bytes of their files; never a secret or its hash. */
export async function exportPerson(db: Database, person: Person) {
  const { externalId, user } = person;
  const ofUser = async <T>(read: (id: number) => Promise<T[]>): Promise<readonly T[]> =>
    user === null ? none.items : await read(user.id);
  const accounts = await ofUser(id => listAccounts(db, id));
  const executions = await ofUser(id => listExecutionsOf(db, id, ROWS_MAX));
  return {
    made_at: new Date(),
    user,
    administrator: user === null ? null : ((await findAdmin(db, user.id)) ?? null),
    second_factor: user === null ? null : await secondFactorOf(db, user.id),
    university: externalId === null ? {} : await readPersonRecords(db, externalId),
    relationships: externalId === null ? [] : await listSubjectTuples(db, 'user', externalId),
    roles: await ofUser(id => listUserRoles(db, id)),
    sessions: await ofUser(id => listSessions(db, id, LATEST, ROWS_MAX)),
    tokens: await ofUser(id => listUserTokens(db, id, LATEST, ROWS_MAX)),
    messenger_accounts: accounts,
    messages: await ofUser(id => listMessagesOf(db, id, accounts, ROWS_MAX)),
    incoming_messages: await listUpdatesOf(db, accounts, ROWS_MAX),
    requests: await ofUser(id => listRequestsOf(db, id)),
    files: await ofUser(id => listFilesOf(db, id)),
    executions,
    recordings: await ofUser(id => listRecordingsOf(db, id, RECORDING_BYTES_MAX)),
    audit_about: await ofUser(id => listAuditAbout(db, { userId: id, externalId }, ROWS_MAX)),
    audit: await ofUser(id => listAudit(db, { actorUserId: id, before: LATEST, limit: ROWS_MAX })),
    plugins: [...new Set(executions.map(e => e.pluginId))],
  };
}

export type Erased = { removed: Record<string, number>; remarks: readonly string[] };

const KEPT = [
  'entries of the audit log stay until retention.audit, without name, address and what they say of the person',
  'recordings of executions that others caused may name the person, until they are removed for their age',
  'executions of commands from a messenger account before it was linked may name the person, until they are removed for their age',
  'answers kept for requests of administrators with an Idempotency-Key may name the person, for a day',
  `entries of the outbox name the external id for ${LIMITS.outboxDays} days, errors of imports until retention.imports`,
];

async function eraseOfUser(client: Queryable, user: GlobalUser): Promise<Record<string, number>> {
  // An appointment that is made meanwhile would go with the user.
  await holdUser(client, user.id);
  if ((await findAdmin(client, user.id)) !== undefined)
    throw new ServiceError(
      'conflict',
      `user ${user.id} is an administrator: end the appointment first, with DELETE /api/admin/admins/${user.id}`,
    );
  const accounts = await listAccounts(client, user.id);
  const messages = await eraseMessagesOf(client, user.id, accounts);
  const updates = await eraseUpdatesOf(client, accounts);
  const files = await eraseFilesOf(client, user.id);
  await eraseRequestsOf(client, user.id);
  await eraseUser(client, user.id);
  // Records that were being written held the user until here; those that come after find none.
  const executions = await eraseCaller(client, user.id);
  await notifyIdentity(client, { what: 'user', id: user.id });
  return { user: 1, messages, 'incoming messages': updates, files, 'executions made nameless': executions };
}

/**
 * Erases a person in one transaction: rights end with it, here and in the graph.
 *
 * @throws ServiceError `conflict` for an administrator
 */
export async function erasePerson(db: Database, { externalId, user }: Person, by: Actor): Promise<Erased> {
  return await db.withTransaction(async client => {
    // Before anything an import holds.
    await lockForTransaction(client, LOCKS.universityImport);
    const removed = user === null ? {} : await eraseOfUser(client, user);
    const records = externalId === null ? 0 : await erasePersonRecords(client, externalId);
    if (externalId !== null) await eraseImportsOf(client, externalId);
    const tuples = externalId === null ? [] : await listSubjectTuples(client, 'user', externalId);
    const entries = await eraseAuditOf(client, user?.id ?? null, externalId);
    const all = {
      ...removed,
      'records of the university': records,
      relationships: tuples.length,
      'entries of the audit log made nameless': entries,
    };
    await appendAudit(client, by, {
      action: 'person.erase',
      objectType: 'user',
      // Without a name or an external id: this is to last.
      objectId: user === null ? '' : String(user.id),
      after: all,
    });
    // Others that change the graph wait from here to the commit; what was added since it was counted goes too.
    if (externalId !== null) {
      const filter = { subjectType: 'user', subjectId: externalId };
      for (const origin of ['import', 'manual'] as const)
        await appendGraphChanges(client, readGraphSchema(), origin, [{ operation: 'DELETE_BY_SUBJECT', filter }]);
    }
    const remarks = records > 0 ? [...KEPT, 'a pull brings the records back as long as the source has them'] : KEPT;
    return { removed: all, remarks };
  });
}

/** Exports and erases the data of persons for administrators, over the API. */
export const personParts = (db: Database) => ({
  async exportUser(id: number): Promise<object | undefined> {
    const person = await findPersonOfUser(db, id);
    return person === undefined ? undefined : await exportPerson(db, person);
  },
  async eraseUser(id: number, by: Actor): Promise<Erased | undefined> {
    const person = await findPersonOfUser(db, id);
    return person === undefined ? undefined : await erasePerson(db, person, by);
  },
});
