import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { readEngine } from '../sdk/typescript/engine/stored-engine.ts';
import { LIMITS } from '../src/base/limits.ts';
import { openDatabase } from '../src/db/database.ts';
import { migrate } from '../src/db/migrate.ts';
import { EMBEDDED_ROLE, grantServiceRole, makeServiceRole } from '../src/db/service-role.ts';
import { Jobs } from '../src/jobs.ts';
import { buildPages } from '../src/supervisor/build-pages.ts';
import { startPostgres } from '../src/supervisor/embedded-postgres.ts';
import { SERVICE_PASSWORD, TEMPLATE } from './support/database.ts';

/**
 * Runs the tests on a PostgreSQL of their own: `npm test [-- FILE...]`. Every test file makes its database from a
 * migrated template. The last line is `N passed, N failed`.
 */
const root = path.resolve(import.meta.dirname, '..');
const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'plugin-host-test-'));

/** Free bytes PostgreSQL's files may need: a copy of the template takes 11 MB, and few exist at a time. */
const CLUSTER_BYTES_MIN = 4 * 2 ** 30;

/**
 * Where PostgreSQL has its files: in memory where the system offers enough of it (Linux), because making a database for
 * each test writes 500 files; otherwise next to everything else.
 */
function clusterDirectory(): string {
  const memory = '/dev/shm';
  try {
    const { bavail, bsize } = fs.statfsSync(memory);
    if (bavail * bsize >= CLUSTER_BYTES_MIN) return fs.mkdtempSync(path.join(memory, 'plugin-host-test-'));
  } catch {}
  return fs.mkdtempSync(path.join(directory, 'pg-'));
}

const cluster = clusterDirectory();
// The account PostgreSQL runs as must be able to walk through them.
for (const one of [directory, cluster]) fs.chmodSync(one, 0o711);

function run(command: string, args: string[], env: NodeJS.ProcessEnv, onLine: (line: string) => void): Promise<number> {
  const child = spawn(command, args, { cwd: root, env, stdio: ['ignore', 'pipe', 'inherit'] });
  let rest = '';
  child.stdout.on('data', (chunk: Buffer) => {
    const lines = (rest + chunk.toString()).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) onLine(line);
  });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', code => {
      if (rest !== '') onLine(rest);
      resolve(code ?? 1);
    });
  });
}

const files = process.argv.slice(2);
let passed = 0;
let failed = 0;
let code = 1;
const postgres = await startPostgres({
  directory: path.join(cluster, 'pg'),
  progress: text => console.log(`# ${text}`),
  settings: { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off', max_connections: '300' },
});
try {
  const db = openDatabase(postgres.url, 1, () => {});
  await db.query(`CREATE DATABASE ${TEMPLATE}`);
  await db.close();
  const template = openDatabase(postgres.url.replace('/plugin_host?', `/${TEMPLATE}?`), 1, () => {});
  await migrate(template);
  // The tables of the job queue too; otherwise every service would create them again.
  const jobs = new Jobs(template, { warn: (fields, text) => console.log(`# ${text} ${JSON.stringify(fields)}`) });
  jobs.start([]);
  await jobs.close();
  await makeServiceRole(template, EMBEDDED_ROLE, SERVICE_PASSWORD);
  await grantServiceRole(template, EMBEDDED_ROLE);
  await template.close();
  // The administration pages, built once for all tests that look at them.
  const pages = await buildPages(path.join(directory, 'pages'), text => console.log(`# ${text}`));
  if (pages === null) throw new Error('the administration pages cannot be built; run npm ci first');
  // The engine of TypeScript plugins too.
  await readEngine();
  const env = {
    ...process.env,
    TEST_PAGES: pages,
    TEST_DATABASE_URL: postgres.url,
    TEST_DIRECTORY: directory,
    // Every test file is a process, and loads the same sources.
    NODE_COMPILE_CACHE: path.join(directory, 'compiled'),
    // As the supervisor sets it.
    UWS_HTTP_MAX_HEADERS_SIZE: String(LIMITS.requestHeadBytesMax),
  };
  for (const name of Object.keys(env)) if (name.startsWith('BOT_')) delete env[name as keyof typeof env];
  code = await run(process.execPath, [path.join(root, 'test/run-files.ts'), ...files], env, line => {
    const totals = /^# \{ total: (\d+)(?:, pass: (\d+))?(?:, fail: (\d+))?/.exec(line);
    if (totals !== null) {
      passed = Number(totals[2] ?? 0);
      failed = Number(totals[1]) - passed;
    }
    // Whole files, failures with their details, and what tests print (seeds).
    if (
      /^(not )?ok |^\s*not ok |^\s+(diff|stack|at|message|found|wanted|compare|error|code|exitCode|signal|tapCaught)|^\s+[-+@]|^#|^\s*# seed/.test(
        line,
      )
    )
      console.log(line);
  });
} finally {
  await postgres.stop();
  for (const one of [cluster, directory])
    fs.rmSync(one, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
}
// A file that ended without saying so (a crash) fails no assertion.
if (code !== 0 && failed === 0) failed = 1;
console.log(`${passed} passed, ${failed} failed`);
process.exit(code === 0 && failed === 0 && passed > 0 ? 0 : 1);
