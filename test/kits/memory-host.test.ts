import fs from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { buildPlugin } from '../../sdk/typescript/build.ts';
import { HOST_FUNCTION_BY_NAME } from '../../src/abi/host-functions.ts';
import type { HostArgument } from '../../src/abi/host-result.ts';
import { Lockstep } from '../../src/authors/lockstep.ts';
import { answerCall, MemoryHost } from '../../src/authors/memory-host.ts';
import { TestHost } from '../../src/authors/test-host.ts';
import { LIMITS } from '../../src/base/limits.ts';
import type { JsonValue } from '../support/service.ts';
import { until } from '../support/until.ts';
import { watPlugin } from '../support/wat.ts';

/** The host of `plugin test` answers as the service does (docs/authors.md "Try it, and test it"). */

const CONFORMANCE = path.resolve(import.meta.dirname, '../../sdk/typescript/conformance/index.ts');
const base64 = (text: string): string => Buffer.from(text).toString('base64');

t.test('what a test stores ends, is refused and is hidden as in the service', async t => {
  const { module } = await buildPlugin(CONFORMANCE);
  const host = new TestHost(module, { config: { title: 'A title' } });
  t.teardown(() => host.close());
  /** The result of a case of the conformance plugin, or the code and text of its error. */
  const run = async (name: string, given: JsonValue[], user?: number): Promise<JsonValue> => {
    const { json } = await host.http(`POST /run/${name}`, { body: given, ...(user === undefined ? {} : { user }) });
    const answer: { result?: JsonValue } = Object(json);
    return 'result' in answer ? (answer.result ?? null) : Object(json);
  };

  await t.test('keys and values', async t => {
    await run('kv_set', ['ends', 'x', 1]);
    await run('kv_set', ['stays', 'x', 0]);
    t.equal(await run('kv_get', ['ends']), 'x');
    await until(() => !host.kv.has('ends'));
    t.same([await run('kv_get', ['ends']), await run('kv_get', ['stays'])], [null, 'x']);
    t.match(await run('kv_set', ['', 'x', 0]), { code: 'invalid_argument', text: 'the key is empty' });
    t.match(await run('kv_get', ['a\0b']), { code: 'invalid_argument' });
    t.match(await run('kv_get', ['k'.repeat(10_000)]), { code: 'too_large' });
    t.match(await run('kv_set', ['a', 'x'.repeat(2 ** 20 + 1), 0]), { code: 'too_large' });
    t.match(await run('kv_get_many', [['a', '']]), { code: 'invalid_argument' });
    t.same(await run('kv_get_many', [['10', 'stays', '9']]), [null, 'x', null]);
    t.match(await run('kv_increment', ['stays', '1']), { code: 'invalid_argument', text: /int64/ });
    t.match(await run('publish', ['not a name', {}]), { code: 'invalid_argument' });
  });

  await t.test('messages', async t => {
    await run('notify_user', ['7', 'The room is yours']);
    t.match(host.notifications, [{ to: { user: 7n }, message: { text: 'The room is yours' } }]);
    for (const text of ['', ' ', 'half \ud800', 'x'.repeat(LIMITS.messageCharsMax + 1)])
      t.match(await run('notify_user', ['7', text]), { code: 'invalid_argument', text: /the message, like .*: / });
    t.match(await run('notify_user', ['0', 'x']), { code: 'invalid_argument', text: /must be above zero/ });
    t.match(await run('notify_students', ['', 'x']), { code: 'invalid_argument', text: /the filter, like / });
    t.equal(host.notifications.length, 1, 'what is refused is not sent');
    await t.rejects(host.http('POST /run/clock', { body: [], user: 2n ** 53n }), /the user 9007199254740992 is no id/);
  });

  await t.test('files', async t => {
    const id = host.addFile('mine.txt', 'mine', { user: 7 });
    t.match(await run('file_meta', [id], 7), { id, size: 4 });
    t.match(await run('file_meta', [id], 8), { code: 'not_found' }, 'another user');
    t.match(await run('file_read_all', [id]), { code: 'not_found' }, 'a request without a user');
    const own = Object(await run('file_store', ['a.txt', 'text/plain', 'document', base64('own')]));
    t.match(await run('file_meta', [own.id], 8), { size: 3 }, 'what the plugin stored is its own');
    t.match(await run('file_store', ['a.txt', 'text/plain', 'picture', base64('own')]), { code: 'invalid_argument' });
    const short = Object(await run('file_store_ttl', ['short.txt', 200]));
    await until(async () => !('size' in Object(await run('file_meta', [short.id]))));
    t.match(await run('file_meta', [short.id]), { code: 'not_found' });
  });
});

const BOOKING = `import { type Context, definePlugin, KV, TriggerHTTP, TriggerMessenger, NewMessage } from '@plugin-host/sdk';
const book = (ctx: Context, free: (key: string) => boolean): void => ctx.JSON(free('slot') ? 201 : 409, {});
const seenFree = (ctx: Context) => (key: string): boolean => {
  if (ctx.KVGet(key) !== null) return false;
  ctx.KVSet(key, 'taken');
  return true;
};
const claimed = (ctx: Context) => (key: string): boolean => ctx.KVSetIfAbsent(key, 'taken').written;
definePlugin({
  ID: 'booking', Name: 'Booking', Version: '1.0.0',
  Requirements: [KV('Bookings').Build()],
  Triggers: [
    { Name: 'look', Type: TriggerHTTP, Path: '/look', Methods: ['POST'], Handler: ctx => book(ctx, seenFree(ctx)) },
    { Name: 'claim', Type: TriggerHTTP, Path: '/claim', Methods: ['POST'], Handler: ctx => book(ctx, claimed(ctx)) },
    { Name: 'spin', Type: TriggerHTTP, Path: '/spin', Methods: ['POST'], Handler: ctx => {
      for (const until = Date.now() + 1000; Date.now() < until; );
      ctx.JSON(200, { there: ctx.KVGet('slot') });
    } },
    { Name: 'say', Type: TriggerMessenger, Handler: ctx => {
      ctx.KVIncrement('said');
      ctx.Reply(NewMessage(ctx.Message.Args[0] ?? ''));
      ctx.Reply(NewMessage('again ' + ctx.Message.Args[0]));
    } },
  ],
});
`;

t.test(
  'a call waits for an execution whose thread is still being started, and not for one that makes no call',
  async t => {
    let looks = 0;
    const lockstep = new Lockstep(() => (++looks < 4 ? 1 : 2));
    lockstep.begin();
    lockstep.begin();
    t.equal(await lockstep.answer(() => looks), 4, 'the fourth look finds both threads ready');
  },
);

t.test('calls of a test that run at the same time meet between their host calls, every time', async t => {
  const entry = path.join(t.testdir({}), 'index.ts');
  fs.writeFileSync(entry, BOOKING);
  const { module } = await buildPlugin(entry);
  const together = async (path: string, callers: number): Promise<number[]> => {
    const host = new TestHost(module, {});
    const users = Array.from({ length: callers }, (_, k) => k + 1);
    const answers = await Promise.all(users.map(user => host.http(`POST ${path}`, { user })));
    await host.close();
    return answers.map(a => a.status).sort();
  };
  for (let k = 0; k < 3; k++) {
    t.same(await together('/look', 2), [201, 201], 'what is read and then written is booked twice');
    t.same(await together('/claim', 2), [201, 409]);
  }
  const many = await together('/claim', 20);
  t.same(many, [201, ...Array(19).fill(409)], 'also more than there are slots, and none waits for a slot in vain');

  const host = new TestHost(module, {});
  t.teardown(() => host.close());
  const said = await Promise.all(['one', 'two'].map(word => host.message(`/say ${word}`, { user: 1 })));
  const texts = said.map(s => s.replies.map(reply => Object(reply).text));
  t.same(
    texts,
    [
      ['one', 'again one'],
      ['two', 'again two'],
    ],
    'each has its own replies',
  );
  const [, looked] = await Promise.all([host.http('POST /spin', { user: 1 }), host.http('POST /look', { user: 2 })]);
  t.equal(looked.status, 201, 'one that makes no call holds up no other until its end');
});

t.test('what kits write in their own ways, a test reads in one', async t => {
  const host = new MemoryHost();
  const caller = { kind: 'messenger' as const, user: 7, permissions: new Set(['network']), replies: [] as unknown[] };
  const call = (name: string, ...args: HostArgument[]) => {
    const row = HOST_FUNCTION_BY_NAME.get(name);
    if (row === undefined) throw new Error(name);
    return answerCall(host, row, args, caller);
  };
  host.outside = { http: () => ({ status: 200 }) };
  await call('http_request', '{"url":"https://a.example/","headers":{"X-Key":"one"}}', new Uint8Array());
  t.same(host.requests[0]?.headers, { 'x-key': 'one' });
  t.match(await call('reply', '{"text":"no files"}'), { code: 0 });
  t.same(caller.replies, [{ files: [], text: 'no files' }]);
});

t.test('a time to live of less than a second ends', async t => {
  const entry = path.join(t.testdir({}), 'index.ts');
  fs.writeFileSync(
    entry,
    `import { definePlugin, KV, TriggerHTTP } from '@plugin-host/sdk';
definePlugin({
  ID: 'short', Name: 'Short', Version: '1.0.0', Requirements: [KV('Kept shortly').Build()],
  Triggers: [
    { Name: 'set', Type: TriggerHTTP, Path: '/set', Methods: ['POST'], Handler: ctx => ctx.KVSet('k', 'v', 0.2) },
    { Name: 'get', Type: TriggerHTTP, Path: '/get', Methods: ['GET'], Handler: ctx => ctx.JSON(200, ctx.KVGet('k')) },
  ],
});
`,
  );
  const host = new TestHost((await buildPlugin(entry)).module, {});
  t.teardown(() => host.close());
  await host.http('POST /set', {});
  t.equal((await host.http('GET /get', {})).text, '"v"');
  await until(async () => (await host.http('GET /get', {})).text === 'null');
});

t.test('reading what an execution that failed gave throws why it failed, and printing it does not', async t => {
  const host = new TestHost(watPlugin({ id: 'fails', handle: 'unreachable' }), {});
  t.teardown(() => host.close());
  const answer = await host.http('GET /run');
  t.equal(answer.status, 502);
  t.throws(() => answer.json, /^the execution failed \(trapped\): unreachable/);
  t.match({ ...answer }, { status: 502, failure: /unreachable/ });
});

t.test('a caller gets from a test host what the service would give it', async t => {
  const entry = path.join(t.testdir({}), 'index.ts');
  fs.writeFileSync(
    entry,
    `import { definePlugin, NewMessage, PluginDep, TriggerHTTP, TriggerMessenger } from '@plugin-host/sdk';
definePlugin({
  ID: 'exact', Name: 'Exact', Version: '1.0.0', Requirements: [PluginDep('other', 'Asks it').Build()],
  Triggers: [
    { Name: 'same', Type: TriggerHTTP, Path: '/same', Methods: ['POST'], Handler: ctx => ctx.JSON(200, ctx.HTTP.JSON()) },
    { Name: 'ask', Type: TriggerHTTP, Path: '/ask', Methods: ['GET'],
      Handler: ctx => ctx.JSON(200, ctx.CallPlugin('other', 'next', { id: 2n ** 60n + 1n })) },
    { Name: 'say', Type: TriggerMessenger,
      Handler: ctx => { ctx.Reply(NewMessage('half')); throw new Error('broken'); } },
    { Name: 'lost', Type: TriggerHTTP, Path: '/lost', Methods: ['GET'],
      Handler: ctx => { void Promise.reject(new Error('lost')); ctx.JSON(200, { a: 1 }); } },
  ],
});
`,
  );
  const { module } = await buildPlugin(entry);
  const next = (value: unknown): unknown => ({ id: Object(value).id + 1n });
  const host = new TestHost(module, { plugins: { other: { next } } });
  t.teardown(() => host.close());
  t.same((await host.http('GET /ask')).json, { id: 2n ** 60n + 2n }, 'also through another plugin');
  t.match(await host.message('/say', { user: 1 }), { outcome: 'handler_error', replies: [] });
  const body = { small: 7, large: 2n ** 63n - 1n };
  t.same((await host.http('POST /same', { body })).json, body, 'all digits, there and back');
  const lost = await host.http('GET /lost');
  t.match(lost, { status: 502, text: '', headers: {}, outcome: 'handler_error', failure: /Error: lost/ });
  await t.rejects(host.http('GET /lost', { user: 1, serviceKey: 1 }), /a call has one caller/);
  await t.rejects(host.http('GET /lost', { grant: ['kvv'] }), /grant: "kvv" is no permission; there are sql, kv, /);
  t.throws(() => new TestHost(module, { config: { title: 'x' } }), /"title" is no configuration field of the plugin; /);
});
