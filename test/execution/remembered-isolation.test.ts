import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import t from 'tap';
import { attackIsolation } from '../support/attack-isolation.ts';
import { seeded } from '../support/expensive-modules.ts';
import { OneLane, rewrite } from '../support/one-lane.ts';
import { buildExample } from '../support/sdk.ts';
import { watPlugin } from '../support/wat.ts';

const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'remembered-'));
t.teardown(() => fs.rmSync(directory, { recursive: true, force: true }));

const event = (query: Record<string, string>): string =>
  JSON.stringify({
    kind: 'http',
    trigger: 'greet',
    http: { method: 'GET', path: '/greet', query, headers: { host: 'x' } },
  });
/** Small, with characters to escape, and so large that the memory has to grow. */
const EVENTS = [event({}), event({ name: 'you' }), event({ name: 'ö"\\\n' }), event({ name: 'x'.repeat(150_000) })];

/** Its start leaves large and small islands in a memory of 60 pages; its handler grows it by what the event says. */
const islands = watPlugin({
  id: 'islands',
  imports: ['respond', 'input_len', 'input_read'],
  memory: '60',
  body: `
    (global $n (mut i32) (i32.const 0))
    (data (i32.const 4096) "island")
    (func $init
      (memory.fill (i32.const 65536) (i32.const 1) (i32.const 150000))
      (memory.fill (i32.const 400000) (i32.const 2) (i32.const 40000))
      (memory.fill (i32.const 1000000) (i32.const 3) (i32.const 10))
      (memory.fill (i32.const 3000000) (i32.const 4) (i32.const 500000))
      (i32.store (i32.const 3932156) (i32.const 5))
      (global.set $n (i32.const 7)))
    (export "_initialize" (func $init))`,
  handle: `(local $length i32)
    (local.set $length (call $input_len (i32.const 0)))
    (drop (memory.grow (i32.rem_u (local.get $length) (i32.const 11))))
    (drop (call $input_read (i32.const 0) (i32.const 2000000) (local.get $length)))
    (global.set $n (i32.add (global.get $n) (i32.load8_u (i32.const 65536))))
    (i32.store (i32.const 1500000) (global.get $n))
    (i32.store (i32.sub (i32.mul (memory.size) (i32.const 65536)) (i32.const 4)) (global.get $n))
    (i32.store (i32.const 1500004) (i32.load (i32.const 4096)))
    (call $respond (i32.const 200) (i32.const 0) (i32.const 0) (i32.const 1500000) (i32.const 8))`,
});

t.test('on a memory used again an execution leaves exactly what it leaves on a new one', async t => {
  const seed = Math.floor(Math.random() * 2 ** 31);
  t.comment(`seed ${seed}`);
  for (const [name, bytes] of [
    ['hello', await buildExample('hello')],
    ['islands', islands],
  ] as const) {
    const module = await rewrite(bytes, directory);
    t.equal(module.overwritten.length, name === 'islands' ? 3 : 0, 'the large islands are noted');
    const attack = attackIsolation(
      module,
      EVENTS.map(event => ({ event })),
      4000,
      seeded(seed),
    );
    t.same(attack.leaks, [], name);
    t.ok(attack.again > 3000, `${name}: ${attack.again} of 4000 memories were used again`);
  }
});

t.test('the memory of an execution that did not return normally is not used again', async t => {
  const lane = new OneLane(await rewrite(islands, directory), { fixed: true, recycle: true });
  const memoryOf = (): ArrayBufferLike => {
    lane.run(event({ name: growing }));
    return lane.memory.buffer;
  };
  // With this name the memory does not grow.
  const growing = 'x'.repeat((11 - (event({ name: '' }).length % 11)) % 11);
  const first = memoryOf();
  t.ok(lane.release(true));
  t.equal(memoryOf(), first);
  t.notOk(lane.release(false));
  t.not(memoryOf(), first);
});

t.test('memories follow what recent executions need, up and down', async t => {
  const module = await rewrite(islands, directory);
  const lane = new OneLane(module, { fixed: true, recycle: true });
  const sizeAfter = (name: string, executions: number): number => {
    for (let k = 0; k < executions; k++) {
      lane.run(event({ name }));
      lane.release(true);
    }
    lane.run(event({ name }));
    return lane.memory.length / 65536;
  };
  // The handler grows the memory by the length of the event modulo eleven.
  const growing = (pages: number): string => 'x'.repeat((pages + 11 - (event({ name: '' }).length % 11)) % 11);
  t.equal(sizeAfter(growing(0), 5), 60);
  t.equal(sizeAfter(growing(3), 2), 64, 'to the next power of two above the initial size');
  t.equal(sizeAfter(growing(5), 2), 68);
  t.equal(sizeAfter(growing(0), 10), 68, 'not at once');
  t.equal(sizeAfter(growing(0), 2100), 60, 'after two thousand executions that need less');
});
