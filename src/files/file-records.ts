import { ServiceError } from '../base/errors.ts';
import { LIMITS } from '../base/limits.ts';
import type { Queryable } from '../db/database.ts';
import { RowLookup } from '../db/row-lookup.ts';
import { findRow, findRows, loadRow } from '../db/rows.ts';
import type { FileDescription } from './file-kind.ts';

/** Where the bytes of a file lie. */
export type StoreKind = 'disk' | 's3';

/**
 * One row of `files` (docs/files.md "FileRef", docs/files.md "Upload"): pending until its bytes are whole and in place, then ready, in the end deleted. Nothing
 * goes back.
 */
export type FileRecord = FileDescription & {
  /** 128 random bits in hexadecimal. */
  id: string;
  pluginId: string;
  /** Who uploaded it; null when the plugin stored it itself, or its sender is not linked to a user. */
  userId: number | null;
  /** The chat it came from, as `CHANNEL:chat`; null for none. */
  chat: string | null;
  size: number;
  state: 'pending' | 'ready' | 'deleted';
  store: StoreKind;
  /**
   * What tells the uploaded object from every other one: on disk its SHA-256, in S3 the name it was taken over under and its ETag. Null
   * before there is one.
   */
  digest: string | null;
  /** Deleted while its address is still good: only quotas still count it. */
  cancelled: boolean;
  createdAt: Date;
  /** When the upload of a pending file must be complete, or when a ready file expires. */
  expiresAt: Date | null;
};

/** FileRef on the wire (docs/files.md "FileRef"). */
export const fileRefJson = (f: FileRecord) => ({
  id: f.id,
  name: f.name,
  mime_type: f.mimeType,
  size: f.size,
  file_type: f.fileType,
});

export type NewFile = FileDescription &
  Pick<FileRecord, 'id' | 'pluginId' | 'userId' | 'chat' | 'size' | 'store'> & { pendingSeconds: number };

/** What an owner may keep; each is named in the refusal. */
export type FileQuotas = {
  /** Bytes and files of one user with one plugin. */
  userBytes: number;
  userFiles: number;
  /** Bytes of all files of one plugin. */
  pluginBytes: number;
};

export type FileUsage = { pluginId: string; userId: number | null; files: number; pending: number; bytes: number };

const COLUMNS = `id, plugin_id, user_id, chat, name, mime_type, file_type, size, state, store, digest,
  cancelled_at IS NOT NULL AS cancelled, created_at, expires_at`;

const BY_ID = new RowLookup<FileRecord>({
  name: 'file.find',
  text: `SELECT ${COLUMNS} FROM files WHERE id = ANY ($1::text[])`,
  keyOf: row => row.id,
});

/** A row of `file_usage`; the user may be one of those below. */
type UsageRow = FileUsage & { userId: number };

/** The user id of the row that counts the files of all users together. */
const ALL_USERS = -1;
const THE_PLUGIN = 0;

/**
 * Adds a pending file, inside the caller's transaction. Its owner's and its plugin's usage stay locked until the end, so quotas are
 * exact however many come at once.
 *
 * @throws ServiceError `quota_exceeded` naming the quota, its value and what is used; the transaction must end then
 */
export async function appendPendingFile(client: Queryable, f: NewFile, quotas: FileQuotas): Promise<FileRecord> {
  // An uninstallation comes before or after, and deletes what it finds.
  const plugin = await client.query('SELECT 1 FROM plugins WHERE id = $1 FOR SHARE', [f.pluginId]);
  if (plugin.rowCount === 0) throw new ServiceError('not_found', `there is no plugin "${f.pluginId}"`);
  const added = await loadRow<FileRecord>(
    client,
    `INSERT INTO files (id, plugin_id, user_id, name, mime_type, file_type, size, state, store, expires_at, chat)
     VALUES ($1, $2, $3, $4, $5, $6, $7, 'pending', $8, now() + make_interval(secs => $9), $10) RETURNING ${COLUMNS}`,
    [f.id, f.pluginId, f.userId, f.name, f.mimeType, f.fileType, f.size, f.store, f.pendingSeconds, f.chat],
  );
  const usage = await findRows<UsageRow>(
    client,
    'SELECT * FROM file_usage WHERE plugin_id = $1 AND user_id IN ($2, $3)',
    [f.pluginId, ALL_USERS, f.userId ?? THE_PLUGIN],
  );
  for (const row of usage) assertQuota(row, f, quotas);
  return added;
}

function assertQuota(row: UsageRow, f: NewFile, q: FileQuotas): void {
  const allUsers = row.userId === ALL_USERS;
  const user = row.userId > THE_PLUGIN;
  const used = row.bytes - f.size;
  // How much other users keep is not shown to this one.
  if (allUsers && row.bytes > q.pluginBytes)
    throw new ServiceError(
      'quota_exceeded',
      `plugin "${f.pluginId}" has no room for ${f.size} bytes more; files.plugin_quota allows ${q.pluginBytes} for all its files, and an administrator can raise it or delete some`,
      { extra: { limit: 'files.plugin_quota', limit_value: q.pluginBytes } },
    );
  const exceeded = (name: string, max: number, now: number, unit: string, more = ''): ServiceError =>
    new ServiceError(
      'quota_exceeded',
      `you keep ${now} ${unit} with plugin "${f.pluginId}" already${more}; ${name} allows ${max}`,
      { extra: { limit: name, limit_value: max, used: now } },
    );
  if (!user) return;
  if (row.bytes > q.userBytes)
    throw exceeded('files.user_quota', q.userBytes, used, 'bytes', `, and this file has ${f.size}`);
  if (row.files > q.userFiles) throw exceeded('files.user_files', q.userFiles, row.files - 1, 'files');
  if (row.pending > LIMITS.pendingUploadsMax)
    throw exceeded('pendingUploadsMax', LIMITS.pendingUploadsMax, row.pending - 1, 'uploads that are not complete');
}

export async function findFile(db: Queryable, id: string): Promise<FileRecord | undefined> {
  return await BY_ID.find(db, id);
}

/**
 * Notes which bytes were uploaded last.
 *
 * @returns the digest of those before, null for none; undefined when the file is not pending any more
 */
export async function setUploaded(db: Queryable, id: string, digest: string): Promise<string | null | undefined> {
  const { rows } = await db.query<{ before: string | null }>(
    `WITH known AS (SELECT id, digest FROM files WHERE id = $1 AND state = 'pending' AND cancelled_at IS NULL FOR UPDATE)
     UPDATE files SET digest = $2 FROM known WHERE files.id = known.id RETURNING known.digest AS before`,
    [id, digest],
  );
  return rows[0]?.before;
}

/**
 * Marks a file as ready: its bytes are whole and in place.
 *
 * @param ttlMs its time to live from now; null for ever
 * @returns undefined when it is not pending any more, or its time to become ready is over
 */
export async function setReady(
  db: Queryable,
  id: string,
  digest: string,
  ttlMs: number | null,
): Promise<FileRecord | undefined> {
  return await findRow<FileRecord>(
    db,
    `UPDATE files SET state = 'ready', digest = $2, completed_at = now(),
       expires_at = CASE WHEN $3::float8 IS NULL THEN NULL ELSE now() + make_interval(secs => $3::float8 / 1000) END
     WHERE id = $1 AND state = 'pending' AND cancelled_at IS NULL AND expires_at > now() RETURNING ${COLUMNS}`,
    [id, digest, ttlMs],
  );
}

/**
 * Deletes a file. One whose upload address is good beyond this host stays counted until the address has expired.
 *
 * @returns whether its bytes may go now
 */
export async function setDeleted(db: Queryable, id: string): Promise<boolean> {
  const { rows } = await db.query<{ state: string }>(
    `UPDATE files SET
       state = CASE WHEN state = 'pending' AND store = 's3' AND user_id IS NOT NULL THEN state ELSE 'deleted' END,
       cancelled_at = CASE WHEN state = 'pending' AND store = 's3' AND user_id IS NOT NULL THEN now() END,
       deleted_at = CASE WHEN state = 'pending' AND store = 's3' AND user_id IS NOT NULL THEN NULL ELSE now() END,
       expires_at = CASE WHEN state = 'pending' AND store = 's3' AND user_id IS NOT NULL THEN expires_at END
     WHERE id = $1 AND state <> 'deleted' RETURNING state`,
    [id],
  );
  return rows[0]?.state === 'deleted';
}

/** Notes that the store holds nothing of these files any more. */
export async function setRemoved(db: Queryable, ids: readonly string[]): Promise<void> {
  await db.query("UPDATE files SET removed_at = now() WHERE id = ANY ($1) AND state = 'deleted'", [ids]);
}

/** All files of a plugin that goes, inside the caller's transaction; cleaning removes their bytes. */
export async function setDeletedOfPlugin(client: Queryable, pluginId: string): Promise<void> {
  await client.query(
    "UPDATE files SET state = 'deleted', deleted_at = now(), expires_at = NULL WHERE plugin_id = $1 AND state <> 'deleted'",
    [pluginId],
  );
}

/** Files whose time has come are deleted, some at a time; returns how many. */
export async function deleteExpired(db: Queryable, limit: number): Promise<number> {
  const { rowCount } = await db.query(
    `UPDATE files SET state = 'deleted', deleted_at = now(), expires_at = NULL WHERE id IN
       (SELECT id FROM files WHERE state <> 'deleted' AND expires_at <= now() ORDER BY plugin_id LIMIT $1 FOR UPDATE SKIP LOCKED)`,
    [limit],
  );
  return rowCount ?? 0;
}

export type RemovedFile = Pick<FileRecord, 'id' | 'store' | 'digest'>;

/** Deleted files whose bytes may still lie in the store, behind an id. */
export async function listToRemove(db: Queryable, after: string, limit: number): Promise<RemovedFile[]> {
  const { rows } = await db.query<RemovedFile>(
    "SELECT id, store, digest FROM files WHERE state = 'deleted' AND removed_at IS NULL AND id > $1 ORDER BY id LIMIT $2",
    [after, limit],
  );
  return rows;
}

/** State and digest of those of these ids that are files. */
export async function readStates(
  db: Queryable,
  ids: readonly string[],
): Promise<Map<string, Pick<FileRecord, 'state' | 'digest'>>> {
  const { rows } = await db.query<Pick<FileRecord, 'id' | 'state' | 'digest'>>(
    'SELECT id, state, digest FROM files WHERE id = ANY ($1)',
    [ids],
  );
  return new Map(rows.map(r => [r.id, r]));
}

/** Rows of files long gone are forgotten, those that never were complete soon; returns how many. */
export async function forgetRemoved(db: Queryable): Promise<number> {
  const { rowCount } = await db.query(
    `DELETE FROM files WHERE removed_at < now() - make_interval(days => $1)
       OR (removed_at < now() - interval '1 hour' AND completed_at IS NULL)`,
    [LIMITS.removedFileDays],
  );
  return rowCount ?? 0;
}

/** Null: all files, of all plugins, of all users, in every state. */
export type FileFilter = {
  id: string | null;
  pluginId: string | null;
  userId: number | null;
  state: FileRecord['state'] | null;
};

/** Files with the names of their users, the newest first; `id` is their place in that order. */
export async function listFiles(
  db: Queryable,
  filter: FileFilter,
  before: number,
  limit: number,
): Promise<Array<{ id: number; file: FileRecord; owner: string | null }>> {
  const rows = await findRows<FileRecord & { number: number; owner: string | null }>(
    db,
    `SELECT ${COLUMNS}, number, (SELECT nullif(display_name, '') FROM global_users WHERE global_users.id = user_id) AS owner
     FROM files WHERE state <> 'deleted' AND ($1::text IS NULL OR plugin_id = $1) AND ($2::bigint IS NULL OR user_id = $2)
       AND ($3::text IS NULL OR state = $3) AND ($6::text IS NULL OR id = $6) AND number < $4 ORDER BY number DESC LIMIT $5`,
    [filter.pluginId, filter.userId, filter.state, before, limit, filter.id],
  );
  return rows.map(({ number, owner, ...file }) => ({ id: number, file, owner }));
}

/** How much of a plugin's files there is: all together, and by owner, greatest first. */
export async function readUsage(
  db: Queryable,
  pluginId: string,
  limit: number,
): Promise<{ all: FileUsage; owners: FileUsage[] }> {
  const rows = await findRows<UsageRow>(
    db,
    'SELECT * FROM file_usage WHERE plugin_id = $1 AND (files > 0 OR user_id = $2) ORDER BY user_id = $2 DESC, bytes DESC, user_id LIMIT $3',
    [pluginId, ALL_USERS, limit + 1],
  );
  const ofUser = (r: UsageRow): FileUsage => ({ ...r, userId: r.userId > THE_PLUGIN ? r.userId : null });
  const all = rows.find(r => r.userId === ALL_USERS) ?? { pluginId, userId: ALL_USERS, files: 0, pending: 0, bytes: 0 };
  return { all: ofUser(all), owners: rows.filter(r => r.userId !== ALL_USERS).map(ofUser) };
}

/** How much there is of the files of each plugin, greatest first, and of all together. */
export async function readUsageOfAll(
  db: Queryable,
  limit: number,
): Promise<{ all: Omit<FileUsage, 'pluginId' | 'userId'>; plugins: FileUsage[] }> {
  const rows = await findRows<UsageRow & Record<'allFiles' | 'allPending' | 'allBytes', number>>(
    db,
    `SELECT *, sum(files) OVER ()::bigint AS all_files, sum(pending) OVER ()::bigint AS all_pending,
       sum(bytes) OVER ()::bigint AS all_bytes
     FROM file_usage WHERE user_id = ${ALL_USERS} AND files > 0 ORDER BY bytes DESC, plugin_id LIMIT $1`,
    [limit],
  );
  const [first] = rows;
  return {
    all: {
      files: first?.allFiles ?? 0,
      pending: first?.allPending ?? 0,
      bytes: first?.allBytes ?? 0,
    },
    plugins: rows.map(({ bytes, files, pending, pluginId }) => ({ pluginId, userId: null, files, pending, bytes })),
  };
}

/** The name of this installation in a store it may share with others. */
export async function readInstallationId(db: Queryable): Promise<string> {
  const { rows } = await db.query<{ id: string }>('SELECT id FROM installation');
  if (rows[0] === undefined) throw new Error('the table "installation" is empty; it was made with one row');
  return rows[0].id;
}

/** Files of a user that are not deleted, of all plugins. */
export async function listFilesOf(db: Queryable, userId: number): Promise<FileRecord[]> {
  return await findRows<FileRecord>(
    db,
    `SELECT ${COLUMNS} FROM files WHERE user_id = $1 AND state <> 'deleted' ORDER BY number`,
    [userId],
  );
}

/** Deletes a user's files, and takes the user's name off them; their bytes go with the next cleaning. @returns how many */
export async function eraseFilesOf(client: Queryable, userId: number): Promise<number> {
  const { rowCount } = await client.query(
    "UPDATE files SET state = 'deleted', deleted_at = now(), expires_at = NULL WHERE user_id = $1 AND state <> 'deleted'",
    [userId],
  );
  await client.query("UPDATE files SET user_id = NULL, name = 'erased' WHERE user_id = $1", [userId]);
  return rowCount ?? 0;
}
