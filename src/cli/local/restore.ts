import fs from 'node:fs';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { keyPlaceOf } from '../../app/secrets.ts';
import { accessDenied } from '../../base/access-denied.ts';
import { messageOf, OperatorError } from '../../base/errors.ts';
import { type Config, dataPath } from '../../config/load.ts';
import { openDatabase } from '../../db/database.ts';
import { isBeforeFirstRelease, migrateIn, readMigrations } from '../../db/migrate.ts';
import {
  type CopyClient,
  fillTables,
  isEmptyDatabase,
  listCopiedTables,
  setSequences,
  withCopyClient,
} from '../../db/table-copy.ts';
import { endAllPasswordless, failPendingMails } from '../../identity/admin-accounts.ts';
import { adminKeys } from '../../identity/admin-keys.ts';
import { endChallenges } from '../../identity/challenges.ts';
import { endPluginLogins } from '../../identity/plugin-sessions.ts';
import { serviceKeys } from '../../identity/service-keys.ts';
import { endAllSessions } from '../../identity/sessions.ts';
import { userTokens } from '../../identity/user-tokens.ts';
import { findSecretKey, fingerprintOf } from '../../secrets/secret-key.ts';
import { holderText } from '../../supervisor/handover/data-lock.ts';
import { startPostgres } from '../../supervisor/stores/embedded-postgres.ts';
import { jsonText } from '../print/json-text.ts';
import { CommandError } from './admin-commands.ts';
import {
  assertAuthentic,
  type BackupManifest,
  FILES_FOLDER,
  MANIFEST_FILE,
  readBackup,
  tableFile,
} from './backup-manifest.ts';
import { databaseFailure } from './database-failure.ts';
import { lockForCommand } from './lock-for-command.ts';
import { stageFiles } from './staged-files.ts';

const LOST_MAIL = 'the service was restored from a backup that was made before the mail was sent; reset the password';

/** How many of this release's migrations the backup knows. @throws CommandError when it knows others */
function migrationsOf({ migrations, release }: BackupManifest): number {
  if (isBeforeFirstRelease(migrations[0]))
    throw new CommandError(
      `the backup was made by a version before 0.1.0 (${migrations[0]?.name}), which no release restores`,
    );
  const known = readMigrations();
  const other = migrations.find(({ name, sha256 }, k) => known[k]?.name !== name || known[k].sha256 !== sha256);
  if (other !== undefined)
    throw new CommandError(
      `the backup has migration ${other.name}, which this release does not know: restore it with release ${release} or a newer one`,
    );
  return migrations.length;
}

/** @returns what is left to do, null for nothing @throws CommandError when the key of this machine is not the one of the backup */
function checkKey(config: Config, manifest: BackupManifest): string | null {
  const { secrets_fingerprint: noted } = manifest;
  const place = keyPlaceOf(config);
  const key = findSecretKey(place, null);
  if (key === null)
    return noted === null
      ? null
      : `put secrets.key of the backed up service into ${place.file} before the start; without it nothing could tell whether the backup was changed`;
  if (noted !== null && fingerprintOf(key) !== noted)
    throw new CommandError(
      `the backup was made under another secrets.key than the one of this machine; put the right one into ${place.file}, or remove that file and do so later`,
    );
  assertAuthentic(manifest, key);
  return null;
}

/** @throws CommandError when the backup has other tables or columns than its release: one may have been lost */
function checkTables(
  found: BackupManifest['tables'],
  wanted: ReadonlyArray<{ name: string; columns: string[] }>,
): void {
  const textOf = (t: { name: string; columns: string[] }): string => `${t.name} (${t.columns.toSorted().join(', ')})`;
  const [there, needed] = [found.map(textOf), wanted.map(textOf)];
  const differing = [...needed.filter(t => !there.includes(t)), ...there.filter(t => !needed.includes(t))];
  const other = differing.map(text => text.split(' ')[0]);
  if (other.length > 0)
    throw new CommandError(
      `the backup is damaged: ${MANIFEST_FILE} does not have the tables and columns of its release: ${[...new Set(other)].join(', ')}`,
    );
}

/** Credentials of a restored service: how many of each were ended. */
type Ended = { sessions: number; tokens: number; serviceKeys: number; adminKeys: number };

/**
 * Ends what opens the service: after the backup some of it may have been revoked, and would count again. Tokens and keys stay as expired
 * ones, so that administrators see which to make again.
 */
async function endCredentials(client: CopyClient): Promise<Ended> {
  await endPluginLogins(client);
  await endChallenges(client);
  await endAllPasswordless(client);
  return {
    sessions: await endAllSessions(client),
    tokens: await userTokens.expireAll(client),
    serviceKeys: await serviceKeys.expireAll(client),
    adminKeys: await adminKeys.expireAll(client),
  };
}

const endedText = ({ adminKeys, serviceKeys, sessions, tokens }: Ended): string =>
  `\nended, because some may have been revoked since: ${sessions} sessions, ${tokens} user tokens, ${serviceKeys} service keys, ${adminKeys} administration keys; --keep-credentials keeps them, for a move`;

/** Everything or nothing: one transaction. @returns the credentials that were ended; null when they are kept */
async function fill(
  client: CopyClient,
  directory: string,
  manifest: BackupManifest,
  keepsCredentials: boolean,
): Promise<Ended | null> {
  if (!(await isEmptyDatabase(client)))
    throw new CommandError('the database is not empty: name an empty one, nothing in this one was changed');
  await migrateIn(client, migrationsOf(manifest));
  checkTables(manifest.tables, await listCopiedTables(client));
  await fillTables(client, manifest.tables, table =>
    pipeline(fs.createReadStream(tableFile(directory, table.name)), createGunzip(), client.copyIn(table)),
  );
  await setSequences(client, manifest.sequences);
  await migrateIn(client);
  await failPendingMails(client, LOST_MAIL);
  return keepsCredentials ? null : await endCredentials(client);
}

/** The database of the configuration: its own, or the embedded one, started for as long as it takes. */
async function withTarget(
  config: Config,
  progress: (text: string) => void,
  work: (url: string) => Promise<void>,
): Promise<void> {
  const { 'database.owner_url': owner, 'database.url': url } = config.values;
  if (url !== '') return await work(owner === '' ? url : owner);
  const postgres = await startPostgres({ directory: dataPath(config, 'postgres'), progress });
  try {
    await work(postgres.url);
  } finally {
    await postgres.stop();
  }
}

async function restoreLocked(
  config: Config,
  directory: string,
  manifest: BackupManifest,
  keepsCredentials: boolean,
  progress: (text: string) => void,
): Promise<Ended | null> {
  const files = await stageFiles(path.join(directory, FILES_FOLDER), dataPath(config, 'files'));
  let isRestored = false;
  let ended: Ended | null = null;
  try {
    await withTarget(config, progress, async url => {
      const db = openDatabase(url, 1, () => {});
      try {
        await withCopyClient(db, 'BEGIN', async client => {
          ended = await fill(client, directory, manifest, keepsCredentials);
          // Before the commit: with the rows the files are there, whatever ends this command.
          files.place();
        });
        isRestored = true;
      } finally {
        await db.close();
      }
    });
  } finally {
    if (isRestored) files.finish();
    else files.takeBack();
  }
  return ended;
}

/**
 * `restore`: a backup into an empty database and an empty data directory. The graph store is brought in step by the next
 * start.
 *
 * @param options `keepCredentials`: sessions, tokens and keys of then go on
 * @returns what to print
 * @throws CommandError in words for the operator; the database and the files are as they were then
 */
export async function restore(
  config: Config,
  directory: string,
  { json, keepCredentials }: { json: boolean; keepCredentials: boolean },
  progress: (text: string) => void,
): Promise<string> {
  const manifest = await readBackup(directory);
  migrationsOf(manifest);
  const hint = checkKey(config, manifest);
  const lock = lockForCommand(dataPath(config), 'restore');
  if (lock.state === 'taken')
    throw new CommandError(
      `the data directory ${dataPath(config)} is in use by ${holderText(lock.by)}: stop it, and name an empty one`,
    );
  let ended: Ended | null;
  try {
    ended = await restoreLocked(config, directory, manifest, keepCredentials, progress);
  } catch (error) {
    const failure = databaseFailure(error);
    if (failure instanceof OperatorError) throw failure;
    throw new CommandError(`the backup could not be restored: ${accessDenied(error) ?? messageOf(error)}`, {
      cause: error,
    });
  } finally {
    if (lock.state === 'held') lock.release();
  }
  const rows = manifest.tables.reduce((sum, t) => sum + t.rows, 0);
  if (json) return jsonText({ rows, files: manifest.files?.count ?? 0, made_at: manifest.made_at, ended, to_do: hint });
  const files = manifest.files === null ? '' : ` and ${manifest.files.count} files`;
  return `restored ${rows} rows${files} of ${manifest.made_at}; start the service${ended === null ? '' : endedText(ended)}${hint === null ? '' : `\n${hint}`}`;
}
