import { Buffer } from 'node:buffer';
import fs from 'node:fs';
import path from 'node:path';
import type { Worker } from 'node:worker_threads';
import t from 'tap';
import { HOST_ERROR, HOST_FUNCTIONS, wasmParametersOf } from '../../src/abi/host-functions.ts';
import { SANDBOX_FLAT } from '../../src/abi/response-headers.ts';
import { LIMITS } from '../../src/base/limits.ts';
import { makeLaneThreads } from '../../src/execution/lane-threads.ts';
import { ExecutionState } from '../../workers/execution-state.ts';
import { GuestMemory } from '../../workers/guest-memory.ts';
import { makeWasi } from '../../workers/wasi.ts';
import { startLanes } from '../support/executor.ts';
import { assemble, manifestOf, watPlugin, withManifest } from '../support/wat.ts';

const MIB = 1024 * 1024;
const WRITE = '(import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))';
const CLOSE = '(import "wasi_snapshot_preview1" "fd_close" (func $fd_close (param i32) (result i32)))';
const words = (body: Uint8Array): number[] =>
  Array.from({ length: body.length >> 2 }, (_, k) => Buffer.from(body).readInt32LE(4 * k));
/** Stores a value as word `n` of the answer, which `answer` sends. */
const keep = (n: number, value: string): string => `(i32.store (i32.const ${2048 + 4 * n}) ${value})`;
const answer = (n: number): string =>
  `(drop (call $respond (i32.const 200) (i32.const 0) (i32.const 0) (i32.const 2048) (i32.const ${4 * n}))) (i32.const 0)`;

t.test('the log of an execution keeps so many bytes, whatever they are, and no half of a character', t => {
  for (const letter of ['a', '\u0001', 'ж', '漢', '🎓']) {
    const state = new ExecutionState(new Int32Array(2));
    for (let k = 0; k < 100; k++) state.log(1, letter.repeat(4000));
    const text = state.logLines.map(line => line.text).join('');
    const bytes = Buffer.byteLength(text);
    t.ok(bytes <= LIMITS.logBytesPerExecution, `${bytes} bytes of ${JSON.stringify(letter)}`);
    t.ok(bytes > LIMITS.logBytesPerExecution * 0.9);
    t.notMatch(text, /\ufffd/);
    t.equal(state.logTruncated, true);
  }
  t.end();
});

t.test('a reset leaves nothing of an execution in the state of a lane', t => {
  const control = (): Int32Array => new Int32Array(2);
  const [used, fresh] = [new ExecutionState(control()), new ExecutionState(control())];
  const secret = Buffer.from('secret');
  Object.assign(used, {
    ...{ ended: 'fault', exitCode: 7, parked: secret, parkedBody: secret, error: 'secret', invalidResponse: 'secret' },
    ...{ response: { status: 200, headers: secret, body: secret, bodyBytes: 6 }, output: secret, failure: 'secret' },
    ...{ logLines: [{ level: 1, text: 'secret' }], logBytes: 5, logTruncated: true, hostCalls: 9, hostCallBytes: 9 },
  });
  used.control.fill(1);
  used.reset();
  // Set before every execution.
  const given = new Set(['event', 'body', 'deadline', 'entry', 'config']);
  for (const key of Object.keys(fresh) as Array<keyof ExecutionState>)
    if (!given.has(key)) t.same(used[key], fresh[key], key);
  t.ok(Object.keys(fresh).length > 18, 'every field was looked at');
  t.end();
});

t.test('while the host shuts down new executions are refused, and those that running ones call are not', async t => {
  const lanes = startLanes(t.testdir(), { lanes: 1 });
  t.teardown(() => lanes.executor.close());
  await lanes.load('p', watPlugin({ handle: '(i32.const 0)' }));
  t.equal((await lanes.run('p')).kind, 'ok');
  await lanes.executor.drain();
  t.equal((await lanes.run('p')).kind, 'draining');
  t.equal((await lanes.run('p', undefined, ['q'])).kind, 'ok');
});

t.test('threads of plugins have no environment, no arguments and no options of the process', async t => {
  const file = path.join(t.testdir(), 'lane.cjs');
  fs.writeFileSync(file, 'module.exports = () => ({ env: { ...process.env }, execArgv: process.execArgv });');
  process.env.SECRET_OF_THE_PROCESS = 'x';
  const threads = makeLaneThreads(file);
  t.teardown(async () => {
    delete process.env.SECRET_OF_THE_PROCESS;
    await threads.destroy();
  });
  const seen: unknown = await Reflect.apply(threads.run, threads, [{}]);
  t.same(seen, { env: {}, execArgv: [] });
});

t.test('a plugin reads nothing of the input or output of the execution before it on the same lane', async t => {
  const lanes = startLanes(t.testdir(), {
    lanes: 1,
    dispatch: (name, _args, plugin) =>
      name === 'kv_get' && plugin === 'first'
        ? { code: 6, data: 'secret', body: Buffer.from('raw secret') }
        : { code: HOST_ERROR.denied, data: 'a secret reason' },
  });
  t.teardown(() => lanes.executor.close());
  const imports = [
    'respond',
    'kv_get',
    'kv_set',
    'output',
    'result_read',
    'body_len',
    'body_read',
    'error_len',
    'error_read',
    'fail',
  ];
  await lanes.load(
    'first',
    watPlugin({
      imports,
      moreImports: `${WRITE} ${CLOSE}`,
      body: '(data (i32.const 64) "secret") (data (i32.const 128) "\\40\\00\\00\\00\\06\\00\\00\\00")',
      handle: `(drop (call $kv_set (i32.const 64) (i32.const 6) (i32.const 64) (i32.const 6) (i32.const 0)))
        ${keep(0, '(call $error_len)')} ${keep(1, '(call $kv_get (i32.const 64) (i32.const 6))')} ${keep(2, '(call $body_len)')}
        ${keep(3, '(call $result_read (i32.const 512) (i32.const 100))')}
        (drop (call $output (i32.const 64) (i32.const 6)))
        (drop (call $fd_write (i32.const 1) (i32.const 128) (i32.const 1) (i32.const 256)))
        (drop (call $fd_close (i32.const 1))) (drop (call $fd_close (i32.const 2))) ${answer(4)}`,
    }),
  );
  await lanes.load(
    'second',
    watPlugin({
      imports,
      moreImports: WRITE,
      body: '(data (i32.const 64) "mine") (data (i32.const 128) "\\40\\00\\00\\00\\04\\00\\00\\00")',
      handle: `${keep(0, '(call $result_read (i32.const 512) (i32.const 100))')} ${keep(1, '(call $body_len)')}
        ${keep(2, '(call $body_read (i32.const 0) (i32.const 512) (i32.const 100))')} ${keep(3, '(call $error_len)')}
        ${keep(4, '(call $error_read (i32.const 512) (i32.const 100))')} ${keep(5, '(i32.load (i32.const 512))')}
        ${keep(6, '(call $fd_write (i32.const 1) (i32.const 128) (i32.const 1) (i32.const 256))')}
        ${keep(7, '(call $fd_write (i32.const 2) (i32.const 128) (i32.const 1) (i32.const 256))')} ${answer(8)}`,
    }),
  );
  for (let round = 0; round < 3; round++) {
    const first = await lanes.run('first');
    t.same(words(first.body), [15, 6, 10, 6], 'the first one has all of it');
    t.equal(Buffer.from(first.output).toString(), 'secret');
    const denied = { level: 2, text: 'kv_set was denied: it needs the requirement KV' };
    t.same(first.log, [denied, { level: 1, text: 'secret' }], 'also what it wrote without a newline');
    const second = await lanes.run('second');
    t.same(words(second.body), [0, 0, 0, 0, 0, 0, 0, 0], 'nothing to read, both descriptors open');
    t.same(
      { output: second.output.length, failure: second.failure, log: second.log },
      {
        output: 0,
        failure: '',
        log: [
          { level: 1, text: 'mine' },
          { level: 3, text: 'mine' },
        ],
      },
    );
  }
});

for (const where of ['start', '_initialize'])
  t.test(`every host function is denied inside ${where === 'start' ? 'the start function' : where}`, async t => {
    const reached: string[] = [];
    const lanes = startLanes(t.testdir(), {
      lanes: 1,
      dispatch: name => {
        reached.push(name);
        return { code: 0 };
      },
    });
    t.teardown(() => lanes.executor.close());
    const calls = HOST_FUNCTIONS.map((row, k) => {
      const zeros = wasmParametersOf(row).map(type => `(${type}.const 0)`);
      return keep(k, `(call $${row.name} ${zeros.join(' ')})`);
    });
    await lanes.load(
      'early',
      watPlugin({
        imports: HOST_FUNCTIONS.map(row => row.name),
        body: `(func $early ${where === 'start' ? '' : '(export "_initialize")'} ${calls.join('\n')}) ${where === 'start' ? '(start $early)' : ''}`,
        handle: answer(HOST_FUNCTIONS.length),
      }),
    );
    const outcome = await lanes.run('early');
    t.equal(outcome.kind, 'ok');
    const denied = HOST_FUNCTIONS.map(row => [row.name, HOST_ERROR.denied]);
    t.same(
      words(outcome.body).map((code, k) => [HOST_FUNCTIONS[k]?.name, code]),
      denied,
    );
    t.same(reached, [], 'none of them left the lane');
  });

t.test('the 10,001st host call of an execution is refused', async t => {
  const lanes = startLanes(t.testdir(), { lanes: 1 });
  t.teardown(() => lanes.executor.close());
  const calling = (times: number): Uint8Array =>
    watPlugin({
      imports: ['input_len'],
      handle: `(local $i i32) (loop $l (drop (call $input_len (i32.const 0)))
        (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const ${times})))) (i32.const 0)`,
    });
  await lanes.load('all', calling(10_000));
  await lanes.load('more', calling(10_001));
  t.match(await lanes.run('all'), { kind: 'ok', hostCalls: 10_000 });
  t.match(await lanes.run('more'), { kind: 'quota', failure: 'more than 10000 host calls in one execution' });
});

t.test('a file beyond what an execution may read is refused, and the handler goes on', async t => {
  const chunk = Buffer.alloc(MIB);
  const lanes = startLanes(t.testdir(), {
    lanes: 1,
    dispatch: (_name, args) => {
      const data = chunk.subarray(0, Number(args.at(-1)));
      return { code: data.length, data };
    },
  });
  t.teardown(() => lanes.executor.close());
  await lanes.load(
    'reads',
    watPlugin({
      imports: ['file_read_into', 'respond'],
      requirements: [{ kind: 'file' }],
      memory: '17',
      handle: `(local $n i32)
        (loop $l (local.set $n (call $file_read_into (i32.const 0) (i32.const 1) (i64.const 0) (i32.const 65536) (i32.const ${MIB})))
          (br_if $l (i32.gt_s (local.get $n) (i32.const 0))))
        (drop (call $respond (i32.add (i32.const 400) (local.get $n)) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))) (i32.const 0)`,
    }),
  );
  const outcome = await lanes.run('reads');
  t.match(
    outcome,
    { kind: 'ok', hostCalls: 66, status: 400 + HOST_ERROR.tooLarge },
    'with an error that it can handle',
  );
});

t.test('an execution may pass 64 MiB through host calls, counted in both directions', async t => {
  t.equal(LIMITS.hostCallBytesMax, 64 * MIB);
  const big = Buffer.alloc(8 * MIB);
  let answered = 0;
  const lanes = startLanes(t.testdir(), {
    lanes: 1,
    dispatch: (name, args) => {
      if (name === 'event_publish') return { code: 0 };
      // Two parts, both of which count: as many bytes together as the name is long, or 8 MiB.
      answered++;
      const bytes = args[0] === 'all' ? big.length : Number(args[0]);
      return { code: bytes, data: big.subarray(0, bytes >> 1), body: big.subarray(0, bytes - (bytes >> 1)) };
    },
  });
  t.teardown(() => lanes.executor.close());
  const requirements = [{ kind: 'kv' }, { kind: 'events' }];
  const quota = { kind: 'quota', failure: `more than ${64 * MIB} bytes through host calls in one execution` };
  // 63 names of 1 KB with 1 MiB less 1 KB each, then what is left of the last MiB, then perhaps one byte more.
  const call = (n: number): string =>
    `(drop (call $event_publish (i32.const 0) (i32.const 1) (i32.const 0) (i32.const ${n})))`;
  const sending = (more: string): Uint8Array =>
    watPlugin({
      imports: ['event_publish'],
      requirements,
      memory: '17',
      handle: `(local $i i32) (loop $l ${call(MIB - 1)}
        (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 64)))) ${more} (i32.const 0)`,
    });
  await lanes.load('sends', sending(''));
  await lanes.load('sends_more', sending(call(0)));
  t.match(await lanes.run('sends'), { kind: 'ok', hostCalls: 64 });
  t.match(await lanes.run('sends_more'), quota);
  // Each of eight calls sends 3 bytes and gets 8 MiB; the last gets what is left.
  const getting = (last: number): Uint8Array => {
    const text = String(last);
    return watPlugin({
      imports: ['kv_get'],
      requirements,
      body: `(data (i32.const 64) "all") (data (i32.const 128) "${text}")`,
      handle: `(local $i i32) (loop $l (drop (call $kv_get (i32.const 64) (i32.const 3)))
        (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 7))))
        (drop (call $kv_get (i32.const 128) (i32.const ${text.length}))) (i32.const 0)`,
    });
  };
  const left = 8 * MIB - 7 * 3 - 7;
  await lanes.load('gets', getting(left));
  await lanes.load('gets_more', getting(left + 1));
  t.match(await lanes.run('gets'), { kind: 'ok', hostCalls: 8 });
  t.match(await lanes.run('gets_more'), quota);
  t.equal(answered, 16, 'the bytes that came in are what ended it');
});

t.test('headers are checked as they are at the call, even if the same memory was checked before', async t => {
  const lanes = startLanes(t.testdir(), { lanes: 1 });
  t.teardown(() => lanes.executor.close());
  // Answers with the same bytes of memory twice; the body of the request says at which of the two they are bad.
  await lanes.load(
    'changing',
    watPlugin({
      imports: ['respond', 'input_read'],
      body: '(data (i32.const 64) "{\\"ETag\\":\\"a\\"}") (data (i32.const 128) "\\00")',
      handle: `(local $bad i32)
        (drop (call $input_read (i32.const 1) (i32.const 128) (i32.const 1)))
        (local.set $bad (i32.load8_u (i32.const 128)))
        (if (i32.eq (local.get $bad) (i32.const 1)) (then (i32.store8 (i32.const 73) (i32.const 1))))
        (drop (call $respond (i32.const 200) (i32.const 64) (i32.const 12) (i32.const 0) (i32.const 0)))
        (if (i32.eq (local.get $bad) (i32.const 2)) (then (i32.store8 (i32.const 73) (i32.const 1))))
        (drop (call $respond (i32.const 200) (i32.const 64) (i32.const 12) (i32.const 0) (i32.const 0))) (i32.const 0)`,
    }),
  );
  const bad = { kind: 'invalid_response', failure: 'the headers are not JSON', headers: '' };
  for (let round = 0; round < 3; round++) {
    t.match(await lanes.run('changing', Uint8Array.of(0)), { kind: 'ok', headers: `ETag\0a\0${SANDBOX_FLAT}` });
    t.match(await lanes.run('changing', Uint8Array.of(2)), bad, 'changed within one execution');
    t.match(await lanes.run('changing', Uint8Array.of(0)), { kind: 'ok', headers: `ETag\0a\0${SANDBOX_FLAT}` });
    t.match(await lanes.run('changing', Uint8Array.of(1)), bad, 'changed since the execution before');
  }
});

t.test('fd_write reads its vectors and their data only inside the memory', t => {
  const memory = new WebAssembly.Memory({ initial: 1 });
  const state = new ExecutionState(Int32Array.of(0, 0, 1));
  const guest = new GuestMemory(state.control);
  const view = new DataView(memory.buffer);
  guest.bind(memory, new Uint8Array(memory.buffer), view);
  const write = makeWasi(state, guest, { remainingMs: () => 1000, sleeping() {} }).functions.fd_write;
  if (typeof write !== 'function') throw new Error('there is no fd_write');
  const vector = (at: number, pointer: number, length: number): void => {
    view.setUint32(at, pointer, true);
    view.setUint32(at + 4, length, true);
  };
  new Uint8Array(memory.buffer).set(Buffer.from('line\n'), 64);
  const end = 65_536;
  const rows: Array<[string, number, () => unknown[]]> = [
    ['one vector', 0, () => [vector(256, 64, 5), 1, 256, 1, 8]],
    ['none', 0, () => [undefined, 1, 256, 0, 8]],
    ['1024, each of nothing', 0, () => [undefined, 1, 1024, 1024, 8]],
    ['1025', 28, () => [undefined, 1, 1024, 1025, 8]],
    ['as many as wrap around to one', 28, () => [vector(256, 64, 5), 1, 256, 0x2000_0001, 8]],
    ['vectors at the very end', 0, () => [vector(end - 8, 64, 5), 1, end - 8, 1, 8]],
    ['vectors over the end', 21, () => [undefined, 1, end - 4, 1, 8]],
    ['vectors behind the end', 21, () => [undefined, 1, -8, 1, 8]],
    ['the count over the end', 21, () => [vector(256, 64, 5), 1, 256, 1, end - 3]],
    ['text up to the end', 0, () => [vector(256, end - 1, 1), 1, 256, 1, 8]],
    ['text over the end', 21, () => [vector(256, end - 1, 2), 1, 256, 1, 8]],
    ['text that wraps around', 21, () => [vector(256, 64, 0xffff_ffff), 1, 256, 1, 8]],
    ['a second vector outside', 21, () => [vector(256, 64, 5), 1, 256, 2, 8]],
    ['standard input', 8, () => [vector(256, 64, 5), 0, 256, 1, 8]],
    ['a descriptor that is not open', 8, () => [vector(256, 64, 5), 3, 256, 1, 8]],
  ];
  for (const [name, errno, prepare] of rows) {
    new Uint8Array(memory.buffer).fill(0, 256);
    if (name === 'a second vector outside') vector(264, end, 1);
    const [, ...args] = prepare();
    t.equal(write(...args), errno, name);
  }
  t.match(state.logLines.map(l => l.text).join(''), /^(line|\\x00)+$/, 'only what was in the memory was written');
  t.end();
});

t.test('a letter that is cut by writes or by vectors is one letter of the log', t => {
  const memory = new WebAssembly.Memory({ initial: 1 });
  const state = new ExecutionState(Int32Array.of(0, 0, 1));
  const guest = new GuestMemory(state.control);
  const view = new DataView(memory.buffer);
  guest.bind(memory, new Uint8Array(memory.buffer), view);
  const wasi = makeWasi(state, guest, { remainingMs: () => 1000, sleeping() {} });
  const write = wasi.functions.fd_write;
  if (typeof write !== 'function') throw new Error('there is no fd_write');
  const text = Buffer.from('\uFEFFпривет 😀\nмир');
  new Uint8Array(memory.buffer).set(text, 64);
  /** Writes the text in pieces, so many vectors at a time. */
  const inPieces = (fd: number, size: number, vectors: number): void => {
    for (let at = 0; at < text.length; ) {
      let count = 0;
      for (; count < vectors && at < text.length; count++, at += size) {
        view.setUint32(1024 + 8 * count, 64 + at, true);
        view.setUint32(1028 + 8 * count, Math.min(size, text.length - at), true);
      }
      t.equal(write(fd, 1024, count, 8), 0);
    }
  };
  const lines = (): string[] => state.logLines.splice(0).map(l => l.text);
  for (const [size, vectors] of [
    [1, 1],
    [1, 7],
    [3, 2],
    [100, 1],
  ] as const) {
    inPieces(1, size, vectors);
    wasi.flush();
    t.same(lines(), ['\uFEFFпривет 😀', 'мир'], `${size} bytes, ${vectors} vectors`);
  }
  // What is cut off for good is shown as such, and is no part of the other descriptor or of the next execution.
  const writeHalf = (): void => {
    view.setUint32(1024, 64, true);
    view.setUint32(1028, 4, true);
    write(1, 1024, 1, 8);
  };
  writeHalf();
  inPieces(2, 100, 1);
  wasi.flush();
  t.same(lines(), ['\uFEFFпривет 😀', '\uFEFF\uFFFD', 'мир']);
  writeHalf();
  wasi.reset();
  inPieces(1, 100, 1);
  wasi.flush();
  t.same(lines(), ['\uFEFFпривет 😀', 'мир']);
  t.end();
});

t.test('a thread with an interrupted host function takes no more work', async t => {
  const threads: Worker[] = [];
  const gone: Worker[] = [];
  const note = (thread: Worker): void => {
    threads.push(thread);
    thread.once('exit', () => gone.push(thread));
  };
  process.on('worker', note);
  t.teardown(() => process.off('worker', note));
  const lanes = startLanes(t.testdir(), { lanes: 1 });
  t.teardown(() => lanes.executor.close());
  // A configuration value that is no text makes `config_get` throw, as only a mistake of ours would.
  const config = JSON.parse('{"k":5}') as Record<string, string>;
  await lanes.load(
    'faulty',
    watPlugin({
      imports: ['config_get'],
      body: '(data (i32.const 64) "k")',
      handle: '(try (do (drop (call $config_get (i32.const 64) (i32.const 1)))) (catch_all)) (i32.const 0)',
    }),
    config,
  );
  await lanes.load('fine', watPlugin({ handle: '(i32.const 0)' }));
  t.equal((await lanes.run('fine')).kind, 'ok');
  t.equal((await lanes.run('fine')).kind, 'ok');
  t.same([threads.length, gone.length], [1, 0], 'a thread that worked well goes on');
  const outcome = await lanes.run('faulty');
  t.match(outcome, { kind: 'trapped', failure: /^host function config_get failed/ });
  t.equal((await lanes.run('fine')).kind, 'ok');
  t.equal(threads.length, 2, 'another thread serves');
  t.same(gone, threads.slice(0, 1), 'the one that broke off is gone');
});

t.test('the memory budget stops the execution that uses the most memory, and no other', async t => {
  // Each says `ready`, fills what it was told and says `full`; it goes on when the test lets it.
  const told = new Map<string, () => void>();
  const waiting = new Map<string, () => void>();
  const until = (what: string): Promise<void> =>
    new Promise(resolve => (waiting.has(what) ? resolve() : told.set(what, resolve)));
  const lanes = startLanes(t.testdir(), {
    lanes: 4,
    memoryBudgetBytes: process.memoryUsage.rss() + 400 * MIB,
    dispatch: (_name, args, plugin) =>
      new Promise(resolve => {
        const what = `${plugin} ${String(args[0])}`;
        waiting.set(what, () => resolve({ code: 0 }));
        told.get(what)?.();
      }),
  });
  t.teardown(() => lanes.executor.close());
  const filling = (id: string, mib: number): Uint8Array =>
    withManifest(
      assemble(`(module (import "plugin_host" "kv_get" (func $say (param i32 i32) (result i32))) (memory (export "memory") 1)
        (data (i32.const 64) "ready") (data (i32.const 80) "full")
        (func (export "plugin_handle") (result i32)
          (drop (call $say (i32.const 64) (i32.const 5)))
          (drop (memory.grow (i32.const ${mib * 16})))
          (memory.fill (i32.const 65536) (i32.const 1) (i32.const ${mib * MIB}))
          (drop (call $say (i32.const 80) (i32.const 4))) (i32.const 0)))`),
      manifestOf({ id, requirements: [{ kind: 'kv' }] }),
    );
  const sizes: Array<[string, number]> = [
    ['small', 40],
    ['middle', 120],
    ['large', 330],
  ];
  const ended = new Map<string, Promise<{ kind: string }>>();
  for (const [id, mib] of sizes) {
    await lanes.load(id, filling(id, mib));
    ended.set(id, lanes.run(id));
    await until(`${id} ready`);
  }
  // What a thread has touched counts from when its execution was first seen to run for long.
  for (const [id] of sizes.slice(0, 2)) {
    waiting.get(`${id} ready`)?.();
    await until(`${id} full`);
  }
  waiting.get('large ready')?.();
  t.match(await ended.get('large'), { kind: 'memory_budget' });
  for (const [id] of sizes.slice(0, 2)) {
    waiting.get(`${id} full`)?.();
    t.match(await ended.get(id), { kind: 'ok' }, id);
  }
});
