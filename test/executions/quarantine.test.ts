import t from 'tap';
import type { Actor } from '../../src/audit/audit-log.ts';
import { MANY_LANES, startTestService } from '../support/service.ts';
import { respondText, watPlugin } from '../support/wat.ts';

const BY: Actor = { kind: 'setup', userId: null, name: 'test', requestId: 'r', address: '127.0.0.1' };

/** Traps when the body is `t`, answers `ok` otherwise; two triggers share the handler. */
const moody = watPlugin({
  id: 'moody',
  imports: ['respond', 'input_read', 'log'],
  triggers: ['a', 'b'].map(name => ({ name, type: 'http', path: `/${name}`, methods: ['POST'] })),
  body: '(data (i32.const 64) "ok")',
  handle: `(drop (call $input_read (i32.const 1) (i32.const 1024) (i32.const 1)))
    (drop (call $log (i32.const 3) (i32.const 64) (i32.const 2)))
    (if (i32.eq (i32.load8_u (i32.const 1024)) (i32.const 116)) (then unreachable))
    ${respondText(64, 2)} (i32.const 0)`,
});

t.test('three traps in a row suspend the trigger alone, an administrator sees why and resumes it', async t => {
  const s = await startTestService(MANY_LANES);
  t.teardown(() => s.stop());
  await s.install(moody);
  const ask = async (trigger: string, body: string): Promise<number> =>
    (await s.trigger(`moody/${trigger}`, { method: 'POST', body })).status;
  for (const body of ['t', 't', 'n', 't', 't', 'n'])
    t.equal(await ask('a', body), body === 't' ? 502 : 200, 'a success in between forgets the strikes');
  for (let k = 0; k < 3; k++) t.equal(await ask('a', 't'), 502);
  const refused = await s.trigger('moody/a', { method: 'POST', body: 'n' });
  t.equal(refused.status, 503);
  t.match(refused.json, { code: 'quarantined', detail: /suspended for \d+ s/ });
  const retry = Number(refused.headers.get('retry-after'));
  t.ok(retry > 25 && retry <= 30);
  t.equal(await ask('b', 'n'), 200, 'the other trigger goes on');
  const { json } = await s.admin('GET', '/plugins/moody');
  t.match(json.quarantine, [{ trigger: 'a', cause: /trapped: unreachable/ }]);
  t.match((await s.admin('POST', '/plugins/moody/triggers/a/resume')).json, { resumed: true });
  t.equal(await ask('a', 'n'), 200);
  t.match((await s.admin('POST', '/plugins/moody/triggers/a/resume')).json, { resumed: false });
  t.same((await s.admin('GET', '/plugins/moody')).json.quarantine, []);
});

t.test('a suspension lasts twice as long every time, up to ten minutes', async t => {
  const s = await startTestService(MANY_LANES);
  t.teardown(() => s.stop());
  await s.install(moody);
  const { Quarantine } = await import('../../src/executions/quarantine.ts');
  const { openDatabase } = await import('../../src/db/database.ts');
  const db = openDatabase(s.databaseUrl, 2, () => {});
  t.teardown(() => db.close());
  const q = new Quarantine(db, error => t.fail(String(error)));
  let now = Date.parse('2026-01-01T00:00:00Z');
  const seconds: number[] = [];
  for (let k = 0; k < 7; k++) {
    for (let strike = 0; strike < 3; strike++) q.note('moody', 'a', { kind: 'deadline', failure: '' }, now);
    const until = q.find('moody', 'a', now)?.until?.getTime() ?? 0;
    seconds.push((until - now) / 1000);
    now = until + 1;
    t.equal(q.find('moody', 'a', now), undefined, 'it ends by itself');
  }
  t.same(seconds, [30, 60, 120, 240, 480, 600, 600]);
  now += 601_000;
  for (let strike = 0; strike < 3; strike++) q.note('moody', 'a', { kind: 'deadline', failure: '' }, now);
  t.equal(
    ((q.find('moody', 'a', now)?.until?.getTime() ?? 0) - now) / 1000,
    30,
    'after ten quiet minutes it starts anew',
  );
  for (const at of [0, 61_000, 122_000]) q.note('moody', 'b', { kind: 'deadline', failure: '' }, now + at);
  t.equal(q.find('moody', 'b', now + 122_000), undefined, 'three in three minutes are not three in one');
  await q.close();
});

t.test('a resume that meets the suspension while it is being written has the last word', async t => {
  const s = await startTestService(MANY_LANES);
  t.teardown(() => s.stop());
  await s.install(moody);
  const { Quarantine } = await import('../../src/executions/quarantine.ts');
  const { openDatabase } = await import('../../src/db/database.ts');
  const db = openDatabase(s.databaseUrl, 4, () => {});
  t.teardown(() => db.close());
  const q = new Quarantine(db, error => t.fail(String(error)));
  for (let round = 0; round < 20; round++) {
    const now = Date.now();
    for (let strike = 0; strike < 3; strike++) q.note('moody', 'a', { kind: 'deadline', failure: '' }, now);
    t.equal(await q.resume('moody', 'a', BY), true);
    await q.close();
    const { rows } = await db.query('SELECT 1 FROM plugin_quarantine');
    t.same(rows, []);
  }
});

t.test('execution records are filtered, paged and show their log', async t => {
  const s = await startTestService(MANY_LANES);
  t.teardown(() => s.stop());
  await s.install(moody);
  for (const [trigger, body] of [
    ['a', 'n'],
    ['b', 't'],
    ['b', 'n'],
    ['a', 't'],
  ] as const)
    await s.trigger(`moody/${trigger}`, {
      method: 'POST',
      body,
      headers: { 'x-request-id': `request-${trigger}-${body}` },
    });
  const list = async (query: string): Promise<string[]> =>
    ((await s.admin('GET', `/plugins/moody/executions${query}`)).json.items as Array<{ request_id: string }>).map(
      r => r.request_id,
    );
  t.same(await list(''), ['request-a-t', 'request-b-n', 'request-b-t', 'request-a-n'], 'newest first');
  t.same(await list('?outcome=trapped'), ['request-a-t', 'request-b-t']);
  t.same(await list('?trigger=b&outcome=ok'), ['request-b-n']);
  t.same(await list(`?since=${new Date(Date.now() + 60_000).toISOString()}`), []);
  t.same(await list('?since=2020-01-01'), ['request-a-t', 'request-b-n', 'request-b-t', 'request-a-n']);
  const page = await s.admin('GET', '/plugins/moody/executions?limit=3');
  t.same(await list(`?limit=3&cursor=${String(page.json.next_cursor)}`), ['request-a-n']);
  const [first] = page.json.items as Array<{ id: number }>;
  t.match((await s.admin('GET', `/plugins/moody/executions/${first?.id}`)).json, {
    outcome: 'trapped',
    status: 502,
    principal: 'public',
    version: '1.0.0',
    host_calls: 2,
    peak_pages: 1,
    failure: /unreachable/,
    log: [{ level: 'error', text: 'ok' }],
  });
  t.match(await s.admin('GET', '/plugins/moody/executions?outcome=bad'), {
    status: 422,
    json: { errors: [{ pointer: 'query:outcome' }] },
  });
  t.match(await s.admin('GET', '/plugins/moody/executions?since=yesterday'), {
    status: 422,
    json: { errors: [{ pointer: 'query:since' }] },
  });
  t.equal((await s.admin('GET', '/plugins/moody/executions/999999')).status, 404);
  t.equal((await s.admin('GET', '/plugins/moody/executions/x')).status, 404);
});

t.test('successes are sampled, failures and executions that logged an error are all kept', async t => {
  const s = await startTestService(MANY_LANES);
  t.teardown(() => s.stop());
  await s.install(moody);
  await s.install(
    watPlugin({
      id: 'plain',
      imports: ['respond'],
      body: '(data (i32.const 64) "ok")',
      handle: `${respondText(64, 2)} (i32.const 0)`,
    }),
  );
  await Promise.all(Array.from({ length: 60 }, () => s.trigger('moody/a', { method: 'POST', body: 'n' })));
  await Promise.all(Array.from({ length: 60 }, () => s.trigger('plain/run')));
  const count = async (id: string): Promise<number> =>
    ((await s.admin('GET', `/plugins/${id}/executions?limit=200`)).json.items as unknown[]).length;
  t.equal(await count('moody'), 60);
  const sampled = await count('plain');
  t.ok(sampled >= 5 && sampled < 60, `${sampled} of 60 kept`);
});
