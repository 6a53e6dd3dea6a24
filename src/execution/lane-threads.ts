import type { LaneTask } from '../abi/lane-messages.ts';
import { LIMITS } from '../base/limits.ts';
import { ThreadPool } from '../base/thread-pool.ts';

/**
 * Heap of a lane. A small old generation keeps the pauses of garbage collection short (docs/RATIONALE.md), and bounds
 * what a guest can hold outside its memory: exceptions inside their catch blocks. The young generation has room for a
 * few thousand ended instances, because a scavenge frees hardly any of them.
 */
const LANE_HEAP = { maxYoungGenerationSizeMb: 12, maxOldGenerationSizeMb: 64 } as const;

export type LaneThreads = ThreadPool<LaneTask, void>;

/** Makes the threads of the lanes: each thread runs one task, its lane, until it is ended. */
export function makeLaneThreads(laneFile: string): LaneThreads {
  const threads: LaneThreads = new ThreadPool<LaneTask, void>({
    filename: laneFile,
    minThreads: 0,
    maxThreads: LIMITS.lanesMax,
    concurrentTasksPerWorker: 1,
    idleTimeout: 60_000,
    atomics: 'sync',
    recordTiming: false,
    // Options of the process (loaders, profilers) do not belong in a thread that runs plugins.
    execArgv: [],
    env: {},
    resourceLimits: LANE_HEAP,
  });
  // Without a listener an error of a thread would end the process. The pool acts on the rejection of the thread's task
  // instead.
  threads.on('error', () => {});
  return threads;
}
