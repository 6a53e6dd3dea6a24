import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { messageOf } from '../base/errors.ts';
import { maskText } from '../base/mask-text.ts';
import { packFolder } from '../base/pack-folder.ts';
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

/** What a service says of itself for those who help: the parts of a support bundle that the database and the process know. */

const FAILURES_MAX = 200;
const IMPORTS_MAX = 20;

export const ABOUT_BUNDLE = `What a plugin host of this machine says of itself, for those who help.

configuration.json  every key with its value and where it comes from; secrets are hidden
versions.json       releases, the machine, its memory and disks
doctor.json         what "plugin-host doctor" finds (bundle of the command only)
database.json       migrations, sizes of tables
queues.json         outbox, jobs, messages, subscriptions of events, the last imports
hosts.json          hosts with release, load and duties
suspensions.json    what is suspended
failures.json       the last executions that failed, without the lines their plugins logged
metrics.txt         the metrics, when metrics.port is set and answers (bundle of the command only)
journal.txt         warnings and errors of the journal, where systemd runs the service (bundle of the command only)

Where a file has the member "problem", it could not be read.
It holds no secrets, no cookies, no files of users, no messages; mail addresses are taken out. Reasons of failures
stand as plugins and other services worded them, and may name persons by an id: look through it.
`;

/** A file of the bundle. */
export type SupportPart = readonly [name: string, content: () => Promise<unknown>];

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

/** What the database knows. */
export const partsOfDatabase = (db: Database): SupportPart[] => [
  ['database.json', async () => ({ migrations: await migrationStates(db), tables: await tableSizes(db) })],
  ['queues.json', () => queues(db)],
  ['hosts.json', () => listProcesses(db)],
  ['suspensions.json', () => suspensions(db)],
  ['failures.json', () => listRecentFailures(db, FAILURES_MAX)],
];

/** What the configuration and the machine say. */
export const partsOfMachine = (config: Config): SupportPart[] => [
  ['configuration.json', async () => describeConfig(config)],
  ['versions.json', async () => machine(config.values['data.dir'])],
];

/** Writes parts into a directory; what cannot be read says why in its place. */
export async function writeParts(directory: string, parts: readonly SupportPart[]): Promise<void> {
  for (const [name, content] of parts) {
    const value = await read(content);
    const text = typeof value === 'string' ? value : `${JSON.stringify(value, null, 2)}\n`;
    fs.writeFileSync(path.join(directory, name), maskText(text));
  }
}

/** The bundle of a running service, as an archive (tar, gzip). */
export async function packSupport(config: Config, db: Database): Promise<{ name: string; archive: Buffer }> {
  const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'plugin-host-support-'));
  const name = bundleName(new Date());
  const folder = name.replace('.tar.gz', '');
  try {
    const directory = path.join(scratch, folder);
    fs.mkdirSync(directory);
    fs.writeFileSync(path.join(directory, 'README.txt'), ABOUT_BUNDLE);
    await writeParts(directory, [...partsOfMachine(config), ...partsOfDatabase(db)]);
    const file = path.join(scratch, 'bundle.tar.gz');
    await packFolder(file, scratch, [folder]);
    return { name, archive: await fs.promises.readFile(file) };
  } finally {
    fs.rmSync(scratch, { recursive: true, force: true });
  }
}

/** Name of a bundle, with the time in it. */
export const bundleName = (now: Date): string =>
  `plugin-host-support-${now.toISOString().slice(0, 19).replaceAll(':', '')}.tar.gz`;
