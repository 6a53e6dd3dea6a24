import { respondText, watPlugin } from './wat.ts';

/** Sleeps in poll_oneoff for the milliseconds given, then answers. */
export const sleeper = (id: string, ms: number): Uint8Array =>
  watPlugin({
    id,
    imports: ['respond'],
    moreImports: '(import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))',
    body: '(data (i32.const 64) "ok")',
    handle: `
      (i32.store (i32.const 1040) (i32.const 1))
      (i64.store (i32.const 1048) (i64.const ${ms}000000))
      (drop (call $poll (i32.const 1024) (i32.const 2048) (i32.const 1) (i32.const 4096)))
      ${respondText(64, 2)} (i32.const 0)`,
  });

/** The same, and answers when it began and when it woke, to a request and to a call: two times in nanoseconds, 8 bytes each. */
export const watchedSleeper = (id: string, ms: number): Uint8Array =>
  watPlugin({
    id,
    imports: ['respond', 'output'],
    moreImports: `(import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
      (import "wasi_snapshot_preview1" "clock_time_get" (func $clock (param i32 i64 i32) (result i32)))`,
    handle: `
      (drop (call $clock (i32.const 0) (i64.const 1) (i32.const 64)))
      (i32.store (i32.const 1040) (i32.const 1))
      (i64.store (i32.const 1048) (i64.const ${ms}000000))
      (drop (call $poll (i32.const 1024) (i32.const 2048) (i32.const 1) (i32.const 4096)))
      (drop (call $clock (i32.const 0) (i64.const 1) (i32.const 72)))
      (drop (call $output (i32.const 64) (i32.const 16)))
      ${respondText(64, 16)} (i32.const 0)`,
  });

/** How many of some spans of time lie over each other at most. */
export function mostAtOnce(spans: ReadonlyArray<readonly [from: bigint, to: bigint]>): number {
  const at = (moment: bigint): number => spans.filter(([from, to]) => from <= moment && moment < to).length;
  return Math.max(0, ...spans.map(([from]) => at(from)));
}

/** When an execution of a watched sleeper began and when it woke, from the bytes of its answer. */
export function spanOf(answer: Buffer): readonly [from: bigint, to: bigint] {
  return [answer.readBigUInt64LE(0), answer.readBigUInt64LE(8)];
}
