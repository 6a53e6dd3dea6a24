import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { z } from 'zod';
import { accessDenied } from '../base/access-denied.ts';
import { messageOf } from '../base/errors.ts';
import { fileProblem } from '../base/file-problem.ts';
import { CommandError } from './admin-commands.ts';

/** The page of contents of a backup, `backup.json`: written last, so that a folder with it is complete. */

export const MANIFEST_FILE = 'backup.json';
export const TABLES_FOLDER = 'tables';
export const FILES_FOLDER = 'files';

const manifest = z.strictObject({
  format: z.literal(1),
  release: z.string(),
  made_at: z.string(),
  /** Null when the service had no stored secret yet. */
  secrets_fingerprint: z.string().nullable(),
  migrations: z.array(z.strictObject({ name: z.string(), sha256: z.string() })).min(1),
  tables: z.array(
    z.strictObject({
      name: z.string().regex(/^[a-z_]+$/),
      columns: z.array(z.string()).min(1),
      rows: z.int().nonnegative(),
      sha256: z.string(),
    }),
  ),
  sequences: z.array(z.strictObject({ name: z.string(), value: z.string() })),
  /** Files of users on disk; null when they lie in S3, or are left out. */
  files: z.strictObject({ count: z.int(), bytes: z.int() }).nullable(),
});
export type BackupManifest = z.infer<typeof manifest>;

export const tableFile = (directory: string, table: string): string =>
  path.join(directory, TABLES_FOLDER, `${table}.copy.gz`);

/** SHA-256 of a file, in hex. */
export async function digestOf(file: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(fs.createReadStream(file), hash);
  return hash.digest('hex');
}

/** How many files there are below a folder, and how large they are together; none when it is not there. */
export function measureFolder(folder: string): { count: number; bytes: number } {
  if (!fs.existsSync(folder)) return { count: 0, bytes: 0 };
  const files = fs.readdirSync(folder, { recursive: true, withFileTypes: true }).filter(e => e.isFile());
  const bytes = files.reduce((sum, e) => sum + fs.statSync(path.join(e.parentPath, e.name)).size, 0);
  return { count: files.length, bytes };
}

/**
 * Reads the page of contents and compares every file with it.
 *
 * @throws CommandError that names what is missing or damaged
 */
export async function readBackup(directory: string): Promise<BackupManifest> {
  const found = readManifest(directory);
  for (const { name, sha256 } of found.tables) {
    const file = tableFile(directory, name);
    const digest = await digestOf(file).catch((error: unknown) => {
      throw new CommandError(`the backup is damaged: ${file} cannot be read: ${fileProblem(error)}`);
    });
    if (digest !== sha256) throw new CommandError(`the backup is damaged: ${file} has changed since it was written`);
  }
  const { bytes, count } = measureFolder(path.join(directory, FILES_FOLDER));
  if (found.files !== null && (found.files.count !== count || found.files.bytes !== bytes))
    throw new CommandError(
      `the backup is damaged: ${FILES_FOLDER} has ${count} files with ${bytes} bytes, and had ${found.files.count} with ${found.files.bytes}`,
    );
  return found;
}

function readManifest(directory: string): BackupManifest {
  const file = path.join(directory, MANIFEST_FILE);
  let text: string;
  try {
    text = fs.readFileSync(file, 'utf8');
  } catch (error) {
    const denied = accessDenied(error, file, 'copy the backup to where this account may read it');
    if (denied !== null) throw new CommandError(denied, { cause: error });
    if (!fs.existsSync(directory))
      throw new CommandError(`there is no folder ${directory}: name one that backup has made`);
    throw new CommandError(`${directory} is no backup: it has no ${MANIFEST_FILE}, which is written last`);
  }
  try {
    return manifest.parse(JSON.parse(text));
  } catch (error) {
    throw new CommandError(`${file} cannot be understood; it may be of a newer release: ${messageOf(error)}`, {
      cause: error,
    });
  }
}
