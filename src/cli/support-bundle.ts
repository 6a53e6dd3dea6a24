import { execFile } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { messageOf } from '../base/errors.ts';
import { serviceVersion } from '../base/version.ts';
import { type Config, describeConfig } from '../config/load.ts';
import type { Database } from '../db/database.ts';
import { listQueues } from '../db/job-tables.ts';
import { migrationStates } from '../db/migrate.ts';
import { tableSizes } from '../db/table-sizes.ts';
import { listSubscriptions } from '../events/subscriptions.ts';
import { countMessages } from '../messaging/outgoing.ts';
import { outboxState } from '../outbox/entries.ts';
import { listRecentFailures } from '../records/execution-records.ts';
import { listProcesses } from '../records/host-processes.ts';
import { Quarantine } from '../records/quarantine.ts';
import { listImports } from '../university/import-log.ts';
import { CommandError, withDatabaseAsItIs } from './admin-commands.ts';
import { doctor } from './doctor.ts';
import { packFolder } from './pack-folder.ts';

const run = promisify(execFile);

const FAILURES_MAX = 200;
const IMPORTS_MAX = 20;
const JOURNAL_LINES = 2000;
const OUTPUT_BYTES_MAX = 64 * 1024 * 1024;
const METRICS_MS = 5000;

const ABOUT = `What a plugin host of this machine says of itself, for those who help.

configuration.json  every key with its value and where it comes from; secrets are hidden
versions.json       releases, the machine, its memory and disks
doctor.json         what "plugin-host doctor" finds
database.json       migrations, sizes of tables
queues.json         outbox, jobs, messages, subscriptions of events, the last imports
hosts.json          hosts with release, load and duties
suspensions.json    what is suspended
failures.json       the last executions that failed, without the lines their plugins logged
metrics.txt         the metrics, when metrics.port is set and answers
journal.txt         warnings and errors of the journal, where systemd runs the service

Where a file has the member "problem", it could not be read.
It holds no secrets, no cookies, no files of users, no messages; mail addresses are taken out. Reasons of failures
stand as plugins and other services worded them, and may name persons by an id: look through it.
`;

type Part = readonly [name: string, content: () => Promise<unknown>];

/** One part that cannot be read must not cost the others. */
const read = (content: () => Promise<unknown>): Promise<unknown> =>
  content().catch((error: unknown) => ({ problem: messageOf(error) }));

function machine(directory: string): object {
  const { bavail, blocks, bsize } = fs.statfsSync(fs.existsSync(directory) ? directory : '/');
  return {
    release: serviceVersion(),
    node: process.version,
    system: `${os.type()} ${os.release()} ${os.arch()}`,
    processors: os.availableParallelism(),
    memory_bytes: os.totalmem(),
    memory_free_bytes: os.freemem(),
    machine_uptime_seconds: Math.round(os.uptime()),
    load: os.loadavg(),
    data_disk: { bytes: blocks * bsize, free_bytes: bavail * bsize },
  };
}

async function metricsText(config: Config): Promise<string> {
  const { 'metrics.host': host, 'metrics.port': port } = config.values;
  if (port === 0) return 'metrics.port is not set\n';
  const answer = await fetch(`http://${host}:${port}/metrics`, { signal: AbortSignal.timeout(METRICS_MS) });
  return await answer.text();
}

async function journalText(): Promise<string> {
  const args = ['-u', 'plugin-host*', '-p', 'warning', '-n', String(JOURNAL_LINES), '--no-pager', '-o', 'short-iso'];
  return (await run('journalctl', args, { maxBuffer: OUTPUT_BYTES_MAX })).stdout;
}

const queues = async (db: Database): Promise<object> => ({
  outbox: await read(() => outboxState(db)),
  jobs: await read(() => listQueues(db)),
  messages: await read(() => countMessages(db)),
  subscriptions: await read(async () =>
    (await listSubscriptions(db, Number.MAX_SAFE_INTEGER, 200)).map(s => ({
      id: s.id,
      enabled: s.enabled,
      disabled_why: s.disabledWhy,
    })),
  ),
  imports: await read(() => listImports(db, Number.MAX_SAFE_INTEGER, IMPORTS_MAX)),
});

async function suspensions(db: Database): Promise<unknown> {
  const quarantine = new Quarantine(
    db,
    () => {},
    () => {},
    () => {},
  );
  await quarantine.load();
  return quarantine.list(null, Date.now());
}

const ofDatabase = (db: Database): Part[] => [
  ['database.json', async () => ({ migrations: await migrationStates(db), tables: await tableSizes(db) })],
  ['queues.json', () => queues(db)],
  ['hosts.json', () => listProcesses(db)],
  ['suspensions.json', () => suspensions(db)],
  ['failures.json', () => listRecentFailures(db, FAILURES_MAX)],
];

/** What others worded may name persons, or addresses with passwords. */
const redacted = (text: string): string =>
  text
    .replace(/(\b[a-z][a-z\d+.-]*:\/\/)[^\s/@"]+@/gi, '$1(hidden)@')
    .replace(/[\w.+%-]+@[\w-]+(?:\.[\w-]+)+/g, '(mail address)');

async function write(directory: string, parts: readonly Part[]): Promise<void> {
  for (const [name, content] of parts) {
    const value = await read(content);
    const text = typeof value === 'string' ? value : `${JSON.stringify(value, null, 2)}\n`;
    fs.writeFileSync(path.join(directory, name), redacted(text));
  }
}

/**
 * `support-bundle`: packs what others need to help: configuration without secrets, releases, what `doctor` finds, queues,
 * the last failures. It changes nothing; what cannot be read says why in its place.
 *
 * @param file where the archive is written; it must not be there yet
 * @returns what to print
 * @throws CommandError when the archive cannot be written
 */
export async function supportBundle(config: Config, file: string): Promise<string> {
  if (fs.existsSync(file)) throw new CommandError(`${file} is there already; name another file`);
  const name = path.basename(file).replace(/\.tar\.gz$/, '');
  const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'plugin-host-support-'));
  const directory = path.join(scratch, name);
  try {
    fs.mkdirSync(directory);
    fs.writeFileSync(path.join(directory, 'README.txt'), ABOUT);
    await write(directory, [
      ['configuration.json', async () => describeConfig(config)],
      ['versions.json', async () => machine(config.values['data.dir'])],
      ['doctor.json', () => doctor(config)],
      ['metrics.txt', () => metricsText(config)],
      ['journal.txt', journalText],
    ]);
    await withDatabaseAsItIs(config, db => write(directory, ofDatabase(db))).catch((error: unknown) =>
      write(directory, [['database.json', () => Promise.reject(error)]]),
    );
    await packFolder(file, scratch, [name]);
  } catch (error) {
    throw new CommandError(`the bundle could not be written: ${messageOf(error)}`, { cause: error });
  } finally {
    fs.rmSync(scratch, { recursive: true, force: true });
  }
  return `${file}: look through it before you pass it on`;
}

/** Name of the bundle when none is given, with the time in it. */
export const bundleName = (now: Date): string =>
  `plugin-host-support-${now.toISOString().slice(0, 19).replaceAll(':', '')}.tar.gz`;
