import { COMPILED_LINE, type StartOrder } from '../abi/start-report.ts';
import { CHILD_MEMORY_MIB, isCrash, limitOf, runLimitedChild } from './limited-child.ts';
import { compileFailure } from './trial-compile.ts';

/** Processor time for compiling and running. */
const CPU_SECONDS = 3;

/**
 * How running the start of a module once went. `refused`: the module does not compile. `stopped`: the start did not end
 * within its limits. `ended`: the file holds what it left.
 */
export type StartTrial =
  | { kind: 'refused'; reason: string }
  | { kind: 'stopped'; reason: string }
  | { kind: 'ended'; file: string };

export type TrialStart = (
  files: { uploaded: string; start: string; image: string },
  order: StartOrder,
) => Promise<StartTrial>;

/**
 * Runs the start of a module once in a child process with limits, every host function denied (docs/plugins.md, "Start").
 *
 * @param program file of the program (workers/run-start)
 */
export function makeTrialStart(program: string): TrialStart {
  return async ({ image, start, uploaded }, order) => {
    const ending = await runLimitedChild({
      args: ['--disable-warning=ExperimentalWarning', program, JSON.stringify(order)],
      cpuSeconds: CPU_SECONDS,
      reads: [start, uploaded],
      writes: image,
    });
    if (ending.code === 0 && !ending.overMemory) return { kind: 'ended', file: image };
    if (!ending.output.startsWith(COMPILED_LINE))
      return { kind: 'refused', reason: compileFailure(ending, CPU_SECONDS) };
    const limit = limitOf(ending);
    if (limit === null && isCrash(ending))
      return { kind: 'refused', reason: `the process that ran the start of the module crashed with ${ending.signal}` };
    return { kind: 'stopped', reason: whyStopped(limit, ending.signal) };
  };
}

function whyStopped(limit: ReturnType<typeof limitOf>, signal: string | null): string {
  if (limit === 'memory') return `it needs more than ${CHILD_MEMORY_MIB} MiB of memory`;
  if (limit === 'processor time') return `it needs more than ${CPU_SECONDS} s of processor time`;
  return limit === 'time' ? 'it did not end in time' : `the process that ran it ended with ${signal ?? 'an error'}`;
}
