import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { constants, createGzip } from 'node:zlib';
import { keyPlaceOf } from '../../app/secrets.ts';
import { accessDenied } from '../../base/access-denied.ts';
import { messageOf, OperatorError, UsageError } from '../../base/errors.ts';
import { serviceVersion } from '../../base/version.ts';
import { type Config, dataPath } from '../../config/load.ts';
import type { Database } from '../../db/database.ts';
import { listApplied } from '../../db/migrate.ts';
import { type CopyClient, listCopiedTables, listSequences, withCopyClient } from '../../db/table-copy.ts';
import { readInstallationId } from '../../files/file-records.ts';
import { readyKey } from '../../files/storage-disk.ts';
import { findSecretKey, readFingerprint } from '../../secrets/secret-key.ts';
import { CommandError, withUnmigratedDatabase } from './admin-commands.ts';
import { assertNewPlace } from './assert-new-place.ts';
import {
  type BackupManifest,
  digestOf,
  FILES_FOLDER,
  MANIFEST_FILE,
  macOf,
  measureFolder,
  SUMS_FILE,
  sumOfText,
  sumsOf,
  TABLES_FOLDER,
  tableFile,
} from './backup-manifest.ts';
import { copyTree } from './copy-tree.ts';
import { OF_SYSTEM, STAGING } from './staged-files.ts';

type Tables = Pick<BackupManifest, 'tables' | 'sequences' | 'migrations' | 'secrets_fingerprint'>;

/** Every table as it was at one moment, whatever is written meanwhile. */
async function writeTables(client: CopyClient, directory: string): Promise<Tables> {
  const tables: BackupManifest['tables'] = [];
  for (const table of await listCopiedTables(client)) {
    const file = tableFile(directory, table.name);
    const source = client.copyOut(table);
    const gzip = createGzip({ level: constants.Z_BEST_SPEED });
    await pipeline(source, gzip, fs.createWriteStream(file, { mode: 0o600, flush: true }));
    const rows = 'rowCount' in source ? Number(source.rowCount) : 0;
    tables.push({ ...table, rows, sha256: await digestOf(file) });
  }
  return {
    tables,
    sequences: await listSequences(client),
    migrations: (await listApplied(client)).map(({ name, sha256 }) => ({ name, sha256 })),
    secrets_fingerprint: await readFingerprint(client, ''),
  };
}

/** Copies the files of users, after the database: what a row names is there, unless it was deleted meanwhile. */
async function copyFiles(from: string, to: string): Promise<{ count: number; bytes: number }> {
  const isOfUsers = (name: string): boolean => !name.endsWith('.part') && ![STAGING, OF_SYSTEM].includes(name);
  if (fs.existsSync(from)) await copyTree(from, to, isOfUsers);
  return measureFolder(to);
}

/** The path without links, as far as it is there. */
function realPath(place: string): string {
  const absolute = path.resolve(place);
  if (fs.existsSync(absolute) || path.dirname(absolute) === absolute) return fs.realpathSync(absolute);
  return path.join(realPath(path.dirname(absolute)), path.basename(absolute));
}

const isWithin = (inner: string, outer: string): boolean =>
  inner === outer || inner.startsWith(outer.endsWith('/') ? outer : `${outer}/`);

/** @throws UsageError when a backup would be part of what it is a backup of, or the other way round */
function assertApart(directory: string, data: string): void {
  const [to, from] = [realPath(directory), realPath(data)];
  if (isWithin(to, from))
    throw new UsageError(
      `${directory} lies in the data directory ${data}, with which the backup would be lost: name a folder outside of it, best on another disk`,
    );
  if (isWithin(from, to))
    throw new UsageError(`${directory} holds the data directory ${data}: name a folder of its own for the backup`);
}

/** The key that the backup is authenticated under. @throws CommandError when this account may not read it */
function secretKeyOf(config: Config): Buffer | null {
  const place = keyPlaceOf(config);
  try {
    return findSecretKey(place, null);
  } catch (error) {
    const denied = accessDenied(error, place.file, 'run the command as the account of the service');
    throw denied === null ? error : new CommandError(denied, { cause: error });
  }
}

/** A key in `/etc/default` is not seen by commands. */
const UNSEALED =
  '\nthe key of the stored secrets was not given (secrets.key, or BOT_SECRETS_KEY): without it a restore cannot tell whether the backup was changed, and where the key is the backup is refused; make it again with the key';

const isInS3 = (config: Config): boolean => config.values['s3.bucket'] !== '';

type FileRow = { id: string; digest: string };
/** Files that must be on the disk, as the database of this client sees them. */
const READY = "SELECT id, digest FROM files WHERE state = 'ready' AND store = 'disk' ORDER BY id";

/**
 * Looks whether each file that a row of the backup names was copied, unless it was deleted meanwhile.
 *
 * @throws CommandError when one is not there: the data directory is another one, or was lost
 */
async function assertFilesThere(db: Database, named: readonly FileRow[], from: string, folder: string): Promise<void> {
  if (named.length === 0) return;
  // The files of an installation have a folder of their own.
  const own = path.join(folder, await readInstallationId(db));
  const isMissing = ({ digest, id }: FileRow): boolean => !fs.existsSync(path.join(own, readyKey(id, digest)));
  if (!named.some(isMissing)) return;
  const now = new Set((await db.query<FileRow>(READY)).rows.map(r => r.id));
  const missing = named.filter(row => isMissing(row) && now.has(row.id));
  const [first] = missing;
  if (first !== undefined)
    throw new CommandError(
      `${missing.length} of ${named.length} files that the database names are not below ${from}, ${readyKey(first.id, first.digest)} among them: is data.dir the one of the service?`,
    );
}

async function write(config: Config, db: Database, partial: string, key: Buffer | null): Promise<BackupManifest> {
  const [tables, named] = await withCopyClient(
    db,
    'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY',
    async (client): Promise<[Tables, FileRow[]]> => [
      await writeTables(client, partial),
      (await client.query<FileRow>(READY)).rows,
    ],
  );
  // Also with S3: files of before stay on the disk.
  const folder = path.join(partial, FILES_FOLDER);
  const onDisk = await copyFiles(dataPath(config, 'files'), folder);
  await assertFilesThere(db, named, dataPath(config, 'files'), folder);
  const sums = await sumsOf(folder);
  fs.writeFileSync(path.join(partial, SUMS_FILE), sums, { flush: true, mode: 0o600 });
  const files = isInS3(config) && onDisk.count === 0 ? null : { ...onDisk, sums_sha256: sumOfText(sums) };
  const contents = {
    format: 2 as const,
    release: serviceVersion(),
    made_at: new Date().toISOString(),
    ...tables,
    files,
    mac: null,
  };
  return { ...contents, mac: key === null ? null : macOf(contents, key) };
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * `backup`: the database as it is at one moment and the files of users, into a folder. The service may run meanwhile.
 *
 * @param directory made by this command; it must not be there yet
 * @returns what to print
 * @throws CommandError in words for the operator; nothing is left then
 */
export async function backup(
  config: Config,
  directory: string,
  progress: (text: string) => void,
): Promise<{ text: string; manifest: BackupManifest }> {
  assertApart(directory, dataPath(config));
  assertNewPlace(directory, 'folder');
  let partial = '';
  // Repeated: a table that is being written may make its file meanwhile.
  const remove = (): void => {
    if (partial !== '') fs.rmSync(partial, { recursive: true, force: true, maxRetries: 5 });
  };
  const interrupted = (signal: NodeJS.Signals): void => {
    remove();
    process.exit(128 + os.constants.signals[signal]);
  };
  // Before there is a folder: a signal that came between would leave it.
  for (const signal of SIGNALS) process.once(signal, interrupted);
  try {
    // With a name of its own: another command may make a backup meanwhile.
    partial = fs.mkdtempSync(`${path.resolve(directory)}.part-`);
    fs.mkdirSync(path.join(partial, TABLES_FOLDER), { recursive: true, mode: 0o700 });
    const manifest = await withUnmigratedDatabase(config, progress, db =>
      write(config, db, partial, secretKeyOf(config)),
    );
    const text = `${JSON.stringify(manifest, null, 2)}\n`;
    fs.writeFileSync(path.join(partial, MANIFEST_FILE), text, { flush: true, mode: 0o600 });
    fs.renameSync(partial, directory);
    const rows = manifest.tables.reduce((sum, t) => sum + t.rows, 0);
    const files = [
      ...(manifest.files === null ? [] : [`${manifest.files.count} files of users`]),
      ...(isInS3(config) ? ['back up the bucket as well, which holds files of users'] : []),
    ].join('; ');
    const hasSecrets = manifest.secrets_fingerprint !== null;
    const key = !hasSecrets ? '' : manifest.mac === null ? UNSEALED : '\nkeep secrets.key as well, apart from it';
    return { manifest, text: `${directory}: ${rows} rows of ${manifest.tables.length} tables; ${files}${key}` };
  } catch (error) {
    remove();
    if (error instanceof OperatorError) throw error;
    throw new CommandError(`the backup could not be made: ${accessDenied(error) ?? messageOf(error)}`, {
      cause: error,
    });
  } finally {
    for (const signal of SIGNALS) process.off(signal, interrupted);
  }
}
