import { findBrokenSeals } from '../../audit/audit-log.ts';
import type { Database } from '../../db/database.ts';
import {
  findSecretKey,
  fingerprintOf,
  type KeyPlace,
  pendingKeyFile,
  readFingerprint,
} from '../../secrets/secret-key.ts';
import type { Check } from './check.ts';

type Found = Omit<Check, 'name'>;

/** Beyond it the times of records on several hosts do not tell any more what came first. */
const APART_MS = 5000;
const USED_PERCENT = 80;

/** How far the clock of this machine is from the database's. */
async function databaseClock(db: Database): Promise<Found> {
  const before = Date.now();
  const { rows } = await db.query<{ now: Date }>('SELECT clock_timestamp() AS now');
  const after = Date.now();
  const apart = Math.round((before + after) / 2 - (rows[0]?.now.getTime() ?? 0));
  const seconds = (Math.abs(apart) / 1000).toFixed(1);
  // The duration of the query itself is no difference of clocks.
  if (Math.abs(apart) <= APART_MS + (after - before))
    return { state: 'ok', detail: `${seconds} s from the database's` };
  return {
    state: 'warn',
    detail: `this machine's clock is ${seconds} s ${apart > 0 ? 'ahead of' : 'behind'} the database's: have both set theirs by NTP (timedatectl)`,
  };
}

/** How many connections the database has left for what the service may open. */
async function databaseConnections(db: Database, poolSize: number): Promise<Found> {
  const { rows } = await db.query<{ most: number; used: number }>(
    `WITH used AS (SELECT datname = current_database() AS here FROM pg_stat_activity WHERE backend_type = 'client backend')
     SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int AS most,
       (SELECT count(*)::int FROM used) AS used
     UNION ALL
     SELECT datconnlimit, (SELECT count(*)::int FROM used WHERE here) FROM pg_database
       WHERE datname = current_database() AND datconnlimit >= 0
     ORDER BY 1 LIMIT 1`,
  );
  const { most = 0, used = 0 } = rows[0] ?? {};
  const detail = `${used} of ${most} connections of the database are used; this host opens up to ${poolSize} and a few more`;
  if (used * 100 < most * USED_PERCENT && poolSize < most) return { state: 'ok', detail };
  return {
    state: 'warn',
    detail: `${detail}: raise max_connections of PostgreSQL (or CONNECTION LIMIT of the database), or lower database.pool_size`,
  };
}

/** Whether the audit log is as it was written. */
async function auditLog(db: Database): Promise<Found> {
  const { rows } = await db.query<{ seals: boolean }>("SELECT to_regclass('audit_seals') IS NOT NULL AS seals");
  if (rows[0]?.seals !== true) return { state: 'ok', detail: 'it is sealed from the next start on' };
  const broken = await findBrokenSeals(db);
  const [first] = broken;
  if (first === undefined) return { state: 'ok', detail: 'every seal fits its entries' };
  return {
    state: 'failed',
    detail: `entries ${first.firstId} to ${first.lastId}, sealed at ${first.sealedAt.toISOString()}, were changed since, or some of them taken out${broken.length > 1 ? `; so were those of ${broken.length - 1} other seals` : ''}: compare them with a backup`,
  };
}

/** Whether the key of stored secrets is the one they were put under; nothing is made or changed. */
async function storedSecrets(db: Database, place: KeyPlace): Promise<Found> {
  const noted = await readFingerprint(db, '').catch(() => null);
  if (noted === null) return { state: 'ok', detail: 'the key is made at the first start' };
  // Without the fingerprint nothing is moved.
  const key = findSecretKey(place, null);
  const where = place.configured === '' ? place.file : 'secrets.key (BOT_SECRETS_KEY)';
  if (key === null)
    return {
      state: 'failed',
      detail: `${where} is missing: copy it from another host of this database, or from where it is kept; only when no host has it any more, and it is lost, run: plugin-host secrets reset`,
    };
  if (fingerprintOf(key) === noted) return { state: 'ok', detail: `${where} opens the stored secrets` };
  const pending = findSecretKey({ configured: '', file: pendingKeyFile(place.file) }, null);
  if (pending !== null && fingerprintOf(pending) === noted)
    return { state: 'ok', detail: 'a rotation of the key was interrupted; the next start finishes it' };
  return {
    state: 'failed',
    detail: `${where} is not the key the stored secrets are under: put the right one back; if it is lost, run: plugin-host secrets reset`,
  };
}

type Look = (name: string, look: () => Promise<Found>) => Promise<Check>;

/**
 * What is looked at in a database that answers.
 *
 * @param poolSize connections this host may open (`database.pool_size`)
 * @param check makes a row of what was found
 */
export const databaseChecks = (db: Database, poolSize: number, place: KeyPlace, check: Look): Array<Promise<Check>> => [
  check('connections', () => databaseConnections(db, poolSize)),
  check('clock', () => databaseClock(db)),
  check('audit log', () => auditLog(db)),
  check('stored secrets', () => storedSecrets(db, place)),
];
