import { leb, signedLeb } from '../../src/abi/leb.ts';
import { manifestOf, withManifest } from './wat.ts';

/** A random whole number below its argument. */
export type Next = (n: number) => number;

/** A seeded generator of random numbers: the same seed makes the same modules. */
export function seeded(seed: number): Next {
  let state = seed >>> 0;
  return n => {
    state = (state + 0x6d2b79f5) >>> 0;
    let x = Math.imul(state ^ (state >>> 15), state | 1);
    x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
    return Math.floor((((x ^ (x >>> 14)) >>> 0) / 2 ** 32) * n);
  };
}

const I32 = 0x7f;
const I64 = 0x7e;
const F64 = 0x7c;
const V128 = 0x7b;
const EMPTY = 0x40;

/** How many locals, and their type; null for none. */
type Locals = [count: number, type: number] | null;

/** The module under construction: function types, functions and a tag, whatever a shape asks for. */
class Module {
  readonly types: number[][] = [];
  readonly functions: Array<{ type: number; locals: Locals; code: number[] }> = [];
  tag: number | null = null;

  type(parameters: number[], results: number[]): number {
    const made = [0x60, ...leb(parameters.length), ...parameters, ...leb(results.length), ...results];
    const known = this.types.findIndex(t => t.length === made.length && t.every((v, k) => v === made[k]));
    return known >= 0 ? known : this.types.push(made) - 1;
  }

  add(type: number, locals: Locals, code: number[]): number {
    return this.functions.push({ type, locals, code }) - 1;
  }

  bytes(): Uint8Array {
    const handle = this.add(this.type([], [I32]), null, [0x41, 0]);
    const vec = (items: number[][]): number[] => {
      const out = leb(items.length);
      for (const item of items) for (const byte of item) out.push(byte);
      return out;
    };
    const text = (s: string): number[] => [...leb(s.length), ...Buffer.from(s)];
    const sections: Array<[number, number[]]> = [
      [1, vec(this.types)],
      [3, vec(this.functions.map(f => leb(f.type)))],
      [4, [1, 0x70, 0, 10]],
      [5, [1, 0, 1]],
      ...(this.tag === null ? [] : [[13, [1, 0, ...leb(this.tag)]] as [number, number[]]]),
      [
        7,
        vec([
          [...text('memory'), 2, 0],
          [...text('plugin_handle'), 0, ...leb(handle)],
        ]),
      ],
      [
        10,
        vec(
          this.functions.map(({ code, locals }) => {
            const head = locals === null ? [0] : [1, ...leb(locals[0]), locals[1]];
            return [...leb(head.length + code.length + 1), ...head].concat(code, 0x0b);
          }),
        ),
      ],
    ];
    const parts = [Buffer.from([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0])];
    for (const [id, body] of sections) parts.push(Buffer.from([id, ...leb(body.length)]), Buffer.from(body));
    return withManifest(Buffer.concat(parts), manifestOf({ id: 'expensive' }));
  }
}

const repeat = <T>(n: number, of: T): T[] => new Array<T>(n).fill(of);
const constant = (n: number): number[] => [0x41, ...signedLeb(n)];
const get = (local: number): number[] => [0x20, ...leb(local)];
const put = (local: number): number[] => [0x21, ...leb(local)];

/** Sizes are drawn by magnitude, so that small, large and very large ones all come. */
const size = (next: Next, most: number): number => {
  const bits = Math.log2(most);
  return Math.max(1, Math.min(most, Math.floor(2 ** (next(1000) * (bits / 1000)))));
};

type Shape = (m: Module, next: Next, scale: number) => void;

/** Appends without spreading: argument lists have a length limit. */
const append = (code: number[], more: number[]): void => {
  for (const byte of more) code.push(byte);
};

/** A control instruction that takes nothing and leaves nothing, with something in it. */
function someControl(next: Next, locals: number): number[] {
  const inner = locals > 0 ? [...get(next(locals)), 0x1a, ...constant(next(100)), ...put(next(locals))] : [0x01];
  switch (next(5)) {
    case 0:
      return [...constant(1), 0x04, EMPTY, ...inner, 0x0b];
    case 1:
      return [0x02, EMPTY, ...inner, ...constant(0), 0x0d, 0, 0x0b];
    case 2:
      return [0x03, EMPTY, ...inner, ...constant(0), 0x0d, 0, 0x0b];
    case 3:
      return [...constant(1), 0x04, EMPTY, ...inner, 0x05, ...inner, 0x0b];
    default:
      return [0x02, EMPTY, ...constant(0), 0x0e, 1, 0, 0, 0x0b];
  }
}

/**
 * Ways to write little that takes a compiler long, or much memory. Each adds functions to a module; `scale` is about how
 * many bytes of code it may write.
 */
export const SHAPES: Readonly<Record<string, Shape>> = {
  'many locals at every branch'(m, next, scale) {
    const locals = size(next, 9900);
    const code: number[] = [];
    while (code.length < scale) append(code, someControl(next, locals));
    m.add(m.type([], []), [locals, I32], code);
  },
  'many parameters at every branch'(m, next, scale) {
    const locals = size(next, 990);
    const code: number[] = [];
    while (code.length < scale) append(code, someControl(next, locals));
    m.add(m.type(repeat(locals, I32), []), null, code);
  },
  'a tall stack at every branch'(m, next, scale) {
    const height = size(next, 10_000);
    const code: number[] = [];
    for (let k = 0; k < height; k++) append(code, next(2) === 0 ? constant(k) : get(next(4)));
    while (code.length < scale) append(code, someControl(next, 4));
    m.add(m.type([], []), [4, I32], [...code, ...repeat(height, 0x1a)]);
  },
  'a tall stack over arithmetic'(m, next, scale) {
    const height = size(next, 10_000);
    const code: number[] = [];
    for (let k = 0; k < height; k++) append(code, constant(k));
    while (code.length < scale) append(code, [...get(next(12)), ...get(next(12)), 0x6a + next(3), ...put(next(12))]);
    m.add(m.type([], []), [12, I32], [...code, ...repeat(height, 0x1a)]);
  },
  'blocks with many parameters'(m, next, scale) {
    const width = size(next, 990);
    const type = m.type(repeat(width, I32), repeat(width, I32));
    const code: number[] = [];
    for (let k = 0; k < width; k++) append(code, constant(k));
    while (code.length < scale)
      append(
        code,
        [
          [0x02, ...leb(type), ...constant(0), 0x0d, 0, 0x0b],
          [0x03, ...leb(type), ...constant(0), 0x0d, 0, 0x0b],
          [...constant(1), 0x04, ...leb(type), 0x05, 0x0b],
        ][next(3)] ?? [],
      );
    m.add(m.type([], []), null, [...code, ...repeat(width, 0x1a)]);
  },
  'nested blocks with many parameters'(m, next, scale) {
    const width = size(next, 990);
    const type = m.type(repeat(width, I32), repeat(width, I32));
    const depth = Math.min(size(next, 9000), Math.floor(scale / 8));
    const code: number[] = [];
    for (let k = 0; k < width; k++) append(code, constant(k));
    const loops = next(2) === 0;
    for (let k = 0; k < depth; k++)
      append(code, [loops ? 0x03 : 0x02, ...leb(type), ...constant(0), 0x0d, ...leb(next(k + 1))]);
    m.add(m.type([], []), null, [...code, ...repeat(depth, 0x0b), ...repeat(width, 0x1a)]);
  },
  'br_table with many targets'(m, next, scale) {
    const depth = size(next, 5000);
    const locals = size(next, 2000);
    const labels = size(next, 60_000);
    const code: number[] = [];
    for (let k = 0; k < depth; k++) code.push(0x02, EMPTY);
    const body: number[] = [];
    do {
      append(body, [...constant(next(9)), ...put(next(locals)), ...get(0), 0x0e, ...leb(labels)]);
      for (let k = 0; k <= labels; k++) append(body, leb(next(depth)));
    } while (body.length < scale && next(4) > 0);
    for (let k = 0; k < depth; k++)
      append(body, [0x0b, ...(k % 3 === 0 ? [...constant(k), ...put(next(locals))] : [])]);
    for (const byte of body) code.push(byte);
    m.add(m.type([], []), [locals, I32], code);
  },
  'deep nesting with branches outward'(m, next, scale) {
    const depth = Math.min(size(next, 9900), Math.floor(scale / 8));
    const locals = size(next, 1000);
    const code: number[] = [];
    for (let k = 0; k < depth; k++) {
      const kind = next(3);
      if (kind === 2) append(code, [...constant(1), 0x04, EMPTY]);
      else code.push(kind === 0 ? 0x02 : 0x03, EMPTY);
      append(code, [...constant(k), ...put(next(locals)), ...get(next(locals)), 0x0d, ...leb(next(k + 1))]);
    }
    m.add(m.type([], []), [locals, I32], [...code, ...repeat(depth, 0x0b)]);
  },
  'loops in loops around much code'(m, next, scale) {
    const depth = Math.min(size(next, 9900), Math.floor(scale / 6));
    const locals = size(next, 500);
    const code: number[] = [];
    for (let k = 0; k < depth; k++) code.push(0x03, EMPTY);
    while (code.length < scale)
      append(code, [...get(next(locals)), ...constant(next(1000)), 0x6a, ...put(next(locals))]);
    for (let k = 0; k < depth; k++) append(code, [...get(next(locals)), 0x0d, 0, 0x0b]);
    m.add(m.type([], []), [locals, I32], code);
  },
  'one long function of arithmetic'(m, next, scale) {
    const code: number[] = [];
    const locals = size(next, 200);
    while (code.length < scale)
      append(
        code,
        [
          [...get(next(locals)), ...get(next(locals)), 0x6a + next(3), ...put(next(locals))],
          [...get(next(locals)), 0x28, 2, 0, ...put(next(locals))],
          [...get(next(locals)), ...get(next(locals)), 0x36, 2, ...leb(next(10_000))],
          [...get(next(locals)), ...get(next(locals)), 0x6d, ...put(next(locals))],
          [...get(next(locals)), 0xb7, 0x9f, 0xaa, ...put(next(locals))],
        ][next(5)] ?? [],
      );
    m.add(m.type([], []), [locals, I32], code);
  },
  'chains of select'(m, next, scale) {
    const code = constant(1);
    while (code.length < scale) append(code, [...get(next(8)), ...get(next(8)), 0x1b]);
    m.add(m.type([], [I32]), [8, I32], code);
  },
  'many small functions with many parameters'(m, next, scale) {
    const width = size(next, 990);
    const type = m.type(repeat(width, next(2) === 0 ? I64 : F64), []);
    for (let k = 0; k < Math.min(scale / 4, 90_000); k++) m.add(type, null, []);
  },
  'many small functions with many locals'(m, next, scale) {
    const width = size(next, 9900);
    const type = m.type([], []);
    for (let k = 0; k < Math.min(scale / 8, 90_000); k++) m.add(type, [width, I64], []);
  },
  'calls with many parameters and results'(m, next, scale) {
    const width = size(next, 990);
    const type = m.type(repeat(width, I32), repeat(width, I32));
    const gives = m.type([], repeat(width, I32));
    const called = m.add(type, null, Array.from({ length: width }, (_, k) => get(k)).flat());
    const made = m.add(gives, null, Array.from({ length: width }, () => constant(7)).flat());
    const code = [0x10, ...leb(made)];
    let extra = 0;
    while (code.length < scale) {
      if (next(20) === 0 && extra < 8) {
        append(code, [0x10, ...leb(made)]);
        extra++;
      } else append(code, next(2) === 0 ? [0x10, ...leb(called)] : [...constant(0), 0x11, ...leb(type), 0]);
    }
    m.add(m.type([], []), null, [...code, ...repeat(width * (extra + 1), 0x1a)]);
  },
  'calls over a tall stack'(m, next, scale) {
    const height = size(next, 10_000);
    const type = m.type([], []);
    const called = m.add(type, null, []);
    const code: number[] = [];
    const references = next(2) === 0;
    for (let k = 0; k < height; k++) append(code, references ? [0xd0, 0x6f] : get(next(4)));
    while (code.length < scale) append(code, [0x10, ...leb(called)]);
    m.add(type, [4, I32], [...code, ...repeat(height, 0x1a)]);
  },
  'calls that may throw, with many locals'(m, next, scale) {
    const locals = size(next, 5000);
    const type = m.type([], []);
    m.tag = type;
    const called = m.add(type, null, []);
    const legacy = next(2) === 0;
    const code: number[] = [];
    while (code.length < scale) {
      append(code, legacy ? [0x06, EMPTY] : [0x02, EMPTY, 0x1f, EMPTY, 1, 2, 0]);
      for (let k = next(50); k >= 0; k--) append(code, [0x10, ...leb(called), ...constant(k), ...put(next(locals))]);
      append(code, legacy ? [0x19, 0x0b] : [0x0b, 0x0b]);
    }
    m.add(type, [locals, I32], code);
  },
  'try in try'(m, next, scale) {
    const locals = size(next, 1000);
    const type = m.type([], []);
    m.tag = type;
    const called = m.add(type, null, []);
    const depth = Math.min(size(next, 9000), Math.floor(scale / 16));
    const code: number[] = [];
    for (let k = 0; k < depth; k++)
      append(code, [0x06, EMPTY, 0x10, ...leb(called), ...constant(k), ...put(next(locals))]);
    for (let k = 0; k < depth; k++)
      append(code, [0x07, 0, 0x10, ...leb(called), 0x19, ...(next(2) === 0 ? [0x09, 0] : []), 0x0b]);
    m.add(type, [locals, I32], code);
  },
  vectors(m, next, scale) {
    const locals = size(next, 2000);
    const code: number[] = [];
    const binary = [0xae, 0xb5, 0xdd, 0x6e, 0x71, 0x4e, 0x23];
    while (code.length < scale) {
      const op = binary[next(binary.length)] ?? 0x4e;
      append(code, [...get(next(locals)), ...get(next(locals)), 0xfd, ...leb(op), ...put(next(locals))]);
      if (next(10) === 0) append(code, [...constant(1), 0x04, EMPTY, 0x0b]);
    }
    m.add(m.type([], []), [locals, V128], code);
  },
  'variables of loops that all change'(m, next, scale) {
    const locals = size(next, 5000);
    const code: number[] = [];
    while (code.length < scale) {
      append(code, [0x03, EMPTY]);
      for (let k = next(60); k >= 0; k--)
        append(code, [...get(next(locals)), ...constant(1), 0x6a, ...put(next(locals))]);
      append(code, [...get(next(locals)), 0x0d, 0, 0x0b]);
    }
    m.add(m.type([], []), [locals, I32], code);
  },
  'expressions that nest deeply'(m, next, scale) {
    const code: number[] = [];
    const depth = Math.min(Math.floor(scale / 4), size(next, 9000));
    do {
      for (let k = 0; k < depth; k++) append(code, get(next(30)));
      for (let k = 1; k < depth; k++) code.push(0x6a + next(3));
      append(code, put(next(30)));
    } while (code.length < scale);
    m.add(m.type([], []), [30, I32], code);
  },
};

/**
 * A module that is meant to be expensive for its size.
 *
 * @param scale about how many bytes of code
 * @param shape null for any; then sometimes several together
 */
export function expensiveModule(
  next: Next,
  scale: number,
  shape: string | null = null,
): { name: string; bytes: Uint8Array } {
  const m = new Module();
  const names = Object.keys(SHAPES);
  const chosen =
    shape === null ? Array.from({ length: next(4) === 0 ? 3 : 1 }, () => names[next(names.length)] ?? '') : [shape];
  for (const name of chosen) SHAPES[name]?.(m, next, Math.max(64, Math.floor(scale / chosen.length)));
  return { name: chosen.join(' + '), bytes: m.bytes() };
}
