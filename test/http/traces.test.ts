import { randomBytes } from 'node:crypto';
import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { callerPlugin, callHost } from '../support/caller.ts';
import { startGraphStore } from '../support/graph.ts';
import { listenFor } from '../support/listen.ts';
import { messengerWorld } from '../support/messenger-world.ts';
import { type Json, request, startTestService, type TestService } from '../support/service.ts';
import { startSubscriber } from '../support/subscriber.ts';
import { type ReceivedSpan, startTraceReceiver } from '../support/trace-receiver.ts';
import { watPlugin } from '../support/wat.ts';

const SERVER = 2;
const CONSUMER = 5;
const FAILED = 2;
const traceparent = () => {
  const [traceId, parentId] = [randomBytes(16).toString('hex'), randomBytes(8).toString('hex')];
  return { traceId, parentId, header: `00-${traceId}-${parentId}-01` };
};

/** A server that keeps the headers of the last request. */
async function startNeighbour(t: { teardown(fn: () => unknown): void }) {
  const seen: { headers: http.IncomingHttpHeaders } = { headers: {} };
  const server = http.createServer((q, r) => {
    seen.headers = q.headers;
    r.end('ok');
  });
  return { seen, url: await listenFor(t, server) };
}

/** Records of a trace, when there is one. */
async function recordsOf(s: TestService, plugin: string, traceId: string): Promise<Json[]> {
  for (let k = 0; k < 300; k++) {
    const { json } = await s.admin('GET', `/plugins/${plugin}/executions?trace_id=${traceId}`);
    const items = json.items as Json[];
    if (items.length > 0) return items;
    await sleep(50);
  }
  return [];
}

const REQUIRES = [
  { kind: 'network', description: 'Weather' },
  { kind: 'kv', description: 'Values' },
  { kind: 'events', description: 'Events' },
  { kind: 'plugins:call', target: 'callee', description: 'Calls it' },
];

t.test('a request is one trace: access decision, execution, host calls, what they ask, and the event', async t => {
  const receiver = await startTraceReceiver(t);
  const neighbour = await startNeighbour(t);
  const subscriber = await startSubscriber(t);
  const s = await startTestService({
    BOT_TRACING_ENDPOINT: `${receiver.url}/`,
    BOT_TRACING_TRUST: '127.0.0.0/8',
    BOT_EVENTS_PRIVATE_RANGES: '127.0.0.1',
  });
  t.teardown(() => s.stop());
  await s.install(callerPlugin({ id: 'callee' }));
  await s.install(callerPlugin({ id: 'one', requirements: REQUIRES }), { network: { private: ['127.0.0.1'] } });
  const made = await s.admin('POST', '/events/subscriptions', { name: 'all', url: subscriber.url });
  subscriber.secret = String(made.json.secret);
  const from = traceparent();
  const answers = await callHost(
    s,
    'one',
    [
      ['kv_get', 'missing'],
      ['http_request', JSON.stringify({ method: 'GET', url: `${neighbour.url}/x?name=Anna` }), ''],
      ['plugin_call', 'callee', 'f', new Uint8Array(0)],
      ['event_publish', 'grade.given', '{}'],
      ['kv_set', 'kept', 'Answer-4711', 0],
      ['kv_get', 'kept'],
    ],
    { traceparent: from.header, tracestate: 'vendor=1', 'x-request-id': 'request-of-the-trace' },
  );
  t.match(answers[1], { code: /^\d+$/ });
  const [root] = await receiver.until(/^POST \/api\/triggers\/http\/one/);
  const [delivery] = await receiver.until('event delivery');
  const byName = (name: string): ReceivedSpan => {
    const found = receiver.spans.filter(x => x.name === name && x.traceId === from.traceId);
    t.equal(found.length, 1, `one span ${name}`);
    return found[0] as ReceivedSpan;
  };
  t.match(root, { traceId: from.traceId, parentSpanId: from.parentId, kind: SERVER });
  t.match(root?.attributes, {
    'http.request.method': 'POST',
    'http.response.status_code': 200,
    'plugin_host.plugin': 'one',
    'plugin_host.request_id': 'request-of-the-trace',
  });
  const execution = byName('execution one run');
  const decisions = receiver.spans.filter(x => x.name === 'access decision');
  t.same(
    decisions.map(x => x.parentSpanId),
    [root?.spanId, root?.spanId],
    'before and after the body',
  );
  t.equal(execution.parentSpanId, root?.spanId);
  t.match(execution.attributes, { 'plugin_host.outcome': 'ok', 'plugin_host.host_calls': /^\d+$/ });
  for (const name of ['kv_set', 'http_request', 'plugin_call', 'event_publish'])
    t.equal(byName(name).parentSpanId, execution.spanId, `${name} is below the execution`);
  const [missing, kept] = receiver.spans.filter(x => x.name === 'kv_get' && x.traceId === from.traceId);
  t.match(missing?.attributes, { 'plugin_host.host_error': -2 });
  t.same(kept?.attributes, {}, 'a span says nothing of what was answered');
  t.equal(byName('execution callee call:f').parentSpanId, byName('plugin_call').spanId, 'a nested call');
  const outgoing = `00-${from.traceId}-${byName('http_request').spanId}-01`;
  t.match(neighbour.seen.headers, { traceparent: outgoing, tracestate: 'vendor=1' }, 'outgoing HTTP');
  t.match(delivery, { traceId: from.traceId, parentSpanId: byName('event_publish').spanId });
  const [event] = await subscriber.until(1);
  t.match(event?.headers.traceparent, `00-${from.traceId}-${delivery?.spanId}-01`, 'the webhook');
  t.match(JSON.parse(event?.raw ?? ''), { traceparent: `00-${from.traceId}-${byName('event_publish').spanId}-01` });
  for (const x of receiver.spans.filter(x => x.traceId === from.traceId))
    t.ok(BigInt(x.endTimeUnixNano) >= BigInt(x.startTimeUnixNano), `${x.name} ends behind its beginning`);
  t.same([...receiver.paths], ['/v1/traces']);
  t.match(receiver.resources[0], { 'service.name': 'plugin-host', 'service.version': /^\d/ });
  t.notMatch(receiver.raw, /Anna|127\.0\.0\.1|Answer-4711/, 'no query, no address of a caller, no answer');
  for (const [plugin, trigger] of [
    ['one', 'run'],
    ['callee', 'call:f'],
  ] as const)
    t.match(await recordsOf(s, plugin, from.traceId), [{ trigger }], 'its record names the trace');
});

t.test('a request without a trace begins one, and what it refuses is named', async t => {
  const receiver = await startTraceReceiver(t);
  const s = await startTestService({ BOT_TRACING_ENDPOINT: receiver.url });
  t.teardown(() => s.stop());
  await s.install(watPlugin({ id: 'shut', handle: '(i32.const 0)' }), {}, 'default');
  t.equal((await s.trigger('shut/run')).status, 401);
  t.equal((await s.admin('GET', '/plugins/gone')).status, 404);
  t.equal((await request(`${s.base}/nowhere/of/Anna`)).status, 404);
  const [refused] = await receiver.until(/^GET \/api\/triggers\/http\/shut/);
  t.match(refused, { parentSpanId: '', status: { code: 0 } });
  t.match(refused?.attributes, { 'error.type': 'unauthorized', 'http.response.status_code': 401 });
  const [access] = await receiver.until('access decision');
  t.match(access, { traceId: refused?.traceId, attributes: { 'error.type': 'unauthorized' } });
  const [api] = await receiver.until('GET /api/admin/plugins/:id');
  t.match(api?.attributes, { 'http.route': '/api/admin/plugins/:id', 'error.type': 'not_found' });
  await s.install(
    watPlugin({
      id: 'items',
      triggers: [{ name: 'item', type: 'http', path: '/items/:id', methods: ['GET'] }],
      handle: '(i32.const 0)',
    }),
  );
  const asked = await s.trigger('items/items/Anna?of=Anna', { headers: { cookie: 'name=Anna', 'x-name': 'Anna' } });
  t.equal(asked.status, 204);
  await receiver.until('GET /api/triggers/http/items/items/:id');
  await receiver.until('HTTP');
  t.notMatch(receiver.raw, 'Anna', 'no path, query, header or cookie of a request stands in it');
});

t.test('a command in a messenger begins a trace, which its record names', async t => {
  const receiver = await startTraceReceiver(t);
  const { s, sides } = await messengerWorld(t, { BOT_TRACING_ENDPOINT: receiver.url });
  await s.install(watPlugin({ id: 'bot', triggers: [{ name: 'hi', type: 'messenger' }], handle: '(i32.const 0)' }));
  t.equal((await sides[0]?.write('/hi'))?.status, 200);
  const [execution] = await receiver.until('execution bot hi');
  t.match(execution, { parentSpanId: '', kind: CONSUMER, attributes: { 'plugin_host.outcome': 'ok' } });
  t.match(await recordsOf(s, 'bot', execution?.traceId ?? ''), [{ trigger: 'hi' }]);
});

t.test('a plugin that fails and a delivery of the outbox have spans', async t => {
  const receiver = await startTraceReceiver(t);
  const { spicedb } = await startGraphStore(t);
  const s = await startTestService({
    BOT_TRACING_ENDPOINT: receiver.url,
    BOT_SPICEDB_ENDPOINT: spicedb.endpoint,
    BOT_SPICEDB_TLS: 'false',
  });
  t.teardown(() => s.stop());
  await s.install(watPlugin({ id: 'broken', handle: '(unreachable)' }));
  t.equal((await s.trigger('broken/run')).status, 502);
  const [execution] = await receiver.until('execution broken run');
  t.match(execution, { status: { code: FAILED, message: 'trapped' } });
  const [root] = await receiver.until(/http\/broken/);
  t.match(root, { status: { code: FAILED }, attributes: { 'http.response.status_code': 502 } });
  const dean = { resource_type: 'faculty', resource_id: 'f', relation: 'dean', subject_type: 'user', subject_id: 'u' };
  t.match(await s.admin('POST', '/relationships', dean), { status: 201, json: { delivered: true } });
  const deliveries = await receiver.until('outbox delivery');
  t.match(deliveries[0]?.attributes, { 'plugin_host.entries': 1, 'plugin_host.entries_refused': 0 });
});

t.test('of traces that begin here a share is sent; whether others are, their caller decides', async t => {
  const receiver = await startTraceReceiver(t);
  const neighbour = await startNeighbour(t);
  const s = await startTestService({
    BOT_TRACING_ENDPOINT: receiver.url,
    BOT_TRACING_RATIO: '0',
    BOT_TRACING_TRUST: '127.0.0.0/8',
  });
  t.teardown(() => s.stop());
  const needs = [{ kind: 'network', description: 'Weather' }];
  await s.install(callerPlugin({ id: 'one', requirements: needs }), { network: { private: ['127.0.0.1'] } });
  const ask = (headers: Record<string, string>) =>
    callHost(s, 'one', [['http_request', JSON.stringify({ method: 'GET', url: neighbour.url }), '']], headers);
  await ask({});
  t.match(neighbour.seen.headers.traceparent, /-00$/, 'what is asked next is not sent either');
  const from = traceparent();
  await ask({ traceparent: from.header });
  const spans = await receiver.until('http_request');
  t.same([...new Set(receiver.spans.map(x => x.traceId))], [from.traceId]);
  t.equal(spans.length, 1);
  const own = traceparent();
  const order = { method: 'GET', url: neighbour.url, headers: { traceparent: own.header } };
  await callHost(s, 'one', [['http_request', JSON.stringify(order), '']]);
  t.equal(neighbour.seen.headers.traceparent, own.header, 'a plugin may say another trace');
});

t.test("a stranger's trace context forces nothing, and a method that is none has no name of its own", async t => {
  const receiver = await startTraceReceiver(t);
  const quiet = await startTestService({ BOT_TRACING_ENDPOINT: receiver.url, BOT_TRACING_RATIO: '0' });
  t.teardown(() => quiet.stop());
  const from = traceparent();
  for (let k = 0; k < 20; k++)
    await request(`${quiet.base}/api/admin/plugins/x`, { headers: { traceparent: from.header } });
  const loud = await startTestService({ BOT_TRACING_ENDPOINT: receiver.url, BOT_TRACING_TRUST: '192.0.2.0/24' });
  t.teardown(() => loud.stop());
  await request(`${loud.base}/api/admin/plugins/x`, { headers: { traceparent: from.header } });
  await request(`${loud.base}/livez`, { method: 'PROPFIND-OF-ANNA' });
  const [span] = await receiver.until('GET /api/admin/plugins/:id');
  t.equal(
    receiver.spans.filter(s => s.name === 'GET /api/admin/plugins/:id').length,
    1,
    'nothing of the first service',
  );
  t.not(span?.traceId, from.traceId);
  t.equal(span?.attributes['plugin_host.caller_trace_id'], from.traceId);
  const [odd] = await receiver.until('HTTP');
  t.equal(odd?.attributes['http.request.method'], '_OTHER');
});

t.test('a receiver that is away or refuses costs no request, and the service ends in time', async t => {
  const receiver = await startTraceReceiver(t);
  receiver.status = 503;
  for (const endpoint of ['http://127.0.0.1:9', receiver.url]) {
    const s = await startTestService({ BOT_TRACING_ENDPOINT: endpoint });
    await s.install(watPlugin({ id: 'one', handle: '(i32.const 0)' }));
    for (let k = 0; k < 50; k++) t.equal((await s.trigger('one/run')).status, 204);
    await s.stop();
  }
  t.ok(receiver.calls > 0, 'it was asked');
});

t.test('without a receiver there is no trace, and none is passed on', async t => {
  const neighbour = await startNeighbour(t);
  const s = await startTestService();
  t.teardown(() => s.stop());
  const needs = [{ kind: 'network', description: 'Weather' }];
  await s.install(callerPlugin({ id: 'one', requirements: needs }), { network: { private: ['127.0.0.1'] } });
  await callHost(s, 'one', [['http_request', JSON.stringify({ method: 'GET', url: neighbour.url }), '']], {
    traceparent: traceparent().header,
  });
  t.equal(neighbour.seen.headers.traceparent, undefined);
});

t.test('an address that is none is refused', async t => {
  for (const wrong of ['collector:4318', 'ftp://collector', 'http://name:word@collector'])
    await t.rejects(startTestService({ BOT_TRACING_ENDPOINT: wrong }), { message: /tracing\.endpoint/ });
  await t.rejects(startTestService({ BOT_TRACING_RATIO: '2' }), { message: /tracing\.ratio/ });
});
