import { type ChildProcess, fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import { messageOf } from '../base/errors.ts';
import { LIMITS } from '../base/limits.ts';
import { writeNewFile } from '../base/write-new-file.ts';
import { type Config, configToEnv, dataPath, withValues } from '../config/load.ts';
import { EMBEDDED_ROLE, makeServiceRole, prepareDatabase, roleOfUrl, withUser } from '../db/service-role.ts';
import { WASM_FLAGS } from '../plugins/limited-child.ts';
import type { Suspect } from '../records/suspects.ts';
import { Backoff } from './backoff.ts';
import { exited } from './child.ts';
import { CrashCount } from './crash-count.ts';
import { MAIN, type RunningPostgres, StartError, startPostgres } from './embedded-postgres.ts';
import { MemoryWatch } from './memory-watch.ts';
import { SpicedbKeeper } from './spicedb-keeper.ts';
import { checkPort } from './start-checks.ts';
import { type Account, asAccountOnPort, dropTo } from './unprivileged.ts';

/** Messages of the serving process to its supervisor. */
export type ServingMessage =
  | { kind: 'listening'; port: number; setupMode: boolean }
  | { kind: 'failed'; message: string }
  /** The embedded graph store at this endpoint is in use now. */
  | { kind: 'graph_in_use'; endpoint: string };

/** Tells a standby to begin serving, with the effective configuration as environment. */
export type GoMessage = {
  kind: 'go';
  env: Record<string, string>;
  noteFile: string;
  suspects: Suspect[];
  sampleModule: string | null;
};

/** An embedded graph store is ready and empty. */
export type GraphMessage = { kind: 'graph'; endpoint: string };

export type SupervisorOptions = {
  config: Config;
  /** Compiled sample plugin to install before the service is ready, or null. */
  samplePath: string | null;
  environment: NodeJS.ProcessEnv;
  progress(text: string): void;
  warn(text: string): void;
  /** Called whenever the service is ready, also after a restart; the token is null once setup mode is over. */
  ready(port: number, setupToken: string | null, first: boolean): void;
};

const DRAIN_MS = 12_000;
/**
 * Delay before the standby is started: loading at the same time as the serving process, both would take twice as long.
 */
const STANDBY_DELAY_MS = 150;
/** Interval of the memory readings, and how old a reading may be to count as evidence for a kill. */
const MEMORY_LOOK_MS = 500;
const MEMORY_SEEN_MS = 3000;

/**
 * The parent of all processes: the serving process (front end and lanes), the embedded PostgreSQL and the embedded
 * SpiceDB. It runs no plugin code. It restarts a child that ends, with backoff. It names a plugin version that ran
 * during each crash to the next serving process, which suspends it (`crash-count`, docs/SECURITY.md).
 */
export class Supervisor {
  readonly #options: SupervisorOptions;
  #config: Config;
  readonly #setupToken: string;
  readonly #noteFile: string;
  /** Account that runs plugins when this process is root; null: the same account. */
  readonly #account: Account | null;
  /** Password of the serving role in the embedded database; new at each start and never written to a file. */
  readonly #rolePassword = randomBytes(24).toString('hex');
  #postgres: RunningPostgres | null = null;
  /** Null when `spicedb.endpoint` names a remote store. */
  readonly #spicedb: SpicedbKeeper | null;
  #serving: ChildProcess | null = null;
  /** A loaded process that waits to take over, so that a crash costs less than half a second. */
  #standby: ChildProcess | null = null;
  #standbyTimer: NodeJS.Timeout | null = null;
  #stopping: Promise<void> | null = null;
  #wasReady = false;
  readonly #crashes = new CrashCount();
  /** Versions that the next serving process must suspend. */
  #suspects: Suspect[] = [];
  readonly #memory = new MemoryWatch();
  #memoryTimer: NodeJS.Timeout | null = null;
  readonly #servingBackoff = new Backoff();
  readonly #postgresBackoff = new Backoff();

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.#config = options.config;
    const v = options.config.values;
    this.#setupToken = v['admin.setup_token'] === '' ? randomBytes(24).toString('base64url') : v['admin.setup_token'];
    this.#account = dropTo(dataPath(options.config), options);
    this.#spicedb =
      v['spicedb.endpoint'] !== ''
        ? null
        : new SpicedbKeeper({
            directory: dataPath(options.config),
            account: this.#account,
            recycleBytes: v['spicedb.recycle_mb'] * 1024 * 1024,
            progress: options.progress,
            started: endpoint => this.#tellGraph(endpoint),
          });
    // In a memory file system if there is one, because the lanes write the file during requests.
    const directory = fs.existsSync('/dev/shm') ? '/dev/shm' : dataPath(options.config);
    this.#noteFile = `${directory}/plugin-host-${process.pid}.lanes`;
  }

  /** @throws StartError when the first start fails; later failures are retried */
  async start(): Promise<void> {
    const v = this.#config.values;
    await checkPort(v['http.host'], v['http.port']);
    // The process loads its modules while the database starts.
    this.#standby = this.#spawn();
    if (v['database.url'] === '') await this.#startPostgres();
    else if (v['database.owner_url'] !== '') await this.#prepareDatabase(v['database.owner_url'], v['database.url']);
    this.#memoryTimer = setInterval(() => this.#memory.look(performance.now()), MEMORY_LOOK_MS);
    this.#options.progress('starting the serving process');
    await this.#startServing();
  }

  /** Starts a process that loads all modules and waits for the message to begin. */
  #spawn(): ChildProcess {
    const port = this.#config.values['http.port'];
    const program = asAccountOnPort(this.#account, port, [...WASM_FLAGS, '--disable-warning=ExperimentalWarning']);
    const child = fork(MAIN, ['serving', dataPath(this.#config)], {
      ...program,
      // A process group of its own: Ctrl-C reaches the supervisor alone, which stops things in order.
      detached: true,
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      // The HTTP library reads its limit from this variable; its default of 4 KiB is too little for a browser with
      // cookies.
      env: {
        ...withoutBot(this.#options.environment),
        // Modules that were loaded once are not compiled again (docs/RATIONALE.md). npm names a folder of its own, which
        // the account could not write to.
        NODE_COMPILE_CACHE: dataPath(this.#config, 'cache', 'compiled'),
        UWS_HTTP_MAX_HEADERS_SIZE: String(LIMITS.requestHeadBytesMax),
      },
    });
    child.once('exit', () => {
      if (this.#standby === child) this.#standby = null;
    });
    // A process that could not be started reports it here; the code that uses it sees that it has no pid.
    child.on('error', error => this.#options.progress(`a process could not be started: ${messageOf(error)}`));
    return child;
  }

  async #startPostgres(): Promise<void> {
    const postgres = await startPostgres({
      directory: dataPath(this.#config, 'postgres'),
      progress: this.#options.progress,
      ...(this.#account === null ? {} : { socketGroup: this.#account.gid }),
    });
    this.#postgres = postgres;
    await this.#prepareDatabase(postgres.url, null);
    this.#postgresBackoff.ready(performance.now());
    postgres.process.once('exit', () => {
      if (this.#stopping !== null) return;
      const wait = this.#postgresBackoff.next(performance.now());
      this.#options.progress(`the embedded PostgreSQL ended; starting it again in ${wait} ms`);
      setTimeout(() => void this.#restartPostgres(), wait);
    });
  }

  /** Migrates and grants as the owner of the database; the serving process never gets the owner's password. */
  async #prepareDatabase(ownerUrl: string, serviceUrl: string | null): Promise<void> {
    const url = serviceUrl ?? withUser(ownerUrl, EMBEDDED_ROLE, this.#rolePassword);
    try {
      const applied = await prepareDatabase(ownerUrl, async owner => {
        if (serviceUrl !== null) return await roleOfUrl(serviceUrl);
        await makeServiceRole(owner, EMBEDDED_ROLE, this.#rolePassword);
        return EMBEDDED_ROLE;
      });
      if (applied.length > 0) this.#options.progress(`database migrated: ${applied.join(', ')}`);
    } catch (error) {
      throw new StartError(`the database cannot be prepared: ${messageOf(error)}`);
    }
    this.#config = withValues(this.#config, { 'database.url': url, 'database.owner_url': '' });
  }

  async #restartPostgres(): Promise<void> {
    if (this.#stopping !== null) return;
    try {
      await this.#startPostgres();
    } catch (error) {
      const wait = this.#postgresBackoff.next(performance.now());
      this.#options.progress(`${messageOf(error)}; trying again in ${wait} ms`);
      setTimeout(() => void this.#restartPostgres(), wait);
    }
  }

  /** Resolves when the new process listens; rejects when it reports a failure or cannot be started. */
  async #startServing(made: () => void = () => {}): Promise<void> {
    writeNewFile(this.#noteFile, new Uint8Array((LIMITS.lanesMax + 1) * 4), 0o600);
    if (this.#account !== null) fs.lchownSync(this.#noteFile, this.#account.uid, this.#account.gid);
    const child = this.#standby ?? this.#spawn();
    this.#standby = null;
    this.#serving = child;
    const go: GoMessage = {
      kind: 'go',
      env: { ...configToEnv(this.#config), BOT_ADMIN_SETUP_TOKEN: this.#setupToken },
      noteFile: this.#noteFile,
      suspects: this.#suspects,
      sampleModule: this.#options.samplePath,
    };
    if (child.pid === undefined)
      throw new StartError('the system cannot start another process now; check the limits on processes and memory');
    child.send(go);
    if (this.#spicedb?.endpoint != null) this.#tellGraph(this.#spicedb.endpoint);
    made();
    await new Promise<void>((resolve, reject) => {
      child.on('message', (message: ServingMessage) => {
        if (message.kind === 'failed') return reject(new StartError(message.message));
        if (message.kind === 'graph_in_use') return this.#spicedb?.inUse(message.endpoint);
        this.#suspects = [];
        this.#servingBackoff.ready(performance.now());
        this.#options.ready(message.port, message.setupMode ? this.#setupToken : null, !this.#wasReady);
        if (message.port !== this.#config.values['http.port'])
          this.#config = withValues(this.#config, { 'http.port': message.port });
        this.#wasReady = true;
        this.#standbyTimer = setTimeout(() => this.#prepareStandby(), STANDBY_DELAY_MS);
        // Public triggers do not need the graph store, so the start does not wait for it.
        if (this.#spicedb?.endpoint === null) this.#spicedb.start();
        resolve();
      });
      child.once('exit', (code, signal) => {
        reject(
          new StartError(
            `the serving process ended at start (${signal ?? `exit code ${code}`}); its log lines above say why`,
          ),
        );
        if (this.#stopping === null && this.#wasReady) this.#servingEnded(code, signal);
      });
    });
  }

  #tellGraph(endpoint: string): void {
    const message: GraphMessage = { kind: 'graph', endpoint };
    if (this.#serving?.connected === true) this.#serving.send(message);
  }

  /** Starts a standby. A failure only makes the next crash cost more time, so it does not end the service. */
  #prepareStandby(): void {
    if (this.#stopping !== null || this.#standby !== null) return;
    try {
      this.#standby = this.#spawn();
    } catch (error) {
      this.#options.progress(`no process can stand by: ${messageOf(error)}`);
    }
  }

  #servingEnded(code: number | null, signal: NodeJS.Signals | null): void {
    if (this.#standbyTimer !== null) clearTimeout(this.#standbyTimer);
    const how = signal ?? `exit code ${code}`;
    const atMs = performance.now();
    const memory = this.#memory.explain(atMs - MEMORY_SEEN_MS);
    const versions = this.#readNotes();
    const suspects = this.#crashes.note({ code, signal, versions, memory, atMs, at: new Date() });
    this.#suspects = [...this.#suspects, ...suspects];
    const wait = this.#servingBackoff.next(performance.now());
    const who = suspects
      .map(s => `; version number ${s.versionId}, which was running, is suspended: it ${s.seen}`)
      .join('');
    this.#options.progress(
      `the serving process ended (${how}); starting it again${wait > 0 ? ` in ${wait} ms` : ''}${who}`,
    );
    setTimeout(() => {
      if (this.#stopping === null) this.#restartServing();
    }, wait);
  }

  /**
   * Starts the serving process again. A start that fails with an exit reaches `#servingEnded`; a process that could not
   * be made is retried here.
   */
  #restartServing(): void {
    let made = false;
    this.#startServing(() => {
      made = true;
    }).catch((error: unknown) => {
      this.#options.progress(messageOf(error));
      if (made || this.#stopping !== null) return;
      const wait = Math.max(100, this.#servingBackoff.next(performance.now()));
      setTimeout(() => {
        if (this.#stopping === null) this.#restartServing();
      }, wait);
    });
  }

  /** Plugin versions that the lanes were running when the process died. */
  #readNotes(): Set<number> {
    try {
      const bytes = fs.readFileSync(this.#noteFile);
      const versions = new Set<number>();
      for (let i = 0; i + 4 <= bytes.length; i += 4) if (bytes.readInt32LE(i) > 0) versions.add(bytes.readInt32LE(i));
      return versions;
    } catch {
      return new Set();
    }
  }

  /** Stops all processes in order: the serving process drains, then the database stops. Safe to call twice. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop(): Promise<void> {
    if (this.#standbyTimer !== null) clearTimeout(this.#standbyTimer);
    if (this.#memoryTimer !== null) clearInterval(this.#memoryTimer);
    this.#standby?.kill('SIGKILL');
    const serving = this.#serving;
    if (serving !== null && serving.exitCode === null && serving.signalCode === null) {
      serving.kill('SIGTERM');
      if (!(await exited(serving, DRAIN_MS))) {
        serving.kill('SIGKILL');
        await exited(serving, 2000);
      }
    }
    await this.#spicedb?.stop();
    await this.#postgres?.stop();
    fs.rmSync(this.#noteFile, { force: true });
  }

  /** Kills all processes at once, for a second Ctrl-C. */
  kill(): void {
    this.#standby?.kill('SIGKILL');
    this.#serving?.kill('SIGKILL');
    this.#spicedb?.kill();
    this.#postgres?.process.stdin?.end();
  }
}

/**
 * The environment without `BOT_*` variables: the child gets the effective configuration and must not read its sources
 * again.
 */
function withoutBot(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('BOT_')));
}
