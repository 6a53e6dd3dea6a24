import { type ChildProcess, fork } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { messageOf } from '../../base/errors.ts';
import { LIMITS } from '../../base/limits.ts';
import { writeNewFile } from '../../base/write-new-file.ts';
import { type Config, dataPath } from '../../config/load.ts';
import { WASM_FLAGS } from '../../plugins/limited-child.ts';
import type { Child } from '../children/adopted-child.ts';
import { MAIN } from '../children/child.ts';
import { raiseStartPriority } from '../children/start-priority.ts';
import { startedPid } from '../children/started-pid.ts';
import { SYSTEMD_VARIABLES } from '../children/systemd-notifier.ts';
import { type Account, asAccountOnPort } from '../children/unprivileged.ts';
import type { SupervisorMessage } from './serving-messages.ts';

const OWN: ReadonlySet<string> = new Set(SYSTEMD_VARIABLES);

/**
 * The environment without `BOT_*` variables, because the child gets the effective configuration and must not read its
 * sources again, and without what systemd says to the supervisor.
 */
function withoutOwn(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('BOT_') && !OWN.has(name)));
}

/**
 * MiB of each half of V8's young generation, twice its default: under load fewer of the objects of a request are promoted because they
 * happen to be alive (docs/performance.md). Lanes have limits of their own.
 */
const YOUNG_SPACE = '--max-semi-space-size=32';

/**
 * Calls after which V8 optimises a function, a quarter and a third of its defaults: each lane is an isolate of its own, so that under load
 * a plugin's code is called an eighth as often in each, and a fresh plugin was slow for as much longer (docs/performance.md).
 */
const OPTIMISES_EARLY = ['--invocation-count-for-maglev=100', '--invocation-count-for-turbofan=1000'];

/** Starts a process that loads all modules and waits for the message to begin. */
export function spawnServing(
  config: Config,
  account: Account | null,
  environment: NodeJS.ProcessEnv,
  progress: (text: string) => void,
): ChildProcess {
  const port = config.values['http.port'];
  const child = fork(MAIN, ['serving', dataPath(config)], {
    ...asAccountOnPort(account, port, [
      ...WASM_FLAGS,
      ...OPTIMISES_EARLY,
      YOUNG_SPACE,
      '--disable-warning=ExperimentalWarning',
    ]),
    // A process group of its own: Ctrl-C reaches the supervisor alone, which stops things in order.
    detached: true,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    // The HTTP library reads its limit from this variable; its default of 4 KiB is too little for a browser with
    // cookies.
    env: {
      ...withoutOwn(environment),
      // Modules that were loaded once are not compiled again (docs/RATIONALE.md). npm names a folder of its own, which
      // the account could not write to.
      NODE_COMPILE_CACHE: dataPath(config, 'cache', 'compiled'),
      UWS_HTTP_MAX_HEADERS_SIZE: String(LIMITS.requestHeadBytesMax),
    },
  });
  // A process that could not be started reports it here; the code that uses it sees that it has no pid.
  child.on('error', error => {
    if (child.pid === undefined) progress(`a process could not be started: ${messageOf(error)}`);
  });
  return child;
}

let made = 0;
const OLD_NOTE_MS = 24 * 3_600_000;

/** In a memory file system if there is one that can be written, because the lanes write notes during requests. */
function notesIn(fallback: string): string {
  try {
    fs.accessSync('/dev/shm', fs.constants.W_OK);
    return '/dev/shm';
  } catch {
    return fallback;
  }
}

/**
 * Removes the notes of supervisors that were killed. Not those of the last day: in another container that shares the file
 * system a process id says nothing.
 */
export function removeOldNotes(fallback: string): void {
  const directory = notesIn(fallback);
  for (const name of fs.readdirSync(directory)) {
    const [, pid] = /^plugin-host-(\d+)(?:-\d+)?\.lanes$/.exec(name) ?? [];
    const file = path.join(directory, name);
    if (pid === undefined || fs.existsSync(`/proc/${pid}`)) continue;
    const { mtimeMs = Number.POSITIVE_INFINITY } = fs.statSync(file, { throwIfNoEntry: false }) ?? {};
    if (mtimeMs < Date.now() - OLD_NOTE_MS) fs.rmSync(file, { force: true });
  }
}

/**
 * Makes the file in which the lanes of a process note what they run.
 *
 * @param account it runs as; null: the account of this process
 * @param fallback directory for it where there is no memory file system
 */
export function makeNoteFile(account: Account | null, fallback: string): string {
  // Another program with the same pid may have made some.
  const file = `${notesIn(fallback)}/plugin-host-${process.pid}-${Date.now()}${made++}.lanes`;
  writeNewFile(file, new Uint8Array((LIMITS.lanesMax + 1) * 4), 0o600);
  if (account !== null) fs.lchownSync(file, account.uid, account.gid);
  return file;
}

/** Part of the time for it after which half of the clients have been led over (`takeOverShare`). */
const HALF_OF_CLIENTS = 5 / 6;

/** A serving process that was told to begin. */
export class ServingProcess {
  readonly child: Child;
  readonly pid: number;
  readonly place: number;
  readonly noteFile: string;
  /** Whether it listens. */
  isReady = false;
  /** Questions whether it is alive without an answer. */
  unanswered = 0;
  /** Called when it keeps what it has to say. */
  noteQuiet: (() => void) | null = null;
  /** The embedded graph store it uses. */
  graph = '';

  /**
   * @param place which of the serving processes of this host it is
   * @param noteFile where its lanes note what they run
   */
  constructor(child: Child, place: number, noteFile: string) {
    this.child = child;
    this.pid = startedPid(child);
    this.place = place;
    this.noteFile = noteFile;
  }

  /** Clients are led to it from now on, few at first, within `ms`. @param halfway called when it has half of them */
  takeOver(ms: number, halfway: () => void): void {
    raiseStartPriority(this.pid);
    this.send({ kind: 'take_over' });
    setTimeout(halfway, ms * HALF_OF_CLIENTS).unref();
  }

  get runs(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null;
  }

  send(message: SupervisorMessage): void {
    if (this.child.connected) this.child.send(message);
  }

  /** Plugin versions that the lanes were running when the process died. Removes the file. */
  takeNotes(): Set<number> {
    const versions = new Set<number>();
    try {
      const bytes = fs.readFileSync(this.noteFile);
      for (let i = 0; i + 4 <= bytes.length; i += 4) if (bytes.readInt32LE(i) > 0) versions.add(bytes.readInt32LE(i));
    } catch {
      // Nothing was noted.
    }
    fs.rmSync(this.noteFile, { force: true });
    return versions;
  }
}
