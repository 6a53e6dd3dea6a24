import type { LaneTask } from '../abi/lane-messages.ts';
import { LIMITS } from '../base/limits.ts';
import { ThreadPool } from '../base/thread-pool.ts';

/**
 * Heap of a lane. A small old generation keeps the collector's pauses out of the tail (docs/RATIONALE.md), and bounds what a
 * guest can hold beside its memory: exceptions it has caught and not left. The young one holds a few thousand ended
 * instances, which a scavenge can hardly free.
 */
const LANE_HEAP = { maxYoungGenerationSizeMb: 12, maxOldGenerationSizeMb: 24 } as const;

export type Threads = ThreadPool<LaneTask, void>;

/** The threads of the lanes: each runs one task, its lane, until it is ended. */
export function makeThreads(laneFile: string): Threads {
  const threads: Threads = new ThreadPool<LaneTask, void>({
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
