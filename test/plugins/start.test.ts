import fs from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { PAGE_BYTES } from '../../src/base/limits.ts';
import { readModule } from '../../src/plugins/gate/module.ts';
import { rememberStart } from '../../src/plugins/remembered-start.ts';
import { type Json, startTestService, type TestService } from '../support/service.ts';
import { assemble, hostImports, manifestOf, type WatPlugin, watPlugin, withManifest } from '../support/wat.ts';

const WASI = {
  random: '(import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))',
  poll: '(import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))',
  clock: '(import "wasi_snapshot_preview1" "clock_time_get" (func $clock (param i32 i64 i32) (result i32)))',
  write: '(import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))',
  close: '(import "wasi_snapshot_preview1" "fd_close" (func $close (param i32) (result i32)))',
  exit: '(import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))',
};

/** Answers the first 64 bytes of its memory from address 128 on. */
const answerMemory =
  '(drop (call $respond (i32.const 200) (i32.const 0) (i32.const 0) (i32.const 128) (i32.const 64))) (i32.const 0)';

async function ask(s: TestService, id: string): Promise<Buffer> {
  const r = await fetch(`${s.base}/api/triggers/http/${id}/run`);
  if (r.status !== 200) throw new Error(`${r.status} ${await r.text()}`);
  return Buffer.from(await r.arrayBuffer());
}

const startFindings = (answer: Json): Json[] => {
  const findings = answer.findings;
  if (!Array.isArray(findings)) throw new Error(JSON.stringify(answer));
  return findings.filter((f): f is Json => typeof f === 'object' && f !== null && 'rule' in f && f.rule === 'start');
};

/** Its start fills memory, grows it and sets globals of every type; its handler reports them, then spoils them all. */
const remembering = watPlugin({
  id: 'remembering',
  imports: ['respond', 'kv_get', 'log'],
  memory: '2 40',
  body: `
    (data (i32.const 200) "data")
    (global $i (mut i32) (i32.const 1)) (global $l (mut i64) (i64.const 2))
    (global $f (mut f32) (f32.const 3)) (global $d (mut f64) (f64.const 4))
    (global $v (mut v128) (v128.const i64x2 5 6))
    (global $fixed i32 (i32.const 77))
    (global $r (mut funcref) (ref.null func))
    (global $x (mut externref) (ref.null extern))
    (table $t 3 10 funcref) (elem (i32.const 1) $init)
    (func $init
      (global.set $i (i32.const -123456789)) (global.set $l (i64.const -8070450532247928832))
      ;; NaNs with payloads, whose bits a number of JavaScript would lose.
      (global.set $f (f32.reinterpret_i32 (i32.const 0x7fa12345)))
      (global.set $d (f64.reinterpret_i64 (i64.const 0x7ff4000000abcdef)))
      (global.set $v (v128.const i32x4 0x11111111 0x22222222 0x33333333 0x44444444))
      (global.set $r (ref.null func))
      (drop (memory.grow (i32.const 3)))
      (i32.store (i32.const 327672) (i32.const 0x5eed))
      (memory.copy (i32.const 70000) (i32.const 200) (i32.const 4))
      ;; Denied, so it changes nothing and is the same every time.
      (i32.store (i32.const 300) (call $kv_get (i32.const 200) (i32.const 4)))
      (drop (call $log (i32.const 1) (i32.const 200) (i32.const 4))))
    (start $init)
    (func $spoil
      (global.set $i (i32.const 0)) (global.set $l (i64.const 0)) (global.set $f (f32.const 0)) (global.set $d (f64.const 0))
      (global.set $v (v128.const i64x2 0 0)) (global.set $r (ref.func $init))
      (table.set $t (i32.const 0) (ref.func $init)) (table.set $t (i32.const 1) (ref.null func))
      (drop (memory.grow (i32.const 7)))
      (memory.fill (i32.const 0) (i32.const 0xaa) (i32.mul (memory.size) (i32.const 65536))))
    (export "keep" (func $init))`,
  handle: `
    (local $k i32)
    ;; Fold the whole memory into one number, so that a stray byte shows.
    (local $sum i64)
    (local.set $sum (i64.const 0))
    (block $end (loop $l
      (br_if $end (i32.ge_u (local.get $k) (i32.mul (memory.size) (i32.const 65536))))
      (local.set $sum (i64.add (i64.mul (local.get $sum) (i64.const 31)) (i64.load (local.get $k))))
      (local.set $k (i32.add (local.get $k) (i32.const 8))) (br $l)))
    (i32.store (i32.const 1024) (global.get $i)) (i64.store (i32.const 1028) (global.get $l))
    (f32.store (i32.const 1036) (global.get $f)) (f64.store (i32.const 1040) (global.get $d))
    (v128.store (i32.const 1048) (global.get $v))
    (i32.store (i32.const 1064) (i32.add (ref.is_null (global.get $r)) (i32.mul (i32.const 2) (ref.is_null (global.get $x)))))
    (i32.store (i32.const 1068) (i32.add (ref.is_null (table.get $t (i32.const 0))) (i32.mul (i32.const 2) (ref.is_null (table.get $t (i32.const 1))))))
    (i32.store (i32.const 1072) (memory.size))
    (i32.store (i32.const 1076) (i32.load (i32.const 327672)))
    (i32.store (i32.const 1080) (i32.load (i32.const 70000)))
    (i32.store (i32.const 1084) (i32.load (i32.const 300)))
    (i64.store (i32.const 1088) (local.get $sum))
    (i32.store (i32.const 1096) (memory.grow (i32.const 1)))
    (i32.store (i32.const 1100) (memory.size))
    (i32.store (i32.const 1104) (global.get $fixed))
    (i32.store (i32.const 1108) (memory.grow (i32.const 35)))
    (drop (call $respond (i32.const 200) (i32.const 0) (i32.const 0) (i32.const 1024) (i32.const 88)))
    (call $spoil)
    (i32.const 0)`,
});

t.test('a start that asked for nothing is remembered: memory, size and globals are as it left them', async t => {
  for (const memory of ['recycled', 'fresh']) {
    const s = await startTestService({ BOT_EXECUTION_MEMORY: memory, BOT_EXECUTION_LANES: '1' });
    t.teardown(() => s.stop());
    const { uploaded } = await s.install(remembering);
    t.match(startFindings(uploaded), [
      { level: 'note', message: /^its start is remembered: it ran once, at the upload/ },
    ]);
    const first = await ask(s, 'remembering');
    t.equal(first.readInt32LE(0), -123456789);
    t.equal(first.readBigInt64LE(4), -8070450532247928832n);
    t.equal(first.readUInt32LE(12), 0x7fa12345, 'the bits of a NaN');
    t.equal(first.readBigUInt64LE(16), 0x7ff4000000abcdefn);
    t.equal(first.toString('hex', 24, 40), '11111111222222223333333344444444');
    t.equal(first.readInt32LE(40), 3, 'references are null');
    t.equal(first.readInt32LE(44), 1, 'the table holds what its segment says');
    t.equal(first.readInt32LE(48), 5, 'the memory has the size the start gave it');
    t.equal(first.readInt32LE(52), 0x5eed);
    t.equal(first.toString('latin1', 56, 60), 'data');
    t.equal(first.readInt32LE(60), -1, 'host functions were denied');
    t.equal(first.readInt32LE(72), 5, 'memory.grow answers the size before');
    t.equal(first.readInt32LE(76), 6);
    t.equal(first.readInt32LE(80), 77);
    t.equal(first.readInt32LE(84), -1, 'the maximum of the module holds');
    for (let k = 0; k < 30; k++) t.same(await ask(s, 'remembering'), first, 'nothing of the execution before is left');
    await s.stop();
  }
});

type Row = { name: string; plugin: Partial<WatPlugin>; level: string; message: RegExp; same: boolean | null };

const draw = '(func $init (drop (call $random (i32.const 128) (i32.const 32)))) (export "_initialize" (func $init))';
const ROWS: Row[] = [
  {
    name: 'random',
    plugin: { moreImports: WASI.random, body: draw },
    level: 'note',
    message:
      /^its start runs in every execution, because it drew random numbers \(once\); .*"start": "once" in the manifest/,
    same: false,
  },
  {
    name: 'random-once',
    plugin: { moreImports: WASI.random, body: draw, start: 'once' },
    level: 'warning',
    message: /is remembered.* It drew random numbers \(once\)\. All executions share what it got, because/,
    same: true,
  },
  {
    name: 'clock',
    plugin: {
      moreImports: WASI.clock,
      body: '(func $init (drop (call $clock (i32.const 1) (i64.const 0) (i32.const 128))) (drop (call $clock (i32.const 0) (i64.const 0) (i32.const 136)))) (start $init)',
    },
    level: 'note',
    message: /because it read the clock \(2 times\)/,
    same: false,
  },
  {
    name: 'output',
    plugin: {
      moreImports: WASI.write,
      body: '(data (i32.const 0) "\\08\\00\\00\\00\\02\\00\\00\\00hi") (func $init (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 128)))) (start $init)',
    },
    level: 'note',
    message: /because it wrote output \(once\)/,
    same: true,
  },
  {
    name: 'table',
    plugin: {
      body: '(table $t 2 funcref) (func $init (table.set $t (i32.const 1) (ref.func $init))) (start $init) (export "keep" (func $init))',
    },
    level: 'note',
    message: /because it changes a table$/,
    same: true,
  },
  {
    name: 'drop',
    plugin: {
      body: '(data $d "passive") (func $init (memory.init $d (i32.const 128) (i32.const 0) (i32.const 7)) (data.drop $d)) (start $init)',
    },
    level: 'note',
    message: /because the module drops segments$/,
    same: true,
  },
  {
    name: 'reference',
    plugin: {
      body: '(global $r (mut funcref) (ref.null func)) (func $init (global.set $r (ref.func $init))) (start $init) (export "keep" (func $init))',
    },
    level: 'note',
    message: /because a global variable holds a reference before it or after it$/,
    same: true,
  },
  {
    name: 'closing',
    plugin: { moreImports: WASI.close, body: '(func $init (drop (call $close (i32.const 1)))) (start $init)' },
    level: 'note',
    message: /because it closes a standard descriptor$/,
    same: true,
  },
  {
    name: 'large',
    plugin: {
      memory: '500',
      body: '(func $init (memory.fill (i32.const 128) (i32.const 1) (i32.const 30000000))) (start $init)',
    },
    level: 'note',
    message: /because it leaves 28\.6 MB of memory, and at most 24\.0 MB are kept$/,
    same: true,
  },
  {
    name: 'trapping',
    plugin: { body: '(func $init unreachable) (start $init)' },
    level: 'warning',
    message: /^its start failed, and so will every execution: unreachable$/,
    same: null,
  },
  {
    name: 'exiting',
    plugin: { moreImports: WASI.exit, body: '(func $init (call $exit (i32.const 3))) (start $init)' },
    level: 'warning',
    message: /^its start failed, and so will every execution: it called proc_exit\(3\)$/,
    same: null,
  },
  {
    name: 'endless',
    plugin: { body: '(func $init (loop $l (br $l))) (start $init)' },
    level: 'warning',
    message: /because it needs more than 3 s of processor time$/,
    same: null,
  },
  {
    name: 'written-once',
    plugin: {
      moreImports: WASI.write,
      start: 'once',
      body: '(data (i32.const 0) "\\08\\00\\00\\00\\02\\00\\00\\00hi") (func $init (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 128)))) (start $init)',
    },
    level: 'warning',
    message: /is remembered.* It wrote output \(once\)\. No execution writes that again, because/,
    same: true,
  },
  {
    name: 'function-before',
    // Only the initial value of the global declares $f, and the handler names it.
    plugin: {
      body: '(func $f) (global $r (mut funcref) (ref.func $f)) (func $init (global.set $r (ref.null func))) (start $init)',
      handle: `(drop (ref.func $f)) ${answerMemory}`,
    },
    level: 'note',
    message: /because a global variable holds a reference before it or after it$/,
    same: true,
  },
  {
    name: 'deep',
    plugin: {
      body: '(func $deep (param i32) (if (local.get 0) (then (call $deep (i32.sub (local.get 0) (i32.const 1)))))) (func $init (call $deep (i32.const 30000)) (i32.store (i32.const 128) (i32.const 5))) (start $init)',
    },
    level: 'note',
    message: /is remembered/,
    same: true,
  },
  {
    name: 'too-deep',
    plugin: { body: '(func $deep (call $deep)) (func $init (call $deep)) (start $init)' },
    level: 'warning',
    message: /^its start failed at the upload: Maximum call stack size exceeded$/,
    same: null,
  },
  {
    name: 'sleeping',
    plugin: {
      moreImports: '(import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))',
      body: '(func $init (i32.store (i32.const 1040) (i32.const 1)) (i64.store (i32.const 1048) (i64.const 300000000)) (loop $l (drop (call $poll (i32.const 1024) (i32.const 2048) (i32.const 1) (i32.const 4096))) (br $l))) (start $init)',
    },
    level: 'note',
    message: /because it sleeps for more than a second$/,
    same: null,
  },
  {
    name: 'waits',
    plugin: {
      moreImports: WASI.poll,
      body: `(func $init
        (i32.store (i32.const 1040) (i32.const 1)) (i64.store (i32.const 1048) (i64.const 1000000))
        (drop (call $poll (i32.const 1024) (i32.const 2048) (i32.const 1) (i32.const 4096))))
        (export "_initialize" (func $init))`,
    },
    level: 'note',
    message: /runs in every execution, because it read the clock \(once\)/,
    same: null,
  },
  {
    name: 'nothing',
    plugin: { start: 'once' },
    level: 'note',
    message: /says "start": "once", but the module has no start function and no _initialize/,
    same: true,
  },
];

t.test('the upload says whether the start is remembered, and why not', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  for (const { level, message, name, plugin, same } of ROWS) {
    const { uploaded } = await s.install(
      watPlugin({ id: name, imports: ['respond'], handle: answerMemory, ...plugin }),
    );
    t.match(startFindings(uploaded), [{ level, message }], name);
    if (same === null) continue;
    const [a, b] = [await ask(s, name), await ask(s, name)];
    t.equal(a.equals(b), same, `${name}: two executions begin ${same ? 'alike' : 'differently'}`);
  }
  t.match((await s.upload(watPlugin({ handle: '(i32.const 0)', start: 'always' }))).json, {
    status: 422,
    errors: [{ message: /manifest \/start: "always": leave it out, or write "once"/ }],
  });
  const silent = await s.upload(watPlugin({ handle: '(i32.const 0)' }));
  t.same(startFindings(silent.json), [], 'a module without a start has nothing to say');
});

t.test('what a start left is taken only when its parts lie in order, apart, and in its memory', t => {
  const outline = readModule(watPlugin({ handle: '(i32.const 0)' }));
  const file = path.join(t.testdir(), 'image');
  const take = (
    extents: Array<[number, number]>,
    bytes = extents.reduce((sum, [, length]) => sum + length, 0),
  ): unknown => {
    const asked = { random: 0, clock: 0, output: 0 };
    const flags = { closed: false, tablesChanged: false, sleeps: false, overflowed: false };
    const report = JSON.stringify({ failure: null, asked, ...flags, pages: 1, imageBytes: bytes, extents });
    const length = Buffer.alloc(4);
    length.writeUInt32LE(report.length);
    fs.writeFileSync(file, Buffer.concat([length, Buffer.from(report), Buffer.alloc(PAGE_BYTES + bytes)]));
    return rememberStart({ file, controlPages: 1 }, outline, false).image;
  };
  t.match(
    take([
      [0, 4096],
      [8192, 4096],
    ]),
    { pages: 1, extents: [{ address: 0 }, { address: 8192 }] },
  );
  t.match(
    take([
      [0, 4096],
      [4096, 4096],
    ]),
    { extents: [{ address: 0 }, { address: 4096 }] },
    'side by side',
  );
  for (const [extents, bytes] of [
    [
      [
        [0, 4096],
        [4095, 10],
      ],
    ],
    [
      [
        [8192, 4096],
        [0, 4096],
      ],
    ],
    [
      [
        [0, 4096],
        [0, 4096],
      ],
    ],
    [[[-1, 10]]],
    [[[0, 0]]],
    [[[65_530, 10]]],
    [[[0, 10]], 20],
    [[[0, 20]], 10],
  ] as Array<[Array<[number, number]>, number?]>)
    t.throws(() => take(extents, bytes), { message: 'the image of the start is malformed' }, JSON.stringify(extents));
  t.end();
});

t.test('passive segments and the indices of segments survive a remembered start', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  const wat = `(module ${hostImports('respond')} (memory (export "memory") 1)
    (data $active (i32.const 128) "active") (data $passive "passive") (data $later (i32.const 160) "later")
    (func $init (i32.store8 (i32.const 128) (i32.const 65)))
    (start $init)
    (func (export "plugin_handle") (result i32)
      (memory.init $passive (i32.const 140) (i32.const 0) (i32.const 7))
      (memory.init $active (i32.const 150) (i32.const 0) (i32.const 0))
      ${answerMemory}))`;
  const { uploaded } = await s.install(withManifest(assemble(wat), manifestOf({ id: 'segments' })));
  t.match(startFindings(uploaded), [{ message: /is remembered/ }]);
  const seen = await ask(s, 'segments');
  t.equal(seen.toString('latin1', 0, 6), 'Active');
  t.equal(seen.toString('latin1', 12, 19), 'passive');
  t.equal(seen.toString('latin1', 32, 37), 'later');
});

t.test('every memory.size and memory.grow is as the specification says, wherever it stands', async t => {
  const s = await startTestService({ BOT_EXECUTION_LANES: '1' });
  t.teardown(() => s.stop());
  const many = Array.from(
    { length: 300 },
    (_, k) =>
      `(func $f${k} (param i32) (result i32) ${k % 3 === 0 ? '(drop (memory.size))' : ''} (i32.add (local.get 0) (memory.grow (i32.const ${k % 7 === 0 ? 1 : 0}))))`,
  );
  const handle = `(local $n i32)
    (i32.store (i32.const 128) (memory.grow (i32.const -1)))
    (i32.store (i32.const 132) (memory.grow (i32.const 0)))
    ${many.map((_, k) => `(local.set $n (call $f${k} (local.get $n)))`).join('\n')}
    (i32.store (i32.const 136) (local.get $n))
    (i32.store (i32.const 140) (memory.size))
    (i32.store (i32.const 144) (memory.grow (i32.const 8192)))
    (i32.store (i32.const 148) (memory.grow (i32.sub (i32.const 60) (memory.size))))
    (i32.store (i32.const 152) (memory.grow (i32.const 1)))
    (i32.store (i32.const 156) (i32.load (i32.const 3932156)))
    ${answerMemory}`;
  await s.install(watPlugin({ id: 'sizes', imports: ['respond'], memory: '2 60', body: many.join('\n'), handle }));
  let [size, sum] = [2, 0];
  for (let k = 0; k < 300; k++) {
    sum += size;
    if (k % 7 === 0) size++;
  }
  for (let run = 0; run < 10; run++) {
    const seen = await ask(s, 'sizes');
    t.same(
      Array.from({ length: 8 }, (_, k) => seen.readInt32LE(4 * k)),
      [-1, 2, sum, size, -1, size, -1, 0],
    );
  }
});
