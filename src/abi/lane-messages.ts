/** Messages between the main thread and a lane that do not fit shared memory: plain cloneable data. */
import type { MessagePort } from 'node:worker_threads';

/** The task Piscina gives a lane; it runs until the lane is asked to stop or its thread is ended. */
export type LaneTask = {
  memory: SharedArrayBuffer;
  lane: number;
  /** The doorbell: the lane posts 0 when the main thread sleeps and wants to be woken. */
  bell: MessagePort;
  /** Payloads too large for shared memory, both ways; read synchronously, never listened on. */
  data: MessagePort;
  /** Main thread's clock minus CLOCK_MONOTONIC in ms, so that deadlines compare. */
  clockOffsetMs: number;
  recycle: boolean;
  /** Most bytes of memories that the lane keeps for later executions. */
  warmBytesMax: number;
  /** How long the only active lane spins for the answer to a host call before it sleeps, in ms. */
  spinMs: number;
  /** How long a run may have taken, in ms, that is dropped for a read (src/abi/first-reads). */
  dropWithinMs: number;
  /** Path of the file in which the lane notes the plugin version it runs, or null. */
  noteFile: string | null;
};

/** A module as a lane runs it. `id` changes with every installation, `versionId` with every upload. */
export type LoadedModule = {
  id: number;
  versionId: number;
  pluginId: string;
  module: WebAssembly.Module;
  /** Size the guest begins with, and the largest. */
  memoryPages: { min: number; max: number };
  /** Parts of the memory that making an instance overwrites, in order of their addresses. */
  overwritten: ReadonlyArray<{ start: number; end: number }>;
  config: Readonly<Record<string, string>>;
  /** What its execution draws instead of clocks and random numbers, in a replay (`drawn`). */
  drawn?: Uint8Array;
};

/** Parts of an answer that did not fit its cell. */
export type LargeOutput = {
  cell: number;
  headers: string;
  body: Uint8Array;
  log: Uint8Array;
  failure: string;
  output: Uint8Array;
  drawn: Uint8Array;
};
