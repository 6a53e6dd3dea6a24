import fs from 'node:fs';
import fsp from 'node:fs/promises';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { constants, createGzip } from 'node:zlib';
import { messageOf } from '../base/errors.ts';
import { serviceVersion } from '../base/version.ts';
import { type Config, dataPath } from '../config/load.ts';
import type { Database } from '../db/database.ts';
import { listApplied } from '../db/migrate.ts';
import { type CopyClient, listCopiedTables, listSequences, withCopyClient } from '../db/table-copy.ts';
import { readFingerprint } from '../plugins/secret-key.ts';
import { CommandError, withUnmigratedDatabase } from './admin-commands.ts';
import {
  type BackupManifest,
  digestOf,
  FILES_FOLDER,
  MANIFEST_FILE,
  measureFolder,
  TABLES_FOLDER,
  tableFile,
} from './backup-manifest.ts';

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

/**
 * Copies the files of users, after the database: what a row names is there, unless it was deleted meanwhile. A file that is
 * ready is never changed, so it is cloned where the file system can.
 */
async function copyFiles(from: string, to: string): Promise<BackupManifest['files']> {
  if (!fs.existsSync(from)) return { count: 0, bytes: 0 };
  await fsp.cp(from, to, {
    recursive: true,
    mode: fs.constants.COPYFILE_FICLONE,
    preserveTimestamps: true,
    // One that is deleted between two looks is missed, and so it should be.
    filter: source => fs.existsSync(source) && !source.endsWith('.part'),
  });
  return measureFolder(to);
}

async function write(config: Config, db: Database, partial: string): Promise<BackupManifest> {
  const tables = await withCopyClient(db, 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY', client =>
    writeTables(client, partial),
  );
  const inS3 = config.values['s3.bucket'] !== '';
  const files = inS3 ? null : await copyFiles(dataPath(config, 'files'), path.join(partial, FILES_FOLDER));
  return { format: 1, release: serviceVersion(), made_at: new Date().toISOString(), ...tables, files };
}

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
  if (fs.existsSync(directory)) throw new CommandError(`${directory} is there already; name another folder`);
  const partial = `${path.resolve(directory)}.part`;
  try {
    fs.rmSync(partial, { recursive: true, force: true });
    fs.mkdirSync(path.join(partial, TABLES_FOLDER), { recursive: true, mode: 0o700 });
    const manifest = await withUnmigratedDatabase(config, progress, db => write(config, db, partial));
    fs.writeFileSync(path.join(partial, MANIFEST_FILE), `${JSON.stringify(manifest, null, 2)}\n`, { flush: true });
    fs.renameSync(partial, directory);
    const rows = manifest.tables.reduce((sum, t) => sum + t.rows, 0);
    const files =
      manifest.files === null ? 'files lie in S3: back up the bucket' : `${manifest.files.count} files of users`;
    const key = manifest.secrets_fingerprint === null ? '' : '\nkeep secrets.key as well, apart from it';
    return { manifest, text: `${directory}: ${rows} rows of ${manifest.tables.length} tables; ${files}${key}` };
  } catch (error) {
    fs.rmSync(partial, { recursive: true, force: true });
    if (error instanceof CommandError) throw error;
    throw new CommandError(`the backup could not be made: ${messageOf(error)}`, { cause: error });
  }
}
