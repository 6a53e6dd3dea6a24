import { ThreadEnded, WorkerTask } from '../src/base/worker-task.ts';
import type { Described } from './describe-thread.ts';

/** Time for the start, counted from the start of the thread, which a busy machine may delay. */
const START_MS = 10_000;

const starts = new WorkerTask<Described, string>({
  file: new URL('./describe-thread.ts', import.meta.url),
  does: 'asks modules for their manifests',
  threads: 1,
  deadlineMs: START_MS,
  idleMs: 600_000,
});

/**
 * Asks a module for its manifest, as a build does.
 *
 * @param bytes a module without a manifest section
 * @param own names of the author's files, for the place of a panic
 * @returns the manifest, as JSON
 * @throws Error with the text of `fail`, or when the module declares nothing or does not come to an end
 */
export async function describeModule(bytes: Uint8Array, own: readonly string[] = []): Promise<string> {
  try {
    // Compiled here, so that its size takes nothing of the time.
    return await starts.run({ module: new WebAssembly.Module(new Uint8Array(bytes)), own });
  } catch (error) {
    if (!(error instanceof ThreadEnded) || error.why !== 'deadline') throw error;
    throw new Error(
      `the start of the module did not end within ${START_MS / 1000} s: is there an endless loop where the plugin is declared, in init of Go, or at the top level of a file?`,
      { cause: error },
    );
  }
}
