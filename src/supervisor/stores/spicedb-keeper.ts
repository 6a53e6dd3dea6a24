import fs from 'node:fs';
import path from 'node:path';
import { messageOf } from '../../base/errors.ts';
import { residentBytes } from '../../base/resident-bytes.ts';
import { writeNewFile } from '../../base/write-new-file.ts';
import { Backoff } from '../children/backoff.ts';
import type { Account } from '../children/unprivileged.ts';
import type { SpicedbState } from '../handover/takeover-state.ts';
import { adoptSpicedb, type RunningSpicedb, spicedbStateOf, startEmbeddedSpicedb } from './embedded-spicedb.ts';

export type KeeperOptions = {
  /** Data directory; the sockets and the note of the endpoint are below it. */
  directory: string;
  /** Account the stores run as; null: the account of this process. */
  account?: Account | null;
  /** Variables the stores get next to PATH. */
  environment?: NodeJS.ProcessEnv;
  /** Memory above which a store is replaced, in bytes. */
  recycleBytes: number;
  progress(text: string): void;
  /** Called when a store is ready and empty; it must be filled before it is used. */
  started(endpoint: string): void;
};

const LOOK_MS = 5000;
/** Folders of stores; far fewer run at a time. */
const FOLDERS = 10;

/** File with the endpoint of the embedded store, for commands. */
export const endpointFile = (directory: string): string => path.join(directory, 'spicedb.endpoint');

/**
 * Keeps an embedded SpiceDB running. Starts it again when it dies. Replaces it when it has grown, because it never
 * frees memory: the old store answers while the new one is filled, and is stopped when the new one is in use.
 */
export class SpicedbKeeper {
  readonly #options: KeeperOptions;
  readonly #backoff = new Backoff();
  #current: RunningSpicedb | null = null;
  /** Stores that answer until `#current` is in use. */
  readonly #old = new Set<RunningSpicedb>();
  readonly #ending = new Set<Promise<void>>();
  #starting: Promise<void> | null = null;
  #timer: NodeJS.Timeout | null = null;
  #stopping = false;
  /** Whether `#current` has ended while another program was to take it over. */
  #hasEnded = false;
  #count = 0;
  /** Memory of the store right after it was filled. */
  #filledBytes = 0;

  constructor(options: KeeperOptions) {
    this.#options = options;
  }

  /** Endpoint of the store; null while none is ready. */
  get endpoint(): string | null {
    return this.#current?.endpoint ?? null;
  }

  /** Starts a store in the background, with retries until it is ready. */
  start(): void {
    if (this.#stopping || this.#starting !== null) return;
    this.#starting = this.#start()
      .catch((error: unknown) => {
        const wait = Math.max(200, this.#backoff.next(performance.now()));
        this.#options.progress(`${messageOf(error)}; trying again in ${wait} ms`);
        this.#timer = setTimeout(() => this.start(), wait);
      })
      .finally(() => {
        this.#starting = null;
      });
  }

  async #start(): Promise<void> {
    const { account, directory, environment, started } = this.#options;
    const folder = this.#freeFolder(directory);
    const spicedb = await startEmbeddedSpicedb(folder, account, environment);
    if (this.#stopping) return await spicedb.stop();
    if (this.#current !== null) this.#old.add(this.#current);
    this.#use(spicedb);
    writeNewFile(endpointFile(directory), `${spicedb.endpoint}\n`, 0o600);
    started(spicedb.endpoint);
  }

  /** The next folder in turn without the sockets of a store that runs. */
  #freeFolder(directory: string): string {
    const taken = [this.#current, ...this.#old].map(running => running?.sockets);
    let folder: string;
    do folder = path.join(directory, `spicedb-${this.#count++ % FOLDERS}`);
    while (taken.includes(folder));
    return folder;
  }

  /** Takes `spicedb` as the store that is to be used, and looks after it. */
  #use(spicedb: RunningSpicedb): void {
    this.#current = spicedb;
    this.#filledBytes = 0;
    this.#backoff.ready(performance.now());
    spicedb.process.once('exit', () => {
      this.#old.delete(spicedb);
      if (this.#current !== spicedb) return;
      if (this.#stopping) this.#hasEnded = true;
      else this.#startAgain(spicedb);
    });
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#look(), LOOK_MS);
  }

  #startAgain(ended: RunningSpicedb): void {
    this.#hasEnded = false;
    this.#current = null;
    // Removes its sockets, which are of no use any more.
    this.#end(ended);
    const wait = this.#backoff.next(performance.now());
    this.#options.progress(`the embedded SpiceDB ended; starting it again${wait > 0 ? ` in ${wait} ms` : ''}`);
    this.#timer = setTimeout(() => this.start(), wait);
  }

  /**
   * Stops looking after the stores, for another program that takes them over.
   *
   * @returns what that program calls `resume` with; the store that is to be used is the last one
   */
  async handOn(): Promise<SpicedbState[]> {
    this.#stopping = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    await this.#starting;
    return [...this.#old, ...(this.#current === null ? [] : [this.#current])].map(spicedbStateOf);
  }

  /** Looks after the stores again. */
  goOn(): void {
    this.#stopping = false;
    if (this.#current === null) this.start();
    else if (this.#hasEnded) this.#startAgain(this.#current);
    else this.#timer = setTimeout(() => this.#look(), LOOK_MS);
  }

  /** Takes over the stores that the program before has started. */
  resume(states: readonly SpicedbState[]): void {
    for (const old of states.slice(0, -1).map(adoptSpicedb)) this.#old.add(old);
    const last = states.at(-1);
    if (last === undefined) this.start();
    else this.#use(adoptSpicedb(last));
  }

  /** Notes that the serving process has filled a store and uses it now. */
  inUse(endpoint: string): void {
    const current = this.#current;
    if (current?.endpoint !== endpoint) return;
    this.#filledBytes = residentBytes(current.process.pid);
    for (const old of this.#old) this.#end(old);
    this.#old.clear();
  }

  #end(spicedb: RunningSpicedb): void {
    const ending = spicedb.stop().finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
  }

  #look(): void {
    const current = this.#current;
    if (this.#stopping || current === null) return;
    const bytes = residentBytes(current.process.pid);
    // A store that is large because the graph is large would not shrink by a restart.
    if (this.#filledBytes > 0 && bytes > Math.max(this.#options.recycleBytes, 2 * this.#filledBytes)) {
      this.#options.progress(`the embedded SpiceDB holds ${Math.round(bytes / 2 ** 20)} MB and is replaced`);
      return this.start();
    }
    this.#timer = setTimeout(() => this.#look(), LOOK_MS);
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    await this.#starting;
    for (const spicedb of [this.#current, ...this.#old]) if (spicedb !== null) this.#end(spicedb);
    await Promise.all(this.#ending);
    fs.rmSync(endpointFile(this.#options.directory), { force: true });
  }

  /** Kills all stores at once. */
  kill(): void {
    this.#stopping = true;
    for (const spicedb of [this.#current, ...this.#old]) spicedb?.process.kill('SIGKILL');
  }
}
