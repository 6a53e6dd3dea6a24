import { Piscina } from 'piscina';
import type { LaneTask } from '../abi/lane-messages.ts';
import { LIMITS, PAGE_BYTES } from '../limits.ts';

/**
 * Heap of a lane. The young generation holds a few thousand ended instances, which a scavenge can hardly free. The old one
 * stays at a few MB; its limit is above twice the memory of a guest because V8 collects everything whenever memory outside
 * its heap has grown by half of it: with 24 MB, a guest that grew to 512 MB in steps of 4 MB paid 43 full collections.
 */
const LANE_HEAP = {
  maxYoungGenerationSizeMb: 12,
  maxOldGenerationSizeMb: Math.ceil((2.1 * LIMITS.memoryPagesMax * PAGE_BYTES) / (1024 * 1024)),
} as const;

export type Threads = Piscina<LaneTask, void>;

/** The threads of the lanes: each runs one task, its lane, until it is ended. */
export function makeThreads(laneFile: string): Threads {
  const threads: Threads = new Piscina<LaneTask, void>({
    filename: laneFile,
    minThreads: 0,
    maxThreads: LIMITS.lanesMax,
    concurrentTasksPerWorker: 1,
    idleTimeout: 60_000,
    atomics: 'sync',
    recordTiming: false,
    // Nothing of the process's own options (loaders, profilers) belongs into a thread that runs plugins.
    execArgv: [],
    env: {},
    resourceLimits: LANE_HEAP,
  });
  // Without a listener the error of a thread would end the process; the rejection of its task is what we act on.
  threads.on('error', () => {});
  return threads;
}
