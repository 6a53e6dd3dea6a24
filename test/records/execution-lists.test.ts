import t from 'tap';
import { openDatabase } from '../../src/db/database.ts';
import { type Json, startTestService, type TestService } from '../support/service.ts';
import { watPlugin } from '../support/wat.ts';
import { watchStream } from '../support/watch-stream.ts';

/** Executions of all plugins, as a list and as they come, and what waits for an administrator. */

const host = await startTestService();
t.teardown(() => host.stop());
await host.install(watPlugin({ id: 'well', name: 'Well', handle: '(i32.const 0)' }));
await host.install(watPlugin({ id: 'ill', name: 'Ill', handle: 'unreachable' }));
const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';

async function listed(s: TestService, query = ''): Promise<Json[]> {
  const { json, status, text } = await s.admin('GET', `/executions${query}`);
  if (status !== 200) throw new Error(text);
  return json.items as Json[];
}

t.test('executions of all plugins are one list, the newest first, with the filters of one plugin and more', async t => {
  const from = new Date().toISOString();
  await host.trigger('well/run', { headers: { traceparent: `00-${TRACE}-00f067aa0ba902b7-01` } });
  await host.trigger('ill/run');
  const all = await listed(host);
  t.match(
    all.slice(0, 2).map(e => [e.plugin_id, e.outcome, e.log_lines]),
    [
      ['ill', 'trapped', 0],
      ['well', 'ok', 0],
    ],
  );
  const plugins = async (query: string): Promise<unknown[]> => (await listed(host, query)).map(e => e.plugin_id);
  t.same(await plugins('?plugin=well'), ['well']);
  t.same(await plugins('?outcome=failed'), ['ill']);
  t.same(await plugins('?outcome=ok&trigger=run&principal=public'), ['well']);
  t.same(await plugins('?trigger=other'), []);
  t.same(await plugins('?principal=user:1'), []);
  t.same(await plugins(`?trace_id=${TRACE}`), ['well']);
  t.same(await plugins(`?request_id=${String(all[0]?.request_id)}`), ['ill']);
  t.same(await plugins(`?since=${from}`), ['ill', 'well']);
  t.same(await plugins(`?until=${from}`), []);
  t.same(await plugins(`?until=2999-01-01`), ['ill', 'well']);
  const first = await host.admin('GET', '/executions?limit=1');
  t.same((await listed(host, `?limit=1&cursor=${String(first.json.next_cursor)}`))[0]?.plugin_id, 'well');
  t.match((await host.admin('GET', '/executions?until=soon')).json, {
    errors: [{ pointer: 'query:until', message: /must be a time like/ }],
  });
});

t.test('administrators see executions as they are recorded, on every host, from where they were', async t => {
  const other = await startTestService({}, host);
  t.teardown(() => other.stop());
  const there = await watchStream(other.base, 'executions/stream');
  const ofFailed = await watchStream(host.base, 'executions/stream?outcome=failed&plugin=ill');
  t.teardown(() => {
    there.leave();
    ofFailed.leave();
  });
  await there.until(/retry/);
  await ofFailed.until(/retry/);
  const [newest] = await listed(host);
  const [, begin = ''] = /\nid: (\d+)\n\n/.exec(await there.until(/\n\n/)) ?? [];
  t.equal(begin, String(newest?.id), 'a stream says behind what it begins');
  await host.trigger('well/run');
  await host.trigger('ill/run');
  const seen = await there.until(/"plugin_id":"ill"/);
  const [, id = '', data = '{}'] = /id: (\d+)\nevent: ok\ndata: (.*)\n\n/.exec(seen) ?? [];
  t.same(JSON.parse(data), (await listed(host, '?plugin=well'))[0], 'the same as in the list');
  t.match(await ofFailed.until(/event: trapped/), /event: trapped/);
  t.notMatch(await ofFailed.until(/event: trapped/), /event: ok/);
  const again = await watchStream(host.base, 'executions/stream', { 'last-event-id': id });
  t.teardown(() => again.leave());
  const missed = await again.until(/event: trapped/);
  t.same(missed.match(/event: \w+/g), ['event: trapped'], 'what came since, and nothing twice');
  const lost = await watchStream(host.base, 'executions/stream', { 'last-event-id': begin });
  t.teardown(() => lost.leave());
  const all = await lost.until(/event: trapped/);
  t.same(all.match(/event: \w+/g), ['event: ok', 'event: trapped'], 'also for a client that had got nothing yet');
  t.ok(Number(newest?.id) < Number(id));
  t.equal((await host.admin('GET', '/executions/stream?after=x')).status, 422);
});

t.test('what waits for an administrator is one answer, the worst first', async t => {
  const s = await startTestService({ BOT_HTTP_TRUSTED_PROXIES: '127.0.0.1/32' });
  t.teardown(() => s.stop());
  const waits = async (): Promise<Json[]> =>
    ((await s.admin('GET', '/attention')).json.items as Json[]).filter(item => item.kind !== 'check_failed');
  t.same(await waits(), []);
  const db = openDatabase(s.databaseUrl, 1, () => {});
  t.teardown(() => db.close());
  await db.query(
    `INSERT INTO outgoing_messages (channel, chat_id, source, message, request_id, urgent, state, ended_at, last_error)
     SELECT 'TELEGRAM', '7', 'host', '{"text":"a"}', 'r', false, state, now(), 'blocked'
     FROM unnest(ARRAY['failed', 'uncertain', 'uncertain']) AS s (state)`,
  );
  await db.query('INSERT INTO graph_comparisons (compared, missing, extra, repaired) VALUES (9, 2, 1, false)');
  await s.admin('POST', '/university/persons', [{ external_id: 'a' }]);
  await s.admin('POST', '/university/courses', [{ external_id: 'c', name: 'Course' }]);
  await s.install(watPlugin({ id: 'ill', name: 'Ill', handle: 'unreachable' }));
  // Two callers have a part in it, so that it is suspended for all.
  for (const address of ['203.0.113.1', '203.0.113.2', '203.0.113.1', '203.0.113.2'])
    await s.trigger('ill/run', { headers: { 'x-forwarded-for': address } });
  t.match(await waits(), [
    { kind: 'suspended', count: 1, detail: 'ill · run' },
    { kind: 'graph_differs', severity: 'bad', count: 3 },
    { kind: 'import_failed', severity: 'warn', count: 1, type: 'person', import: 1 },
    { kind: 'messages_uncertain', severity: 'warn', count: 2 },
    { kind: 'messages_failed', severity: 'warn', count: 1, detail: null, since: null },
  ]);
  await s.admin('POST', '/university/persons', [{ external_id: 'a', first_name: 'Ada', last_name: 'L' }]);
  t.notMatch(JSON.stringify(await waits()), 'import_failed', 'a good list of the type ends it');
});

t.test('a parameter that is not known is refused, also where there are none', async t => {
  for (const path of ['/jobs?name=outbox_deliver', '/attention?limit=1', '/hosts?x=1'])
    t.match((await host.admin('GET', path)).json, { status: 422, detail: /is not a parameter here; known are none/ });
});
