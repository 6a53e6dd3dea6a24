import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { s3Of } from '../compose-files.ts';
import { type Config, dataPath, publicBaseOf } from '../config.ts';
import { durationMs } from '../config-values.ts';
import type { Database } from '../db/database.ts';
import { messageOf } from '../errors.ts';
import { readInstallationId } from '../files/file-records.ts';
import type { S3Storage } from '../files/storage-s3.ts';
import { remoteStore } from '../graph/remote-store.ts';
import { listPlugins } from '../plugins/plugin-store.ts';
import { withDatabase } from './admin-commands.ts';
import { publicAddress } from './public-address.ts';

/** One thing looked at. `warn`: it works, and something will be missed. */
export type Check = { name: string; state: 'ok' | 'warn' | 'failed'; detail: string };

const DISK_WARN_BYTES = 5 * 1024 ** 3;
const CORS_MS = 10_000;

async function check(name: string, look: () => Promise<string | Omit<Check, 'name'>>): Promise<Check> {
  try {
    const found = await look();
    return typeof found === 'string' ? { name, state: 'ok', detail: found } : { name, ...found };
  } catch (error) {
    return { name, state: 'failed', detail: messageOf(error) };
  }
}

/** Writes and removes a file, as the service does. */
async function dataDirectory(directory: string): Promise<Omit<Check, 'name'>> {
  fs.mkdirSync(directory, { recursive: true });
  const file = path.join(directory, `.doctor-${randomBytes(4).toString('hex')}`);
  fs.writeFileSync(file, 'doctor');
  fs.rmSync(file);
  const { bavail, bsize } = fs.statfsSync(directory);
  const free = bavail * bsize;
  return {
    state: free < DISK_WARN_BYTES ? 'warn' : 'ok',
    detail: `${directory} can be written, ${(free / 1024 ** 3).toFixed(1)} GiB free`,
  };
}

/** The origins whose pages upload: this service's, and those of plugins' frontends elsewhere. */
async function originsOf(config: Config, db: Database): Promise<string[]> {
  const origins = new Set([new URL(publicBaseOf(config, config.values['http.port'])).origin]);
  for (let after = ''; ; ) {
    const page = await listPlugins(db, after, 200);
    for (const plugin of page) for (const origin of plugin.frontendOrigins) origins.add(origin);
    const last = page.at(-1);
    if (last === undefined || page.length < 200) return [...origins];
    after = last.id;
  }
}

/** The bucket's CORS rule as docs/OPERATING.md has it. */
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

/**
 * `doctor`: looks at everything the service needs, and says what is wrong and what helps.
 *
 * @returns a row for each thing; the service starts when none has failed
 */
export async function doctor(config: Config, progress: (text: string) => void): Promise<Check[]> {
  const v = config.values;
  const checks = [
    await check('data directory', () => dataDirectory(dataPath(config))),
    await check('public address', () => publicAddress(config)),
  ];
  const graph = remoteStore(config);
  checks.push(
    await check('graph store', async () => {
      if (graph === null) return 'embedded: it runs with the service';
      const schema = await graph.readSchema();
      return `${v['spicedb.endpoint']} answers${schema === null ? '; its schema is written at the first start' : ''}`;
    }),
  );
  graph?.close();
  if (v['university_sync.base_url'] !== '')
    checks.push(await check('university source', () => universitySource(config)));
  checks.push(
    await check('database', () =>
      withDatabase(config, progress, async db => {
        const { rows } = await db.query<{ server_version: string }>('SHOW server_version');
        const s3 = await s3Of(config, await readInstallationId(db));
        try {
          checks.push(...(await fileStore(config, db, s3)));
        } finally {
          s3?.close();
        }
        const where = v['database.url'] === '' ? 'embedded' : 'remote';
        return `${where} PostgreSQL ${rows[0]?.server_version}`;
      }),
    ),
  );
  return checks;
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

async function fileStore(config: Config, db: Database, s3: S3Storage | null): Promise<Check[]> {
  const v = config.values;
  if (s3 === null) return [await check('files', () => dataDirectory(dataPath(config, 'files')))];
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
