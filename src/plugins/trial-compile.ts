import { ServiceError } from '../base/errors.ts';
import { CHILD_MEMORY_MIB, type Ending, limitOf, runLimitedChild } from './limited-child.ts';

const CPU_SECONDS = 2;
/** Plain JavaScript, because stripping types would use memory and time of the trial. */
const SCRIPT =
  "const {readFileSync: r} = require('node:fs'); const b = r(3); if (!WebAssembly.validate(b)) new WebAssembly.Module(b); new WebAssembly.Module(r(0))";

/**
 * Compiles a module in a child process with the flags of the serving one, in 1 GiB of memory and 2 s of processor time,
 * so that a module that is too much for the compiler harms no other process. A second child decides about a module that
 * used up the time of the first: the same work takes twice the processor time where other processes fill the caches
 * and the neighbouring hardware thread.
 *
 * Also validates the upload: it could name the control memory, which does not exist there, but exists in the rewritten
 * module, where the compiler would not object.
 *
 * @param uploaded file of the module as uploaded
 * @param runnable file of the rewritten module
 * @returns null if it compiles, otherwise the reason as a sentence
 * @throws ServiceError `unavailable` when this host was too busy for it
 */
export async function trialCompile(uploaded: string, runnable: string): Promise<string | null> {
  const compile = (): Promise<Ending> =>
    runLimitedChild({ args: ['-e', SCRIPT], cpuSeconds: CPU_SECONDS, reads: [runnable, uploaded] });
  let ending = await compile();
  if (limitOf(ending) === 'processor time') ending = await compile();
  return ending.code === 0 && !ending.overMemory ? null : compileFailure(ending, CPU_SECONDS);
}

/** Whether a child ended for what the module has not done: the same one compiles at another time. */
const isHosts = (ending: Ending): boolean =>
  ending.late || ending.signal === 'SIGKILL' || /cannot fork|resource temporarily unavailable/i.test(ending.text);

/** Why a child did not compile a module, as a sentence. @throws ServiceError `unavailable` when the host was too busy */
export function compileFailure(ending: Ending, cpuSeconds: number): string {
  const compile = /CompileError: (.*)/.exec(ending.text)?.[1];
  if (compile !== undefined) return compile;
  if (limitOf(ending) !== 'memory' && limitOf(ending) !== 'processor time' && isHosts(ending))
    throw new ServiceError('unavailable', 'the module could not be compiled: this host is overloaded; try again');
  switch (limitOf(ending)) {
    case 'memory':
      return `compiling the module takes more than ${CHILD_MEMORY_MIB} MiB of memory; split its largest functions`;
    case 'processor time':
      return `compiling the module takes more than ${cpuSeconds} s of processor time; make it smaller or split its largest functions`;
    default:
      return `the compiler ended with ${ending.signal ?? `code ${ending.code}`} on the module: ${firstLine(ending.text)}`;
  }
}

function firstLine(text: string): string {
  const line = text.split('\n').find(l => /[A-Za-z]{3}/.test(l)) ?? 'no error text';
  return line
    .replaceAll(/[^\x20-\x7e]/g, ' ')
    .trim()
    .slice(0, 200);
}
