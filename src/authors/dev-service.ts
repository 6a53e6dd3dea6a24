import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import fsp from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import v8 from 'node:v8';
import type { ExecutionOutcome } from '../abi/execution-outcome.ts';
import { type Service, startService } from '../app/service.ts';
import type { Actor } from '../audit/audit-log.ts';
import { messageOf, OperatorError, ServiceError } from '../base/errors.ts';
import { LIMITS } from '../base/limits.ts';
import { makeLog } from '../base/log.ts';
import { ThreadEnded, WorkerTask } from '../base/worker-task.ts';
import { loadConfig } from '../config/load.ts';
import { type Database, openDatabase } from '../db/database.ts';
import type { HostCall } from '../host/host-functions.ts';
import type { Finding } from '../plugins/finding.ts';
import { keepInspectThreads } from '../plugins/inspect-thread.ts';
import { databasesOf, httpTriggersOf, type Manifest } from '../plugins/manifest.ts';
import type { StartTrial } from '../plugins/trial-start.ts';
import { DEFAULT_SETTINGS } from '../plugins/trigger-settings.ts';
import { type BuiltModule, SourceMistakes } from '../projects/build-project.ts';
import { type Language, PROJECT_FILE } from '../projects/project.ts';
import { holderText, lockDataDirectory } from '../supervisor/handover/data-lock.ts';
import { startPostgres } from '../supervisor/stores/embedded-postgres.ts';
import { SpicedbKeeper } from '../supervisor/stores/spicedb-keeper.ts';
import type { StartTask } from './start-thread.ts';

/** The service of `plugin dev`: the real one, on embedded stores below the plugin's folder, with this plugin installed. */

const BY: Actor = { kind: 'command_line', userId: null, name: 'plugin dev', requestId: '', address: '' };
/** Time for the start of a plugin, as at an upload. */
const START_MS = 3000;
/** What a finding about a remembered start names. */
const START_ONCE = '"start": "once"';
/** Memory at which the embedded graph store is replaced. */
const RECYCLE_BYTES = 1024 ** 3;

const starts = new WorkerTask<StartTask, string | null>({
  file: new URL('./start-thread.ts', import.meta.url),
  does: 'runs starts',
  threads: 1,
  deadlineMs: START_MS,
  idleMs: Number.POSITIVE_INFINITY,
});

async function trialStart(files: { start: string; image: string }, order: StartTask['order']): Promise<StartTrial> {
  try {
    const reason = await starts.run({ ...files, order });
    return reason === null ? { kind: 'ended', file: files.image } : { kind: 'refused', reason };
  } catch (error) {
    if (!(error instanceof ThreadEnded)) throw error;
    return { kind: 'stopped', reason: `it did not end within ${START_MS / 1000} s` };
  }
}

export type DevOptions = {
  /** Where the stores are kept. */
  directory: string;
  /** The configuration of the plugin, as `plugin-host.json` has it now. */
  config(): Record<string, unknown>;
  language: Language;
  /** More settings of the service, as its environment has them. */
  settings: Record<string, string>;
  progress(text: string): void;
  executed(call: HostCall, outcome: ExecutionOutcome): void;
  /** Where the author calls; null before it is known. */
  base(): string | null;
};

export type DevService = {
  /** Where the service listens, on loopback. */
  port: number;
  db: Database;
  service: Service;
  /** What the run before has left installed, like `hello 1.0.0`; null for nothing. */
  earlier: string | null;
  /** What credentials begin with. */
  prefixes: { userToken: string; serviceKey: string };
  /**
   * Installs a built plugin in the place of the one before. Its start runs in each execution at first.
   *
   * @returns what the gate says about it
   * @throws Error with what is wrong
   */
  install(built: BuiltModule): Promise<readonly Finding[]>;
  /** Installs it once more with its start remembered, as a service does. @returns what is found about the start */
  settle(built: BuiltModule): Promise<readonly Finding[]>;
  stop(): Promise<void>;
};

/** Connection strings for databases the author has given none for: one database each, on the embedded server. */
async function makeDatabases(owner: Database, url: string, names: readonly string[]): Promise<Record<string, string>> {
  const databases: Record<string, string> = {};
  for (const name of names) {
    const database = `dev_${name.toLowerCase().replace(/[^a-z0-9_]/g, '_')}`;
    const { rowCount } = await owner.query('SELECT 1 FROM pg_database WHERE datname = $1', [database]);
    if (rowCount === 0) await owner.query(`CREATE DATABASE "${database}"`);
    const own = new URL(url);
    own.pathname = `/${database}`;
    databases[name] = own.href;
  }
  return databases;
}

/** What is installed with the plugin: what the author has written, and what can be made for the rest. */
async function configOf(manifest: Manifest, given: Record<string, unknown>, owner: Database, url: string) {
  const databases: unknown = given.databases;
  const known = typeof databases === 'object' && databases !== null ? { ...databases } : {};
  const missing = databasesOf(manifest).filter(name => !Object.hasOwn(known, name));
  const asksOthers = manifest.requirements.some(r => r.kind === 'network');
  return {
    // Servers of the author's own machine are what a plugin is tried with.
    ...(asksOthers ? { network: { private: ['127.0.0.0/8', '::1'] } } : {}),
    ...given,
    databases: { ...known, ...(await makeDatabases(owner, url, missing)) },
  };
}

/** Who may call: what the author suggests; otherwise anyone on this machine. */
const accessOf = (manifest: Manifest) => ({
  triggers: new Map(
    httpTriggersOf(manifest).map(t => {
      const { access } = t;
      const settings = {
        ...DEFAULT_SETTINGS,
        allowUserSession: access?.users ?? false,
        allowServiceKey: access?.service_keys ?? false,
        policyExpression: access?.policy ?? '',
      };
      return [t.name, settings] as const;
    }),
  ),
  acceptSuggested: false,
  acceptPublic: true as const,
  acceptWidening: true as const,
});

/** The embedded stores, and the configuration of a service on them. */
async function startStores({ directory, progress, settings }: DevOptions) {
  fs.mkdirSync(directory, { recursive: true, mode: 0o711 });
  const lock = lockDataDirectory(directory, 'plugin dev');
  if (lock.state === 'taken')
    throw new OperatorError(
      `plugin dev runs for this folder already, in ${holderText(lock.by)}: stop it first, or work in a copy of the folder`,
    );
  const postgres = await startPostgres({
    directory: path.join(directory, 'postgres'),
    progress,
    settings: { fsync: 'off', synchronous_commit: 'off' },
  });
  let endpoint: string | null = null;
  let use: ((endpoint: string) => void) | null = null;
  const graph = new SpicedbKeeper({
    directory,
    recycleBytes: RECYCLE_BYTES,
    progress,
    started(started) {
      endpoint = started;
      use?.(started);
    },
  });
  graph.start();
  const config = loadConfig(null, {
    BOT_HTTP_HOST: '127.0.0.1',
    BOT_HTTP_PORT: '0',
    BOT_DATA_DIR: directory,
    BOT_DATABASE_URL: postgres.url,
    BOT_DATABASE_POOL_SIZE: '5',
    BOT_EXECUTION_LANES: '2',
    // Each saved file becomes two: as it is installed at once, and with its start remembered.
    BOT_PLUGINS_KEEP_VERSIONS: '10',
    ...settings,
  });
  return {
    config,
    url: postgres.url,
    /** Names the graph store there is, now and whenever another one takes its place. */
    useGraph(by: (endpoint: string) => void) {
      use = by;
      if (endpoint !== null) by(endpoint);
    },
    async stop() {
      await graph.stop();
      await postgres.stop();
      if (lock.state === 'held') lock.release();
    },
  };
}

/** Refusals of the gate, a line for each mistake. */
function mistakesOf(error: unknown): unknown {
  if (!(error instanceof ServiceError) || error.code !== 'module_refused') return error;
  return new SourceMistakes((error.errors ?? []).map(e => `refusal: ${e.message}`).join('\n'));
}

/** The module that was compiled last: V8 forgets what nothing holds. */
const held: WebAssembly.Module[] = [];

/**
 * Begins to compile what is about to be installed, while it is stored. The service compiles the same bytes for the first
 * request, and V8 then takes up what there is of them.
 *
 * @returns null: a module that does not compile says so at its first request
 */
function compileAhead(_uploaded: string, runnable: string): Promise<null> {
  const compile = async (): Promise<void> => {
    held[0] = await WebAssembly.compile(await fsp.readFile(runnable));
  };
  compile().catch(() => {});
  return Promise.resolve(null);
}

/** A large module says at its first request whether it compiles. */
const noTrial = async (): Promise<null> => null;

/** What is said to an author of a start that is remembered. */
const saidOfStart = (findings: readonly Finding[], isGo: boolean): Finding[] =>
  // Go's own runtime draws random numbers in each start, and the kit draws them again in each execution.
  findings.filter(f => f.rule === 'start' && f.level !== 'note' && !(isGo && f.message.includes(START_ONCE)));

/** What the run before has left installed. */
async function findEarlier(db: Database): Promise<string | null> {
  const { rows } = await db.query<{ text: string }>(
    `SELECT p.id || ' ' || v.version AS text FROM plugins p JOIN plugin_versions v ON v.id = p.installed_version_id
     ORDER BY v.installed_at DESC LIMIT 1`,
  );
  return rows[0]?.text ?? null;
}

/** Why a plugin cannot be installed: every mistake in its configuration, and where that is written. */
function notInstalled(error: unknown): OperatorError {
  const isOfConfig = error instanceof ServiceError && error.errors?.some(e => e.pointer.startsWith('/config')) === true;
  const help = isOfConfig ? `; ${PROJECT_FILE} has it below "dev": {"config": {...}}` : '';
  const more = isOfConfig ? (error.errors ?? []).slice(1).map(e => `\n  ${e.pointer} ${e.message}`) : [];
  return new OperatorError(`it cannot be installed: ${messageOf(error)}${help}${more.join('')}`, { cause: error });
}

/** The folder holds one plugin. One that had another id answers no more; what it has stored is there when the id comes back. */
async function turnOthersOff(
  { installer }: Service,
  db: Database,
  pluginId: string,
  say: (text: string) => void,
): Promise<void> {
  const { rows } = await db.query<{ id: string }>(
    'SELECT id FROM plugins WHERE installed_version_id IS NOT NULL AND enabled = (id <> $1)',
    [pluginId],
  );
  for (const { id } of rows) {
    await installer.setEnabled(id, id === pluginId, BY);
    if (id !== pluginId) say(`${id} answers no more: the plugin is ${pluginId} now; what ${id} has stored is kept`);
  }
}

/** What V8 compiles and collects when, so that a change is live soon. */
function setEngine(isSmall: boolean): void {
  // What runs for a moment only is not optimised: that takes processors from the change that is being installed.
  v8.setFlagsFromString('--wasm-tiering-budget=400000000');
  // V8 compiles a function at its first call, which the first request after a change waits for. All functions of a small
  // module are compiled while it is stored. Of a large one, in Go, a request calls a tenth, and V8 checks no others.
  v8.setFlagsFromString(isSmall ? '--no-wasm-lazy-compilation' : '--wasm-lazy-validation');
  // A change allocates so much that V8 would collect the whole heap while it is being installed. It may grow instead.
  v8.setFlagsFromString('--heap-growing-percent=300');
}

/** Starts the stores and the service. */
export async function startDevService(options: DevOptions): Promise<DevService> {
  const isGo = options.language === 'go';
  setEngine(!isGo);
  keepInspectThreads();
  const stores = await startStores(options);
  let remembers = true;
  const service = await startService({
    config: stores.config,
    log: makeLog('silent'),
    setupToken: randomBytes(16).toString('hex'),
    noteFile: null,
    suspects: [],
    pages: null,
    development: {
      trials: { trialCompile: isGo ? noTrial : compileAhead, trialStart, remembersStarts: () => remembers },
      executed: options.executed,
      base: options.base,
    },
  });
  stores.useGraph(endpoint => service.useEmbeddedGraph(endpoint));
  const db = openDatabase(stores.url, 2, () => {});
  const { frontends, installer } = service;
  const v = stores.config.values;
  const install = async ({ frontend, manifest, module }: BuiltModule): Promise<readonly Finding[]> => {
    const zip = frontend === null ? null : await frontends.receive(Readable.from([frontend]), v['http.max_frontend']);
    const received = await installer.receive(Readable.from([module]), LIMITS.moduleBytesMax);
    const version = await installer.admit(received, BY, zip).catch((error: unknown) => {
      throw mistakesOf(error);
    });
    const request = {
      wasmKey: version.wasmKey,
      config: await configOf(manifest, options.config(), db, stores.url),
      acceptPermissions: true as const,
      access: accessOf(manifest),
    };
    await installer.install(version.pluginId, request, BY).catch((error: unknown) => {
      throw notInstalled(error);
    });
    await turnOthersOff(service, db, version.pluginId, options.progress);
    return version.findings;
  };
  return {
    port: service.server.port,
    db,
    service,
    earlier: await findEarlier(db),
    prefixes: { userToken: v['admin.user_token_prefix'], serviceKey: v['admin.service_key_prefix'] },
    async install(built) {
      remembers = false;
      const findings = await install(built);
      return findings.filter(f => f.rule !== 'start');
    },
    async settle(built) {
      remembers = true;
      const findings = await install(built);
      return saidOfStart(findings, isGo);
    },
    async stop() {
      await service.stop(1000);
      await db.close();
      await starts.end();
      await stores.stop();
    },
  };
}
