import { Buffer } from 'node:buffer';
import { LIMITS } from '../base/limits.ts';

/**
 * Shared memory between the main thread and the lanes (threads that run plugins): where what lies. Only the codecs next
 * to this file use these numbers, each for both ends: run-queue, lane-words, doorbell, cell-codec, call-area, log-area.
 *
 *   words[ control | queue 0..63 | lane 0..63 ]   Int32Array, each hot word alone on a 128-byte line
 *   cells[ 0 .. executionsInFlightMax )           16 KiB each: header, input, output
 *   calls[ lane 0..63 ]                           64 KiB each: one host call at a time
 *   logs [ lane 0..63 ]                           8 KiB each: log lines of the execution that runs
 *
 * A queue belongs to one plugin while it has work in flight: main is the only producer, lanes take by compare-and-swap.
 * A lane's completion ring has one producer (the lane) and one consumer (main).
 */
const LINE = 32;

export const CELL_COUNT = LIMITS.executionsInFlightMax;
export const RING_MASK = CELL_COUNT - 1;
export const QUEUE_COUNT = LIMITS.activeQueuesMax;
export const LANE_COUNT = LIMITS.lanesMax;

/**
 * Control words. BELL: bits 0 to 30 name the lanes (index modulo 31) that the main thread must look at; the sign bit
 * says that the main thread wants a doorbell message. ACTIVE..: bit q is set while queue q may hold work. URGENT..: bit
 * q is set while other executions wait for executions of queue q; lanes take those first.
 */
export const BELL = 0;
export const BELL_BITS = 31;
export const BELL_WANTED = 1 << BELL_BITS;
export const ACTIVE = LINE;
export const URGENT = ACTIVE + 2;

const QUEUES_AT = 2 * LINE;
/**
 * head, tail, ring: executions that wait; slots: in one word how many lanes have taken and run, and how many may run at
 * once (`run-queue`), one less than the plugin's slots while all of them belong to one caller. Lanes read the tail before
 * the slots, and the main thread writes the slots before the tail, so a lane never uses an old limit for a new entry.
 */
export const QUEUE = { head: 0, tail: LINE, slots: 2 * LINE, ring: 3 * LINE } as const;
const QUEUE_WORDS = 3 * LINE + CELL_COUNT;

const LANES_AT = QUEUES_AT + QUEUE_COUNT * QUEUE_WORDS;
/**
 * state: LANE_STATE; doneTail / doneHead: completion ring; current: cell + 1 while an execution runs; sequence: grows
 * with each execution; queue: queue of the current execution; thread: Linux thread id; threadId: Node's id;
 * call: CALL_STATE; retire: 1 asks the lane to end its thread between two executions;
 * giveUp: 1 asks it to give up the memory it keeps for later executions.
 */
export const LANE = {
  state: 0,
  doneTail: LINE,
  doneHead: 2 * LINE,
  current: 3 * LINE,
  sequence: 3 * LINE + 1,
  queue: 3 * LINE + 2,
  thread: 3 * LINE + 3,
  threadId: 3 * LINE + 4,
  retire: 3 * LINE + 5,
  giveUp: 3 * LINE + 6,
  call: 4 * LINE,
  done: 5 * LINE,
} as const;
const LANE_WORDS = 5 * LINE + CELL_COUNT;

export const LANE_STATE = { awake: 0, asleep: 1, off: 2 } as const;
/**
 * idle; asked: main must answer; served: main is working on it; sleeping: inside poll_oneoff, main has nothing to do.
 */
export const CALL_STATE = { idle: 0, asked: 1, served: 2, sleeping: 3 } as const;

export const WORD_COUNT = LANES_AT + LANE_COUNT * LANE_WORDS;

export const CELL_BYTES = 16 * 1024;
/** Words of a cell's header. Input words are written by main, the others by the lane. */
export const CELL = {
  moduleId: 0,
  entry: 1,
  eventBytes: 2,
  bodyBytes: 3,
  /** 1: event and body did not fit and are fetched with the call `fetch_input`. */
  inputElsewhere: 4,
  /** Absolute deadline in ms of the main thread's clock, as float64 (word index even). */
  deadline: 6,
  outcome: 8,
  status: 9,
  headerBytes: 10,
  bodyOutBytes: 11,
  logBytes: 12,
  failureBytes: 13,
  outputBytes: 14,
  /** 1: the parts did not fit and were posted on the lane's data port. */
  outputElsewhere: 15,
  hostCalls: 16,
  peakPages: 17,
  /** Run time in ms as float64. */
  runMs: 18,
  /** 1: what the execution draws is kept for its recording. Written by main. */
  recorded: 20,
  drawnBytes: 21,
  /** One of `FIRST_READS`. Written by main. */
  firstReads: 22,
} as const;
/**
 * What a lane may do with the reads that an execution begins with (first-reads): none: wait for each; offered: leave the
 * next one to the main thread; answered: take what is answered, and wait for each other.
 */
export const FIRST_READS = { none: 0, offered: 1, answered: 2 } as const;
export const CELL_INPUT_AT = 128;
export const CELL_INPUT_BYTES = 6 * 1024;
export const CELL_OUTPUT_AT = CELL_INPUT_AT + CELL_INPUT_BYTES;
export const CELL_OUTPUT_BYTES = CELL_BYTES - CELL_OUTPUT_AT;

/** Entry points a cell may ask for; a call is handled like a trigger, but has no HTTP response. */
export const ENTRY = { handle: 0, describe: 1, call: 2, message: 3 } as const;

/**
 * How an execution ended, as the lane reports it. Only the main thread knows of kills, crashes and missed deadlines.
 */
export const OUTCOME = {
  ok: 0,
  handlerError: 1,
  trap: 2,
  exit: 3,
  invalidResponse: 4,
  quota: 5,
  loadFailed: 6,
  /** The plugin has ended itself because its time was used up. */
  deadline: 7,
  /** The run was dropped for its first read (first-reads): no outcome yet. */
  asked: 8,
} as const;

export const CALL_BYTES = 64 * 1024;
/** Words of a call's header: operation, then arguments or result. */
export const CALL = {
  operation: 0,
  /** Bytes of the arguments, which follow each other from `CALL_DATA_AT`. */
  dataBytes: 1,
  /** 1: the data was posted on the data port instead. */
  elsewhere: 2,
  /** The value for the guest, or an error code below zero. */
  code: 3,
  resultBytes: 4,
  /** Raw part of the result, after the first `resultBytes`. */
  bodyBytes: 5,
  numbers: 6,
  /** Two words per argument: the value, or the length of a part. */
  argumentsMax: 8,
} as const;
export const CALL_DATA_AT = 128;
export const CALL_DATA_BYTES = CALL_BYTES - CALL_DATA_AT;

/** Operations other than the rows of HOST_FUNCTIONS, which are numbered by their index. */
export const OPERATION = { loadModule: 1000, fetchInput: 1001 } as const;

const CELLS_AT = Math.ceil((WORD_COUNT * 4) / 4096) * 4096;
const CALLS_AT = CELLS_AT + CELL_COUNT * CELL_BYTES;
export const LOG_BYTES = 8 * 1024;
const LOGS_AT = CALLS_AT + LANE_COUNT * CALL_BYTES;
export const SHARED_BYTES = LOGS_AT + LANE_COUNT * LOG_BYTES;

export const queueAt = (q: number): number => QUEUES_AT + q * QUEUE_WORDS;
export const laneAt = (lane: number): number => LANES_AT + lane * LANE_WORDS;
/** Byte offset of a cell. */
export const cellAt = (cell: number): number => CELLS_AT + cell * CELL_BYTES;
/** Byte offset of a lane's call area. */
export const callAt = (lane: number): number => CALLS_AT + lane * CALL_BYTES;

/** Byte offset of a lane's log area. */
export const logAt = (lane: number): number => LOGS_AT + lane * LOG_BYTES;

/** Typed views of the shared memory, used by both ends. */
export type SharedViews = {
  words: Int32Array;
  /** The whole memory as 32-bit words, for cell and call headers. */
  all32: Int32Array;
  all64: Float64Array;
  bytes: Uint8Array;
  /** The bytes of the area as a `Buffer`, for what only a `Buffer` does: writing and reading text. */
  buffer: Buffer;
};

export function viewsOf(memory: SharedArrayBuffer): SharedViews {
  return {
    words: new Int32Array(memory, 0, WORD_COUNT),
    all32: new Int32Array(memory),
    all64: new Float64Array(memory),
    bytes: new Uint8Array(memory),
    buffer: Buffer.from(memory),
  };
}
