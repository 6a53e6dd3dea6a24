import { randomBytes } from 'node:crypto';
import { messageOf } from '../base/errors.ts';
import { counter, gauge, type Metric } from '../base/metric.ts';
import { serviceVersion } from '../base/version.ts';
import { type Config, dataPath, withValues } from '../config/load.ts';
import { EMBEDDED_ROLE, makeServiceRole, prepareDatabase, roleOfUrl, withUser } from '../db/service-role.ts';
import { Backoff } from './backoff.ts';
import { type ControlCommands, type ControlSocket, openControlSocket } from './control-socket.ts';
import { type RunningPostgres, StartError, startPostgres } from './embedded-postgres.ts';
import { type MetricsServer, startMetricsServer } from './metrics-server.ts';
import { changedKeys, reloadedConfig } from './reloaded-config.ts';
import { ServingGroup } from './serving-group.ts';
import { SpicedbKeeper } from './spicedb-keeper.ts';
import { checkPort } from './start-checks.ts';
import { type Account, dropTo } from './unprivileged.ts';

export type SupervisorOptions = {
  config: Config;
  /** Reads the configuration again. @throws OperatorError naming the mistake */
  readAgain(): Config;
  /** Compiled sample plugin to install before the service is ready, or null. */
  samplePath: string | null;
  environment: NodeJS.ProcessEnv;
  progress(text: string): void;
  warn(text: string): void;
  /** Called whenever the service is ready, also after a restart; the token is null once setup mode is over. */
  ready(port: number, setupToken: string | null, first: boolean): void;
};

/**
 * The parent of all processes: the serving processes (front end and lanes), the embedded PostgreSQL and the embedded
 * SpiceDB. It runs no plugin code. It restarts a child that ends, with backoff.
 */
export class Supervisor implements ControlCommands {
  readonly #options: SupervisorOptions;
  /** As it was read last. */
  #given: Config;
  /** The same with what was found out at start: the port, and the address of the embedded database. */
  #config: Config;
  readonly #setupToken: string;
  /** Account that runs plugins when this process is root; null: the same account. */
  readonly #account: Account | null;
  /** Password of the serving role in the embedded database; new at each start and never written to a file. */
  readonly #rolePassword = randomBytes(24).toString('hex');
  #postgres: RunningPostgres | null = null;
  /** Null when `spicedb.endpoint` names a remote store. */
  readonly #spicedb: SpicedbKeeper | null;
  readonly #serving: ServingGroup;
  #control: ControlSocket | null = null;
  #metrics: MetricsServer | null = null;
  #stopping: Promise<void> | null = null;
  #wasReady = false;
  #isSetupMode = false;
  #isReloading = false;
  readonly #postgresBackoff = new Backoff();

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.#given = options.config;
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
            started: endpoint => this.#serving.tell({ kind: 'graph', endpoint }),
          });
    this.#serving = new ServingGroup({
      ...options,
      config: () => this.#config,
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
    else if (v['database.owner_url'] !== '') await this.#prepareDatabase(v['database.owner_url'], v['database.url']);
    const processes = v['serving.processes'];
    this.#options.progress(`starting the serving process${processes > 1 ? `es (${processes})` : ''}`);
    await this.#serving.start();
    this.#wasReady = true;
    if (v['metrics.port'] !== 0)
      this.#metrics = await startMetricsServer(v['metrics.host'], v['metrics.port'], () => this.#collect());
    this.#control = await openControlSocket(dataPath(this.#config), this).catch((error: unknown) => {
      this.#options.warn(`commands like reload cannot reach this service: ${messageOf(error)}`);
      return null;
    });
    this.#options.ready(this.#config.values['http.port'], this.#isSetupMode ? this.#setupToken : null, true);
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
      throw new StartError(`the database cannot be prepared: ${messageOf(error)}`);
    }
    return url;
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

  /**
   * Reads the configuration again and replaces the serving processes one by one, without refusing a connection.
   *
   * @throws OperatorError when the configuration has a mistake, or a new process cannot start with it; what was not replaced
   *   goes on as before
   */
  async reload(progress: (text: string) => void): Promise<void> {
    if (!this.#wasReady || this.#stopping !== null) throw new StartError('the service is starting or stopping');
    if (this.#isReloading) throw new StartError('the serving processes are being replaced already');
    this.#isReloading = true;
    const before = this.#config;
    try {
      const next = this.#options.readAgain();
      const reloaded = reloadedConfig(this.#given, next, before);
      const changed = changedKeys(this.#given, next);
      if (changed.length > 0) progress(`changed in the configuration: ${changed.join(', ')}`);
      const { 'database.owner_url': ownerUrl, 'database.url': url } = next.values;
      if (url !== '' && ownerUrl !== '') await this.#migrate(ownerUrl, url);
      // A process that crashes begins with this as well: it holds no owner's password at any time.
      this.#config = reloaded;
      await this.#serving.replaceAll(progress);
      this.#given = next;
    } catch (error) {
      this.#config = before;
      throw error;
    } finally {
      this.#isReloading = false;
    }
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
