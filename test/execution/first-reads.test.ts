import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import type { ExecutionOutcome } from '../../src/abi/execution-outcome.ts';
import { HOST_ERROR } from '../../src/abi/host-functions.ts';
import type { HostResult } from '../../src/abi/host-result.ts';
import { type Lanes, startLanes } from '../support/executor.ts';
import { until } from '../support/until.ts';
import { watPlugin } from '../support/wat.ts';

/** How long the answer is, before the value that was read last. */
const HEAD_BYTES = 24;

/**
 * Counts the words of its memory and its global that an execution before it has left, soils them, logs, draws a time and
 * random bytes, and does what the first letter of the body says. The rest of the body is the beginning of its keys.
 *
 *   r one read   m twelve reads   w writes, then reads   s sleeps, then reads   g grows its memory, then reads
 *   d reads the key of its random bytes   c catches what ends it at the read, and goes on
 *   l catches it, and never ends          t traps after the read                e exits after it
 */
const reader = watPlugin({
  id: 'reader',
  imports: ['respond', 'input_len', 'input_read', 'kv_get', 'kv_set', 'result_read', 'log'],
  moreImports: `(import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
    (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "clock_time_get" (func $clock (param i32 i64 i32) (result i32)))
    (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))`,
  memory: '1',
  requirements: [{ kind: 'kv' }],
  body: `
    (global $g (mut i32) (i32.const 7))
    (data (i32.const 100) "begins")
    (func $dirty (result i32) (local $p i32) (local $n i32)
      (local.set $n (i32.ne (global.get $g) (i32.const 7)))
      (local.set $p (i32.const 16384))
      (block $end (loop $l
        (br_if $end (i32.ge_u (local.get $p) (i32.mul (memory.size) (i32.const 65536))))
        (if (i64.ne (i64.load (local.get $p)) (i64.const 0)) (then (local.set $n (i32.add (local.get $n) (i32.const 1)))))
        (local.set $p (i32.add (local.get $p) (i32.const 8)))
        (br $l)))
      (local.get $n))
    (func $read (param $length i32) (local $n i32)
      (local.set $n (call $kv_get (i32.const 2048) (local.get $length)))
      (i32.store (i32.const 8196) (local.get $n))
      (if (i32.gt_s (local.get $n) (i32.const 0))
        (then (drop (call $result_read (i32.const 8216) (i32.const 6000))))))`,
  handle: `(local $n i32) (local $mode i32) (local $k i32)
    (i32.store (i32.const 8192) (call $dirty))
    (memory.fill (i32.const 16384) (i32.const 255) (i32.const 49152))
    (global.set $g (i32.const 99))
    (drop (call $log (i32.const 1) (i32.const 100) (i32.const 6)))
    (drop (call $clock (i32.const 0) (i64.const 0) (i32.const 8200)))
    (drop (call $random (i32.const 8208) (i32.const 8)))
    (i64.store (i32.const 8208) (i64.and (i64.load (i32.const 8208)) (i64.const 0x3f3f3f3f3f3f3f3f)))
    (i64.store (i32.const 8208) (i64.or (i64.load (i32.const 8208)) (i64.const 0x4040404040404040)))
    (local.set $n (call $input_len (i32.const 1)))
    (drop (call $input_read (i32.const 1) (i32.const 1024) (local.get $n)))
    (local.set $mode (i32.load8_u (i32.const 1024)))
    (memory.copy (i32.const 2048) (i32.const 1025) (local.tee $n (i32.sub (local.get $n) (i32.const 1))))
    (if (i32.eq (local.get $mode) (i32.const 119)) (then
      (drop (call $kv_set (i32.const 2048) (local.get $n) (i32.const 100) (i32.const 6) (i32.const 0)))))
    (if (i32.eq (local.get $mode) (i32.const 115)) (then
      (i32.store8 (i32.const 512) (i32.const 0)) (i32.store (i32.const 528) (i32.const 1)) (i64.store (i32.const 536) (i64.const 1000000))
      (drop (call $poll (i32.const 512) (i32.const 600) (i32.const 1) (i32.const 700)))))
    (if (i32.eq (local.get $mode) (i32.const 103)) (then (drop (memory.grow (i32.const 3)))))
    (if (i32.eq (local.get $mode) (i32.const 100)) (then
      (i64.store (i32.const 2048) (i64.load (i32.const 8208))) (local.set $n (i32.const 8))))
    (i32.store8 (i32.add (i32.const 2048) (i32.sub (local.get $n) (i32.const 1))) (i32.const 65))
    (if (i32.or (i32.eq (local.get $mode) (i32.const 99)) (i32.eq (local.get $mode) (i32.const 108)))
      (then (try (do (call $read (local.get $n)))
        (catch_all (loop $l (br_if $l (i32.eq (local.get $mode) (i32.const 108)))))))
      (else (loop $l
        (call $read (local.get $n))
        (i32.store8 (i32.add (i32.const 2048) (i32.sub (local.get $n) (i32.const 1))) (i32.add (i32.const 66) (local.get $k)))
        (br_if $l (i32.and (i32.eq (local.get $mode) (i32.const 109))
          (i32.lt_u (local.tee $k (i32.add (local.get $k) (i32.const 1))) (i32.const 12)))))))
    (drop (call $respond (i32.const 200) (i32.const 0) (i32.const 0) (i32.const 8192) (i32.const 6024)))
    (if (i32.eq (local.get $mode) (i32.const 116)) (then unreachable))
    (if (i32.eq (local.get $mode) (i32.const 101)) (then (call $exit (i32.const 1))))
    (i32.const 0)`,
});

/** What the plugin answered. */
function answerOf({ body }: ExecutionOutcome) {
  const bytes = Buffer.from(body);
  const code = bytes.readInt32LE(4);
  return {
    dirty: bytes.readInt32LE(0),
    code,
    time: bytes.readBigUInt64LE(8),
    drawn: bytes.toString('latin1', 16, HEAD_BYTES),
    value: bytes.toString('utf8', HEAD_BYTES, HEAD_BYTES + Math.max(0, code)),
  };
}

type Call = { name: string; key: string; answer(result: HostResult): void };

/** Answers a read with its key, and everything else with success. */
const echo = ({ answer, key, name }: Call): void => {
  if (name !== 'kv_get') answer({ code: 0 });
  else answer({ code: Buffer.byteLength(key), data: Buffer.from(key) });
};

/**
 * Lanes with the plugin above.
 *
 * @param called gets each host call, and answers it
 */
async function lanesFor(t: Test, called: (call: Call) => void, timeoutMs = 60_000) {
  const calls: Call[] = [];
  const lanes = startLanes(t.testdir(), {
    lanes: 12,
    timeoutMs,
    dropWithinMs: 60_000,
    dispatch: (name, [key]) =>
      new Promise(answer => {
        const call = { name, key: String(key), answer };
        calls.push(call);
        called(call);
      }),
  });
  t.teardown(() => lanes.executor.close());
  await lanes.load('reader', reader);
  return { lanes, calls };
}

/** So many executions at once, each with a key of its own. @param prefix one letter for the mode, and a word */
const together = (lanes: Lanes, count: number, prefix: string): Promise<ExecutionOutcome[]> =>
  Promise.all(Array.from({ length: count }, (_, k) => lanes.run('reader', Buffer.from(`${prefix}${k}_`))));

t.test('the reads with which executions begin are under way at once, more than the eight that may run', async t => {
  const held: Call[] = [];
  let isHeld = false;
  const { lanes } = await lanesFor(t, call => (isHeld ? void held.push(call) : echo(call)));
  // A lane runs code quickly that V8 has optimised.
  for (let k = 0; k < 30; k++) await together(lanes, 40, 'rwarm');
  isHeld = true;
  const all = together(lanes, 60, 'rx');
  await until(() => held.length > 40);
  isHeld = false;
  for (const call of held) echo(call);
  for (const [k, outcome] of (await all).entries()) {
    t.match(outcome, { kind: 'ok', status: 200, failure: '' });
    t.match(answerOf(outcome), { dirty: 0, value: `x${k}A` });
    t.same(
      outcome.log.map(line => line.text),
      ['begins'],
      'what a dropped run has logged is not there twice',
    );
  }
});

t.test(
  'each read is done once, whatever an execution does before and after it, and nothing of a dropped run is left',
  async t => {
    const seed = Math.floor(Math.random() * 2 ** 31);
    t.comment(`seed ${seed}`);
    let state = seed;
    const next = (n: number): number => {
      state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
      return (state >>> 8) % n;
    };
    const { lanes, calls } = await lanesFor(
      t,
      call => void (next(3) === 0 ? sleep(next(6)).then(() => echo(call)) : echo(call)),
    );
    const reads: Record<string, number> = { r: 1, m: 12, w: 1, s: 1, g: 1, d: 1, c: 1, t: 1, e: 1 };
    const modes = Object.keys(reads);
    for (let round = 0; round < 60; round++) {
      calls.length = 0;
      const asked = Array.from({ length: 30 }, (_, k) => ({
        mode: modes[next(modes.length)] ?? 'r',
        id: `${round}-${k}`,
      }));
      const outcomes = await Promise.all(
        asked.map(({ id, mode }) => lanes.run('reader', Buffer.from(`${mode}${id}_`))),
      );
      for (const [k, { id, mode }] of asked.entries()) {
        const outcome = outcomes[k]!;
        const ofThis = calls.filter(c => c.name === 'kv_get' && c.key.startsWith(id) && c.key.length === id.length + 1);
        if (mode === 'w') t.equal(calls.filter(c => c.name === 'kv_set' && c.key.startsWith(`${id}_`)).length, 1);
        if (mode !== 'd') t.equal(ofThis.length, reads[mode], `${mode}: ${reads[mode]} reads`);
        if (mode === 't' || mode === 'e') {
          t.equal(outcome.kind, mode === 't' ? 'trapped' : 'exited');
          continue;
        }
        const answer = answerOf(outcome);
        t.match(outcome, { kind: 'ok', status: 200 }, mode);
        t.equal(answer.dirty, 0, 'its memory and globals are new');
        const value = mode === 'm' ? `${id}L` : mode === 'd' ? `${answer.drawn.slice(0, 7)}A` : `${id}A`;
        t.equal(answer.value, value, `${mode}: the value of its own key`);
      }
      t.equal(
        calls.filter(c => /^[\x40-\x7f]{7}A$/.test(c.key)).length,
        asked.filter(a => a.mode === 'd').length,
        'the next run draws the same random bytes',
      );
    }
  },
);

t.test('an answer that is an error, is empty or does not fit is the one the plugin gets', async t => {
  const answers: Record<string, HostResult> = {
    none: { code: HOST_ERROR.notFound },
    denied: { code: HOST_ERROR.denied },
    text: { code: HOST_ERROR.unavailable, data: 'the store is away' },
    empty: { code: 0, data: Buffer.alloc(0) },
    large: { code: 200_000, data: Buffer.alloc(200_000, 'x') },
  };
  const { lanes } = await lanesFor(t, call => call.answer(answers[call.key.replace(/\d+A$/, '')] ?? { code: 0 }));
  for (const [what, { code }] of Object.entries(answers))
    for (const outcome of await together(lanes, 30, `r${what}`)) {
      t.match(outcome, { kind: 'ok' }, what);
      t.equal(answerOf(outcome).code, code, what);
    }
});

t.test(
  'an execution whose first read is not answered ends at its deadline, and an answer that comes later is dropped',
  async t => {
    const held: Call[] = [];
    let isHeld = true;
    const { lanes } = await lanesFor(
      t,
      call => (isHeld && !call.key.startsWith('warm') ? void held.push(call) : echo(call)),
      1500,
    );
    for (let k = 0; k < 30; k++) await together(lanes, 40, 'rwarm');
    const outcomes = await together(lanes, 40, 'rlate');
    for (const { failure, kind, queueWaitMs, runMs } of outcomes) {
      t.ok(kind === 'deadline' || kind === 'no_slot', kind);
      t.ok(queueWaitMs + runMs >= 1400, failure);
    }
    t.ok(outcomes.filter(o => o.kind === 'deadline').length > 8, 'more than have a slot were under way');
    await until(() => lanes.executor.inFlight === 0);
    isHeld = false;
    const later = together(lanes, 60, 'rnext');
    for (const { answer } of held) answer({ code: 5, data: Buffer.from('wrong') });
    for (const [k, outcome] of (await later).entries()) t.equal(answerOf(outcome).value, `next${k}A`);
  },
);

t.test('an execution whose read took most of its time, and that no slot was free for then, lacked no slot', async t => {
  const held: Call[] = [];
  const { lanes } = await lanesFor(t, call => (call.key === 'slowA' ? void held.push(call) : echo(call)), 3000);
  for (let k = 0; k < 30; k++) await together(lanes, 40, 'rwarm');
  // Two, because one alone is not dropped.
  const [, slow] = [lanes.run('reader', Buffer.from('rother_')), lanes.run('reader', Buffer.from('rslow_'))];
  await until(() => held.length === 1);
  const endless = together(lanes, 7, 'lx');
  await sleep(2000);
  for (const call of held) echo(call);
  const outcome = await slow!;
  t.match(outcome, { kind: 'deadline', failure: /had run for \d{4} ms: .*a host call that takes long/ });
  t.ok(outcome.runMs >= outcome.queueWaitMs);
  await endless;
});

t.test('a plugin that catches the end of a run that is dropped, and goes on for ever, is stopped', async t => {
  const { lanes } = await lanesFor(t, echo, 1500);
  for (let k = 0; k < 30; k++) await together(lanes, 40, 'rwarm');
  const endless = together(lanes, 3, 'lx');
  const others = await together(lanes, 40, 'ry');
  t.same([...new Set(others.map(o => o.kind))], ['ok']);
  for (const { kind } of await endless) t.ok(kind === 'deadline' || kind === 'ok', kind);
  await until(() => lanes.executor.inFlight === 0);
});

t.test('an execution whose start draws random bytes or a time waits for its reads, which are done once', async t => {
  const start = (name: string, draw: string): [string, Uint8Array] => [
    name,
    watPlugin({
      id: name,
      imports: ['respond', 'kv_get'],
      moreImports: `(import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "clock_time_get" (func $clock (param i32 i64 i32) (result i32)))`,
      memory: '1',
      requirements: [{ kind: 'kv' }],
      // Letters of the alphabet behind the name of the key.
      body: `(data (i32.const 100) "key-")
        (func (export "_initialize") (local $k i32)
          ${draw}
          (loop $l
            (i32.store8 (i32.add (i32.const 104) (local.get $k))
              (i32.add (i32.const 97) (i32.and (i32.load8_u (i32.add (i32.const 104) (local.get $k))) (i32.const 15))))
            (br_if $l (i32.lt_u (local.tee $k (i32.add (local.get $k) (i32.const 1))) (i32.const 8)))))`,
      handle: `(drop (call $kv_get (i32.const 100) (i32.const 12)))
        (drop (call $respond (i32.const 200) (i32.const 0) (i32.const 0) (i32.const 100) (i32.const 12)))
        (i32.const 0)`,
    }),
  ];
  const { calls, lanes } = await lanesFor(t, echo);
  for (const [name, module] of [
    start('draws', '(drop (call $random (i32.const 104) (i32.const 8)))'),
    start('looks', '(drop (call $clock (i32.const 1) (i64.const 0) (i32.const 104)))'),
  ]) {
    await lanes.load(name, module);
    calls.length = 0;
    const outcomes = await Promise.all(Array.from({ length: 60 }, () => lanes.run(name, Buffer.alloc(0))));
    t.same(
      outcomes.map(o => Buffer.from(o.body).toString()).sort(),
      calls.map(c => c.key).sort(),
      `${name}: each has read the key that it answers`,
    );
  }
});
