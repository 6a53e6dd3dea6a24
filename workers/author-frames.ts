import { decodePositions, POSITIONS_SECTION, type Positions, placesAt } from '../src/abi/positions.ts';

/** Frames V8 takes at a trap: the author's lie below those of a language's runtime, of which Rust has a dozen. */
export const STACK_FRAMES = 32;
/** Frames that are kept in the record. */
const SHOWN_MAX = 8;

/**
 * A frame in a module as V8 writes it: name of the function behind that of the module, which stands in its address too;
 * number of the function; offset of the instruction in the module.
 */
const FRAME = /^\s*at (?:(.+) \()?wasm:\/\/wasm\/(?:(.*)-)?([0-9a-f]+):wasm-function\[(\d+)\]:0x([0-9a-f]+)\)?$/;

const nameOf = (name: string | undefined, module: string | undefined, index: string | undefined): string =>
  name === undefined
    ? `wasm-function[${index}]`
    : module !== undefined && name.startsWith(`${module}.`)
      ? name.slice(module.length + 1)
      : name;

function positionsOf(module: WebAssembly.Module): Positions | null {
  const [section] = WebAssembly.Module.customSections(module, POSITIONS_SECTION);
  try {
    return section === undefined ? null : decodePositions(new Uint8Array(section));
  } catch {
    // The gate has written it; a failure is shown without lines rather than not at all.
    return null;
  }
}

/**
 * The frames of a trap for the execution record. Where the module knows lines of sources, they are the author's
 * functions with files and lines; frames without a line, those of a kit and of libraries, are left out.
 *
 * @param stack the stack of the error
 * @param module what ran
 */
export function authorFrames(stack: string, module: WebAssembly.Module): string[] {
  const placed = placedFrames(stack, module);
  return placed.length > 0 ? placed : framesOf(stack).slice(0, SHOWN_MAX);
}

/** Frames of one function behind another; more are seldom anything else than a recursion without an end. */
const isDeep = (frames: readonly string[]): boolean =>
  frames.length === SHOWN_MAX && new Set(frames).size <= SHOWN_MAX / 2;

/**
 * What a trap says. C and Rust have their stack below all else in the memory: it ends at address 0.
 *
 * @param frames those of the failure, as `authorFrames` gives them
 */
export const trapText = (message: string, frames: readonly string[]): string =>
  message === 'memory access out of bounds' && isDeep(frames)
    ? `${message}: the stack is full, because functions call each other too deeply`
    : message;

const framesOf = (stack: string): string[] => stack.split('\n').filter(line => line.includes('wasm'));

/** The frames of a trap that are the author's; none when the module knows no lines of sources. */
export function placedFrames(stack: string, module: WebAssembly.Module): string[] {
  const positions = positionsOf(module);
  if (positions === null) return [];
  const frames = framesOf(stack).map(frame => FRAME.exec(frame));
  // The host's own modules lie above that of the plugin, through which it calls.
  const own = frames.findLast(frame => frame !== null)?.[3];
  const placed = frames.flatMap(frame => {
    const [, written, module, of, index, offset] = frame ?? [];
    if (offset === undefined || of !== own) return [];
    return placesAt(positions, Number.parseInt(offset, 16)).map(
      ({ file, line, name }) =>
        `    at ${name ?? nameOf(written, module, index)} (${line === 0 ? file : `${file}:${line}`})`,
    );
  });
  return placed.slice(0, SHOWN_MAX);
}
