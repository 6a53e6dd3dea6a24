/**
 * What the process that runs the start of a module once (workers/run-start) reports of it, in one file: the length of
 * the report, the report as JSON, the control memory, then the bytes of all extents.
 */
export type StartReport = {
  /** Why the start did not end well; null if it did. */
  failure: string | null;
  /** How often it asked for something that differs between executions, or that an execution shows. */
  asked: { random: number; clock: number; output: number };
  /** Whether it closed a standard descriptor. */
  closed: boolean;
  tablesChanged: boolean;
  /** Whether it was stopped because it slept too long. */
  sleeps: boolean;
  /** Whether its stack overflowed; that of a lane may be larger. */
  overflowed: boolean;
  /** Size of its memory at the end. */
  pages: number;
  /** Bytes of all extents, also where they are too many to be kept. */
  imageBytes: number;
  /** Address and length of the parts of the memory that are not zero, in order. */
  extents: Array<[number, number]>;
};

/** Bytes of the length of the report, a little-endian number. */
export const REPORT_LENGTH_BYTES = 4;

/** The order the process gets as its argument, as JSON. */
export type StartOrder = { memoryPages: { min: number; max: number }; controlPages: number };

/** Written on standard output when the module has been compiled. */
export const COMPILED_LINE = 'compiled\n';

/** Descriptors of the process besides the standard ones; the module comes on standard input. */
export const START_DESCRIPTORS = { uploaded: 3, image: 4 } as const;
