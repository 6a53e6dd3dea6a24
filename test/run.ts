import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { z } from 'zod';
import { readEngine } from '../sdk/typescript/engine/stored-engine.ts';
import { apiDocument } from '../src/api/document/docs-api.ts';
import { LIMITS } from '../src/base/limits.ts';
import { openDatabase } from '../src/db/database.ts';
import { migrate } from '../src/db/migrate.ts';
import { EMBEDDED_ROLE, grantServiceRole, makeServiceRole } from '../src/db/service-role.ts';
import { prepareLaneSource } from '../src/execution/lane-source.ts';
import { Jobs } from '../src/jobs.ts';
import { buildPages } from '../src/supervisor/build-pages.ts';
import { buildSample } from '../src/supervisor/build-sample.ts';
import { startPostgres } from '../src/supervisor/stores/embedded-postgres.ts';
import { othersMayEnter, runWhereOthersMayEnter } from './open-place.ts';
import { type FileResult, runFiles } from './run-files.ts';
import { SERVICE_PASSWORD, TEMPLATE } from './support/database.ts';

/**
 * Runs the tests on a PostgreSQL of their own: `npm test [-- FILE...]`. Every test file makes its database from a migrated template.
 * `npm test -- --times` also writes down how long each file took. The last line is `N passed, N failed`.
 */
const root = path.resolve(import.meta.dirname, '..');
if (process.getuid?.() === 0 && !othersMayEnter(root)) process.exit(await runWhereOthersMayEnter());
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
// Also when the run is broken off.
process.once('exit', () => {
  for (const one of [cluster, directory]) fs.rmSync(one, { recursive: true, force: true });
});
// The account PostgreSQL runs as must be able to walk through them.
for (const one of [directory, cluster]) fs.chmodSync(one, 0o711);

/** Seconds each file took when `npm test -- --times` wrote them down: those that take longest start first. */
const TIMES = path.join(root, 'test/times.json');
/** More than there are cores: tests wait for processes and answers half of their time. */
const JOBS = 3;
const SLOWEST_SHOWN = 10;
const TimesSchema = z.record(z.string(), z.number());

/** Failures with their details, and what tests print (seeds). */
const WORTH_SHOWING =
  /^\s*not ok |^\s+(diff|stack|at|message|found|wanted|compare|error|code|exitCode|signal|tapCaught)|^\s+[-+@]|^\s*# seed/;

/** How tests and the services in them load sources. */
const SOURCES = path.join(root, 'test/support/sources.js');

/** Sources with types that tests load. */
const allSources = (): string[] =>
  ['{src,workers,test,deploy,admin/src}/**/*.ts', 'sdk/{*,*/*,typescript/engine/*}.ts'].flatMap(pattern =>
    fs.globSync(pattern, { cwd: root }),
  );

let ended = 0;
function showFile({ file, seconds, failed, problem, log }: FileResult): void {
  ended++;
  if (failed > 0)
    for (const line of fs.readFileSync(log, 'utf8').split('\n')) if (WORTH_SHOWING.test(line)) console.log(line);
  console.log(`${failed > 0 ? 'not ok' : 'ok'} ${ended} - ${file} # time=${(seconds * 1000).toFixed(0)}ms`);
  if (problem !== null) console.log(`  error: ${file}: ${problem}`);
  if (failed > 0) console.log(`  log: ${log}`);
}

function allFiles(): string[] {
  return fs
    .readdirSync(path.join(root, 'test'), { recursive: true, encoding: 'utf8' })
    .filter(name => name.endsWith('.test.ts'))
    .map(name => path.join('test', name));
}

const words = process.argv.slice(2);
const writeTimes = words.includes('--times');
const files = [...new Set(words.filter(word => word !== '--times'))];
const began = performance.now();
let passed = 0;
let failed = 0;
const postgres = await startPostgres({
  directory: path.join(cluster, 'pg'),
  progress: text => console.log(`# ${text}`),
  settings: {
    fsync: 'off',
    synchronous_commit: 'off',
    full_page_writes: 'off',
    max_connections: '300',
    scram_iterations: '1',
  },
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
  const sample = await buildSample(path.join(directory, 'sample'), () => {});
  // The engine of TypeScript plugins too.
  await readEngine();
  // The types of all sources are stripped once, and the code of the lanes is laid out once.
  const stripped = path.join(directory, 'stripped');
  fs.mkdirSync(stripped);
  execFileSync(process.execPath, [SOURCES, stripped, ...allSources()], { cwd: root });
  const lanes = path.join(directory, 'lanes');
  for (const program of ['run-plugin', 'run-start'] as const) prepareLaneSource(lanes, program);
  // Written by every account that services run as; each has a folder of its own in it.
  const compiled = path.join(directory, 'compiled-by-services');
  fs.mkdirSync(compiled);
  fs.chmodSync(compiled, 0o1777);
  const apiFile = path.join(directory, 'api.json');
  fs.writeFileSync(apiFile, JSON.stringify(apiDocument()));
  const env = {
    ...process.env,
    NODE_OPTIONS: `--import ${pathToFileURL(SOURCES).href}?kept=${encodeURIComponent(stripped)}`,
    TEST_LANES: lanes,
    TEST_COMPILED: compiled,
    TEST_API: apiFile,
    TEST_PAGES: pages,
    TEST_SAMPLE: sample,
    TEST_DATABASE_URL: postgres.url,
    TEST_DIRECTORY: directory,
    // Every test file is a process, and loads the same sources.
    NODE_COMPILE_CACHE: path.join(directory, 'compiled'),
    // As the supervisor sets it.
    UWS_HTTP_MAX_HEADERS_SIZE: String(LIMITS.requestHeadBytesMax),
  };
  for (const name of Object.keys(env)) if (name.startsWith('BOT_')) delete env[name as keyof typeof env];
  const { results, flaky } = await runFiles(files.length > 0 ? files : allFiles(), {
    jobs: JOBS,
    env,
    times: fs.existsSync(TIMES) ? TimesSchema.parse(JSON.parse(fs.readFileSync(TIMES, 'utf8'))) : {},
    ended: showFile,
  });
  const slowest = results.toSorted((a, b) => b.seconds - a.seconds);
  console.log('# slowest files (s):');
  for (const { file, seconds } of slowest.slice(0, SLOWEST_SHOWN)) console.log(`#   ${seconds.toFixed(1)} ${file}`);
  console.log(`# ${results.length} files in ${((performance.now() - began) / 1000).toFixed(0)} s`);
  for (const { file, leftOut } of results) for (const what of leftOut) console.log(`left out: ${file}: ${what}`);
  for (const { file, assertion, log } of flaky) console.log(`flaky: ${file}: ${assertion} (log: ${log})`);
  for (const result of results) {
    passed += result.passed;
    failed += result.failed;
  }
  if (writeTimes) {
    const times = slowest.map(({ file, seconds }) => [file, Math.max(1, Math.round(seconds))]);
    fs.writeFileSync(TIMES, `${JSON.stringify(Object.fromEntries(times), null, 2)}\n`);
  }
} finally {
  await postgres.stop();
  for (const one of [cluster, directory])
    fs.rmSync(one, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 && passed > 0 ? 0 : 1);
