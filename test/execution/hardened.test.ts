import net from 'node:net';
import t from 'tap';
import { checkResponseHeaders } from '../../src/abi/response-headers.ts';
import { MANY_LANES, startTestService } from '../support/service.ts';
import { until } from '../support/until.ts';
import { okPlugin, respondText, watPlugin } from '../support/wat.ts';

const POLL = '(import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))';
const sleep = (ms: number): string =>
  `(i32.store (i32.const 1040) (i32.const 1)) (i64.store (i32.const 1048) (i64.const ${ms}000000)) (drop (call $poll (i32.const 1024) (i32.const 2048) (i32.const 1) (i32.const 4096)))`;

t.test('header lists are limited by the bytes that are sent, not by those the plugin passed', async t => {
  const bomb = JSON.stringify({ ['x'.repeat(32_000)]: Array.from({ length: 10_000 }, () => '') });
  t.match(checkResponseHeaders(bomb, 'p'), { ok: false, reason: /200 header lines|larger than 65536/ });
  t.match(checkResponseHeaders(JSON.stringify({ a: Array.from({ length: 201 }, () => 'x') }), 'p'), { ok: false });
  t.match(checkResponseHeaders('{"Set-Cookie":"=user_session=evil"}', 'p'), { ok: false, reason: /no cookie name/ });
  t.match(checkResponseHeaders('{"Content-Type":"text/plain","Set-Cookie":["a=1","b=2"]}', 'p'), {
    ok: true,
    flat: 'Content-Type\0text/plain\0Set-Cookie\0a=1; Path=/api/triggers/http/p\0Set-Cookie\0b=2; Path=/api/triggers/http/p\0',
  });
});

t.test('one plugin cannot stop the records of the others, and output without a newline is kept', async t => {
  const s = await startTestService(MANY_LANES);
  t.teardown(() => s.stop());
  await s.install(okPlugin());
  // 65,518 letters and one character outside the basic plane, cut in its middle.
  await s.install(
    watPlugin({
      id: 'cutter',
      imports: ['log'],
      memory: '2',
      body: '(data (i32.const 64) "a") (data (i32.const 66542) "\\f0\\9f\\98\\80")',
      handle: `(drop (call $log (i32.const 3) (i32.const 64) (i32.const 1)))
        (memory.fill (i32.const 1024) (i32.const 97) (i32.const 65518))
        (drop (call $log (i32.const 3) (i32.const 1024) (i32.const 65522))) (i32.const 0)`,
    }),
  );
  t.equal((await s.trigger('cutter/run')).status, 204);
  await s.trigger('neighbour/run');
  t.match((await s.admin('GET', '/plugins/neighbour/executions')).json, { items: [{ outcome: 'ok' }] });
  t.match((await s.admin('GET', '/plugins/cutter/executions')).json, { items: [{ outcome: 'ok' }] });
  await s.install(
    watPlugin({
      id: 'panics',
      moreImports: '(import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))',
      body: '(data (i32.const 64) "panicked at x") (data (i32.const 128) "\\40\\00\\00\\00\\0d\\00\\00\\00")',
      handle: '(drop (call $write (i32.const 2) (i32.const 128) (i32.const 1) (i32.const 256))) unreachable',
    }),
  );
  await s.trigger('panics/run');
  const { json } = await s.admin('GET', '/plugins/panics/executions');
  const [first] = json.items as Array<{ id: number }>;
  t.match((await s.admin('GET', `/plugins/panics/executions/${first?.id}`)).json.log, [
    { level: 'error', text: 'panicked at x' },
  ]);
});

t.test('overload alone suspends no trigger', async t => {
  const s = await startTestService({ ...MANY_LANES, BOT_EXECUTION_TIMEOUT_MS: '1500' });
  t.teardown(() => s.stop());
  await s.install(
    watPlugin({
      id: 'slow',
      imports: ['respond'],
      moreImports: POLL,
      body: '(data (i32.const 64) "ok")',
      handle: `${sleep(400)} ${respondText(64, 2)} (i32.const 0)`,
    }),
  );
  const answers = await Promise.all(Array.from({ length: 64 }, () => s.trigger('slow/run')));
  // On a busy machine one that sleeps may wake too late, which is no reason to suspend it either.
  const late = ({ status }: { status: number }): boolean => status === 504;
  t.ok(
    answers.every(a => a.status === 200 || a.status === 503 || late(a)),
    answers.map(a => a.status).join(),
  );
  t.ok(answers.some(a => a.status === 503));
  let next = await s.trigger('slow/run');
  while (late(next)) next = await s.trigger('slow/run');
  t.equal(next.status, 200);
});

t.test('plugins that sleep in all their slots do not delay another plugin', async t => {
  const s = await startTestService({ BOT_EXECUTION_LANES: '8' });
  t.teardown(() => s.stop());
  await s.install(okPlugin());
  await s.trigger('neighbour/run');
  for (const id of ['bed_a', 'bed_b'])
    await s.install(watPlugin({ id, moreImports: POLL, handle: `${sleep(4500)} (i32.const 0)` }));
  const { executor } = s.service;
  // On a busy machine the first sleepers may wake before the last thread is there: the next ones find the threads that
  // came.
  let answeredInTime = false;
  for (let round = 0; round < 4 && !answeredInTime; round++) {
    let awake = 0;
    const asleep = ['bed_a', 'bed_b'].flatMap(id =>
      Array.from({ length: 8 }, () => s.trigger(`${id}/run`).finally(() => awake++)),
    );
    await until(() => !(executor.lanesRunning < 14 && awake === 0));
    t.equal((await s.trigger('neighbour/run')).text, 'ok');
    answeredInTime = awake === 0;
    await Promise.all(asleep);
  }
  t.ok(answeredInTime, 'with a thread for each of the 16 sleepers, the neighbour waits for none of them');
});

t.test('settings changed at the same time are not lost', async t => {
  const s = await startTestService(MANY_LANES);
  t.teardown(() => s.stop());
  await s.install(okPlugin('both'));
  const put = (body: unknown) => s.admin('PUT', '/plugins/both/triggers/run/settings', body);
  for (let k = 0; k < 20; k++) {
    await put({ allow_user_session: false, policy_expression: '', accept_public: true });
    await Promise.all([put({ allow_user_session: true }), put({ policy_expression: `${k} == ${k}` })]);
    t.match((await s.admin('GET', '/plugins/both/triggers/run/settings')).json, {
      allow_user_session: true,
      policy_expression: `${k} == ${k}`,
    });
  }
});

t.test('a request whose body is still arriving is refused once the plugin is disabled', async t => {
  const s = await startTestService(MANY_LANES);
  t.teardown(() => s.stop());
  await s.install(okPlugin('late'));
  const socket = net.connect(s.service.server.port, '127.0.0.1');
  let text = '';
  socket.on('data', c => (text += c.toString()));
  socket.write('POST /api/triggers/http/late/run HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf_');
  await new Promise(r => setTimeout(r, 100));
  await s.admin('POST', '/plugins/late/disable');
  socket.write('other');
  for (let k = 0; k < 100 && text === ''; k++) await new Promise(r => setTimeout(r, 10));
  socket.destroy();
  t.match(text, /^HTTP\/1.1 404 /);
});

t.test('NUL and odd names in input are refused or harmless, never a 500', async t => {
  const s = await startTestService(MANY_LANES);
  t.teardown(() => s.stop());
  await s.install(okPlugin('odd'));
  t.equal((await s.admin('GET', '/plugins/%00')).status, 400);
  t.equal((await s.admin('GET', '/plugins/odd/executions?trigger=%00')).status, 422);
  t.equal((await s.admin('GET', '/plugins/odd/executions?since=2026-01-01junk')).status, 422);
  t.equal((await s.admin('PUT', '/plugins/odd/triggers/run/settings', { policy_expression: 'a\0b' })).status, 422);
  t.equal((await s.upload(watPlugin({ id: 'nul', version: '1\0', handle: '(i32.const 0)' }))).status, 422);
  t.equal((await s.trigger('odd/run', { headers: { constructor: 'x' } })).status, 200);
});

t.test('the memory budget stops the execution that uses the most memory, not its neighbours', async t => {
  const budget = Math.ceil(process.memoryUsage.rss() / 1024 / 1024) + 300;
  const s = await startTestService({ ...MANY_LANES, BOT_EXECUTION_MEMORY_BUDGET_MB: String(budget) });
  t.teardown(() => s.stop());
  await s.install(
    watPlugin({
      id: 'calm',
      imports: ['respond'],
      moreImports: POLL,
      body: '(data (i32.const 64) "ok")',
      handle: `${sleep(2500)} ${respondText(64, 2)} (i32.const 0)`,
    }),
  );
  // Fills 240 MB and sleeps on it.
  await s.install(
    watPlugin({
      id: 'hog',
      moreImports: POLL,
      handle: `(drop (memory.grow (i32.const 3839))) ${sleep(50)} (memory.fill (i32.const 65536) (i32.const 1) (i32.const 251000000)) ${sleep(2000)} (i32.const 0)`,
    }),
  );
  const calm = s.trigger('calm/run');
  const hogs = await Promise.all([s.trigger('hog/run'), s.trigger('hog/run')]);
  t.ok(
    hogs.some(a => a.status === 503 && a.json.code === 'memory_budget'),
    hogs.map(a => a.status).join(),
  );
  t.equal((await calm).status, 200, 'an execution that touches nothing goes on');
});

t.test("an execution's resources are released when it ends, whichever thread ran it", async t => {
  const s = await startTestService(MANY_LANES);
  t.teardown(() => s.stop());
  await s.install(
    watPlugin({
      id: 'eater',
      handle: `(drop (memory.grow (i32.const 767))) (memory.fill (i32.const 0) (i32.const 1) (i32.const 50331648)) (i32.const 0)`,
    }),
  );
  await s.install(okPlugin());
  const atOnce = Array.from({ length: 6 });
  await Promise.all(atOnce.map(() => s.trigger('neighbour/run')));
  const before = process.memoryUsage.rss();
  // Several at once, so that several threads have held one.
  for (let round = 0; round < 2; round++)
    for (const a of await Promise.all(atOnce.map(() => s.trigger('eater/run')))) t.equal(a.status, 204);
  // Three of the six memories would be too many; if they were not given back, the test would never end.
  while (process.memoryUsage.rss() - before > 120 * 1024 * 1024) await s.trigger('neighbour/run');
  t.pass('the memory is back');
});
