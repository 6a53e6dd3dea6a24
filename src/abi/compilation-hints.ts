import { leb } from './leb.ts';

const NAME = 'compilationHints';
/** Strategy eager (2), and the tier at once and for good: baseline (1) or optimized (2), two bits each. */
const BASELINE = 2 | (1 << 2) | (1 << 4);
const OPTIMIZED = 2 | (2 << 2) | (2 << 4);

/**
 * The content of the custom section by which V8 compiles each function once, before the module runs (flag
 * `--experimental-wasm-compilation-hints`; without it the section is ignored, and all is compiled by the baseline compiler).
 *
 * @param optimized by function of the module's own
 */
export function compilationHints(optimized: readonly boolean[]): number[] {
  const name = [...NAME].map(c => c.charCodeAt(0));
  return [...leb(name.length), ...name, ...leb(optimized.length)].concat(
    optimized.map(is => (is ? OPTIMIZED : BASELINE)),
  );
}
