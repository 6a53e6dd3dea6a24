import { Buffer } from 'node:buffer';
import fs from 'node:fs';
import { performance } from 'node:perf_hooks';
import v8 from 'node:v8';
import vm from 'node:vm';
import { threadId } from 'node:worker_threads';
import { CONTROL } from '../src/abi/host-memory.ts';
import type { LaneTask, LargeOutput } from '../src/abi/lane-messages.ts';
import {
  LANE,
  LANE_STATE,
  laneAt,
  OUTCOME,
  QUEUE,
  queueAt,
  RING_MASK,
  SLOT,
  SLOT_INPUT_AT,
  SLOT_OUTPUT_AT,
  SLOT_OUTPUT_BYTES,
  slotAt,
  viewsOf,
} from '../src/abi/shared-layout.ts';
import { LIMITS, PAGE_BYTES } from '../src/base/limits.ts';
import { ExecutionState } from './execution-state.ts';
import { GuestMemory } from './guest-memory.ts';
import { HostChannel } from './host-channel.ts';
import { makeHostImports } from './host-imports.ts';
import { PluginRuntime } from './plugin-runtime.ts';
import { mayTake, type Taken, takeWork } from './take-work.ts';
import { makeWasi } from './wasi.ts';

const EMPTY = new Uint8Array(0);
/** Plugin versions a lane keeps in its cache; the least recently used one is removed first. */
const RUNTIMES_MAX = 64;
/** An idle lane clears its note after this time. */
const NOTE_IDLE_MS = 50;
/** Largest number of executions that share one wake of the main thread. */
const REPORT_AT = 8;
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
function makeCollect(): () => void {
  v8.setFlagsFromString('--expose-gc');
  const gc: unknown = vm.runInNewContext('gc');
  return typeof gc === 'function' ? () => void gc() : () => {};
}

/** One lane: takes one execution at a time from the run queues until its thread is ended. */
class Lane {
  readonly #task: LaneTask;
  readonly #views;
  readonly #at: number;
  readonly #control = new WebAssembly.Memory({ initial: 1, maximum: 1 });
  readonly #state = new ExecutionState(new Int32Array(this.#control.buffer));
  readonly #guest = new GuestMemory();
  readonly #channel: HostChannel;
  readonly #wasi;
  readonly #shared;
  readonly #runtimes = new Map<number, PluginRuntime>();
  readonly #clockDelta: number;
  readonly #collect = makeCollect();
  readonly #noteFd: number | null;
  readonly #note = new Int32Array(1);
  /** Whether the guest returned normally; after a trap or exit its memory is not reused. */
  #returned = false;
  #next = 0;
  /** Executions ended since main was last woken, and how long the last one took. */
  #unreported = 0;
  #lastRunMs = 0;

  constructor(task: LaneTask) {
    this.#task = task;
    this.#views = viewsOf(task.memory);
    this.#at = laneAt(task.lane);
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
      plugin_host: makeHostImports(this.#state, this.#guest, this.#channel, new Set(task.addedHeaders)),
      wasi_snapshot_preview1: this.#wasi.functions,
      control: this.#control,
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
    const { words } = this.#views;
    words[this.#at + LANE.thread] = linuxThreadId();
    words[this.#at + LANE.threadId] = threadId;
    Atomics.store(words, this.#at + LANE.state, LANE_STATE.awake);
    this.#channel.mark();
    this.#channel.ring();
    for (;;) {
      // A lane whose priority was lowered cannot raise it again, so it ends and the host starts a new one.
      if (Atomics.load(words, this.#at + LANE.retire) === 1 && Atomics.load(words, this.#at + LANE.call) === 0) {
        this.#report();
        process.exit(0);
      }
      const taken = takeWork(words, this.#at, this.#next);
      if (taken === null) {
        this.#report();
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
  #isShort({ slot }: Taken): boolean {
    const moduleId = this.#views.all32[(slotAt(slot) >> 2) + SLOT.moduleId]!;
    return (this.#runtimes.get(moduleId)?.expectedMs ?? Number.POSITIVE_INFINITY) <= SHORT_MS;
  }

  /**
   * Sleeps until there is work. Looks once more after setting "asleep", because work may have arrived between the last
   * look and the sleep.
   */
  #sleep(): void {
    const { words } = this.#views;
    Atomics.store(words, this.#at + LANE.state, LANE_STATE.asleep);
    if (
      mayTake(this.#views.words) &&
      Atomics.compareExchange(words, this.#at + LANE.state, LANE_STATE.asleep, LANE_STATE.awake) === LANE_STATE.asleep
    )
      return;
    // Only a lane that stays idle clears its note, because a file write for every short sleep would cost too much.
    if (Atomics.wait(words, this.#at + LANE.state, LANE_STATE.asleep, NOTE_IDLE_MS) !== 'timed-out') return;
    this.#noteVersion(0);
    Atomics.wait(words, this.#at + LANE.state, LANE_STATE.asleep);
  }

  #runtime(id: number): PluginRuntime | undefined {
    const known = this.#runtimes.get(id);
    if (known !== undefined) {
      // Keeps the order of use, but only when the cache may have to remove an entry.
      if (this.#runtimes.size > RUNTIMES_MAX / 2) {
        this.#runtimes.delete(id);
        this.#runtimes.set(id, known);
      }
      return known;
    }
    const loaded = this.#channel.loadModule(id);
    if (loaded === undefined) return undefined;
    const runtime = new PluginRuntime(loaded, this.#shared, this.#task.recycle);
    if (this.#runtimes.size >= RUNTIMES_MAX) {
      const oldest = this.#runtimes.keys().next();
      if (!oldest.done) this.#runtimes.delete(oldest.value);
    }
    this.#runtimes.set(id, runtime);
    return runtime;
  }

  #execute({ queue, slot }: Taken): void {
    const { words, all32, all64 } = this.#views;
    const header = slotAt(slot) >> 2;
    const started = performance.now();
    this.#state.reset();
    this.#wasi.reset();
    this.#channel.beginSlot(slot);
    this.#state.deadline = all64[(header + SLOT.deadline) >> 1]!;
    const runtime = this.#runtime(all32[header + SLOT.moduleId]!);
    if (runtime !== undefined) this.#noteVersion(runtime.loaded.versionId);
    const outcome = runtime === undefined ? OUTCOME.loadFailed : this.#runGuest(runtime, slot, header);
    this.#channel.settle();
    this.#wasi.flush();
    all32[header + SLOT.outcome] = outcome;
    all32[header + SLOT.hostCalls] = this.#state.hostCalls;
    const pages = this.#guest.pages;
    all32[header + SLOT.peakPages] = pages;
    all32[header + SLOT.exitCode] = this.#state.exitCode;
    this.#writeOutput(slot, header);
    this.#lastRunMs = performance.now() - started;
    all64[(header + SLOT.runMs) >> 1] = this.#lastRunMs;
    // An interrupted host call may have left a message on the data port, so this thread takes no more work.
    if (this.#state.ended === 'fault') Atomics.store(words, this.#at + LANE.retire, 1);
    // No function is called between these lines: a thread that is ended before the last of them still holds its slot.
    const tail = words[this.#at + LANE.doneTail]!;
    words[this.#at + LANE.done + (tail & RING_MASK)] = slot;
    Atomics.store(words, this.#at + LANE.doneTail, (tail + 1) | 0);
    Atomics.sub(words, queueAt(queue) + QUEUE.running, 1);
    Atomics.store(words, this.#at + LANE.current, 0);
    this.#channel.mark();
    this.#unreported++;
    runtime?.release(this.#returned && this.#state.ended === null);
    runtime?.took(this.#lastRunMs);
    if (pages * PAGE_BYTES <= LIMITS.collectAfterBytes) return;
    // Collects garbage after the answer was sent.
    this.#report();
    this.#guest.unbind();
    this.#collect();
  }

  #runGuest(runtime: PluginRuntime, slot: number, header: number): number {
    const { all32, bytes } = this.#views;
    const state = this.#state;
    if (all32[header + SLOT.inputElsewhere] === 1) {
      const input = this.#channel.fetchInput(slot);
      state.event.set(input.event, 0, input.event.length);
      state.body.set(input.body, 0, input.body.length);
    } else {
      const at = slotAt(slot) + SLOT_INPUT_AT;
      const eventBytes = all32[header + SLOT.eventBytes]!;
      state.event.set(bytes, at, eventBytes);
      state.body.set(bytes, at + eventBytes, all32[header + SLOT.bodyBytes]!);
    }
    state.entry = all32[header + SLOT.entry]!;
    state.config = runtime.loaded.config;
    state.pluginId = runtime.loaded.pluginId;
    this.#returned = false;
    try {
      runtime.run(this.#guest);
      this.#returned = true;
      return this.#judge(state.control[CONTROL.code] ?? 0);
    } catch (error) {
      return this.#judgeThrown(error);
    }
  }

  #judge(code: number): number {
    const state = this.#state;
    // A guest that caught the trap that ended it has still failed.
    if (state.ended === 'exit') return state.exitCode === 0 ? OUTCOME.ok : OUTCOME.exit;
    if (state.ended === 'quota') return OUTCOME.quota;
    if (state.ended === 'fault') return OUTCOME.trap;
    if (code < 0) {
      state.failure ??= `the handler returned ${code}`;
      return OUTCOME.handlerError;
    }
    if (state.failure !== null) return OUTCOME.handlerError;
    if (state.invalidResponse !== null) {
      state.failure = state.invalidResponse;
      return OUTCOME.invalidResponse;
    }
    return OUTCOME.ok;
  }

  #judgeThrown(error: unknown): number {
    const state = this.#state;
    if (state.ended === 'quota') return OUTCOME.quota;
    if (state.ended === 'exit') {
      if (state.exitCode === 0) return OUTCOME.ok;
      state.failure = `the plugin exited with code ${state.exitCode}`;
      return OUTCOME.exit;
    }
    const message =
      Object.prototype.toString.call(error) === '[object WebAssembly.Exception]'
        ? `an exception was thrown and not caught${state.initializing ? ' in the start function or _initialize' : ''}`
        : error instanceof Error
          ? error.message
          : String(error);
    const stack =
      error instanceof Error
        ? (error.stack ?? '')
            .split('\n')
            .filter(l => l.includes('wasm'))
            .slice(0, 8)
            .join('\n')
        : '';
    state.failure = `${state.failure === null ? '' : `${state.failure}\n`}${message}${stack === '' ? '' : `\n${stack}`}`;
    return OUTCOME.trap;
  }

  /**
   * Writes headers, body, log, error and output one after another into the slot, or posts all of them on the data port.
   */
  #writeOutput(slot: number, header: number): void {
    const { all32, bytes } = this.#views;
    const state = this.#state;
    const response = state.response;
    const headers = response?.headers ?? EMPTY;
    const answerBytes = response?.bodyBytes ?? 0;
    if (state.logTruncated) state.logLines.push({ level: 2, text: `log cut at ${LIMITS.logBytesPerExecution} bytes` });
    const log = state.logLines.length === 0 ? EMPTY : Buffer.from(JSON.stringify(state.logLines));
    const error = state.failure === null ? EMPTY : Buffer.from(state.failure.slice(0, 4096));
    all32[header + SLOT.status] = response?.status ?? 0;
    all32[header + SLOT.headerBytes] = headers.length;
    all32[header + SLOT.answerBytes] = answerBytes;
    all32[header + SLOT.logBytes] = log.length;
    all32[header + SLOT.errorBytes] = error.length;
    all32[header + SLOT.outputBytes] = state.output.length;
    const answerAt = slotAt(slot) + SLOT_OUTPUT_AT + headers.length;
    const total = headers.length + answerBytes + log.length + error.length + state.output.length;
    if (total > SLOT_OUTPUT_BYTES) {
      const large: LargeOutput = {
        slot,
        headers: Buffer.from(headers).latin1Slice(),
        answer: response === null ? EMPTY : (response.body ?? bytes.slice(answerAt, answerAt + answerBytes)),
        log: Uint8Array.from(log),
        error: state.failure ?? '',
        output: Uint8Array.from(state.output),
      };
      this.#task.data.postMessage(large);
      all32[header + SLOT.outputElsewhere] = 1;
      return;
    }
    all32[header + SLOT.outputElsewhere] = 0;
    if (headers.length > 0) bytes.set(headers, answerAt - headers.length);
    // The body is already in the slot after the headers (`keepBody`), unless it did not fit.
    if (response !== null && response.body !== null) bytes.set(response.body, answerAt);
    let at = answerAt + answerBytes;
    for (const part of [log, error, state.output]) {
      if (part.length > 0) bytes.set(part, at);
      at += part.length;
    }
  }
}

/** Piscina's entry: runs until the task is aborted, which ends the thread. */
export default function runPlugins(task: LaneTask): void {
  Error.stackTraceLimit = 8;
  new Lane(task).run();
}
