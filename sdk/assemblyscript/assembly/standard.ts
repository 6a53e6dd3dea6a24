// What the language expects of its surroundings, on the functions of the host: the build puts these in the place of the
// compiler's own (`--use`), which import from modules that no plugin may import from.
// From the library, because the build replaces the global one by the class below.
import { Date } from "date";
import * as abi from "./plugin_host";
import { pointer, utf8 } from "./text";
import { clock_time_get, random_get } from "./wasi_snapshot_preview1";

const REALTIME = 0;
const MONOTONIC = 1;
const DEBUG = 0;
const INFO = 1;
const WARN = 2;
const ERROR = 3;

function write(level: i32, text: string): void {
  const b = utf8(text);
  abi.log(level, pointer(b), b.byteLength);
}

/** Nanoseconds of a clock. */
function nanoseconds(clock: i32): u64 {
  const b = new ArrayBuffer(8);
  clock_time_get(clock, 1, pointer(b));
  return load<u64>(pointer(b));
}

/** Ends the execution: `throw`, a failed `assert`, an index out of range. The text stands in the execution record. */
export function abort(message: string | null, file: string | null, line: u32, column: u32): void {
  const text = (message === null ? "abort" : message) + (file === null ? "" : " (" + file + ":" + line.toString() + ":" + column.toString() + ")");
  const b = utf8(text);
  abi.fail(pointer(b), b.byteLength);
  unreachable();
}

/** `trace(message, n, a0, ...)` of the language: a line of the execution record with up to five numbers. */
export function trace(message: string, n: i32 = 0, a0: f64 = 0, a1: f64 = 0, a2: f64 = 0, a3: f64 = 0, a4: f64 = 0): void {
  let text = message;
  if (n > 0) text += " " + a0.toString();
  if (n > 1) text += ", " + a1.toString();
  if (n > 2) text += ", " + a2.toString();
  if (n > 3) text += ", " + a3.toString();
  if (n > 4) text += ", " + a4.toString();
  write(DEBUG, text);
}

/** What `Math.random` begins with; drawn when it is first called. */
export function seed(): f64 {
  const b = new ArrayBuffer(8);
  random_get(pointer(b), 8);
  return reinterpret<f64>(load<u64>(pointer(b)));
}

/** `Date` with the clock of the execution. */
export class PluginDate extends Date {
  static now(): i64 {
    return <i64>(nanoseconds(REALTIME) / 1000000);
  }
}

export namespace performance {
  export function now(): f64 {
    return <f64>nanoseconds(MONOTONIC) / 1000000;
  }
}

export namespace crypto {
  export function getRandomValues(array: Uint8Array): void {
    random_get(array.dataStart, array.byteLength);
  }
}

/** Lines of the execution record. */
export namespace console {
  export function assert<T>(condition: T, message: string = ""): void {
    if (!condition) write(ERROR, "Assertion failed: " + message);
  }
  export function log(message: string = ""): void {
    write(INFO, message);
  }
  export function debug(message: string = ""): void {
    write(DEBUG, message);
  }
  export function info(message: string = ""): void {
    write(INFO, message);
  }
  export function warn(message: string = ""): void {
    write(WARN, message);
  }
  export function error(message: string = ""): void {
    write(ERROR, message);
  }
}
