import type { ChildProcess } from 'node:child_process';
import { messageOf } from '../../base/errors.ts';
import { type Config, configToEnv, dataPath, originOf } from '../../config/load.ts';
import type { PendingConfig } from '../../config/pending-config.ts';
import { durationMs } from '../../config/values.ts';
import { makeHostId } from '../../db/held-lock.ts';
import { SlotBroker } from '../../execution/slot-broker.ts';
import { ToldStrikes } from '../../records/strikes.ts';
import { AdoptedChild, messagesFd } from '../children/adopted-child.ts';
import { Backoff } from '../children/backoff.ts';
import { StartError } from '../children/child.ts';
import type { Account } from '../children/unprivileged.ts';
import type { GroupState } from '../handover/takeover-state.ts';
import { CrashNotes } from './crash-notes.ts';
import { endProcess, killProcess, retireProcess } from './end-process.ts';
import { HeardQuestions } from './heard-questions.ts';
import { MetricsQuestions } from './metrics-questions.ts';
import { quieten } from './quieten.ts';
import { type ServingMessage, type SupervisorMessage, servingMessage } from './serving-messages.ts';
import { makeNoteFile, removeOldNotes, ServingProcess, spawnServing } from './serving-process.ts';
import { ServingPulse } from './serving-pulse.ts';
import { Standby } from './standby.ts';

export type ServingGroupOptions = {
  /** The effective configuration when a process starts. */
  config(): Config;
  /** What the next reload would find. */
  pendingConfig(): PendingConfig;
  processes: number;
  /** Account that runs plugins when this process is root; null: the same account. */
  account: Account | null;
  setupToken: string;
  /** Compiled sample plugin to install before the service is ready, and built administration pages; null without. */
  samplePath: string | null;
  pages: string | null;
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

type StartMessage = Extract<ServingMessage, { kind: 'listening' | 'failed' }>;

/** A process that does not listen after this time is killed: what it waits for may never come. */
const BEGIN_MS = 60_000;

/**
 * The serving processes: as many as `serving.processes` says, all on one port, and one that stands by. A process that
 * ends is replaced, with backoff, and the others go on. It names a plugin version that ran during each crash to the
 * next process, which suspends it (`crash-count`, docs/SECURITY.md).
 */
export class ServingGroup {
  readonly #options: ServingGroupOptions;
  #hostId = makeHostId();
  /** All that were told to begin and have not ended; oldest first. */
  readonly #running = new Set<ServingProcess>();
  /** Places whose process was replaced since `replaceAll` was called last. */
  replaced: number[] = [];
  /** The process of each place. */
  readonly #places: Array<ServingProcess | null>;
  readonly #backoffs: Backoff[];
  readonly #slots: SlotBroker;
  readonly #standby: Standby;
  readonly #timers = new Set<NodeJS.Timeout>();
  readonly #crashes = new CrashNotes();
  readonly #strikes = new ToldStrikes();
  readonly #heard: HeardQuestions;
  readonly pulse: ServingPulse;
  readonly metrics: MetricsQuestions;
  /** How many have ended by themselves or were killed. */
  ended = 0;
  #stopping = false;
  #wasReady = false;
  /** The place at which a process is being started while there may be another. */
  #startingAt: number | null = null;

  constructor(options: ServingGroupOptions) {
    this.#options = options;
    this.#places = Array.from({ length: options.processes }, () => null);
    this.#backoffs = Array.from({ length: options.processes }, () => new Backoff());
    this.#slots = new SlotBroker(options.processes);
    this.#standby = new Standby(() => this.#spawn(), options.progress);
    this.#heard = new HeardQuestions(this.#running);
    this.metrics = new MetricsQuestions(this.#running);
    this.pulse = new ServingPulse(this.#running, options.warn);
  }

  /** Starts a process that loads its modules meanwhile. */
  standBy(): void {
    this.#standby.start(true);
  }

  #spawn(): ChildProcess {
    const { account, config, environment, progress } = this.#options;
    return spawnServing(config(), account, environment, progress);
  }

  /** @throws StartError when a process cannot start */
  async start(): Promise<void> {
    removeOldNotes(dataPath(this.#options.config()));
    this.#crashes.watch();
    this.pulse.start();
    // The first one migrates the database and installs the sample; the others find its port.
    await this.#begin(0);
    this.#wasReady = true;
    await Promise.all(this.#places.slice(1).map((_, k) => this.#begin(k + 1)));
    this.#standby.soon();
  }

  /**
   * Gets the processes ready for another program that takes the place of this one; `goOn` takes it back.
   *
   * @returns what that program calls `resume` with
   * @throws StartError when a process does not answer
   */
  async handOn(): Promise<GroupState> {
    this.#stopping = true;
    await this.#standby.end();
    // The other program starts them again.
    for (const starting of [...this.#running].filter(p => !p.isReady)) await killProcess(starting);
    await quieten(this.#running);
    const processes = [...this.#running].map(({ child, graph, noteFile, pid, place }) => {
      return { pid, fd: messagesFd(child), place, isOfPlace: this.#places[place]?.pid === pid, noteFile, graph };
    });
    const strikes = this.#strikes.list(Date.now());
    return { hostId: this.#hostId, ended: this.ended, processes, slots: this.#slots.state(), strikes };
  }

  /** Lets the processes speak again, and starts those that are missing. */
  goOn(): void {
    this.#stopping = false;
    this.tell({ kind: 'supervisor_changed' });
    this.#tellOthers();
    for (const [place, serving] of this.#places.entries()) if (serving === null) this.#beginAgain(place);
    this.#standby.soon();
  }

  /** Takes over the processes that the program before has started. */
  resume(state: GroupState): void {
    this.#hostId = state.hostId;
    this.ended = state.ended;
    this.#wasReady = true;
    for (const strike of state.strikes) this.#strikes.add(strike);
    for (const { fd, graph, isOfPlace, noteFile, pid, place } of state.processes) {
      const serving = new ServingProcess(new AdoptedChild(pid, { messages: fd }), place, noteFile);
      serving.isReady = true;
      serving.graph = graph;
      this.#running.add(serving);
      if (isOfPlace) this.#places[place] = serving;
      this.#listenTo(serving, () => {});
    }
    this.#slots.resume(state.slots, (pid, message) => [...this.#running].find(p => p.pid === pid)?.send(message));
    this.#crashes.watch();
    this.pulse.start();
    this.goOn();
  }

  /**
   * Starts a process at a place. Resolves when it listens.
   *
   * @param made called when the system has made the process: from then on its end is noticed
   * @throws StartError when it reports a failure, ends or cannot be made
   */
  async #begin(place: number, made: () => void = () => {}): Promise<ServingProcess> {
    const { account, config, graphEndpoint, pages, samplePath, setupToken } = this.#options;
    const child = this.#standby.take(this.#startingAt !== place);
    if (child.pid === undefined)
      throw new StartError('the system cannot start another process now; check the limits on processes and memory');
    const serving = new ServingProcess(child, place, makeNoteFile(account, dataPath(config())));
    this.#running.add(serving);
    this.#places[place] ??= serving;
    const { suspects } = this.#crashes;
    serving.send({
      kind: 'go',
      env: { ...configToEnv(config()), BOT_ADMIN_SETUP_TOKEN: setupToken },
      origin: originOf(config()),
      hostId: this.#hostId,
      processes: this.#options.processes,
      slots: this.#slots.join(serving.pid, place, message => serving.send(message)),
      noteFile: serving.noteFile,
      sampleModule: this.#wasReady || place > 0 ? null : samplePath,
      ...{ pages, suspects, replaces: this.#startingAt === place },
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
      this.#listenTo(serving, message => {
        if (message.kind === 'failed') return reject(new StartError(message.message));
        clearTimeout(tooLate);
        serving.isReady = true;
        this.#crashes.suspended(suspects);
        this.#backoffs[place]?.ready(performance.now());
        this.#options.listening(message.port, message.setupMode);
        resolve(serving);
      });
      child.once('exit', (code, signal) => {
        clearTimeout(tooLate);
        const how = signal ?? `exit code ${code}`;
        reject(new StartError(`the serving process ended at start (${how}); its log lines above say why`));
      });
    });
  }

  /** @param started hears how the start went */
  #listenTo(serving: ServingProcess, started: (message: StartMessage) => void): void {
    serving.child.on('message', message => {
      const parsed = servingMessage.safeParse(message);
      if (!parsed.success) return;
      if (parsed.data.kind === 'listening' || parsed.data.kind === 'failed') started(parsed.data);
      else this.#hear(serving, parsed.data);
    });
    serving.child.once('exit', (code, signal) => this.#ended(serving, code, signal));
  }

  #hear(serving: ServingProcess, message: Exclude<ServingMessage, StartMessage>): void {
    switch (message.kind) {
      case 'quiet':
        return serving.noteQuiet?.();
      case 'metrics':
        return this.metrics.answer(serving, message.number, message.metrics);
      case 'alive':
        serving.unanswered = 0;
        return;
      case 'graph_in_use':
        serving.graph = message.endpoint;
        return this.#noteGraph(message.endpoint);
      case 'strike':
      case 'callers_well':
      case 'strikes_forgotten':
      case 'trigger_resumed':
        this.#strikes.add(message);
        for (const other of this.#running) if (other !== serving) other.send(message);
        return;
      case 'ask_config':
        return serving.send({ kind: 'config', number: message.number, pending: this.#options.pendingConfig() });
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
    const suspects = this.#crashes.note(versions, code, signal);
    if (!isOfPlace) return;
    const wait = this.#backoffs[place]?.next(performance.now()) ?? 0;
    const who = suspects.map(s => `; version number ${s.versionId}, which was running, is suspended: it ${s.seen}`);
    const when = wait > 0 ? ` in ${wait} ms` : '';
    this.#options.warn(
      `the serving process ended (${signal ?? `exit code ${code}`}); starting it again${when}${who.join('')}`,
    );
    this.#later(wait, () => this.#beginAgain(place));
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
      () => this.#standby.soon(),
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
   * @param places of the processes; without it, of all
   * @throws StartError when a new process cannot start; the old one goes on then, and `replaced` says which do not
   */
  async replaceAll(progress: (text: string) => void, places?: readonly number[]): Promise<void> {
    this.replaced = [];
    try {
      for (const place of places ?? this.#places.keys()) {
        if (this.#stopping) throw new StartError('the service is stopping');
        progress(`replacing serving process ${place + 1} of ${this.#places.length}`);
        await this.#replace(place);
        this.replaced.push(place);
      }
    } finally {
      this.#standby.soon();
    }
  }

  async #replace(place: number): Promise<void> {
    // One that stands by has loaded the program as it was.
    this.#standby.drop();
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
    next.takeOver(durationMs(this.#options.config().values['serving.take_over']), () => this.#slots.replace(next.pid));
    const old = [...this.#running].filter(p => p.place === place && p !== next);
    await Promise.all(old.map(p => retireProcess(p, this.#options.config())));
  }

  /** Stops all processes; each answers what is under way. */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.pulse.stop();
    for (const timer of this.#timers) clearTimeout(timer);
    this.#crashes.stop();
    this.#standby.close();
    await Promise.all([...this.#running].map(p => endProcess(p, this.#options.config())));
  }

  /** Kills all processes at once. */
  kill(): void {
    this.#stopping = true;
    this.#standby.close();
    for (const serving of this.#running) serving.child.kill('SIGKILL');
  }
}
