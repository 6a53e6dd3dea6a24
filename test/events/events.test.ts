import t from 'tap';
import { openDatabase } from '../../src/db/database.ts';
import { eventHandlers } from '../../src/host/events.ts';
import type { HostArguments, MessageScope, PermittedCall } from '../../src/host/host-functions.ts';
import { callerPlugin, callHost, type ScriptedCall } from '../support/caller.ts';
import { type Json, startTestService, type TestService, TOKEN } from '../support/service.ts';
import { type Subscriber, startSubscriber } from '../support/subscriber.ts';
import { watchStream } from '../support/watch-stream.ts';

const EVENTS = [{ kind: 'events', description: 'Tells what has happened' }];
const PATH = '/events/subscriptions';

/** Where the subscribers of these tests are. */
const INSIDE = { BOT_EVENTS_PRIVATE_RANGES: '127.0.0.1' };

async function world(t: { teardown(fn: () => unknown): void }) {
  const s = await startTestService(INSIDE);
  t.teardown(() => s.stop());
  const db = openDatabase(s.databaseUrl, 2, () => {});
  t.teardown(() => db.close());
  for (const id of ['one', 'two']) await s.install(callerPlugin({ id, requirements: EVENTS }));
  return { s, db };
}

const subscribe = async (s: TestService, to: Subscriber, more: Json = {}): Promise<number> => {
  const answer = await s.admin('POST', PATH, { name: 'the subscriber', url: to.url, ...more });
  if (answer.status !== 201) throw new Error(answer.text);
  to.secret = String(answer.json.secret);
  return Number(answer.json.id);
};
const publish = (n: number, name = 'grade.given'): ScriptedCall => ['event_publish', name, JSON.stringify({ n })];
const numbers = (to: Subscriber, source: string): unknown[] =>
  to.taken.filter(e => e.source === `/plugins/${source}`).map(e => e.data.n);

t.test('an event reaches its subscribers as a CloudEvent whose signature the public library verifies', async t => {
  const { s } = await world(t);
  const [all, some] = [await startSubscriber(t), await startSubscriber(t)];
  await subscribe(s, all);
  await subscribe(s, some, { plugins: ['two'], types: ['grade.given'] });
  const [answer] = await callHost(s, 'one', [
    ['event_publish', 'grade.given', '{"student":9223372036854775807,"text":"é\\u0000"}'],
  ]);
  t.equal(answer?.code, 0);
  await callHost(s, 'two', [publish(1), publish(2, 'other')]);
  // Events of different plugins may overtake each other.
  const first = (await all.until(3)).find(e => e.source === '/plugins/one');
  t.match(first?.headers, {
    'content-type': 'application/cloudevents+json; charset=utf-8',
    'webhook-id': first?.id,
    'webhook-signature': /^v1,[A-Za-z0-9+/]{43}=$/,
  });
  t.match(first?.raw, '"data":{"student":9223372036854775807,"text":"é\\u0000"}', 'nothing of it is lost');
  t.match(JSON.parse(first?.raw ?? ''), {
    specversion: '1.0',
    source: '/plugins/one',
    type: 'grade.given',
    datacontenttype: 'application/json',
    time: /^\d{4}-\d\d-\d\dT/,
  });
  t.equal(new Set(all.taken.map(e => e.id)).size, 3);
  const read = await s.admin('GET', `/events/${first?.id}`);
  t.match(read.json, { id: first?.id, plugin_id: 'one', type: 'grade.given' }, 'the id finds it');
  t.match(read.text, '"data":{"student":9223372036854775807,"text":"é\\u0000"}');
  for (const id of ['7b2a6f52-3df1-4f5c-9d6b-0f4a1c1e7d11', '1', 'none'])
    t.match((await s.admin('GET', `/events/${id}`)).json, { status: 404, detail: `there is no event ${id}` });
  await some.until(1);
  t.same(numbers(some, 'two'), [1]);
  t.same(all.unsigned.concat(some.unsigned), []);
  const { json, text } = await s.admin('GET', '/events?limit=2');
  t.match(json.items, [
    { plugin_id: 'two', type: 'other', data: { n: 2 } },
    { plugin_id: 'two', type: 'grade.given' },
  ]);
  t.ok(json.next_cursor);
  t.match((await s.admin('GET', '/events?plugin=one')).text, '"data":{"student":9223372036854775807');
  t.notMatch(text, 'whsec_');
});

t.test('what is no name or no JSON is refused, and so is too much', async t => {
  const { s, db } = await world(t);
  const long = JSON.stringify('x'.repeat(256 * 1024));
  const answers = await callHost(s, 'one', [
    ['event_publish', '', '{}'],
    ['event_publish', 'a b', '{}'],
    ['event_publish', '-a', '{}'],
    ['event_publish', 'x'.repeat(129), '{}'],
    ['event_publish', 'ok', ''],
    ['event_publish', 'ok', '{'],
    ['event_publish', 'ok', long],
    ['event_publish', 'ok', 'null'],
  ]);
  t.same(
    answers.map(a => a.code),
    [-3, -3, -3, -3, -3, -3, -4, 0],
  );
  t.match(answers[1]?.text, /the name of an event/);
  t.match(answers[5]?.text, /is not JSON/);
  t.match(answers[6]?.text, /eventBytesMax/);
  await s.install(callerPlugin({ id: 'mute' }));
  const [denied] = await callHost(s, 'mute', [publish(1)]);
  t.match(denied, { code: -1, text: 'permission denied' });
  t.same((await db.query('SELECT count(*)::int AS n FROM events')).rows, [{ n: 1 }]);
});

t.test('equal events of two calls of one plugin for one message are two events', async t => {
  const keys: Array<string | null> = [];
  const { event_publish } = eventHandlers(event => {
    keys.push(event.onceKey);
    return Promise.resolve();
  });
  const args = { text: (k: number) => (k === 0 ? 'item.added' : '{"n":1}') } as HostArguments;
  const callFor = (id: string, message: MessageScope) =>
    ({ plugin: { id }, message, requestId: 'r', span: null }) as unknown as PermittedCall;
  // A command whose plugin calls another one several times; each call is an execution.
  const runs = async (ids: readonly string[]): Promise<void> => {
    const message = { chat: 'TELEGRAM:1', key: 'update-1', replies: [] };
    for (const id of ids) await event_publish(callFor(id, message), args);
  };
  await runs(['a', 'b', 'a']);
  t.equal(new Set(keys).size, 3);
  const first = keys.splice(0);
  await runs(['a', 'b', 'a']);
  t.same(keys, first, 'a command that is run again repeats its keys');
});

t.test('a subscriber that is down for a while gets everything, of each source in order, once it is back', async t => {
  const { s } = await world(t);
  const [down, up] = [await startSubscriber(t), await startSubscriber(t)];
  const id = await subscribe(s, down);
  await subscribe(s, up);
  down.isDown = true;
  for (let k = 0; k < 10; k++)
    await Promise.all(
      ['one', 'two'].map(p => callHost(s, p, [publish(3 * k), publish(3 * k + 1), publish(3 * k + 2)])),
    );
  await up.until(60);
  t.ok(down.attempts > 0);
  t.match((await s.admin('GET', `${PATH}/${id}`)).json, { deliveries: { waiting: 60, delivered: 0, dead: 0 } });
  const { json } = await s.admin('GET', `${PATH}/${id}/deliveries?state=waiting&limit=1`);
  t.match(json.items, [{ state: 'waiting', type: 'grade.given' }]);
  down.isDown = false;
  const at = performance.now();
  await down.until(60, 60_000);
  t.comment(`back after ${Math.round(performance.now() - at)} ms`);
  const inOrder = Array.from({ length: 30 }, (_, k) => k);
  for (const [name, to] of Object.entries({ down, up }))
    for (const source of ['one', 'two']) t.same(numbers(to, source), inOrder, `${name}, ${source}`);
  t.same(down.unsigned, []);
  for (let k = 0; k < 100; k++) {
    const { deliveries } = (await s.admin('GET', `${PATH}/${id}`)).json;
    if ((deliveries as Json).delivered === 60) break;
    await new Promise(r => setTimeout(r, 20));
  }
  t.match((await s.admin('GET', `${PATH}/${id}`)).json, { deliveries: { waiting: 0, delivered: 60, dead: 0 } });
});

t.test('what cannot be delivered is dead in the end, seen, and tried again by hand', async t => {
  const { s, db } = await world(t);
  const to = await startSubscriber(t);
  const id = await subscribe(s, to);
  to.faults.push(503);
  await callHost(s, 'one', [publish(1), publish(2)]);
  // As if the next one were its last attempt, once the first is written down.
  const nextIsLast = async () =>
    await db.query(
      `UPDATE event_deliveries SET attempts = 64, next_at = now() + interval '0.1 s'
       WHERE event_id = (SELECT min(event_id) FROM event_deliveries) AND attempts = 1`,
    );
  for (let k = 0; k < 500 && (await nextIsLast()).rowCount === 0; k++) await new Promise(r => setTimeout(r, 20));
  to.faults.push(503);
  await to.until(1);
  t.same(numbers(to, 'one'), [2], 'the next one goes on');
  const dead = (await s.admin('GET', `${PATH}/${id}/deliveries?state=dead`)).json.items as Json[];
  t.match(dead, [{ state: 'dead', attempts: 65, last_status: 503, last_error: 'the subscriber answered 503' }]);
  t.match(await s.admin('POST', `${PATH}/${id}/retry?event=${dead[0]?.event_id}`), {
    status: 200,
    json: { retried: 1 },
  });
  await to.until(2);
  t.same(numbers(to, 'one'), [2, 1]);
  t.match(await s.admin('POST', `${PATH}/${id}/retry`), { status: 200, json: { retried: 0 } });
  t.match((await s.admin('GET', '/audit?action=event.retry')).json.items, [{ object_id: String(id) }]);
  // No answer but a success is one.
  for (const [k, status] of [500, 302, 404, 429].entries()) {
    to.faults.push(status);
    const attempts = to.attempts;
    await callHost(s, 'one', [publish(10 + k)]);
    for (let n = 0; n < 200 && to.attempts === attempts; n++) await new Promise(r => setTimeout(r, 20));
    t.equal(to.taken.length, 2 + k, `${status} is no success`);
    for (let n = 0; n < 200 && to.taken.length < 3 + k; n++) {
      await s.admin('POST', `${PATH}/${id}/retry`);
      await new Promise(r => setTimeout(r, 50));
    }
  }
  await to.until(6);
  // 410: it wants no more.
  to.faults.push(410);
  await callHost(s, 'one', [publish(3)]);
  for (let k = 0; k < 200; k++) {
    if ((await s.admin('GET', `${PATH}/${id}`)).json.enabled === false) break;
    await new Promise(r => setTimeout(r, 20));
  }
  t.match((await s.admin('GET', `${PATH}/${id}`)).json, { enabled: false, disabled_why: /410 Gone/ });
  t.match((await s.admin('PATCH', `${PATH}/${id}`, { enabled: true })).json, { enabled: true, disabled_why: '' });
  await s.admin('POST', `${PATH}/${id}/retry`);
  await to.until(7);
});

t.test('a 410 of an address that was changed meanwhile switches nothing off', async t => {
  const { s } = await world(t);
  const [former, next] = [await startSubscriber(t), await startSubscriber(t)];
  const id = await subscribe(s, former);
  former.faults.push(410);
  former.slowMs = 1000;
  await callHost(s, 'one', [publish(1)]);
  while (former.attempts === 0) await new Promise(r => setTimeout(r, 10));
  const changed = await s.admin('PATCH', `${PATH}/${id}`, { url: next.url, new_secret: true });
  t.equal(changed.status, 200);
  next.secret = String(changed.json.secret);
  while (former.faults.length > 0) await new Promise(r => setTimeout(r, 10));
  await next.until(1);
  t.match((await s.admin('GET', `${PATH}/${id}`)).json, { enabled: true, disabled_why: '' });
});

t.test('a slow subscriber keeps no other waiting, and one that is removed hears nothing more', async t => {
  const { s, db } = await world(t);
  const [slow, fast] = [await startSubscriber(t), await startSubscriber(t)];
  const id = await subscribe(s, slow);
  await subscribe(s, fast);
  slow.slowMs = 1500;
  // Forty sources at once.
  await db.query(
    `INSERT INTO events (plugin_id, type, data, request_id) SELECT 'p' || n, 'e', n::text, 'r' FROM generate_series(1, 40) n`,
  );
  await db.query(
    `INSERT INTO event_deliveries (subscription_id, event_id, plugin_id) SELECT s.id, e.id, e.plugin_id FROM events e, event_subscriptions s`,
  );
  const at = performance.now();
  await callHost(s, 'one', [publish(1)]);
  await fast.until(41);
  t.ok(slow.taken.length < 20, `${slow.taken.length} at the slow one after ${Math.round(performance.now() - at)} ms`);
  t.equal((await s.admin('DELETE', `${PATH}/${id}`)).status, 204);
  await new Promise(r => setTimeout(r, 2000));
  const { attempts } = slow;
  await callHost(s, 'two', [publish(2)]);
  await fast.until(42);
  t.equal(slow.attempts, attempts);
});

t.test('subscriptions are made, changed and removed; a secret is shown once and belongs to its address', async t => {
  const { s } = await world(t);
  const to = await startSubscriber(t);
  const bad: Array<[Json, string]> = [
    [{ url: to.url }, '/name'],
    [{ name: 'x' }, '/url'],
    [{ name: 'x', url: 'ftp://a.b/' }, '/url'],
    [{ name: 'x', url: 'https://u:p@a.b/' }, '/url'],
    [{ name: 'x', url: to.url, types: 'a' }, '/types'],
    [{ name: 'x', url: to.url, more: 1 }, ''],
  ];
  for (const [body, pointer] of bad) {
    const answer = await s.admin('POST', PATH, body);
    t.equal(answer.status, 422, JSON.stringify(body));
    t.ok(
      (answer.json.errors as Json[]).some(e => String(e.pointer).startsWith(pointer)),
      pointer,
    );
  }
  const id = await subscribe(s, to, { types: ['a'] });
  const before = to.secret;
  t.notMatch((await s.admin('GET', PATH)).text, 'whsec_');
  t.notMatch((await s.admin('PATCH', `${PATH}/${id}`, { types: [] })).text, 'whsec_');
  const renewed = await s.admin('PATCH', `${PATH}/${id}`, { new_secret: true });
  t.match(renewed.json.secret, /^whsec_[A-Za-z0-9+/=]{44}$/);
  t.not(renewed.json.secret, before);
  await callHost(s, 'one', [publish(1)]);
  for (let k = 0; k < 200 && to.unsigned.length === 0; k++) await new Promise(r => setTimeout(r, 20));
  t.equal(to.unsigned.length, 1, 'the old secret is worth nothing');
  to.secret = String(renewed.json.secret);
  await callHost(s, 'one', [publish(2)]);
  await to.until(1);
  const moved = await startSubscriber(t);
  const answer = await s.admin('PATCH', `${PATH}/${id}`, { url: moved.url });
  moved.secret = String(answer.json.secret);
  await callHost(s, 'one', [publish(3)]);
  await moved.until(1);
  const audit = (await s.admin('GET', '/audit?action=event.change_subscription')).text;
  t.notMatch(audit, /whsec_|key=k/, 'the log tells no secrets');
  t.equal((await s.admin('DELETE', `${PATH}/${id}`)).status, 204);
  t.equal((await s.admin('DELETE', `${PATH}/${id}`)).status, 404);
  for (const [method, where] of [
    ['GET', `${PATH}/x`],
    ['PATCH', `${PATH}/9`],
    ['GET', `${PATH}/9/deliveries`],
    ['POST', `${PATH}/9/retry`],
  ] as const)
    t.equal((await s.admin(method, where, method === 'PATCH' ? {} : undefined)).status, 404, where);
});

t.test('administrators see events as they come, on every host, from where they were', async t => {
  const { s } = await world(t);
  const other = await startTestService(INSIDE, s);
  t.teardown(() => other.stop());
  const watch = async (host: TestService, query = '', headers: Record<string, string> = {}) => {
    const watched = await watchStream(host.base, `events/stream${query}`, headers);
    t.match(watched.contentType, 'text/event-stream');
    return watched;
  };
  const here = await watch(s);
  const there = await watch(other, '?plugin=two');
  await here.until(/retry/);
  await there.until(/retry/);
  await callHost(s, 'one', [publish(1)]);
  await callHost(s, 'two', [publish(2)]);
  const seen = await here.until(/"n":2/);
  t.match(seen, /id: \d+\nevent: grade\.given\ndata: \{"specversion":"1\.0".*"data":\{"n":1\}\}\n\n/);
  t.match(await there.until(/"n":2/), '"n":2');
  t.notMatch(await there.until(/"n":2/), '"n":1');
  // A payload on several lines arrives whole.
  await callHost(s, 'one', [['event_publish', 'lines', '{\n "n": 1,\r\n\n "m": 7}']]);
  const lines = await here.until(/"m": 7/);
  const [, block = ''] = /event: lines\n((?:data: .*\n)+)\n/.exec(lines) ?? [];
  t.match(JSON.parse(block.replace(/^data: /gm, '')), { type: 'lines', data: { n: 1, m: 7 } });
  const head = await fetch(`${s.base}/api/admin/events/stream`, {
    method: 'HEAD',
    headers: { authorization: `Bearer ${TOKEN}` },
  });
  t.same([head.status, await head.text()], [200, '']);
  const [, first = ''] = /^id: (\d+)\nevent: /m.exec(seen) ?? [];
  const again = await watch(s, '', { 'last-event-id': first });
  t.match(await again.until(/"n":2/), '"n":2');
  t.notMatch(await again.until(/"n":2/), '"n":1');
  // After a restore numbers may begin where they were long ago.
  const ahead = await watch(s, '', { 'last-event-id': '999999999999' });
  await ahead.until(/retry/);
  // A connection without news stays open.
  t.match(await again.until(/still here[\s\S]*still here/, 30_000), /still here/);
  await callHost(s, 'one', [publish(3)]);
  t.match(await again.until(/"n":3/), '"n":3');
  t.match(await ahead.until(/"n":3/), '"n":3', 'who has a number that does not exist yet hears what comes');
  t.equal((await s.admin('GET', '/events/stream?after=x')).status, 422);
  t.equal((await fetch(`${s.base}/api/admin/events/stream`)).status, 401);
  here.leave();
  t.equal(await here.ended, 'left');
  // A host that waited for its watchers would wait for as long as this: longer than a test may take.
  const stopped = other.service.stop(1_000_000);
  t.equal(await there.ended, 'ended', 'a host that ends lets its watchers go');
  await stopped;
});

t.test(
  'a test event is signed like any other, goes past what waits, and says what the subscriber answered',
  async t => {
    const { s } = await world(t);
    const subscriber = await startSubscriber(t);
    const id = await subscribe(s, subscriber);
    t.match((await s.admin('POST', `${PATH}/${id}/test`)).json, { ok: true, status: 200, problem: null });
    t.match(subscriber.taken, [{ type: 'plugin_host.test', source: '/', data: {} }]);
    t.same(subscriber.unsigned, []);
    subscriber.faults.push(500);
    t.match((await s.admin('POST', `${PATH}/${id}/test`)).json, { ok: false, status: 500, problem: /500/ });
    subscriber.isDown = true;
    t.match((await s.admin('POST', `${PATH}/${id}/test`)).json, { ok: false, status: null, problem: /not reached/ });
    t.match((await s.admin('GET', `${PATH}/${id}`)).json.deliveries, { waiting: 0, delivered: 0, dead: 0 });
    await s.admin('PATCH', `${PATH}/${id}`, { enabled: false });
    t.equal((await s.admin('POST', `${PATH}/${id}/test`)).status, 409);
    t.equal(((await s.admin('GET', '/audit?action=event.test')).json.items as Json[]).length, 3);
  },
);
