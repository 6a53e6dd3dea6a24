import { exactJSON } from './exact-json.ts';
import * as raw from './host-functions.js';

/** Why the host refused a call. */
export type HostErrorCode =
  | 'permission_denied'
  | 'not_found'
  | 'invalid_argument'
  | 'too_large'
  | 'unavailable'
  | 'deadline_passed'
  | 'internal'
  | 'conflict';

const CODES: readonly HostErrorCode[] = [
  'permission_denied',
  'not_found',
  'invalid_argument',
  'too_large',
  'unavailable',
  'deadline_passed',
  'internal',
  'conflict',
];

/** Results of the host below zero, by their code. */
export const NOT_FOUND = -2;
const DENIED = -1;

/**
 * The host refused a call. `message` is its text; of a database it begins with the SQLSTATE.
 *
 * @example
 * try { ctx.FileMeta(id); } catch (error) { if (error instanceof HostError && error.code === 'not_found') ... }
 */
export class HostError extends Error {
  override readonly name = 'HostError';
  readonly code: HostErrorCode;

  constructor(code: HostErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

/** The result of a call. @throws HostError when it is below zero */
export function checked(result: number): number {
  if (result >= 0) return result;
  // A function whose permission is not required never reaches the host, which therefore has no text.
  const text = result === DENIED ? 'permission denied' : raw.error_text();
  throw new HostError(CODES[-1 - result] ?? 'internal', text);
}

const INT32_MAX = 2 ** 31 - 1;

/**
 * A time to live in whole units; rounded down, a short one would mean for ever.
 *
 * @param max what a host function takes; seconds are 32 bits
 * @throws TypeError below 0 and for NaN
 */
export function timeToLive(time: number, max = INT32_MAX): number {
  if (time >= 0) return Math.min(Math.ceil(time), max);
  throw new TypeError(`a time to live must be 0 or more, not ${time}; 0 means no end`);
}

/** The text a call has parked. */
export const parkedText = (result: number): string => raw.result_text(checked(result));

/** The JSON a call has parked; the host has written it in the form that docs/abi.md gives. */
export const parked = <T>(result: number): T => exactJSON(raw.result_text(checked(result)));

/** The name of a number or text a call takes that is not what it must be. @throws TypeError */
export function assertKind(what: string, value: unknown, kind: 'string' | 'number'): void {
  if (typeof value !== kind)
    throw new TypeError(`${what} must be a ${kind}, not ${value === null ? 'null' : typeof value}`);
}

/** The bytes of a buffer of any kind; null for what is none. */
export function bytesOf(value: unknown): Uint8Array | null {
  if (value instanceof Uint8Array) return value;
  if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  return value instanceof ArrayBuffer ? new Uint8Array(value) : null;
}

/**
 * Content as the host takes it: text, or the bytes of any buffer. What else is passed would arrive empty.
 *
 * @throws TypeError for what is neither
 */
export function contentOf(what: string, value: unknown): string | Uint8Array {
  const content = typeof value === 'string' ? value : bytesOf(value);
  if (content !== null) return content;
  throw new TypeError(
    `${what} must be a string or a Uint8Array, not ${value === null ? 'null' : typeof value}; JSON.stringify makes text`,
  );
}

/** A whole number as the host takes it, in 64 bits. @throws RangeError for a fraction, and beyond them */
export function int64(what: string, value: number | bigint): bigint {
  const whole = BigInt(value);
  if (BigInt.asIntN(64, whole) !== whole) throw new RangeError(`${what} must fit 64 bits: ${whole} does not`);
  return whole;
}

/** JSON as the host takes it. A `bigint` is written with all its digits. */
export const toJSON = (value: unknown): string => JSON.stringify(value ?? null);
