import * as abi from "./plugin_host";
import { pointer } from "./text";

/** Codes of refused calls, by the negative results of the host (docs/abi.md "Errors"): -1 is the first. */
const CODES: string[] = [
  "permission_denied", "not_found", "invalid_argument", "too_large",
  "unavailable", "deadline_passed", "internal", "conflict",
];

export const NOT_FOUND: i32 = -2;

let text = "";
let code = "";

/** Text of the last call that failed. */
export function lastError(): string {
  return text;
}

/** Code of the last call that failed, like `not_found`. */
export function lastCode(): string {
  return code;
}

/** Remembers why a call failed. @returns the text of its error */
export function errorOf(result: i32): string {
  const k = -1 - result;
  const n = abi.error_len();
  const b = new ArrayBuffer(n);
  if (n > 0) abi.error_read(pointer(b), n);
  return noteError(k >= 0 && k < CODES.length ? CODES[k] : "internal", String.UTF8.decode(b));
}

/** Remembers why the kit refuses a call. @returns the text of the error */
export function noteError(errorCode: string, errorText: string): string {
  code = errorCode;
  text = errorText;
  return errorText;
}

/** The text of the error, or null when the call did not fail. */
export function refusal(result: i32): string | null {
  return result < 0 ? errorOf(result) : null;
}

/** A value, or the text of the error that stands in its place. */
export class Result<T> {
  /** Why there is none: `permission_denied`, `not_found`, `invalid_argument` ...; empty when there is one. */
  readonly code: string;
  constructor(public value: T, public error: string | null = null) {
    this.code = error === null ? "" : lastCode();
  }
  get ok(): bool {
    return this.error === null;
  }
}

/** What the last call has parked. */
export function parked(length: i32): ArrayBuffer {
  const b = new ArrayBuffer(length);
  if (length > 0) abi.result_read(pointer(b), length);
  return b;
}

/** The raw part of the last result. */
export function parkedBody(): ArrayBuffer {
  const b = new ArrayBuffer(abi.body_len());
  if (b.byteLength > 0) abi.body_read(0, pointer(b), b.byteLength);
  return b;
}
