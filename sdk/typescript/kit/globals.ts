import * as raw from './host-functions.js';
import { authorStack } from './positions.ts';

/** What programs expect to find besides the language itself, as far as it makes sense in a plugin. */

const LEVELS = { debug: 0, log: 1, info: 1, warn: 2, error: 3 } as const;

function shown(value: unknown): string {
  if (typeof value === 'string') return value;
  if (value instanceof Error) {
    const stack = authorStack(value.stack ?? '');
    return stack === '' ? `${value}` : `${value}\n${stack}`;
  }
  if (typeof value === 'object' && value !== null) {
    try {
      return JSON.stringify(value) ?? `${value}`;
    } catch {
      return Object.prototype.toString.call(value);
    }
  }
  return String(value);
}

const writer =
  (level: number) =>
  (...values: unknown[]): void =>
    void raw.log(level, values.map(shown).join(' '));

class Encoder {
  readonly encoding = 'utf-8';
  encode(text = ''): Uint8Array {
    return raw.utf8_bytes(`${text}`);
  }
}

class Decoder {
  readonly encoding = 'utf-8';
  readonly fatal: boolean;

  constructor(label = 'utf-8', { fatal = false }: { fatal?: boolean } = {}) {
    if (!/^utf-?8$/i.test(label)) throw new RangeError(`the encoding "${label}" is not supported; only utf-8 is`);
    this.fatal = fatal;
  }
  decode(given: ArrayBuffer | ArrayBufferView = new Uint8Array()): string {
    const bytes =
      given instanceof ArrayBuffer
        ? new Uint8Array(given)
        : new Uint8Array(given.buffer, given.byteOffset, given.byteLength);
    const text = raw.utf8_text(bytes);
    // What is not UTF-8 reads as U+FFFD, and is longer or shorter when it is written again.
    if (this.fatal && !sameBytes(raw.utf8_bytes(text), bytes)) throw new TypeError('the bytes are not UTF-8');
    return text.codePointAt(0) === 0xfeff ? text.slice(1) : text;
  }
}

const sameBytes = (a: Uint8Array, b: Uint8Array): boolean =>
  a.length === b.length && a.every((byte, k) => byte === b[k]);

const hex = (bytes: Uint8Array): string => bytes.toHex();

/** RFC 9562 section 5.4. */
function randomUUID(): string {
  const bytes = new Uint8Array(16);
  raw.random_bytes(bytes);
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const digits = hex(bytes);
  return [0, 8, 12, 16, 20].map((from, k, all) => digits.slice(from, all[k + 1])).join('-');
}

function getRandomValues<T extends ArrayBufferView>(into: T): T {
  raw.random_bytes(new Uint8Array(into.buffer, into.byteOffset, into.byteLength));
  return into;
}

type Timer = { id: number; at: number; every: number | null; run: () => void };

const timers: Timer[] = [];
let lastTimer = 0;

function addTimer(run: () => void, milliseconds: unknown, repeats: boolean): number {
  const wait = Math.max(0, Number(milliseconds) || 0);
  timers.push({ id: ++lastTimer, at: Date.now() + wait, every: repeats ? Math.max(1, wait) : null, run });
  return lastTimer;
}

function removeTimer(id: unknown): void {
  const k = timers.findIndex(t => t.id === id);
  if (k >= 0) timers.splice(k, 1);
}

/** Waits for the timer that is due first, and runs it. @returns whether there was one */
export function runNextTimer(): boolean {
  if (timers.length === 0) return false;
  const next = timers.reduce((a, b) => (b.at < a.at ? b : a));
  const wait = next.at - Date.now();
  if (wait > 0) raw.sleep(wait);
  if (next.every === null) removeTimer(next.id);
  else next.at += next.every;
  next.run();
  return true;
}

const define = (name: string, value: unknown): void => {
  if (!(name in globalThis)) Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
};

define('console', Object.fromEntries(Object.entries(LEVELS).map(([name, level]) => [name, writer(level)])));
define('TextEncoder', Encoder);
define('TextDecoder', Decoder);
define('crypto', { getRandomValues, randomUUID });
define('setTimeout', (run: (...args: unknown[]) => void, ms?: number, ...args: unknown[]) =>
  addTimer(() => run(...args), ms, false),
);
define('setInterval', (run: (...args: unknown[]) => void, ms?: number, ...args: unknown[]) =>
  addTimer(() => run(...args), ms, true),
);
define('clearTimeout', removeTimer);
define('clearInterval', removeTimer);
define('queueMicrotask', (run: () => void) => void Promise.resolve().then(run));
// The generator of the engine would begin in each execution with the state the start has left.
Math.random = raw.random;
Object.defineProperty(BigInt.prototype, 'toJSON', {
  configurable: true,
  writable: true,
  value(this: bigint) {
    return JSON.rawJSON(`${this}`);
  },
});
