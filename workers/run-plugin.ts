import fs from 'node:fs';
import { performance } from 'node:perf_hooks';
import v8 from 'node:v8';
import vm from 'node:vm';
import { threadId } from 'node:worker_threads';
import {
  deadlineOf,
  entryOf,
  isRecorded,
  moduleIdOf,
  readInput,
  writeAsked,
  writeOutcome,
  writeRunMs,
} from '../src/abi/cell-codec.ts';
import { DrawnReader, DrawnWriter } from '../src/abi/drawn.ts';
import { HOST_ERROR } from '../src/abi/host-functions.ts';
import { CONTROL } from '../src/abi/host-memory.ts';
import type { LaneTask } from '../src/abi/lane-messages.ts';
import { LaneWords } from '../src/abi/lane-words.ts';
import { LogArea } from '../src/abi/log-area.ts';
import { CALL_STATE, OUTCOME, viewsOf } from '../src/abi/shared-layout.ts';
import { LIMITS, PAGE_BYTES } from '../src/base/limits.ts';
import { authorFrames, placedFrames, STACK_FRAMES, trapText } from './author-frames.ts';
import { crashText } from './crash-text.ts';
import { ExecutionState } from './execution-state.ts';
import { GuestMemory } from './guest-memory.ts';
import { HostChannel } from './host-channel.ts';
import { makeHostImports } from './host-imports.ts';
import { PluginRuntime } from './plugin-runtime.ts';
import { RuntimeCache } from './runtime-cache.ts';
import { isAlone, mayTake, type Taken, takeWork } from './take-work.ts';
import { makeWasi } from './wasi.ts';

/** An idle lane clears its note after this time. */
const NOTE_IDLE_MS = 50;
/** Largest number of executions that share one wake of the main thread. */
const REPORT_AT = 8;
/** Ended executions that are collected when there is nothing to do; with fewer it costs more than it gains. */
const COLLECT_AFTER = 100;
/** A lane that runs more executions in a millisecond is busy: its moments without work are too short for that. */
const BUSY_PER_MS = 10;
/** No finished answer waits for an execution of a plugin that takes longer than this, in ms. */
const SHORT_MS = 0.1;

/** Thread id of this thread as Linux knows it, so that the host can lower its priority; 0 elsewhere. */
function linuxThreadId(): number {
  try {
    return Number(fs.readlinkSync('/proc/thread-self').split('/').pop());
  } catch {
    return 0;
  }
}

/** Makes a function that collects garbage on request, without exposing `gc` to the process. */
function makeCollect(): (type: 'major' | 'minor') => void {
  v8.setFlagsFromString('--expose-gc');
  const gc: unknown = vm.runInNewContext('gc');
  return typeof gc === 'function' ? type => void gc({ type }) : () => {};
}

/** One lane: takes one execution at a time from the run queues until its thread is ended. */
class Lane {
  readonly #task: LaneTask;
  readonly #views;
  readonly #words: LaneWords;
  readonly #log: LogArea;
  readonly #control = new WebAssembly.Memory({ initial: 1, maximum: 1 });
  readonly #state = new ExecutionState(new Int32Array(this.#control.buffer));
  readonly #guest = new GuestMemory(this.#state.control);
  readonly #channel: HostChannel;
  readonly #wasi;
  readonly #shared;
  readonly #runtimes: RuntimeCache;
  readonly #clockDelta: number;
  readonly #collect = makeCollect();
  readonly #noteFd: number | null;
  readonly #note = new Int32Array(1);
  /** Whether the guest returned normally; after a trap or exit its memory is not reused. */
  #returned = false;
  #next = 0;
  /** Executions ended since main was last woken, and how long the last one took. */
  #unreported = 0;
  /** Executions since the last look, and when that was. */
  #uncollected = 0;
  #collectedAt = 0;
  #lastRunMs = 0;

  constructor(task: LaneTask) {
    this.#task = task;
    this.#runtimes = new RuntimeCache(task.warmBytesMax);
    this.#views = viewsOf(task.memory);
    this.#words = new LaneWords(this.#views.words, task.lane);
    this.#log = new LogArea(this.#views, task.lane);
    this.#state.keepLine = line => this.#log.add(line);
    const [seconds, nanos] = process.hrtime();
    this.#clockDelta = seconds * 1000 + nanos / 1e6 - performance.now() + task.clockOffsetMs;
    this.#channel = new HostChannel(
      this.#views,
      task.lane,
      task.bell,
      task.data,
      this.#state,
      this.#guest,
      task.spinMs,
    );
    this.#wasi = makeWasi(this.#state, this.#guest, {
      remainingMs: () => this.#state.deadline - this.#now(),
      sleeping: on => this.#channel.sleeping(on),
    });
    this.#shared = {
      plugin_host: makeHostImports(this.#state, this.#guest, this.#channel),
      wasi_snapshot_preview1: this.#wasi.functions,
      control: this.#control,
      controlWords: this.#state.control,
    };
    this.#noteFd = task.noteFile === null ? null : fs.openSync(task.noteFile, 'r+');
  }

  /** Milliseconds of the main thread's clock. */
  #now(): number {
    return performance.now() + this.#clockDelta;
  }

  /** Notes the version this lane runs in a file, which survives a crash of the process (docs/SECURITY.md). */
  #noteVersion(id: number): void {
    if (this.#noteFd === null || this.#note[0] === id) return;
    this.#note[0] = id;
    fs.writeSync(this.#noteFd, new Uint8Array(this.#note.buffer), 0, 4, this.#task.lane * 4);
  }

  run(): void {
    this.#words.turnOn(linuxThreadId(), threadId);
    this.#channel.mark();
    this.#channel.ring();
    for (;;) {
      // A lane whose priority was lowered cannot raise it again, so it ends and the host starts a new one.
      if (this.#words.isRetiring && this.#channel.state === CALL_STATE.idle) {
        this.#report();
        process.exit(0);
      }
      if (this.#words.mustGiveUp) this.#giveUp();
      const taken = takeWork(this.#views.words, this.#words, this.#next);
      if (taken === null) {
        this.#report();
        // While several executions run, a moment without work is short, and the processors have other work.
        if (this.#uncollected >= COLLECT_AFTER && isAlone(this.#views.words)) this.#tidyUnlessBusy();
        this.#sleep();
      } else {
        if (this.#unreported >= REPORT_AT || !this.#isShort(taken)) this.#report();
        this.#next = taken.queue + 1;
        this.#execute(taken);
      }
    }
  }

  /**
   * Wakes the main thread for ended executions. Waking costs more than a short execution, so several executions share
   * one wake while the next ones belong to plugins whose recent executions were all short. The main thread looks every
   * 2 ms in any case.
   */
  #report(): void {
    if (this.#unreported === 0) return;
    this.#unreported = 0;
    this.#channel.ring();
  }

  /** Whether the execution just taken is expected to be short, by the recent run time of its plugin. */
  #isShort({ cell }: Taken): boolean {
    return (this.#runtimes.peek(moduleIdOf(this.#views, cell))?.expectedMs ?? Number.POSITIVE_INFINITY) <= SHORT_MS;
  }

  /**
   * Sleeps until there is something to do. Looks once more after setting "asleep", because it may have arrived between
   * the last look and the sleep.
   */
  #sleep(): void {
    this.#words.fallAsleep();
    if ((this.#words.mustGiveUp || mayTake(this.#views.words)) && this.#words.stayAwake()) return;
    // Only a lane that stays idle clears its note, because a file write for every short sleep would cost too much.
    if (this.#words.sleep(NOTE_IDLE_MS)) return;
    this.#noteVersion(0);
    this.#words.sleep(Number.POSITIVE_INFINITY);
  }

  /**
   * Collects the instances that have ended, in a moment without work: V8 itself would do it in the middle of an
   * execution, when they are ten times as many and take ten times as long.
   */
  #tidyUnlessBusy(): void {
    const now = performance.now();
    const sinceMs = now - this.#collectedAt;
    const isBusy = this.#uncollected > sinceMs * BUSY_PER_MS;
    this.#uncollected = 0;
    this.#collectedAt = now;
    if (!isBusy) this.#collect('minor');
  }

  /** Gives up everything kept for later executions: the host is short of memory. */
  #giveUp(): void {
    this.#words.beginGiveUp();
    this.#report();
    this.#runtimes.clear();
    this.#guest.unbind();
    this.#collect('major');
  }

  #runtime(id: number): PluginRuntime | undefined {
    const known = this.#runtimes.get(id);
    if (known !== undefined) return known;
    const loaded = this.#channel.loadModule(id);
    if (loaded === undefined) return undefined;
    const runtime = new PluginRuntime(loaded, this.#shared, this.#task.recycle);
    this.#runtimes.add(id, runtime);
    return runtime;
  }

  #execute({ queue, cell }: Taken): void {
    const views = this.#views;
    const state = this.#state;
    const started = performance.now();
    state.reset();
    this.#log.clear();
    this.#wasi.reset();
    this.#channel.beginCell(cell);
    state.first.begin(views, cell, started + this.#task.dropWithinMs);
    state.deadline = deadlineOf(views, cell);
    const runtime = this.#runtime(moduleIdOf(views, cell));
    if (runtime !== undefined) this.#noteVersion(runtime.loaded.versionId);
    const outcome = runtime === undefined ? OUTCOME.loadFailed : this.#runGuest(runtime, cell);
    this.#channel.settle();
    this.#wasi.flush();
    state.closeLog();
    const { pages } = this.#guest;
    // The text of other failures stands in the answer to the caller.
    if (runtime !== undefined && (outcome === OUTCOME.trap || outcome === OUTCOME.handlerError))
      state.failure = withMemory(state.failure, pages, runtime.loaded.memoryPages.max);
    if (outcome === OUTCOME.asked) writeAsked(views, cell);
    else {
      const large = writeOutcome(views, cell, outcome, pages, state);
      if (large !== null) this.#task.data.postMessage(large);
    }
    this.#lastRunMs = performance.now() - started;
    writeRunMs(views, cell, this.#lastRunMs);
    // An interrupted host call may have left a message on the data port, so this thread takes no more work.
    if (state.ended === 'fault') this.#words.retire();
    this.#words.complete(queue, cell);
    this.#channel.mark();
    this.#unreported++;
    this.#uncollected++;
    if (runtime === undefined) return;
    runtime.took(this.#lastRunMs);
    const kept = this.#runtimes.release(runtime, (this.#returned && state.ended === null) || outcome === OUTCOME.asked);
    if (kept || pages * PAGE_BYTES <= LIMITS.collectAfterBytes) return;
    // Collects garbage after the answer was sent.
    this.#report();
    this.#guest.unbind();
    this.#collect('major');
  }

  #runGuest(runtime: PluginRuntime, cell: number): number {
    const state = this.#state;
    if (!readInput(this.#views, cell, state.event, state.body)) {
      const input = this.#channel.fetchInput(cell);
      state.event.set(input.event, 0, input.event.length);
      state.body.set(input.body, 0, input.body.length);
    }
    state.entry = entryOf(this.#views, cell);
    state.config = runtime.loaded.config;
    state.pluginId = runtime.loaded.pluginId;
    const { drawn } = runtime.loaded;
    if (drawn !== undefined) {
      state.replayed = new DrawnReader(drawn);
      state.first.end();
    } else if (isRecorded(this.#views, cell)) state.drawing = new DrawnWriter();
    this.#returned = false;
    this.#runtimes.begin(runtime);
    try {
      runtime.run(this.#guest);
      this.#returned = true;
      const outcome = this.#judge(state.control[CONTROL.code] ?? 0);
      if (outcome === OUTCOME.handlerError) this.#placeFailure(runtime.loaded.module);
      return outcome;
    } catch (error) {
      return this.#judgeThrown(error, runtime.loaded.module);
    }
  }

  #judge(code: number): number {
    const state = this.#state;
    if (state.ended === 'asked') return OUTCOME.asked;
    // A guest that caught the trap that ended it has still failed.
    if (state.ended === 'exit' && state.exitCode !== 0) return OUTCOME.exit;
    if (state.ended === 'quota') return OUTCOME.quota;
    if (state.ended === 'fault') return OUTCOME.trap;
    // An exit with code 0 is judged like a return of 0.
    if (code < 0 && state.ended !== 'exit') {
      state.failure ??= `the handler returned ${code}`;
      return code === HOST_ERROR.deadline ? OUTCOME.deadline : OUTCOME.handlerError;
    }
    if (state.failure !== null) return OUTCOME.handlerError;
    if (state.invalidResponse !== null) {
      state.failure = state.invalidResponse;
      return OUTCOME.invalidResponse;
    }
    return OUTCOME.ok;
  }

  /**
   * Adds to the failure of a handler where it made the host call whose error it has given back. A kit that knows has
   * already said so.
   */
  #placeFailure(module: WebAssembly.Module): void {
    const { failedCall, failure } = this.#state;
    if (failedCall === null || failure === null || failedCall.text === '') return;
    if (!failure.includes(failedCall.text) || failure.includes('\n    at ')) return;
    this.#state.failure = [failure, ...placedFrames(failedCall.at.stack ?? '', module)].join('\n');
  }

  #judgeThrown(error: unknown, module: WebAssembly.Module): number {
    const state = this.#state;
    if (state.ended === 'asked') return OUTCOME.asked;
    if (state.ended === 'quota') return OUTCOME.quota;
    if (state.ended === 'exit') {
      if (state.exitCode === 0) return this.#judge(0);
      const crash = crashText(state.logLines.map(line => line.text));
      const places = crash === null && error instanceof Error ? placedFrames(error.stack ?? '', module) : [];
      state.failure = [
        `the plugin exited with code ${state.exitCode}${crash === null ? '' : `: ${crash}`}`,
        ...places,
      ].join('\n');
      return OUTCOME.exit;
    }
    const message =
      Object.prototype.toString.call(error) === '[object WebAssembly.Exception]'
        ? `an exception was thrown and not caught${state.initializing ? ' in the start function or _initialize' : ''}`
        : error instanceof Error
          ? error.message
          : String(error);
    const crash = state.failure === null ? crashText(state.logLines.map(line => line.text)) : null;
    if (crash !== null) {
      state.failure = crash;
      return OUTCOME.trap;
    }
    const stack = error instanceof Error ? authorFrames(error.stack ?? '', module) : [];
    const said = trapText(message, stack);
    state.failure = [...(state.failure === null ? [] : [state.failure]), said, ...stack].join('\n');
    return OUTCOME.trap;
  }
}

/** 64 MB: a plugin with less has declared so little itself. */
const MUCH_PAGES = 1024;
/** Part of its memory from which on a failure is one of memory. */
const FULL = 15 / 16;

/** Adds to a failure that the memory is full, which a trap and most languages do not say. @param pages what it has @param most what it may have */
function withMemory(failure: string | null, pages: number, most: number): string | null {
  if (failure === null || pages < Math.max(MUCH_PAGES, most * FULL)) return failure;
  const [first, ...rest] = failure.split('\n');
  const [has, mayHave] = [pages, most].map(p => Math.floor((p * PAGE_BYTES) / 2 ** 20));
  return [`${first} (it had ${has} MB of memory, and may have ${mayHave})`, ...rest].join('\n');
}

/** Piscina's entry: runs until the task is aborted, which ends the thread. */
export default function runPlugins(task: LaneTask): void {
  Error.stackTraceLimit = STACK_FRAMES;
  new Lane(task).run();
}
