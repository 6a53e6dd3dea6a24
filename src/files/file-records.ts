import { ServiceError } from '../base/errors.ts';
import { LIMITS } from '../base/limits.ts';
import type { Queryable } from '../db/database.ts';
import { RowLookup } from '../db/row-lookup.ts';
import type { FileDescription, FileType } from './file-kind.ts';

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

type FileSql = {
  id: string;
  plugin_id: string;
  user_id: string | null;
  chat: string | null;
  name: string;
  mime_type: string;
  file_type: FileType;
  size: string;
  state: FileRecord['state'];
  store: StoreKind;
  digest: string | null;
  cancelled_at: Date | null;
  created_at: Date;
  expires_at: Date | null;
};
const BY_ID = new RowLookup<FileSql>({
  name: 'file.find',
  text: 'SELECT * FROM files WHERE id = ANY ($1::text[])',
  keyOf: row => row.id,
});

type UsageSql = { plugin_id: string; user_id: string; files: string; pending: string; bytes: string };

const toRecord = (r: FileSql): FileRecord => ({
  id: r.id,
  pluginId: r.plugin_id,
  userId: r.user_id === null ? null : Number(r.user_id),
  chat: r.chat,
  name: r.name,
  mimeType: r.mime_type,
  fileType: r.file_type,
  size: Number(r.size),
  state: r.state,
  store: r.store,
  digest: r.digest,
  cancelled: r.cancelled_at !== null,
  createdAt: r.created_at,
  expiresAt: r.expires_at,
});

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
  const { rows } = await client.query<FileSql>(
    `INSERT INTO files (id, plugin_id, user_id, name, mime_type, file_type, size, state, store, expires_at, chat)
     VALUES ($1, $2, $3, $4, $5, $6, $7, 'pending', $8, now() + make_interval(secs => $9), $10) RETURNING *`,
    [f.id, f.pluginId, f.userId, f.name, f.mimeType, f.fileType, f.size, f.store, f.pendingSeconds, f.chat],
  );
  const usage = await client.query<UsageSql>('SELECT * FROM file_usage WHERE plugin_id = $1 AND user_id IN ($2, $3)', [
    f.pluginId,
    ALL_USERS,
    f.userId ?? THE_PLUGIN,
  ]);
  for (const row of usage.rows) assertQuota(row, f, quotas);
  return toRecord(rows[0]!);
}

function assertQuota(row: UsageSql, f: NewFile, q: FileQuotas): void {
  const allUsers = Number(row.user_id) === ALL_USERS;
  const user = Number(row.user_id) > THE_PLUGIN;
  const used = Number(row.bytes) - f.size;
  // How much other users keep is not shown to this one.
  if (allUsers && Number(row.bytes) > q.pluginBytes)
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
  if (Number(row.bytes) > q.userBytes)
    throw exceeded('files.user_quota', q.userBytes, used, 'bytes', `, and this file has ${f.size}`);
  if (Number(row.files) > q.userFiles) throw exceeded('files.user_files', q.userFiles, Number(row.files) - 1, 'files');
  if (Number(row.pending) > LIMITS.pendingUploadsMax)
    throw exceeded(
      'pendingUploadsMax',
      LIMITS.pendingUploadsMax,
      Number(row.pending) - 1,
      'uploads that are not complete',
    );
}

export async function findFile(db: Queryable, id: string): Promise<FileRecord | undefined> {
  const row = await BY_ID.find(db, id);
  return row === undefined ? undefined : toRecord(row);
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
 * Its bytes are whole and in place.
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
  const { rows } = await db.query<FileSql>(
    `UPDATE files SET state = 'ready', digest = $2, completed_at = now(),
       expires_at = CASE WHEN $3::float8 IS NULL THEN NULL ELSE now() + make_interval(secs => $3::float8 / 1000) END
     WHERE id = $1 AND state = 'pending' AND cancelled_at IS NULL AND expires_at > now() RETURNING *`,
    [id, digest, ttlMs],
  );
  return rows[0] === undefined ? undefined : toRecord(rows[0]);
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

/** Nothing of it is left in the store. */
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
  const { rows } = await db.query<FileSql & { number: string; owner: string | null }>(
    `SELECT *, (SELECT nullif(display_name, '') FROM global_users WHERE global_users.id = user_id) AS owner
     FROM files WHERE state <> 'deleted' AND ($1::text IS NULL OR plugin_id = $1) AND ($2::bigint IS NULL OR user_id = $2)
       AND ($3::text IS NULL OR state = $3) AND ($6::text IS NULL OR id = $6) AND number < $4 ORDER BY number DESC LIMIT $5`,
    [filter.pluginId, filter.userId, filter.state, before, limit, filter.id],
  );
  return rows.map(r => ({ id: Number(r.number), file: toRecord(r), owner: r.owner }));
}

/** How much of a plugin's files there is: all together, and by owner, greatest first. */
export async function readUsage(
  db: Queryable,
  pluginId: string,
  limit: number,
): Promise<{ all: FileUsage; owners: FileUsage[] }> {
  const { rows } = await db.query<UsageSql>(
    'SELECT * FROM file_usage WHERE plugin_id = $1 AND (files > 0 OR user_id = $2) ORDER BY user_id = $2 DESC, bytes DESC, user_id LIMIT $3',
    [pluginId, ALL_USERS, limit + 1],
  );
  const usage = rows.map(r => ({
    pluginId,
    userId: Number(r.user_id) > THE_PLUGIN ? Number(r.user_id) : null,
    files: Number(r.files),
    pending: Number(r.pending),
    bytes: Number(r.bytes),
    allUsers: Number(r.user_id) === ALL_USERS,
  }));
  const all = usage.find(u => u.allUsers) ?? { pluginId, userId: null, files: 0, pending: 0, bytes: 0 };
  return { all, owners: usage.filter(u => !u.allUsers) };
}

/** How much there is of the files of each plugin, greatest first, and of all together. */
export async function readUsageOfAll(
  db: Queryable,
  limit: number,
): Promise<{ all: Omit<FileUsage, 'pluginId' | 'userId'>; plugins: FileUsage[] }> {
  const { rows } = await db.query<UsageSql & Record<'all_files' | 'all_pending' | 'all_bytes', string>>(
    `SELECT *, sum(files) OVER () AS all_files, sum(pending) OVER () AS all_pending, sum(bytes) OVER () AS all_bytes
     FROM file_usage WHERE user_id = ${ALL_USERS} AND files > 0 ORDER BY bytes DESC, plugin_id LIMIT $1`,
    [limit],
  );
  const [first] = rows;
  return {
    all: {
      files: Number(first?.all_files ?? 0),
      pending: Number(first?.all_pending ?? 0),
      bytes: Number(first?.all_bytes ?? 0),
    },
    plugins: rows.map(r => ({
      pluginId: r.plugin_id,
      userId: null,
      files: Number(r.files),
      pending: Number(r.pending),
      bytes: Number(r.bytes),
    })),
  };
}

/** What names this installation in a store it may share with others. */
export async function readInstallationId(db: Queryable): Promise<string> {
  const { rows } = await db.query<{ id: string }>('SELECT id FROM installation');
  if (rows[0] === undefined) throw new Error('the table "installation" is empty; it was made with one row');
  return rows[0].id;
}

/** Files of a user that are not deleted, of all plugins. */
export async function listFilesOf(db: Queryable, userId: number): Promise<FileRecord[]> {
  const { rows } = await db.query<FileSql>(
    "SELECT * FROM files WHERE user_id = $1 AND state <> 'deleted' ORDER BY number",
    [userId],
  );
  return rows.map(toRecord);
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
