import type { ChildProcess } from 'node:child_process';
import { messageOf } from '../base/errors.ts';
import { type Config, configToEnv, dataPath } from '../config/load.ts';
import { makeHostId } from '../db/held-lock.ts';
import { SlotBroker } from '../execution/slot-broker.ts';
import { ToldStrikes } from '../records/strikes.ts';
import type { Suspect } from '../records/suspects.ts';
import { Backoff } from './backoff.ts';
import { exited } from './child.ts';
import { CrashCount } from './crash-count.ts';
import { StartError } from './embedded-postgres.ts';
import { HeardQuestions } from './heard-questions.ts';
import { MemoryWatch } from './memory-watch.ts';
import { MetricsQuestions } from './metrics-questions.ts';
import { type ServingMessage, type SupervisorMessage, servingMessage } from './serving-messages.ts';
import { removeOldNotes, ServingProcess, spawnServing } from './serving-process.ts';
import { ServingPulse } from './serving-pulse.ts';
import type { Account } from './unprivileged.ts';

export type ServingGroupOptions = {
  /** The effective configuration when a process starts. */
  config(): Config;
  processes: number;
  /** Account that runs plugins when this process is root; null: the same account. */
  account: Account | null;
  setupToken: string;
  /** Compiled sample plugin to install before the service is ready, or null. */
  samplePath: string | null;
  environment: NodeJS.ProcessEnv;
  progress(text: string): void;
  warn(text: string): void;
  /** Endpoint of the embedded graph store; null while there is none. */
  graphEndpoint(): string | null;
  /** Called when all processes use the embedded graph store at this endpoint. */
  graphInUse(endpoint: string): void;
  /** Called when a process listens. */
  listening(port: number, setupMode: boolean): void;
};

const DRAIN_MS = 12_000;
/** Longest time for which a process that was replaced answers on the connections it has. */
const HAND_OVER_MS = 60_000;
/** Delay before the standby is started: both would take twice as long if they loaded at the same time. */
const STANDBY_DELAY_MS = 150;
/** Interval of the memory readings, and how old a reading may be to count as evidence for a kill. */
const MEMORY_LOOK_MS = 500;
const MEMORY_SEEN_MS = 3000;
/** A process that does not listen after this time is killed: what it waits for may never come. */
const BEGIN_MS = 60_000;

/**
 * The serving processes: as many as `serving.processes` says, all on one port, and one that stands by. A process that
 * ends is replaced, with backoff, and the others go on. It names a plugin version that ran during each crash to the
 * next process, which suspends it (`crash-count`, docs/SECURITY.md).
 */
export class ServingGroup {
  readonly #options: ServingGroupOptions;
  readonly #hostId = makeHostId();
  /** All that were told to begin and have not ended; oldest first. */
  readonly #running = new Set<ServingProcess>();
  /** The process of each place. */
  readonly #places: Array<ServingProcess | null>;
  readonly #backoffs: Backoff[];
  readonly #slots: SlotBroker;
  /** A loaded process that waits to take over, so that a crash costs less than half a second. */
  #standby: ChildProcess | null = null;
  readonly #timers = new Set<NodeJS.Timeout>();
  readonly #crashes = new CrashCount();
  /** Versions that the next serving process must suspend. */
  #suspects: Suspect[] = [];
  readonly #strikes = new ToldStrikes();
  readonly #heard: HeardQuestions;
  readonly pulse: ServingPulse;
  readonly metrics: MetricsQuestions;
  /** How many have ended by themselves or were killed. */
  ended = 0;
  readonly #memory = new MemoryWatch();
  #memoryTimer: NodeJS.Timeout | null = null;
  #stopping = false;
  #wasReady = false;
  /** The place at which a process is being started while there may be another. */
  #startingAt: number | null = null;

  constructor(options: ServingGroupOptions) {
    this.#options = options;
    this.#places = Array.from({ length: options.processes }, () => null);
    this.#backoffs = Array.from({ length: options.processes }, () => new Backoff());
    this.#slots = new SlotBroker(options.processes);
    this.#heard = new HeardQuestions(this.#running);
    this.metrics = new MetricsQuestions(this.#running);
    this.pulse = new ServingPulse(this.#running, options.warn);
  }

  /** Starts a process that loads its modules meanwhile. */
  standBy(): void {
    if (this.#stopping || this.#standby !== null) return;
    const child = this.#spawn();
    this.#standby = child;
    child.once('exit', () => {
      if (this.#standby === child) this.#standby = null;
    });
  }

  #spawn(): ChildProcess {
    const { account, config, environment, progress } = this.#options;
    const child = spawnServing(config(), account, environment);
    // A process that could not be started reports it here; the code that uses it sees that it has no pid.
    child.on('error', error => {
      if (child.pid === undefined) progress(`a process could not be started: ${messageOf(error)}`);
    });
    return child;
  }

  /** @throws StartError when a process cannot start */
  async start(): Promise<void> {
    removeOldNotes(dataPath(this.#options.config()));
    this.#memoryTimer = setInterval(() => this.#memory.look(performance.now()), MEMORY_LOOK_MS);
    this.pulse.start();
    // The first one migrates the database and installs the sample; the others find its port.
    await this.#begin(0);
    this.#wasReady = true;
    await Promise.all(this.#places.slice(1).map((_, k) => this.#begin(k + 1)));
    this.#standBySoon();
  }

  /**
   * Starts a process at a place. Resolves when it listens.
   *
   * @param made called when the system has made the process: from then on its end is noticed
   * @throws StartError when it reports a failure, ends or cannot be made
   */
  async #begin(place: number, made: () => void = () => {}): Promise<ServingProcess> {
    const { account, config, graphEndpoint, samplePath, setupToken } = this.#options;
    const child = this.#standby ?? this.#spawn();
    this.#standby = null;
    if (child.pid === undefined)
      throw new StartError('the system cannot start another process now; check the limits on processes and memory');
    const serving = new ServingProcess(child, place, account, dataPath(config()));
    this.#running.add(serving);
    this.#places[place] ??= serving;
    const suspects = this.#suspects;
    serving.send({
      kind: 'go',
      env: { ...configToEnv(config()), BOT_ADMIN_SETUP_TOKEN: setupToken },
      hostId: this.#hostId,
      processes: this.#options.processes,
      slots: this.#slots.join(serving.pid, place, message => serving.send(message)),
      noteFile: serving.noteFile,
      suspects,
      sampleModule: this.#wasReady || place > 0 ? null : samplePath,
    });
    for (const strike of this.#strikes.list(Date.now())) serving.send(strike);
    const endpoint = graphEndpoint();
    if (endpoint !== null) serving.send({ kind: 'graph', endpoint });
    this.#tellOthers();
    made();
    const tooLate = setTimeout(() => {
      this.#options.progress(`a serving process did not listen after ${BEGIN_MS / 1000} s and is killed`);
      child.kill('SIGKILL');
    }, BEGIN_MS);
    return await new Promise<ServingProcess>((resolve, reject) => {
      child.on('message', message => {
        const parsed = servingMessage.safeParse(message);
        if (!parsed.success) return;
        if (parsed.data.kind === 'failed') return reject(new StartError(parsed.data.message));
        if (parsed.data.kind !== 'listening') return this.#hear(serving, parsed.data);
        clearTimeout(tooLate);
        serving.isReady = true;
        this.#suspects = this.#suspects.filter(s => !suspects.includes(s));
        this.#backoffs[place]?.ready(performance.now());
        this.#options.listening(parsed.data.port, parsed.data.setupMode);
        resolve(serving);
      });
      child.once('exit', (code, signal) => {
        clearTimeout(tooLate);
        reject(
          new StartError(
            `the serving process ended at start (${signal ?? `exit code ${code}`}); its log lines above say why`,
          ),
        );
        this.#ended(serving, code, signal);
      });
    });
  }

  #hear(serving: ServingProcess, message: Exclude<ServingMessage, { kind: 'listening' | 'failed' }>): void {
    switch (message.kind) {
      case 'metrics':
        return this.metrics.answer(serving, message.number, message.metrics);
      case 'alive':
        serving.unanswered = 0;
        return;
      case 'graph_in_use':
        serving.graph = message.endpoint;
        return this.#noteGraph(message.endpoint);
      case 'strike':
      case 'strikes_forgotten':
      case 'trigger_resumed':
        this.#strikes.add(message);
        for (const other of this.#running) if (other !== serving) other.send(message);
        return;
      case 'ask_heard':
        return this.#heard.ask(serving, message.number);
      case 'heard':
        return this.#heard.answer(serving, message.by, message.number);
      default:
        this.#slots.hear(serving.pid, message);
    }
  }

  #noteGraph(endpoint: string): void {
    if ([...this.#running].every(p => p.graph === endpoint)) this.#options.graphInUse(endpoint);
  }

  tell(message: SupervisorMessage): void {
    for (const serving of this.#running) serving.send(message);
  }

  #tellOthers(): void {
    const pids = [...this.#running].map(p => p.pid);
    for (const serving of this.#running) serving.send({ kind: 'others', pids: pids.filter(p => p !== serving.pid) });
  }

  #later(ms: number, work: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      if (!this.#stopping) work();
    }, ms);
    this.#timers.add(timer);
  }

  #standBySoon(): void {
    this.#later(STANDBY_DELAY_MS, () => {
      try {
        this.standBy();
      } catch (error) {
        // Without a standby only the next crash costs more time.
        this.#options.progress(`no process can stand by: ${messageOf(error)}`);
      }
    });
  }

  #ended(serving: ServingProcess, code: number | null, signal: NodeJS.Signals | null): void {
    this.#running.delete(serving);
    this.#slots.leave(serving.pid);
    this.#heard.ended(serving);
    const { place } = serving;
    const isOfPlace = this.#places[place] === serving;
    if (isOfPlace) this.#places[place] = null;
    const versions = serving.takeNotes();
    if (this.#stopping) return;
    this.#tellOthers();
    const [first] = this.#running;
    if (first !== undefined) this.#noteGraph(first.graph);
    // The first start failed, or it was replaced and has ended as it should.
    if (!this.#wasReady || (!isOfPlace && code === 0)) return;
    this.ended++;
    const suspects = this.#noteCrash(versions, code, signal);
    if (!isOfPlace) return;
    const wait = this.#backoffs[place]?.next(performance.now()) ?? 0;
    const who = suspects.map(s => `; version number ${s.versionId}, which was running, is suspended: it ${s.seen}`);
    const when = wait > 0 ? ` in ${wait} ms` : '';
    this.#options.warn(
      `the serving process ended (${signal ?? `exit code ${code}`}); starting it again${when}${who.join('')}`,
    );
    this.#later(wait, () => this.#beginAgain(place));
  }

  #noteCrash(versions: Set<number>, code: number | null, signal: NodeJS.Signals | null): Suspect[] {
    const atMs = performance.now();
    const memory = this.#memory.explain(atMs - MEMORY_SEEN_MS);
    const suspects = this.#crashes.note({ code, signal, versions, memory, atMs, at: new Date() });
    this.#suspects = [...this.#suspects, ...suspects];
    return suspects;
  }

  /**
   * Starts a process at a place that has none. One that starts and fails reaches `#ended`; one that could not be made is
   * retried here.
   */
  #beginAgain(place: number): void {
    if (this.#places[place] !== null || this.#startingAt === place) return;
    let isMade = false;
    this.#begin(place, () => {
      isMade = true;
    }).then(
      () => this.#standBySoon(),
      (error: unknown) => {
        this.#options.progress(messageOf(error));
        if (isMade || this.#stopping) return;
        const wait = Math.max(100, this.#backoffs[place]?.next(performance.now()) ?? 0);
        this.#later(wait, () => this.#beginAgain(place));
      },
    );
  }

  /**
   * Replaces the processes one by one. The new one listens on the same port before the old one stops to; the old one
   * answers on the connections it has, and ends when they are closed.
   *
   * @param progress called for each process
   * @throws StartError when a new process cannot start; the old one goes on then
   */
  async replaceAll(progress: (text: string) => void): Promise<void> {
    try {
      for (const place of this.#places.keys()) {
        if (this.#stopping) throw new StartError('the service is stopping');
        progress(`replacing serving process ${place + 1} of ${this.#places.length}`);
        await this.#replace(place);
      }
    } finally {
      this.#standBySoon();
    }
  }

  async #replace(place: number): Promise<void> {
    // One that stands by has loaded the program as it was.
    this.#standby?.kill('SIGKILL');
    this.#standby = null;
    let next: ServingProcess;
    this.#startingAt = place;
    try {
      next = await this.#begin(place);
      this.#places[place] = next;
    } finally {
      this.#startingAt = null;
      // The old process has ended by itself, and the new one did not start.
      if (!this.#stopping) this.#beginAgain(place);
    }
    this.#slots.replace(next.pid);
    next.send({ kind: 'take_over' });
    await Promise.all([...this.#running].filter(p => p.place === place && p !== next).map(p => this.#handOver(p)));
  }

  async #handOver(before: ServingProcess): Promise<void> {
    // One that has not begun to listen has no connections.
    if (!before.isReady) return await this.#end(before);
    before.send({ kind: 'hand_over' });
    if (!(await exited(before.child, HAND_OVER_MS))) await this.#end(before);
  }

  async #end(serving: ServingProcess): Promise<void> {
    if (!serving.runs) return;
    serving.child.kill('SIGTERM');
    if (await exited(serving.child, DRAIN_MS)) return;
    serving.child.kill('SIGKILL');
    await exited(serving.child, 2000);
  }

  /** Stops all processes; each answers what is under way. */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.pulse.stop();
    for (const timer of this.#timers) clearTimeout(timer);
    if (this.#memoryTimer !== null) clearInterval(this.#memoryTimer);
    this.#standby?.kill('SIGKILL');
    await Promise.all([...this.#running].map(p => this.#end(p)));
  }

  /** Kills all processes at once. */
  kill(): void {
    this.#stopping = true;
    this.#standby?.kill('SIGKILL');
    for (const serving of this.#running) serving.child.kill('SIGKILL');
  }
}
