import { randomBytes } from 'node:crypto';
import { messageOf, OperatorError } from '../base/errors.ts';
import { counter, gauge, type Metric } from '../base/metric.ts';
import { serviceVersion } from '../base/version.ts';
import { type Config, configFromEnv, configToEnv, dataPath, isLoopback, originOf, withValues } from '../config/load.ts';
import { durationMs } from '../config/values.ts';
import { openDatabase } from '../db/database.ts';
import { migrate } from '../db/migrate.ts';
import { assertOwnSession } from '../db/own-session.ts';
import { EMBEDDED_ROLE, makeServiceRole, prepareDatabase, roleOfUrl, withUser } from '../db/service-role.ts';
import { Backoff } from './children/backoff.ts';
import { StartError } from './children/child.ts';
import { type Account, dropTo } from './children/unprivileged.ts';
import {
  type ControlClient,
  type ControlCommands,
  type ControlSocket,
  openControlSocket,
  resumeClient,
} from './handover/control-socket.ts';
import { becomeProgram, checkProgram, type Program, type ProgramFile, programFile } from './handover/program.ts';
import { changedKeys, pendingConfig, reloadedConfig } from './handover/reloaded-config.ts';
import { descriptorsOf, type GroupState, type TakeoverState, writeTakeover } from './handover/takeover-state.ts';
import { type MetricsServer, startMetricsServer } from './metrics-server.ts';
import { ServingGroup } from './serving/serving-group.ts';
import { checkPort } from './start-checks.ts';
import { waitForDatabase } from './stores/database-wait.ts';
import { adoptPostgres, postgresStateOf, type RunningPostgres, startPostgres } from './stores/embedded-postgres.ts';
import { SpicedbKeeper } from './stores/spicedb-keeper.ts';

export type SupervisorOptions = {
  config: Config;
  /** Reads the configuration again. @throws OperatorError naming the mistake, or that another file was `named` */
  readAgain(named?: string | null): Config;
  /** How this process was started, to be replaced at a reload. */
  program: Program;
  /** The file of this program, without links. */
  ownEntry: string;
  /** Descriptor of the lock of the data directory; null: it could not be locked. */
  lock: number | null;
  /** What the program before has handed on; null at a start. */
  taken: TakeoverState | null;
  /** Compiled sample plugin to install before the service is ready, or null. */
  samplePath: string | null;
  /** Directory of the built administration pages; null where they are not built. */
  pages: string | null;
  environment: NodeJS.ProcessEnv;
  progress(text: string): void;
  warn(text: string): void;
  /** Writes what waits to be written, before this process goes on as another program. */
  flush(): void;
  /** Called whenever the service is ready, also after a restart; the token is null once setup mode is over. */
  ready(port: number, setupToken: string | null, first: boolean): void;
};

/** For the question whether a program can take over, which is asked before the processes are ready for it. */
const NO_PROCESSES: GroupState = {
  hostId: 0,
  ended: 0,
  processes: [],
  slots: { members: [], owners: [], tables: {} },
  strikes: [],
};

const OPEN_METRICS = (host: string): string =>
  `metrics.host is ${host}, and every client that reaches it reads the metrics: set metrics.token, or an address that only Prometheus reaches`;

/**
 * The parent of all processes: the serving processes (front end and lanes), the embedded PostgreSQL and the embedded
 * SpiceDB. It runs no plugin code. It restarts a child that ends, with backoff.
 */
export class Supervisor implements ControlCommands {
  readonly #options: SupervisorOptions;
  /** As it was read last. */
  #given: Config;
  /** The configuration with the port and the address of the embedded database, which are known only after the start. */
  #config: Config;
  readonly #setupToken: string;
  /** Account that runs plugins when this process is root; null: the same account. */
  readonly #account: Account | null;
  /** Password of the serving role in the embedded database; new at each start and never written to a file. */
  readonly #rolePassword: string;
  #postgres: RunningPostgres | null = null;
  #postgresPort: number | null = null;
  #restartsPostgres = false;
  /** Null when `spicedb.endpoint` names a remote store. */
  readonly #spicedb: SpicedbKeeper | null;
  readonly #serving: ServingGroup;
  #control: ControlSocket | null = null;
  #metrics: MetricsServer | null = null;
  #stopping: Promise<void> | null = null;
  #wasReady = false;
  #isSetupMode: boolean;
  #isReloading = false;
  readonly #postgresBackoff = new Backoff();

  constructor(options: SupervisorOptions) {
    const { taken } = options;
    this.#options = options;
    this.#given = options.config;
    this.#config = taken === null ? options.config : configFromEnv(taken.effective, taken.origins?.effective);
    const v = options.config.values;
    this.#setupToken = taken?.setupToken ?? (v['admin.setup_token'] || randomBytes(24).toString('base64url'));
    this.#rolePassword = taken?.rolePassword ?? randomBytes(24).toString('hex');
    this.#isSetupMode = taken?.isSetupMode ?? false;
    this.#account = dropTo(dataPath(options.config), options);
    this.#spicedb =
      v['spicedb.endpoint'] !== ''
        ? null
        : new SpicedbKeeper({
            directory: dataPath(options.config),
            account: this.#account,
            environment: { NODE_COMPILE_CACHE: dataPath(options.config, 'cache', 'compiled') },
            recycleBytes: v['spicedb.recycle_mb'] * 1024 * 1024,
            progress: options.progress,
            started: endpoint => this.#serving.tell({ kind: 'graph', endpoint }),
          });
    this.#serving = new ServingGroup({
      ...options,
      config: () => this.#config,
      pendingConfig: () => pendingConfig(this.#given, options.readAgain),
      processes: v['serving.processes'],
      account: this.#account,
      setupToken: this.#setupToken,
      graphEndpoint: () => this.#spicedb?.endpoint ?? null,
      graphInUse: endpoint => this.#spicedb?.inUse(endpoint),
      listening: (port, setupMode) => this.#listening(port, setupMode),
    });
  }

  /** @throws StartError when the first start fails; later failures are retried */
  async start(): Promise<void> {
    const v = this.#config.values;
    await checkPort(v['http.host'], v['http.port']);
    // The process loads its modules while the database starts.
    this.#serving.standBy();
    if (v['database.url'] === '') await this.#startPostgres();
    else {
      const waitMs = durationMs(v['database.start_wait']);
      await waitForDatabase(v['database.url'], waitMs, this.#options.progress, () => this.#stopping !== null);
      // One that does not answer, the serving process names in its own words.
      await assertOwnSession(v['database.url']).catch((error: unknown) => {
        if (error instanceof OperatorError) throw error;
      });
    }
    if (v['database.url'] !== '' && v['database.owner_url'] !== '')
      await this.#prepareDatabase(v['database.owner_url'], v['database.url']);
    else if (v['database.url'] !== '') await this.#migrateAsServing(v['database.url']);
    const processes = v['serving.processes'];
    this.#options.progress(`starting the serving process${processes > 1 ? `es (${processes})` : ''}`);
    await this.#serving.start();
    await this.#open();
    this.#options.ready(this.#config.values['http.port'], this.#isSetupMode ? this.#setupToken : null, true);
  }

  /** Opens what looks into the service: metrics, and the socket for commands. */
  async #open(): Promise<void> {
    const v = this.#config.values;
    this.#wasReady = true;
    if (v['metrics.port'] !== 0) {
      const { 'metrics.host': host, 'metrics.port': port } = v;
      const token = (): string => this.#config.values['metrics.token'];
      this.#metrics = await startMetricsServer(host, port, token, () => this.#collect());
      if (token() === '' && !isLoopback(host)) this.#options.progress(OPEN_METRICS(host));
    }
    this.#control = await openControlSocket(dataPath(this.#config), this).catch((error: unknown) => {
      this.#options.warn(`commands like reload cannot reach this service: ${messageOf(error)}`);
      return null;
    });
  }

  /** Takes over what the program before has started, and finishes its reload. */
  async resume(taken: TakeoverState): Promise<void> {
    const { values } = this.#config;
    if (taken.postgres !== null) this.#watchPostgres(adoptPostgres(taken.postgres));
    else if (this.#given.values['database.url'] === '') {
      // The serving processes have its address.
      this.#postgresPort = Number(new URL(values['database.url']).port);
      this.#restartPostgresLater('the embedded PostgreSQL has ended; starting it again');
    }
    this.#spicedb?.resume(taken.spicedb);
    this.#serving.resume(taken.group);
    await this.#open().catch((error: unknown) => this.#options.warn(`there are no metrics: ${messageOf(error)}`));
    const client = taken.client === null ? null : resumeClient(taken.client);
    this.#options.ready(this.#config.values['http.port'], null, false);
    let problem = taken.failure;
    if (problem === null)
      problem = await this.#replaceProcesses(client, taken).then(
        () => null,
        (error: unknown) => messageOf(error),
      );
    else problem = await this.#putBack(problem, taken.replaced ?? []);
    if (problem !== null) this.#options.warn(`the reload has failed: ${problem}`);
    client?.answer(problem);
  }

  /** The metrics of the serving processes, and what is known of them here. */
  async #collect(): Promise<Metric[][]> {
    const ofProcesses = await this.#serving.metrics.ask();
    return [
      ...ofProcesses,
      [
        gauge('plugin_host_info', 'The release that runs.', [[{ version: serviceVersion() }, 1]]),
        gauge('plugin_host_serving_processes', 'Serving processes that answered this scrape.', ofProcesses.length),
        counter(
          'plugin_host_serving_processes_ended_total',
          'Serving processes that crashed or were killed.',
          this.#serving.ended,
        ),
      ],
    ];
  }

  /** Whether the event loops of the serving processes turn. */
  get isBeating(): boolean {
    return this.#serving.pulse.isBeating;
  }

  /** A serving process listens: the first one, or one that was started again. */
  #listening(port: number, setupMode: boolean): void {
    if (port !== this.#config.values['http.port']) this.#config = withValues(this.#config, { 'http.port': port });
    this.#isSetupMode = setupMode;
    // Public triggers do not need the graph store, so the start does not wait for it.
    if (this.#spicedb?.endpoint === null) this.#spicedb.start();
    if (this.#wasReady) this.#options.ready(port, setupMode ? this.#setupToken : null, false);
  }

  /** Starts it, where none runs, and prepares the database. */
  async #startPostgres(): Promise<void> {
    const postgres =
      this.#postgres ??
      (await startPostgres({
        directory: dataPath(this.#config, 'postgres'),
        progress: this.#options.progress,
        // The serving processes have the address of the one before.
        ...(this.#postgresPort === null ? {} : { port: this.#postgresPort }),
        ...(this.#account === null ? {} : { socketGroup: this.#account.gid }),
      }));
    if (this.#postgres === null) this.#watchPostgres(postgres);
    await this.#prepareDatabase(postgres.url, null);
    this.#postgresBackoff.ready(performance.now());
  }

  /** Starts it again when it ends. */
  #watchPostgres(postgres: RunningPostgres): void {
    this.#postgres = postgres;
    this.#postgresPort = Number(new URL(postgres.url).port);
    postgres.process.once('exit', () => {
      // While the service stops, it is still the one to wait for.
      if (this.#stopping !== null) return;
      this.#postgres = null;
      this.#restartPostgresLater('the embedded PostgreSQL ended; starting it again');
    });
  }

  /** One restart at a time: two would end each other's server. */
  #restartPostgresLater(why: string): void {
    if (this.#restartsPostgres) return;
    this.#restartsPostgres = true;
    const wait = this.#postgresBackoff.next(performance.now());
    this.#options.progress(`${why} in ${wait} ms`);
    setTimeout(() => void this.#restartPostgres(), wait);
  }

  /** Prepares the database before the serving processes start, which never get the owner's password. */
  async #prepareDatabase(ownerUrl: string, serviceUrl: string | null): Promise<void> {
    const url = await this.#migrate(ownerUrl, serviceUrl);
    this.#config = withValues(this.#config, { 'database.url': url, 'database.owner_url': '' });
  }

  /** Migrates and grants as the owner of the database. @returns the address for the serving processes */
  async #migrate(ownerUrl: string, serviceUrl: string | null): Promise<string> {
    const url = serviceUrl ?? withUser(ownerUrl, EMBEDDED_ROLE, this.#rolePassword);
    try {
      const applied = await prepareDatabase(ownerUrl, async owner => {
        if (serviceUrl !== null) return await roleOfUrl(serviceUrl);
        await makeServiceRole(owner, EMBEDDED_ROLE, this.#rolePassword);
        return EMBEDDED_ROLE;
      });
      if (applied.length > 0) this.#options.progress(`database migrated: ${applied.join(', ')}`);
    } catch (error) {
      const key = serviceUrl === null ? '' : '; its address is database.owner_url (BOT_DATABASE_OWNER_URL)';
      throw new StartError(`the database cannot be prepared: ${messageOf(error)}${key}`);
    }
    return url;
  }

  /**
   * Migrates as the role of the serving processes, where that one owns the tables. They would find it done or do it themselves, but a process
   * has a minute to listen, and a migration takes as long as it takes.
   */
  async #migrateAsServing(url: string): Promise<void> {
    const db = openDatabase(url, 1, () => {});
    try {
      // What keeps all from connecting, the serving process names in its own words.
      const isThere = await db.query('SELECT 1').then(
        () => true,
        () => false,
      );
      const applied = isThere ? await migrate(db) : [];
      if (applied.length > 0) this.#options.progress(`database migrated: ${applied.join(', ')}`);
    } catch (error) {
      throw new StartError(messageOf(error));
    } finally {
      await db.close();
    }
  }

  async #restartPostgres(): Promise<void> {
    if (this.#stopping !== null) return;
    let problem: string | null = null;
    try {
      await this.#startPostgres();
    } catch (error) {
      problem = messageOf(error);
    }
    this.#restartsPostgres = false;
    if (problem === null && this.#postgres === null) problem = 'the embedded PostgreSQL ended';
    if (problem !== null && this.#stopping === null) this.#restartPostgresLater(`${problem}; trying again`);
  }

  /**
   * Replaces the program of this process by the one that is installed now, which reads the configuration again and replaces
   * the serving processes one by one, without refusing a connection. Returns only when something is wrong.
   *
   * @throws OperatorError when the configuration has a mistake, or the program cannot take over; nothing has changed then
   */
  async reload(client: ControlClient, named: string | null): Promise<void> {
    if (!this.#wasReady || this.#stopping !== null) throw new StartError('the service is starting or stopping');
    this.#assertDatabaseStays();
    if (this.#isReloading) throw new StartError('the serving processes are being replaced already');
    this.#isReloading = true;
    try {
      reloadedConfig(this.#given, this.#options.readAgain(named), this.#config);
      await this.#handOn(programFile(this.#options.program), client, null);
    } finally {
      this.#isReloading = false;
    }
  }

  /** @throws StartError while the embedded PostgreSQL is being started again */
  #assertDatabaseStays(): void {
    if (this.#restartsPostgres) throw new StartError('the embedded PostgreSQL is being started again; wait for it');
  }

  /** @param failure why this program, which had taken over, gives back; null when it is to be replaced */
  async #handOn(file: ProgramFile, client: ControlClient | null, failure: string | null): Promise<void> {
    const { program, environment } = this.#options;
    const draft = { ...this.#stateWithout(client, failure), group: NO_PROCESSES, spicedb: [] };
    await checkProgram(file, program, environment, JSON.stringify(draft));
    // It may have ended meanwhile; one that is being started would end with this program.
    if (failure === null) this.#assertDatabaseStays();
    this.#options.progress(`going on as ${file.entry}`);
    try {
      const [group, spicedb] = await Promise.all([this.#serving.handOn(), this.#spicedb?.handOn() ?? []]);
      // A signal to stop must not be forgotten by the program that takes over.
      if (this.#stopping !== null) throw new StartError('the service is stopping');
      if (failure === null) this.#assertDatabaseStays();
      const state = { ...this.#stateWithout(client, failure), group, spicedb };
      const opened = writeTakeover(state, dataPath(this.#config));
      this.#options.flush();
      becomeProgram(file, program, environment, opened, descriptorsOf(state));
    } catch (error) {
      if (this.#stopping === null) {
        this.#spicedb?.goOn();
        this.#serving.goOn();
      }
      throw error;
    }
  }

  #stateWithout(client: ControlClient | null, failure: string | null): Omit<TakeoverState, 'group' | 'spicedb'> {
    const { lock, program } = this.#options;
    return {
      format: 1,
      failure,
      replaced: failure === null ? [] : [...this.#serving.replaced],
      entry: program.entry,
      from: { node: process.execPath, entry: this.#options.ownEntry },
      given: configToEnv(this.#given),
      effective: configToEnv(this.#config),
      origins: { given: originOf(this.#given), effective: originOf(this.#config) },
      setupToken: this.#setupToken,
      isSetupMode: this.#isSetupMode,
      rolePassword: this.#rolePassword,
      lock,
      client: client?.fd() ?? null,
      postgres: this.#postgres === null ? null : postgresStateOf(this.#postgres),
    };
  }

  /** The second half of a reload, in the program that has taken over. Gives back when no process of its own can serve. */
  async #replaceProcesses(client: ControlClient | null, taken: TakeoverState): Promise<void> {
    this.#isReloading = true;
    const before = this.#config;
    try {
      const next = this.#options.readAgain();
      const reloaded = reloadedConfig(this.#given, next, before);
      const changed = changedKeys(this.#given, next);
      if (changed.length > 0) client?.progress(`changed in the configuration: ${changed.join(', ')}`);
      await this.#migrateFor(next);
      // A process that crashes begins with this as well: it holds no owner's password at any time.
      this.#config = reloaded;
      await this.#serving.replaceAll(text => client?.progress(text));
      this.#given = next;
    } catch (error) {
      this.#config = before;
      const why = messageOf(error);
      if (taken.from.entry !== this.#options.ownEntry) await this.#giveBack(taken.from, client, why);
      throw new StartError(await this.#putBack(why, this.#serving.replaced));
    } finally {
      this.#isReloading = false;
    }
  }

  /**
   * Replaces serving processes that a reload had replaced before it failed: all are of one release, and of one configuration.
   *
   * @param why it has failed
   * @returns that, and what of this did not go well
   */
  async #putBack(why: string, places: readonly number[]): Promise<string> {
    if (places.length === 0) return why;
    this.#isReloading = true;
    try {
      await this.#serving.replaceAll(this.#options.progress, places);
      return why;
    } catch (error) {
      return `${why}; serving processes that had been replaced go on with what is new: ${messageOf(error)}; reload again`;
    } finally {
      this.#isReloading = false;
    }
  }

  /** Lets the program before go on. @param why this one cannot @throws StartError with both reasons when that one cannot either */
  async #giveBack(file: ProgramFile, client: ControlClient | null, why: string): Promise<void> {
    await this.#handOn(file, client, why).catch((error: unknown) => {
      throw new StartError(`${why}; the release before does not take it back: ${messageOf(error)}`);
    });
  }

  async #migrateFor({ values }: Config): Promise<void> {
    const { 'database.owner_url': ownerUrl, 'database.url': url } = values;
    if (url !== '' && ownerUrl !== '') await this.#migrate(ownerUrl, url);
    else if (url !== '') await this.#migrateAsServing(url);
    else if (this.#postgres !== null) await this.#migrate(this.#postgres.url, null);
  }

  /** Stops all processes in order: the serving process drains, then the database stops. Safe to call twice. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop(): Promise<void> {
    this.#control?.close();
    this.#metrics?.close();
    await this.#serving.stop();
    await this.#spicedb?.stop();
    await this.#postgres?.stop();
  }

  /** Kills all processes at once, for a second Ctrl-C. */
  kill(): void {
    this.#serving.kill();
    this.#spicedb?.kill();
    this.#postgres?.process.stdin?.end();
  }
}
