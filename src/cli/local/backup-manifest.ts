import { createHash, createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { z } from 'zod';
import { accessDenied } from '../../base/access-denied.ts';
import { messageOf } from '../../base/errors.ts';
import { fileProblem } from '../../base/file-problem.ts';
import { CommandError } from './admin-commands.ts';

/** The page of contents of a backup, `backup.json`: written last, so that a folder with it is complete. */

export const MANIFEST_FILE = 'backup.json';
export const TABLES_FOLDER = 'tables';
export const FILES_FOLDER = 'files';
/** A line for each file of users, as sha256sum(1) writes and checks them. */
export const SUMS_FILE = 'files.sha256';

const manifest = z.strictObject({
  format: z.literal(2),
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
  files: z.strictObject({ count: z.int(), bytes: z.int(), sums_sha256: z.string() }).nullable(),
  /** Made under secrets.key of all that stands before it, which names every file by its sum; null without a key. */
  mac: z.string().nullable(),
});
export type BackupManifest = z.infer<typeof manifest>;

export const tableFile = (directory: string, table: string): string =>
  path.join(directory, TABLES_FOLDER, `${table}.copy.gz`);

/** The MAC of a backup under `secrets.key` (HMAC-SHA256; its key by HKDF, RFC 5869): who has not the key makes and changes none. */
export function macOf(found: BackupManifest, secretKey: Buffer): string {
  // In the order of the schema, however it was written.
  const { mac: _, ...contents } = manifest.parse(found);
  const key = Buffer.from(hkdfSync('sha256', secretKey, '', 'plugin-host backup', 32));
  return createHmac('sha256', key).update(JSON.stringify(contents)).digest('hex');
}

/** @throws CommandError when the backup was not made under this key, or was changed since */
export function assertAuthentic(found: BackupManifest, secretKey: Buffer): void {
  const [given, right] = [Buffer.from(found.mac ?? '', 'hex'), Buffer.from(macOf(found, secretKey), 'hex')];
  if (given.length !== right.length || !timingSafeEqual(given, right))
    throw new CommandError(
      `the backup was not made under secrets.key of this machine, or ${MANIFEST_FILE} was changed since; nothing was restored`,
    );
}

/** The sums of the files below a folder, in the order of their names. */
export async function sumsOf(folder: string): Promise<string> {
  if (!fs.existsSync(folder)) return '';
  const files = fs.readdirSync(folder, { recursive: true, withFileTypes: true }).filter(e => e.isFile());
  const names = files.map(e => path.relative(folder, path.join(e.parentPath, e.name))).sort();
  const lines: string[] = [];
  for (const name of names) lines.push(`${await digestOf(path.join(folder, name))}  ${FILES_FOLDER}/${name}\n`);
  return lines.join('');
}

export const sumOfText = (text: string): string => createHash('sha256').update(text).digest('hex');

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
  if (found.files !== null) await checkSums(directory, found.files.sums_sha256);
  return found;
}

/** @throws CommandError that names a file of users that is not the one that was written */
async function checkSums(directory: string, sumsSha256: string): Promise<void> {
  const file = path.join(directory, SUMS_FILE);
  let text: string;
  try {
    text = fs.readFileSync(file, 'utf8');
  } catch (error) {
    throw new CommandError(`the backup is damaged: ${file} cannot be read: ${fileProblem(error)}`);
  }
  if (sumOfText(text) !== sumsSha256)
    throw new CommandError(`the backup is damaged: ${file} has changed since it was written`);
  const found = new Set((await sumsOf(path.join(directory, FILES_FOLDER))).split('\n'));
  const other = text.split('\n').find(line => !found.has(line));
  if (other !== undefined)
    throw new CommandError(
      `the backup is damaged: ${path.join(directory, other.slice(66))} has changed since it was written, or is missing`,
    );
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
