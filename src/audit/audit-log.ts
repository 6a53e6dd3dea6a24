import type { Queryable } from '../db/database.ts';
import { REMOVED_AT_ONCE } from '../db/remove-in-batches.ts';
import { findRow, findRows, loadRow } from '../db/rows.ts';

export const ACTOR_KINDS = ['admin', 'admin_key', 'import_key', 'user', 'anonymous', 'setup', 'command_line'] as const;

/** The actor of a change, as the audit log stores it. */
export type Actor = {
  kind: (typeof ACTOR_KINDS)[number];
  /** For an administration key: the administrator who created it. Null where no account is known. */
  userId: number | null;
  /** The administration key that was used. */
  keyId?: number;
  name: string;
  requestId: string;
  address: string;
};

/** Everything that is recorded. */
export const AUDIT_ACTIONS = [
  'plugin.upload',
  'plugin.install',
  'plugin.rollback',
  'file.delete',
  'plugin.frontend',
  'plugin.frontend_access',
  'plugin.html_trust',
  'plugin.enable',
  'plugin.disable',
  'plugin.uninstall',
  'plugin.origins',
  'plugin.restore',
  'plugin.read_module',
  'execution.read_recording',
  'person.erase',
  'person.export',
  'plugin.resume',
  'trigger.settings',
  'trigger.resume',
  'admin_key.create',
  'admin_key.revoke',
  'admin_key.rotate',
  'service_key.create',
  'service_key.rotate',
  'service_key.revoke',
  'admin.setup',
  'admin.login',
  'admin.login_failed',
  'admin.confirm_failed',
  'admin.logout',
  'user.login',
  'user.logout',
  'admin.password',
  'admin.appoint',
  'admin.reset_password',
  'admin.remove',
  'admin.roles',
  'admin.add_passkey',
  'admin.remove_passkey',
  'admin.set_totp',
  'admin.remove_totp',
  'admin.renew_recovery_codes',
  'admin.reset_second_factor',
  'admin.second_factor_asked',
  'admin.second_factor_failed',
  'session.revoke',
  'messenger.unlink',
  'token.create',
  'token.revoke',
  'user.create',
  'user.change',
  'user.grant_role',
  'user.revoke_role',
  'command.settings',
  'relationship.create',
  'relationship.delete',
  'outbox.retry',
  'outbox.discard',
  'graph.repair',
  'host.forget',
  'message.retry',
  'mail.test',
  'university.import',
  'university.columns',
  'university.pull',
  'event.subscribe',
  'event.change_subscription',
  'event.unsubscribe',
  'event.retry',
  'event.test',
  'api.refused',
] as const;
export type AuditAction = (typeof AUDIT_ACTIONS)[number];

/** Kinds of objects that entries name. */
export const AUDIT_OBJECTS = [
  'plugin',
  'trigger',
  'command',
  'service_key',
  'admin_key',
  'user',
  'relationship',
  'outbox',
  'graph',
  'host',
  'file',
  'message',
  'mail',
  'import',
  'event_subscription',
  'endpoint',
] as const;

/** The state of an object before or after the change; never contains a secret. */
export type AuditState = Readonly<Record<string, unknown>>;

export type AuditChange = {
  action: AuditAction;
  objectType: (typeof AUDIT_OBJECTS)[number];
  objectId: string;
  before?: AuditState;
  after?: AuditState;
};

export type AuditEntry = Required<Pick<AuditChange, 'objectType' | 'objectId'>> & {
  id: number;
  at: Date;
  action: string;
  actor: Actor;
  before: AuditState | null;
  after: AuditState | null;
};

export type AuditFilter = {
  action?: string;
  actorUserId?: number;
  objectType?: string;
  objectId?: string;
  since?: Date;
  until?: Date;
  before: number;
  limit: number;
};

/**
 * Appends an entry with the change and its actor, in the transaction of the change, so that both are stored or neither.
 * The table refuses updates and deletions; see `eraseAuditOf`.
 */
export async function appendAudit(client: Queryable, by: Actor, change: AuditChange): Promise<void> {
  const json = (state: AuditState | undefined): string | null => (state === undefined ? null : JSON.stringify(state));
  await client.query(
    `INSERT INTO audit_log (actor_kind, actor_user_id, actor_name, action, object_type, object_id, before, after, request_id, address, actor_key_id)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
    [
      by.kind,
      by.userId,
      by.name,
      change.action,
      change.objectType,
      change.objectId,
      json(change.before),
      json(change.after),
      by.requestId,
      by.address,
      by.keyId ?? null,
    ],
  );
}

/** An entry as it is stored. */
type StoredAudit = Omit<AuditEntry, 'actor'> & {
  actorKind: Actor['kind'];
  actorUserId: number | null;
  actorKeyId: number | null;
  actorName: string;
  requestId: string;
  address: string;
};

const COLUMNS = `id, at, actor_kind, actor_user_id, actor_key_id, actor_name, action, object_type, object_id, before, after,
  request_id, address`;

const readEntry = ({ actorKeyId, actorKind, actorName, actorUserId, address, requestId, ...entry }: StoredAudit) => ({
  ...entry,
  actor: {
    ...{ kind: actorKind, userId: actorUserId, ...(actorKeyId === null ? {} : { keyId: actorKeyId }) },
    ...{ name: actorName, requestId, address },
  },
});

/** Lists entries, newest first. */
export async function listAudit(db: Queryable, f: AuditFilter): Promise<AuditEntry[]> {
  const rows = await findRows<StoredAudit>(
    db,
    `SELECT ${COLUMNS} FROM audit_log
     WHERE id < $1 AND ($3::text IS NULL OR action = $3) AND ($4::bigint IS NULL OR actor_user_id = $4)
       AND ($5::text IS NULL OR object_type = $5) AND ($6::text IS NULL OR object_id = $6)
       AND ($7::timestamptz IS NULL OR at >= $7) AND ($8::timestamptz IS NULL OR at < $8)
     ORDER BY id DESC LIMIT $2`,
    [
      f.before,
      f.limit,
      f.action ?? null,
      f.actorUserId ?? null,
      f.objectType ?? null,
      f.objectId ?? null,
      f.since ?? null,
      f.until ?? null,
    ],
  );
  return rows.map(readEntry);
}

/** Entries that say something of a person, as an erasure finds them: of the user, and of relationships and files. */
export async function listAuditAbout(
  db: Queryable,
  of: { userId: number; externalId: string | null },
  limit: number,
): Promise<AuditEntry[]> {
  const rows = await findRows<StoredAudit>(
    db,
    `SELECT ${COLUMNS} FROM audit_log a
     WHERE CASE a.object_type
       WHEN 'user' THEN a.object_id = $1::text
       WHEN 'file' THEN a.before ->> 'user_id' = $1::text
       WHEN 'relationship' THEN $2::text IS NOT NULL AND audit_names_person(a, ARRAY[$2::text]) END
     ORDER BY id DESC LIMIT $3`,
    [String(of.userId), of.externalId, limit],
  );
  return rows.map(readEntry);
}

export async function findAuditEntry(db: Queryable, id: number): Promise<AuditEntry | undefined> {
  const row = await findRow<StoredAudit>(db, `SELECT ${COLUMNS} FROM audit_log WHERE id = $1`, [id]);
  return row === undefined ? undefined : readEntry(row);
}

/**
 * Removes entries that are older; the database keeps those of the last 90 days in any case.
 *
 * @returns how many
 */
export async function removeOldAudit(db: Queryable, ageMs: number): Promise<number> {
  for (let removed = 0; ; ) {
    const { removed: now } = await loadRow<{ removed: number }>(
      db,
      "SELECT audit_log_remove_old($1 * interval '1 ms', $2) AS removed",
      [ageMs, REMOVED_AT_ONCE],
    );
    removed += now;
    if (now < REMOVED_AT_ONCE) return removed;
  }
}

/**
 * Erases a person's name and address where they acted, and what entries about them, their files and their relationships say. The
 * entries stay, and so does the chain of seals (docs/SECURITY.md "The audit log is changed").
 *
 * @param userId null for a person without an account
 * @param externalId null for a user whom the university does not know
 * @returns how many entries
 */
export async function eraseAuditOf(
  client: Queryable,
  userId: number | null,
  externalId: string | null,
): Promise<number> {
  const statement = 'SELECT audit_erase_person($1, $2) AS erased';
  return (await loadRow<{ erased: number }>(client, statement, [userId, externalId])).erased;
}

/** PostgreSQL's code for a lock that was not had in time. */
const LOCK_NOT_AVAILABLE = '55P03';

/**
 * Seals the entries since the last seal (docs/SECURITY.md "The audit log is changed").
 *
 * @returns how many; none when a change that is under way holds them, which the next call seals
 */
export async function sealAudit(db: Queryable): Promise<number> {
  try {
    return (await loadRow<{ sealed: number }>(db, 'SELECT audit_seal() AS sealed')).sealed;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === LOCK_NOT_AVAILABLE) return 0;
    throw error;
  }
}

export type BrokenSeal = { firstId: number; lastId: number; sealedAt: Date };

/** Seals that do not fit their entries: some were changed, added or taken out. */
export async function findBrokenSeals(db: Queryable): Promise<BrokenSeal[]> {
  return await findRows<BrokenSeal>(db, 'SELECT first_id, last_id, sealed_at FROM audit_broken_seals() LIMIT 100');
}
