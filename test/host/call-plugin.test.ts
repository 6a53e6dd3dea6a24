import t from 'tap';
import { openDatabase } from '../../src/db/database.ts';
import { NestedCalls } from '../../src/execution/nested-calls.ts';
import { addServiceKey } from '../../src/identity/service-keys.ts';
import { type CallAnswer, callerPlugin, callHost } from '../support/caller.ts';
import { type Json, MANY_LANES, startTestService } from '../support/service.ts';
import { mostAtOnce, spanOf, watchedSleeper } from '../support/sleepers.ts';
import { watPlugin } from '../support/wat.ts';

const dep = (...targets: string[]) =>
  targets.map(target => ({ kind: 'plugins:call', target, description: 'calls it' }));
const said = (a: CallAnswer | undefined): [number | undefined, string | undefined] => [a?.code, a?.text];

/** Answers a call with the event and the bytes it got. */
const echo = (id: string): Uint8Array =>
  watPlugin({
    id,
    imports: ['input_len', 'input_read', 'output'],
    memory: '400',
    handle: `(local $n i32) (local $m i32)
      (local.set $n (call $input_len (i32.const 0)))
      (local.set $m (call $input_len (i32.const 1)))
      (drop (call $input_read (i32.const 0) (i32.const 65536) (local.get $n)))
      (drop (call $input_read (i32.const 1) (i32.add (i32.const 65536) (local.get $n)) (local.get $m)))
      (drop (call $output (i32.const 65536) (i32.add (local.get $n) (local.get $m))))
      (i32.const 0)`,
  });

const plain = (
  id: string,
  requirements: Json[] = [],
  handle: string,
  more: Partial<Parameters<typeof watPlugin>[0]> = {},
) => watPlugin({ id, requirements, handle, ...more });

/**
 * Calls `target` with its own input and hands on what it got, or the code of the error as a byte, as the answer of a
 * call and of a request.
 */
const relay = (id: string, target: string): Uint8Array =>
  plain(
    id,
    dep(target),
    `(local $r i32)
     (local.set $r (call $plugin_call (i32.const 16) (i32.const ${target.length}) (i32.const 48) (i32.const 2) (i32.const 0) (i32.const 0)))
     (i32.store8 (i32.const 80) (i32.sub (i32.const 0) (local.get $r)))
     (if (i32.ge_s (local.get $r) (i32.const 0))
       (then (drop (call $result_read (i32.const 80) (local.get $r))))
       (else (local.set $r (i32.const 1))))
     (drop (call $output (i32.const 80) (local.get $r)))
     (drop (call $respond (i32.const 200) (i32.const 0) (i32.const 0) (i32.const 80) (local.get $r)))
     (i32.const 0)`,
    {
      imports: ['plugin_call', 'result_read', 'output', 'respond'],
      body: `(data (i32.const 16) "${target}") (data (i32.const 48) "go")`,
    },
  );

t.test('a plugin calls another plugin with bytes and gets bytes, for the same principal', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  const db = openDatabase(s.databaseUrl, 1, () => {});
  t.teardown(() => db.close());
  await s.install(echo('echo'));
  await s.install(callerPlugin({ id: 'caller', requirements: dep('echo', 'gone') }));
  const [first] = await callHost(s, 'caller', [['plugin_call', 'echo', 'stats.read', 'Привет']]);
  const text = first?.text ?? '';
  const at = text.lastIndexOf('}') + 1;
  t.equal(text.slice(at), 'Привет');
  t.match(JSON.parse(text.slice(0, at)), {
    kind: 'call',
    trigger: 'stats.read',
    request_id: /^[\w-]+$/,
    call: { from: 'caller', function: 'stats.read', auth: null },
  });
  const large = new Uint8Array(9 * 1024 * 1024).fill(7);
  const [big] = await callHost(s, 'caller', [['plugin_call', 'echo', 'f', large]]);
  t.equal(
    big?.bytes.subarray(-large.length).every(b => b === 7),
    true,
    'larger than shared memory holds',
  );
  const key = await addServiceKey(
    db,
    'phk_',
    { name: 'k', scopes: [{ pluginId: 'caller', trigger: 'run' }], expiresAt: null },
    { kind: 'setup', userId: null, name: 'test', requestId: 'r', address: '' },
  );
  await s.admin('PUT', '/plugins/caller/triggers/run/settings', { allow_service_key: true });
  const [second] = await callHost(s, 'caller', [['plugin_call', 'echo', 'f', '']], {
    authorization: `Bearer ${key.text}`,
  });
  t.match(JSON.parse(second?.text ?? ''), { call: { auth: { kind: 'service', service_key_id: Number(key.key.id) } } });
});

t.test('calls that cannot be made say why; each target needs its own permission', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  for (const id of ['echo', 'other', 'off']) await s.install(echo(id));
  t.equal((await s.admin('POST', '/plugins/off/disable')).status, 200);
  await s.install(
    plain('fails', [], '(drop (call $fail (i32.const 16) (i32.const 4))) (i32.const -1)', {
      imports: ['fail'],
      body: '(data (i32.const 16) "sorry")',
    }),
  );
  await s.install(plain('traps', [], 'unreachable'));
  await s.install(plain('silent', [], '(i32.const 0)'));
  await s.install(
    plain('responds', [], '(call $respond (i32.const 200) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))', {
      imports: ['respond'],
    }),
  );
  const targets = ['echo', 'off', 'fails', 'traps', 'silent', 'responds', 'gone', 'caller'];
  await s.install(callerPlugin({ id: 'caller', requirements: dep(...targets) }));
  const a = await callHost(s, 'caller', [
    ['plugin_call', 'other', 'f', ''],
    ['plugin_call', 'off', 'f', ''],
    ['plugin_call', 'fails', 'f', ''],
    ['plugin_call', 'traps', 'f', ''],
    ['plugin_call', 'silent', 'f', ''],
    ['plugin_call', 'responds', 'f', ''],
    ['plugin_call', 'gone', 'f', ''],
    ['plugin_call', 'caller', 'f', ''],
    ['plugin_call', 'echo', '', ''],
    ['plugin_call', 'echo', 'a b', ''],
    ['plugin_call', 'echo', 'f', ''],
  ]);
  t.same(a.slice(0, 10).map(said), [
    [-1, 'permission denied'],
    [-5, 'plugin "off" is disabled'],
    [-7, 'plugin "fails" reported: sorr'],
    [-7, 'plugin "traps" crashed'],
    [0, ''],
    [-7, 'plugin "responds" reported: the handler returned -3'],
    [-2, 'there is no plugin "gone"'],
    [-8, 'the call would close a cycle: caller -> caller'],
    [-3, 'the name of a function has 1 to 128 letters, digits, _ . : / and -'],
    [-3, 'the name of a function has 1 to 128 letters, digits, _ . : / and -'],
  ]);
  t.ok((a[10]?.code ?? 0) > 0);
  const records = async () => (await s.admin('GET', '/plugins/traps/executions')).json as { items: Json[] };
  let { items } = await records();
  while (items.length === 0) ({ items } = await records());
  t.match(items, [{ outcome: 'trapped', trigger: 'call:f', principal: 'public' }], 'each call leaves a record');
});

t.test('calls may be nested eight deep, and a cycle is refused', async t => {
  const s = await startTestService(MANY_LANES);
  t.teardown(() => s.stop());
  for (let k = 0; k < 10; k++) await s.install(relay(`p${k}`, `p${k + 1}`));
  await s.install(echo('p10'));
  // p2 calls p3 ... p10: eight calls.
  t.match((await s.trigger('p2/run')).text, /"call":\{"from":"p9"/);
  t.equal((await s.trigger('p1/run')).text, '\x04', 'the ninth is refused');
  await s.install(relay('a', 'b'));
  await s.install(relay('b', 'c'));
  await s.install(relay('c', 'a'));
  t.equal((await s.trigger('a/run')).text, '\x08');
});

t.test('one deadline holds for all nested calls, and the outermost caller is answered in time', async t => {
  const s = await startTestService({ ...MANY_LANES, BOT_EXECUTION_TIMEOUT_MS: '1000' });
  t.teardown(() => s.stop());
  await s.install(plain('loops', [], '(loop $l (br $l)) (i32.const 0)'));
  await s.install(relay('middle', 'loops'));
  await s.install(relay('outer', 'middle'));
  t.match(await s.trigger('outer/run'), { status: 504, json: { code: 'deadline_exceeded', detail: /1000 ms/ } });
  for (let k = 0; k < 200 && s.service.executor.inFlight > 0; k++) await new Promise(r => setTimeout(r, 20));
  t.equal(s.service.executor.inFlight, 0, 'every slot is given back');
});

t.test('plugins that call each other from all their slots do not lock each other', async t => {
  const s = await startTestService(MANY_LANES);
  t.teardown(() => s.stop());
  // Every top-level execution of one needs a slot of the other.
  await s.install(relay('left', 'right'));
  await s.install(relay('right', 'left'));
  // The deadline is five seconds for all of them: what is run for the first time is not measured by it.
  for (const id of ['left', 'right']) await s.trigger(`${id}/run`);
  const all = await Promise.all(
    Array.from({ length: 32 }, (_, k) =>
      s.trigger(k % 2 === 0 ? 'left/run' : 'right/run').then(a => [a.status, a.text]),
    ),
  );
  // The nested call may not call back, because that would close a cycle (-8), and answers so; or there was no slot
  // (-5).
  for (const [status, text] of all)
    t.ok(status === 200 && (text === '\x08' || text === '\x05'), JSON.stringify([status, text]));
  t.equal(s.service.executor.inFlight, 0);
  await s.install(echo('leaf'));
  for (const id of ['x0', 'x1', 'x2', 'x3', 'x4', 'x5', 'x6', 'x7']) await s.install(relay(id, 'leaf'));
  for (let k = 0; k < 8; k++) await s.trigger(`x${k}/run`);
  const wide = await Promise.all(Array.from({ length: 60 }, (_, k) => s.trigger(`x${k % 8}/run`)));
  t.same([...new Set(wide.map(a => a.status))], [200], 'more callers than threads');
  t.ok(wide.filter(a => a.text.includes('"kind":"call"')).length > 30, 'and nearly all are served');
});

t.test(
  'executions that a caller causes through other plugins count as its own: one slot is left to the next',
  async t => {
    const s = await startTestService({ BOT_EXECUTION_LANES: '20' });
    t.teardown(() => s.stop());
    await s.install(watchedSleeper('target', 400));
    await s.install(relay('left', 'target'));
    await s.install(relay('right', 'target'));
    const span = async (id: string): Promise<readonly [bigint, bigint]> =>
      spanOf(Buffer.from(await (await fetch(`${s.base}/api/triggers/http/${id}/run`)).arrayBuffer()));
    for (const id of ['target', 'left', 'right']) await span(id);
    // On a busy machine the last of seven may begin when the first has ended: the next round has them together.
    let most = 0;
    for (let round = 0; round < 10 && most !== 7; round++) {
      const all = Array.from({ length: 12 }, (_, k) => span(['target', 'left', 'right'][k % 3] ?? ''));
      most = mostAtOnce(await Promise.all(all));
      t.ok(most <= 7, `${most} at once`);
    }
    t.equal(most, 7);
  },
);

t.test('the call that would close a cycle of full plugins is refused', t => {
  const calls = new NestedCalls();
  let cell = 0;
  // Each of another caller, unless one is named.
  const fill = (callers: string[], to: string, n: number, caller?: string): number => {
    for (let k = 0; k < n; k++, cell++) calls.add(cell, { callers, to, caller: caller ?? `user:${cell}` });
    return cell - 1;
  };
  const wouldStarve = (
    callers: string[],
    to: string,
    isWaiting: (cell: number) => boolean,
    caller = 'user:0',
  ): boolean => calls.wouldStarve({ callers, to, caller }, { isWaiting, slotsOf: () => ({ all: 8, ofOne: 7 }) });
  const all = (): boolean => true;
  fill(['a'], 'b', 7);
  const last = fill(['a'], 'b', 1);
  fill(['b'], 'c', 7);
  const through = fill(['a', 'b'], 'c', 1);
  fill(['c'], 'a', 7);
  // The last call of a has begun in b, where it waits for c.
  const begun = (s: number): boolean => s !== last;
  t.equal(wouldStarve(['c'], 'a', begun), true);
  t.equal(wouldStarve(['d'], 'a', begun), false, 'c still has one slot that goes on');
  t.equal(wouldStarve(['c'], 'd', begun), false);
  calls.remove(through);
  t.equal(wouldStarve(['c'], 'a', begun), false, 'the one that has begun goes on');
  fill(['b'], 'c', 1);
  t.equal(wouldStarve(['c'], 'a', all), true);
  calls.remove(0);
  t.equal(wouldStarve(['c'], 'a', all), false);
  // One caller may hold seven slots of each: seven that wait are all it has, whatever the eighth does.
  const own = fill(['e'], 'f', 7, 'user:1');
  fill(['f'], 'e', 6, 'user:1');
  t.equal(wouldStarve(['f'], 'e', all, 'user:1'), true);
  t.equal(wouldStarve(['f'], 'e', all, 'user:2'), false, 'another caller gets the eighth slot');
  calls.remove(own);
  t.equal(wouldStarve(['f'], 'e', all, 'user:1'), false);
  fill(['x'], 'y', 48);
  t.equal(calls.isFull, true);
  t.end();
});
