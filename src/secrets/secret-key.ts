import { createHmac, randomBytes } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { OperatorError } from '../base/errors.ts';
import { isMissing } from '../base/file-problem.ts';
import type { Queryable } from '../db/database.ts';

/** The stored secrets and `secrets.key` do not belong together, or the key is missing. */
export class SecretKeyError extends OperatorError {
  override readonly name = 'SecretKeyError';
}

/** Where the key is: in the configuration, or in a file that the first start creates. */
export type KeyPlace = { configured: string; file: string };

const CONFIGURED = 'secrets.key (BOT_SECRETS_KEY)';

/** File of a new key, until the database names its fingerprint. */
export const pendingKeyFile = (file: string): string => `${file}.new`;

/** Identifies a key without revealing it. */
export function fingerprintOf(key: Buffer): string {
  return createHmac('sha256', key).update('plugin-host secrets.key').digest('hex').slice(0, 32);
}

function parseKey(text: string, where: string): Buffer {
  const key = Buffer.from(text.trim(), 'base64');
  if (key.length !== 32)
    throw new SecretKeyError(`${where} must be 32 bytes in base64; make one with: openssl rand -base64 32`);
  return key;
}

function readKeyFile(file: string): Buffer | null {
  try {
    return parseKey(fs.readFileSync(file, 'utf8'), file);
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}

function syncDirectory(file: string): void {
  const fd = fs.openSync(path.dirname(file), 'r');
  fs.fsyncSync(fd);
  fs.closeSync(fd);
}

/** Writes a key file atomically. */
function writeKeyFile(file: string, key: Buffer): void {
  fs.mkdirSync(path.dirname(file), { recursive: true });
  const partial = `${file}.${process.pid}.part`;
  // Created exclusively, so that no existing link is followed.
  fs.rmSync(partial, { force: true });
  const fd = fs.openSync(partial, 'wx', 0o600);
  fs.writeSync(fd, `${key.toString('base64')}\n`);
  fs.fsyncSync(fd);
  fs.closeSync(fd);
  fs.renameSync(partial, file);
  syncDirectory(file);
}

/** Creates a key in a file next to the one in use, replacing an older pending key. */
export function writePendingKey(file: string): Buffer {
  const key = randomBytes(32);
  writeKeyFile(pendingKeyFile(file), key);
  return key;
}

/** Makes the pending key the key in use. */
export function takePendingKey(file: string): void {
  fs.renameSync(pendingKeyFile(file), file);
  syncDirectory(file);
}

/**
 * Fingerprint of the key that the stored secrets are encrypted with; null before the first start. Can lock it until the
 * transaction ends.
 */
export async function readFingerprint(
  client: Queryable,
  lock: '' | 'FOR SHARE' | 'FOR UPDATE',
): Promise<string | null> {
  const { rows } = await client.query<{ secrets_fingerprint: string | null }>(
    `SELECT secrets_fingerprint FROM installation ${lock}`,
  );
  return rows[0]?.secrets_fingerprint ?? null;
}

export async function writeFingerprint(client: Queryable, fingerprint: string): Promise<void> {
  await client.query('UPDATE installation SET secrets_fingerprint = $1', [fingerprint]);
}

/**
 * The key of this host, from the configuration or else from the file; null if there is none. First finishes a rotation
 * that was interrupted after its transaction: then the database names the pending key.
 */
export function findSecretKey(place: KeyPlace, fingerprint: string | null): Buffer | null {
  if (place.configured !== '') return parseKey(place.configured, CONFIGURED);
  const key = readKeyFile(place.file);
  if (fingerprint === null || (key !== null && fingerprintOf(key) === fingerprint)) return key;
  const pending = readKeyFile(pendingKeyFile(place.file));
  if (pending === null || fingerprintOf(pending) !== fingerprint) return key;
  takePendingKey(place.file);
  return pending;
}

/** Creates the key at the first start. */
export function makeFirstKey(file: string): Buffer {
  const key = randomBytes(32);
  writeKeyFile(file, key);
  return key;
}

/** @throws SecretKeyError that says what to do, if the stored secrets are encrypted with another key */
export function assertFits(place: KeyPlace, key: Buffer | null, fingerprint: string): Buffer {
  if (key !== null && fingerprintOf(key) === fingerprint) return key;
  const where = place.configured === '' ? place.file : CONFIGURED;
  const what =
    key === null
      ? `${where} is missing, and the database has secrets encrypted with the key of fingerprint ${fingerprint}`
      : `${where} has the fingerprint ${fingerprintOf(key)}, and the database has secrets encrypted with the key of fingerprint ${fingerprint}`;
  const waiting = fs.existsSync(pendingKeyFile(place.file))
    ? ` ("secrets rotate" left a new key in ${pendingKeyFile(place.file)})`
    : '';
  throw new SecretKeyError(
    `${what}: put the right key back${waiting}, or set it with ${CONFIGURED}; if it is lost, run: plugin-host secrets reset`,
  );
}
