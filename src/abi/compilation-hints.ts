import { leb } from './leb.ts';

const NAME = 'compilationHints';
/** Strategy eager (2), then the tier to begin with and the top tier, two bits each: baseline (1) or optimized (2). */
const BASELINE = 2 | (1 << 2) | (1 << 4);
const OPTIMIZED = 2 | (2 << 2) | (2 << 4);

/**
 * The content of the custom section that makes V8 compile each function once, before the module runs. It needs the flag
 * `--experimental-wasm-compilation-hints`; without it V8 ignores the section and compiles everything with the baseline
 * compiler.
 *
 * @param optimized one value for each function the module defines
 */
export function compilationHints(optimized: readonly boolean[]): number[] {
  const name = [...NAME].map(c => c.charCodeAt(0));
  return [...leb(name.length), ...name, ...leb(optimized.length)].concat(
    optimized.map(is => (is ? OPTIMIZED : BASELINE)),
  );
}
