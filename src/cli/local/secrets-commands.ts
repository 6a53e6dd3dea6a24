import { keyPlaceOf, listSealed, openSecretKey } from '../../app/secrets.ts';
import { type Config, dataPath } from '../../config/load.ts';
import type { Database, Queryable } from '../../db/database.ts';
import { isListenedTo } from '../../db/notifications.ts';
import { makeSecretBox } from '../../secrets/secret-box.ts';
import {
  findSecretKey,
  fingerprintOf,
  type KeyPlace,
  pendingKeyFile,
  readFingerprint,
  takePendingKey,
  writeFingerprint,
  writePendingKey,
} from '../../secrets/secret-key.ts';
import { holderText } from '../../supervisor/handover/data-lock.ts';
import { jsonText } from '../print/json-text.ts';
import { CommandError, withDatabase } from './admin-commands.ts';
import { lockForCommand } from './lock-for-command.ts';

/** @throws CommandError when a service of this database runs: it would go on with the key it has */
async function assertNothingRuns(db: Queryable): Promise<void> {
  if (await isListenedTo(db))
    throw new CommandError('a service uses this database; stop them all first, also those on other hosts');
}

/** Runs something on the database while no service runs on this data directory or elsewhere. */
async function alone<T>(
  config: Config,
  progress: (text: string) => void,
  work: (db: Database) => Promise<T>,
): Promise<T> {
  const lock = lockForCommand(dataPath(config), 'secrets');
  if (lock.state === 'taken')
    throw new CommandError(`the data directory is in use by ${holderText(lock.by)}; stop it first`);
  // The embedded database is started under a lock of its own kind.
  if (lock.state === 'held') lock.release();
  return await withDatabase(config, progress, work);
}

/** Where the new key is now, and what is left to do. */
function keyText(place: KeyPlace): string {
  return place.configured === ''
    ? `${place.file} holds the new key: keep a copy, and give it to every other host of this database`
    : `the new key is in ${pendingKeyFile(place.file)}: put it into secrets.key (BOT_SECRETS_KEY) of every host, then remove the file`;
}

/**
 * `secrets rotate`: puts every stored secret under a new key. The new key lies on disk before one transaction replaces all
 * secrets and the fingerprint, and takes the old one's place after. A run that is cut off before the commit has changed nothing;
 * after it, the next start or the next run finishes it.
 *
 * @returns what to print
 */
export async function rotateSecrets(config: Config, json: boolean, progress: (text: string) => void): Promise<string> {
  const place = keyPlaceOf(config);
  return await alone(config, progress, async db => {
    const old = makeSecretBox(await openSecretKey(db, place));
    const key = writePendingKey(place.file);
    const box = makeSecretBox(key);
    const count = await db.withTransaction(async client => {
      await readFingerprint(client, 'FOR UPDATE');
      // A host that starts now waits for this row; one that was quicker is seen here.
      await assertNothingRuns(client);
      const all = await listSealed(client);
      for (const s of all) await s.replace(box.seal(old.open(s.sealed, s.owner), s.owner));
      await writeFingerprint(client, fingerprintOf(key));
      return all.length;
    });
    if (place.configured === '') takePendingKey(place.file);
    if (json) return jsonText({ replaced: count, fingerprint: fingerprintOf(key) });
    return `${count} stored secrets are under a new key (fingerprint ${fingerprintOf(key)})\n${keyText(place)}`;
  });
}

/**
 * `secrets reset`: gives up the secrets of a key that is lost, and begins with a new one. May be cut off and run again, as a
 * rotation.
 *
 * @returns what to print: everything that must be entered again
 */
export async function resetSecrets(config: Config, json: boolean, progress: (text: string) => void): Promise<string> {
  const place = keyPlaceOf(config);
  return await alone(config, progress, async db => {
    const noted = await readFingerprint(db, '');
    const found = findSecretKey(place, noted);
    if (found !== null && noted === fingerprintOf(found))
      throw new CommandError(
        'the key is the one the stored secrets are under, nothing is lost; to replace it run: plugin-host secrets rotate',
      );
    // A key of the configuration is the one to begin with.
    const key = place.configured === '' || found === null ? writePendingKey(place.file) : found;
    const box = makeSecretBox(key);
    const lost = await db.withTransaction(async client => {
      await readFingerprint(client, 'FOR UPDATE');
      // A host that starts now waits for this row; one that was quicker is seen here.
      await assertNothingRuns(client);
      const texts: string[] = [];
      for (const s of await listSealed(client)) {
        const text = await s.lose(box);
        if (text !== null) texts.push(text);
      }
      await writeFingerprint(client, fingerprintOf(key));
      return texts;
    });
    if (place.configured === '') takePendingKey(place.file);
    if (json) return jsonText({ lost, fingerprint: fingerprintOf(key) });
    const head = lost.length === 0 ? 'nothing has to be entered again' : 'must be entered again:';
    const where =
      place.configured === ''
        ? `${place.file} holds the new key: keep a copy`
        : 'secrets.key (BOT_SECRETS_KEY) is the key now';
    return [head, ...lost.map(text => `  ${text}`), where].join('\n');
  });
}
