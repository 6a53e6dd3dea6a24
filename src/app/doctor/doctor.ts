import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { accessDenied } from '../../base/access-denied.ts';
import { messageOf, OperatorError } from '../../base/errors.ts';
import { openFilesMax, openFilesProblem } from '../../base/open-files.ts';
import { type Config, dataPath, publicBaseOf } from '../../config/load.ts';
import { durationMs } from '../../config/values.ts';
import { type Database, openDatabase } from '../../db/database.ts';
import { assertPostgres, pendingMigrations } from '../../db/migrate.ts';
import { assertOwnSession } from '../../db/own-session.ts';
import { ownerProblem, roleWeakness } from '../../db/service-role.ts';
import { readInstallationId } from '../../files/file-records.ts';
import type { S3Storage } from '../../files/storage-s3.ts';
import { remoteStore } from '../../graph/remote-store.ts';
import { listPlugins } from '../../plugins/list-plugins.ts';
import { postgresBinaries, spicedbLibrary } from '../../supervisor/stores/embedded-packages.ts';
import { findRunningPostgres } from '../../supervisor/stores/embedded-postgres.ts';
import { s3Of } from '../files.ts';
import { keyPlaceOf } from '../secrets.ts';
import type { Check } from './check.ts';
import { databaseChecks } from './database-checks.ts';
import { outsideChecks } from './outside-checks.ts';
import { publicAddress } from './public-address.ts';
import { publicCertificate, tlsFiles } from './public-certificate.ts';

const DISK_WARN_BYTES = 5 * 1024 ** 3;
const CORS_MS = 10_000;

/** A check that takes longer has failed: all of them run at the same time, so the command ends in time. */
const CHECK_MS = 12_000;

async function check(name: string, look: () => Promise<string | Omit<Check, 'name'>>): Promise<Check> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error(`no answer within ${CHECK_MS / 1000} s`)), CHECK_MS);
  try {
    const found = await Promise.race([look(), late.promise]).finally(() => clearTimeout(timer));
    return typeof found === 'string' ? { name, state: 'ok', detail: found } : { name, ...found };
  } catch (error) {
    return { name, state: 'failed', detail: accessDenied(error) ?? messageOf(error) };
  }
}

/** The directory, or the nearest one above it that exists: the service makes the rest. */
function existing(directory: string): string {
  return fs.existsSync(directory) ? directory : existing(path.dirname(directory));
}

/** Writes and removes a file, as the service does; makes no directory. */
async function dataDirectory(directory: string): Promise<Omit<Check, 'name'>> {
  const at = existing(directory);
  const file = path.join(at, `.doctor-${randomBytes(4).toString('hex')}`);
  try {
    fs.writeFileSync(file, 'doctor');
  } finally {
    fs.rmSync(file, { force: true });
  }
  const { bavail, bsize } = fs.statfsSync(at);
  const free = bavail * bsize;
  return {
    state: free < DISK_WARN_BYTES ? 'warn' : 'ok',
    detail: `${directory} can be ${at === directory ? 'written' : 'made'}, ${(free / 1024 ** 3).toFixed(1)} GiB free`,
  };
}

/** Whether the limit of this process, which a service started from here would have, is enough for its connections. */
function openFiles(config: Config): Omit<Check, 'name'> {
  const most = openFilesMax();
  const problem = openFilesProblem(config.values['http.max_connections'], most);
  return problem === null
    ? { state: 'ok', detail: `${most === Number.POSITIVE_INFINITY ? 'any number' : most} may be open` }
    : { state: 'warn', detail: problem };
}

/** The origins whose pages upload: this service's, and those of plugins' frontends elsewhere. */
async function originsOf(config: Config, db: Database): Promise<string[]> {
  const origins = new Set([new URL(publicBaseOf(config, config.values['http.port'])).origin]);
  for (let after = ''; ; ) {
    const page = await listPlugins(db, { after, limit: 200, search: '' });
    for (const plugin of page) for (const origin of plugin.frontendOrigins) origins.add(origin);
    const last = page.at(-1);
    if (last === undefined || page.length < 200) return [...origins];
    after = last.id;
  }
}

/** The bucket's CORS rule as docs/operating.md has it. */
const corsRule = (origins: readonly string[]): string =>
  JSON.stringify([
    {
      AllowedOrigins: origins,
      AllowedMethods: ['PUT', 'GET'],
      AllowedHeaders: ['content-type'],
      ExposeHeaders: ['etag'],
      MaxAgeSeconds: 3000,
    },
  ]);

/** Asks the store what a browser would ask before it uploads from a page of an origin. */
async function allowsUpload(url: string, origin: string): Promise<boolean> {
  const answer = await fetch(url, {
    method: 'OPTIONS',
    headers: { origin, 'access-control-request-method': 'PUT', 'access-control-request-headers': 'content-type' },
    signal: AbortSignal.timeout(CORS_MS),
  });
  await answer.arrayBuffer();
  const allowed = answer.headers.get('access-control-allow-origin');
  const methods = answer.headers.get('access-control-allow-methods') ?? '';
  return answer.ok && (allowed === '*' || allowed === origin) && /\bPUT\b/.test(methods);
}

async function cors(s3: S3Storage, origins: readonly string[]): Promise<Omit<Check, 'name'>> {
  const file = {
    id: '0'.repeat(32),
    pluginId: '',
    userId: null,
    chat: null,
    name: 'doctor',
    mimeType: 'text/plain',
    fileType: 'document',
    size: 1,
    state: 'pending',
    store: 's3',
    digest: null,
    cancelled: false,
    createdAt: new Date(),
    expiresAt: null,
  } as const;
  const { url } = await s3.uploadTarget(file, new Date(Date.now() + 60_000), '');
  const refused: string[] = [];
  for (const origin of origins) if (!(await allowsUpload(url, origin))) refused.push(origin);
  if (refused.length === 0) return { state: 'ok', detail: `pages of ${origins.join(', ')} may upload` };
  return {
    state: 'failed',
    detail: `the bucket does not let pages of ${refused.join(', ')} upload; give it this rule: ${corsRule(origins)}`,
  };
}

/** Address of the database that runs; null when it is the embedded one and stands still. */
function runningDatabase(config: Config): string | null {
  return config.values['database.url'] || findRunningPostgres(dataPath(config, 'postgres'));
}

/** Looks without a change: no database is made, started or migrated. */
async function database(config: Config, db: Database | null): Promise<string | Omit<Check, 'name'>> {
  if (db === null) {
    postgresBinaries();
    // Throws when this account may not look.
    return fs.statSync(dataPath(config, 'postgres', 'PG_VERSION'), { throwIfNoEntry: false }) !== undefined
      ? 'embedded: it stands still, and starts with the service'
      : 'embedded: made at the first start';
  }
  await assertPostgres(db);
  const { rows } = await db.query<{ server_version: string }>('SHOW server_version');
  // In the service itself the address of the embedded one is known.
  const isEmbedded = config.values['database.url'] === '' || config.sources['database.url'] === 'start';
  const text = `${isEmbedded ? 'embedded' : 'remote'} PostgreSQL ${rows[0]?.server_version}`;
  const pending = await pendingMigrations(db);
  return pending.length === 0 ? text : `${text}; the next start applies ${pending.length} migrations`;
}

/** Whether the serving role could do more than it must. */
async function databaseRole(db: Database): Promise<string | Omit<Check, 'name'>> {
  const weakness = await roleWeakness(db);
  return weakness === null ? 'owns nothing of the service' : { state: 'warn', detail: weakness };
}

/** Whether the role that migrates can do so at the next start. */
async function databaseOwner(ownerUrl: string): Promise<string> {
  const owner = openDatabase(ownerUrl, 1, () => {});
  try {
    const problem = await ownerProblem(owner);
    if (problem !== null) throw new OperatorError(problem);
    return 'may migrate';
  } finally {
    await Promise.race([owner.close(), sleep(1000, null, { ref: false })]);
  }
}

/** The database, and what it is asked when it answers: when it does not, one row says why. */
async function databaseRows(config: Config, db: Database | null, url: string | null): Promise<Check[]> {
  const { 'database.owner_url': ownerUrl, 'database.pool_size': poolSize, 'database.url': remote } = config.values;
  const answers = check('database', () => database(config, db));
  const owner = ownerUrl === '' || remote === '' ? [] : [check('database owner', () => databaseOwner(ownerUrl))];
  const first = [await answers, ...(await Promise.all(owner))];
  if (db === null || first[0]?.state === 'failed') return first;
  const isRemote = remote !== '';
  const more = await Promise.all([
    ...(isRemote
      ? [check('database role', () => databaseRole(db)), check('database session', () => ownSession(url))]
      : []),
    ...databaseChecks(db, poolSize, keyPlaceOf(config), check),
  ]);
  return [...first, ...more];
}

/** Stored credentials that were not looked at. */
function credentials({ unread }: Config): Check[] {
  return unread === '' ? [] : [{ name: 'credentials', state: 'warn', detail: unread }];
}

/** Whether a connection is one session, which a pooler may not grant. */
async function ownSession(url: string | null): Promise<string> {
  if (url !== null) await assertOwnSession(url);
  return 'each connection is a session of its own';
}

/** Asks the graph store that a running service uses. */
export type GraphPing = () => Promise<void>;

async function graphStore(config: Config, ping: GraphPing | null): Promise<string> {
  const graph = remoteStore(config);
  if (graph === null && ping !== null) {
    await ping();
    return 'embedded: it answers';
  }
  if (graph === null) {
    spicedbLibrary();
    return 'embedded: it runs with the service';
  }
  try {
    const schema = await graph.readSchema();
    const endpoint = config.values['spicedb.endpoint'];
    return `${endpoint} answers${schema === null ? '; its schema is written at the first start' : ''}`;
  } finally {
    graph.close();
  }
}

/** The S3 store is asked under the name this installation has there, which the database knows. */
async function fileChecks(config: Config, db: Database | null): Promise<Check[]> {
  if (config.values['s3.bucket'] === '') return [await check('files', () => dataDirectory(dataPath(config, 'files')))];
  const unasked: Check = { name: 'files', state: 'warn', detail: 'S3 is asked when the database answers' };
  if (db === null) return [unasked];
  let installation: string;
  try {
    installation = await readInstallationId(db);
  } catch {
    return [unasked];
  }
  const s3 = await s3Of(config, installation);
  if (s3 === null) return [];
  try {
    return await fileStore(config, db, s3);
  } finally {
    s3.close();
  }
}

/**
 * `doctor`: looks at everything the service needs, and says what is wrong and what helps. Nothing is changed, no file is left, and each
 * look ends within 12 seconds; those at S3, and those at the database, follow each other.
 *
 * @param pingGraph asks the store of the service that calls this; null from a command
 * @returns a row for each thing; the service starts when none has failed
 */
export async function doctor(config: Config, pingGraph: GraphPing | null = null): Promise<Check[]> {
  const url = runningDatabase(config);
  const db = url === null ? null : openDatabase(url, 3, () => {});
  const university = config.values['university_sync.base_url'] !== '';
  const base = publicBaseOf(config, config.values['http.port']);
  const files = { cert: config.values['http.tls.cert'], key: config.values['http.tls.key'] };
  try {
    const rows = await Promise.all([
      check('data directory', () => dataDirectory(dataPath(config))),
      check('open files', async () => openFiles(config)),
      check('public address', async () => await publicAddress(config)),
      ...(files.cert === '' ? [] : [check('tls files', async () => tlsFiles(files))]),
      ...(base.startsWith('https:') ? [check('certificate', () => publicCertificate(new URL(base)))] : []),
      check('graph store', () => graphStore(config, pingGraph)),
      ...(university ? [check('university source', () => universitySource(config))] : []),
      ...outsideChecks(config, check),
      fileChecks(config, db),
      databaseRows(config, db, url),
    ]);
    return [...credentials(config), ...rows.flat()];
  } finally {
    // A server that does not answer does not hear the end either.
    await Promise.race([db?.close(), sleep(1000, null, { ref: false })]);
  }
}

/** Asks the source of university data for its shortest list. */
async function universitySource(config: Config): Promise<Omit<Check, 'name'>> {
  const v = config.values;
  const url = `${v['university_sync.base_url'].replace(/\/$/, '')}/faculties`;
  const token = v['university_sync.token'];
  const { body, status } = await fetch(url, {
    headers: token === '' ? {} : { Authorization: `Bearer ${token}` },
    redirect: 'error',
    signal: AbortSignal.timeout(durationMs(v['university_sync.page_timeout'])),
  });
  await body?.cancel();
  if (status === 200) return { state: 'ok', detail: `${url} answers` };
  if (status === 404 || status === 501)
    return {
      state: 'warn',
      detail: `${url} answers ${status}: the source offers no faculties; is university_sync.base_url right?`,
    };
  const why = status === 401 || status === 403 ? ': university_sync.token is not accepted' : '';
  return { state: 'failed', detail: `${url} answers ${status}${why}` };
}

async function fileStore(config: Config, db: Database, s3: S3Storage): Promise<Check[]> {
  const v = config.values;
  return [
    await check('files', async () => {
      await s3.probe();
      return `bucket "${v['s3.bucket']}" is written, read and deleted from`;
    }),
    await check('files in browsers', async () => cors(s3, await originsOf(config, db))),
  ];
}

/** The rows as lines for people. */
export function shownChecks(checks: readonly Check[]): string {
  const width = Math.max(...checks.map(c => c.name.length));
  return checks.map(c => `${c.state.padEnd(6)}  ${c.name.padEnd(width)}  ${c.detail}`).join('\n');
}
