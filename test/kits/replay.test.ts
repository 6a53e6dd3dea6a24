import { execFile } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import t, { type Test } from 'tap';
import { buildPlugin } from '../../sdk/typescript/build.ts';
import { readRecording, replay } from '../../src/authors/replay.ts';
import { BARE_ENV } from '../support/bare-env.ts';
import { messengerWorld } from '../support/messenger-world.ts';
import { type Json, startTestService, TOKEN } from '../support/service.ts';
import { watPlugin } from '../support/wat.ts';

/** A recorded execution is run again on an author's machine (docs/plugins.md "Recordings"). */

const MAIN = path.resolve(import.meta.dirname, '../../src/main.ts');
const SOURCE = `import { type Context, ConfigFields, definePlugin, KV, StringField, TriggerHTTP } from '@plugin-host/sdk';
const field = StringField('key', 'A key').Required().Sensitive();
definePlugin({
  ID: 'counter', Name: 'Counter', Version: '1.0.0',
  Requirements: [KV('Counts').WithConfig(ConfigFields(field)).Build()],
  Triggers: [{ Name: 'count', Type: TriggerHTTP, Path: '/count/:what', Methods: ['POST'], Handler: count }],
});
function count(ctx: Context): void {
  const what = ctx.HTTP.Params.what ?? '';
  ctx.KVSet('last', [what, ctx.HTTP.Body, ctx.Config('key')].join(' '));
  const n = ctx.KVIncrement('n:' + what);
  const last = ctx.KVGet('last');
  const [many] = ctx.KVGetMany(['last']);
  if (what === 'bad') throw new Error('bad is counted ' + n + ' times');
  ctx.JSON(200, { what, n, last, isSame: last === many });
}
`;
const QUIET = `function quiet(call: () => bigint): bigint {
  try { return call(); } catch { throw new Error('it could not be counted'); }
}
`;
const SECRET = 'a very secret key';

type Ran = { code: number; out: string; err: string };
const run = (args: string[], env: Record<string, string> = {}): Promise<Ran> =>
  new Promise(resolve => {
    const words = ['--disable-warning=ExperimentalWarning', MAIN, 'plugin', 'replay', ...args];
    const options = { env: { ...BARE_ENV, HOME: process.env.HOME ?? '/', ...env } };
    execFile(process.execPath, words, options, (error, out, err) =>
      resolve({ code: typeof error?.code === 'number' ? error.code : 0, out, err }),
    );
  });

const folderOf = (t: Test, source: string): string =>
  t.testdir({ 'index.ts': source, 'plugin-host.json': '{"lang":"ts","entry":"index.ts"}' });

async function moduleOf(folder: string): Promise<Uint8Array> {
  return (await buildPlugin(path.join(folder, 'index.ts'))).module;
}

t.test('an execution of a recorded trigger runs again, and what differs is said', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  const folder = folderOf(t, SOURCE);
  const module = await moduleOf(folder);
  await s.install(module, { key: SECRET });
  const send = (what: string): Promise<unknown> =>
    s.trigger(`counter/count/${what}`, {
      method: 'POST',
      body: 'from ada@example.org',
      headers: { 'X-Api-Key': 'a key of the caller' },
    });
  const newest = async (): Promise<Json> => {
    const list = await s.admin('GET', '/plugins/counter/executions?limit=1');
    const [item] = list.json.items as Json[];
    return (await s.admin('GET', `/plugins/counter/executions/${item?.id}`)).json;
  };
  await send('cups');
  const before = await newest();
  t.equal(before.recorded, false, 'nothing is recorded that was not asked for');
  const missing = await s.admin('GET', `/plugins/counter/executions/${before.id}/recording`);
  t.match(missing, { status: 404, json: { detail: /has no recording; set "record" of its trigger/ } });
  const set = await s.admin('PUT', '/plugins/counter/triggers/count/settings', { record: true });
  t.match(set, { status: 200, json: { record: true } });

  await send('cups');
  const good = await newest();
  t.equal(good.recorded, true);
  const recorded = await s.admin('GET', `/plugins/counter/executions/${good.id}/recording`);
  t.equal(recorded.status, 200, recorded.text);
  const audit = (await s.admin('GET', '/audit?limit=1')).json;
  t.match(audit.items, [
    { action: 'execution.read_recording', object_type: 'plugin', object_id: 'counter', after: { execution: good.id } },
  ]);
  t.notMatch(recorded.text, SECRET, 'the secret is hidden');
  t.notMatch(recorded.text, 'a key of the caller', 'credentials in headers are hidden');
  t.notMatch(recorded.text, 'ada@example.org', 'mail addresses are hidden');
  t.notMatch(recorded.text, Buffer.from(`cups from ada@example.org ${SECRET}`).toString('base64'), 'in base64, too');
  t.match(recorded.json, {
    plugin_id: 'counter',
    body: 'from hidden@example.invalid',
    config: { key: '(hidden)' },
    calls: [
      { function: 'kv_set', arguments: ['last', 'cups from hidden@example.invalid (hidden)', 0], code: 0 },
      { function: 'kv_increment', arguments: ['n:cups', { int64: '1' }, 0], data: '2' },
      { function: 'kv_get', arguments: ['last'], code: 41, data: 'cups from hidden@example.invalid (hidden)' },
      { function: 'kv_get_many' },
    ],
    outcome: {
      kind: 'ok',
      status: 200,
      body: '{"what":"cups","n":2,"last":"cups from hidden@example.invalid (hidden)","isSame":true}',
    },
  });

  await t.test('the same sources run as they did', async t => {
    const again = await replay(module, readRecording(recorded.text, 'it'), {});
    t.same([again.differences, again.calls], [[], 4]);
  });
  await t.test('other sources differ where they ask, and in what they answer', async t => {
    const other = await moduleOf(
      folderOf(t, SOURCE.replace("'n:' + what", "'m:' + what").replace('n, last', 'n, more: 1, last')),
    );
    const { differences } = await replay(other, readRecording(recorded.text, 'it'), {});
    t.match(
      differences[0],
      /^host call 2: then kv_increment\("n:cups", .*, now kv_increment\("m:cups".* at count \(index\.ts:11:\d+\)$/,
    );
    t.match(differences[1], /^body: then .*, now .*more/);
    const hidden = await moduleOf(
      folderOf(t, SOURCE.replace("ctx.KVIncrement('n:' + what)", "quiet(() => ctx.KVIncrement('m:' + what))") + QUIET),
    );
    const kept = await replay(hidden, readRecording(recorded.text, 'it'), {});
    t.match(kept.differences[0], /with nothing stored\)$/, 'no other place is shown for it');
    const none = await moduleOf(folderOf(t, SOURCE.replace(/ {2}ctx\.KVSet.*\n/, '')));
    const less = await replay(none, readRecording(recorded.text, 'it'), {});
    t.match(less.differences[0], /^host call 1: then kv_set\(.*\), now not made$/);
    t.equal(less.calls, 3, 'the calls behind it get their answers');
    const more = SOURCE.replace(
      '  ctx.KVSet',
      "  if (ctx.KVGet('locked') === null) ctx.KVIncrement('free');\n  ctx.KVSet",
    );
    const asksMore = await replay(await moduleOf(folderOf(t, more)), readRecording(recorded.text, 'it'), {});
    t.match(
      asksMore,
      { calls: 4, outcome: { kind: 'ok' }, differences: { length: 2 } },
      'and so do those behind new ones',
    );
    t.match(asksMore.differences[0], /^host call 1: then not made, now kv_get\("locked"\) \(answered as in a test/);
    const again = SOURCE.replace(
      '  const [many]',
      "  ctx.KVGet('last');\n  if (ctx.KVGet('last') !== last) throw new Error('it is gone');\n  const [many]",
    );
    const readsAgain = await replay(await moduleOf(folderOf(t, again)), readRecording(recorded.text, 'it'), {});
    t.match(readsAgain, { outcome: { kind: 'ok' }, differences: { length: 2 } }, 'what was read before is still there');
    const hides = SOURCE.replace('  ctx.KVSet', "  quietly(() => ctx.KVGet('new'));\n  ctx.KVSet");
    const HIDE = 'function quietly(call: () => unknown): void {\n  try { call(); } catch {}\n}\n';
    const hidden2 = await replay(await moduleOf(folderOf(t, hides + HIDE)), readRecording(recorded.text, 'it'), {});
    t.match(
      hidden2.differences[0],
      /now kv_get\("new"\) \(answered as in a test, with nothing stored\)$/,
      'a hidden refusal has no place',
    );
    const turned = SOURCE.replace(/( {2}const last = .*\n)( {2}const \[many\] = .*\n)/, '$2$1');
    const inTurn = await replay(await moduleOf(folderOf(t, turned)), readRecording(recorded.text, 'it'), {});
    t.match(inTurn, { calls: 4, outcome: { kind: 'ok' }, differences: { length: 1 } });
    t.match(
      inTurn.differences[0],
      /^host call 3: kv_get\("last"\) is made later than then at count \(index\.ts:\d+:\d+\)$/,
    );
  });
  await t.test('how long it ran until its deadline makes no difference', async t => {
    const stopped = (ms: number): string =>
      `the execution was stopped at its deadline, after it had run for ${ms} ms: look for an endless loop, a wait, or a host call that takes long`;
    const loop = watPlugin({ id: 'counter', handle: '(loop $l (br $l)) (i32.const 0)' });
    const late = {
      ...recorded.json,
      calls: [],
      outcome: { ...(recorded.json.outcome as Json), kind: 'deadline', failure: stopped(4321) },
    };
    const again = await replay(loop, readRecording(JSON.stringify(late), 'it'), { key: SECRET });
    t.equal(again.outcome.kind, 'deadline');
    t.same(again.differences, []);
  });
  await t.test('what was stopped while it waited waits again, and a loop says where it is', async t => {
    const waits = SOURCE.replace(
      / {2}const n = /,
      "  if (what === 'late') await new Promise<void>(done => setTimeout(done, 60_000));\n$&",
    ).replace('function count(ctx: Context): void', 'async function count(ctx: Context): Promise<void>');
    const late = { ...recorded.json, outcome: { ...(recorded.json.outcome as Json), kind: 'deadline', failure: 'x' } };
    const event = String(recorded.json.event).replace('"cups"', '"late"');
    const again = await replay(
      await moduleOf(folderOf(t, waits)),
      readRecording(JSON.stringify({ ...late, event, drawn: '' }), 'it'),
      { key: SECRET },
    );
    t.equal(again.outcome.kind, 'deadline');
    const loops = SOURCE.replace(/ {2}const n = /, '  for (;;) Math.sqrt(2);\n$&');
    // The clock has a reading from when it began.
    const drawn = Buffer.from([1, ...new Uint8Array(8)]).toString('base64');
    const placed = await replay(
      await moduleOf(folderOf(t, loops)),
      readRecording(JSON.stringify({ ...late, drawn }), 'it'),
      { key: SECRET },
    );
    t.match(placed.outcome, {
      kind: 'deadline',
      failure: /is there an endless loop\?\n +at count \(index\.ts:1[01]:\d+\)/,
    });
  });
  await t.test('the recorded module is never a mended one', async t => {
    const failed = { ...recorded.json, outcome: { ...(recorded.json.outcome as Json), kind: 'handler_error' } };
    const again = await replay(module, readRecording(JSON.stringify(failed), 'it'), {});
    t.match(again, { isMended: false, isRecorded: true, outcome: { kind: 'ok' } });
    const file = path.join(folder, 'failed.json');
    fs.writeFileSync(file, JSON.stringify(failed));
    const ran = await run([file, folder]);
    t.match(ran, { code: 1, out: /it is the recorded module: what it does otherwise depends on values .* hides/ });
    t.match(ran.out, / {2}answers 200 \{"what":"cups","n":2/);
  });
  await t.test('from a terminal: by its number, and from a file', async t => {
    await send('bad');
    const bad = await newest();
    t.equal(bad.outcome, 'handler_error');
    const key = await s.admin('POST', '/keys', { name: 'author', scopes: ['plugins:deploy'] });
    const token = String(key.json.key ?? TOKEN);
    const file = path.join(folder, 'recording.json');
    const env = { PLUGIN_HOST_URL: s.base, PLUGIN_HOST_TOKEN: token };
    const there = await run([String(bad.id), folder, '--save', file], env);
    t.equal(there.code, 0, there.out + there.err);
    t.match(there.out, /bad is counted 1 times\n {8}at count \(index\.ts:14:\d+\)/, 'with the line of the author');
    t.match(there.out, /it runs as it did then/);
    t.match(there.out, /\(the recorded module\)/);
    const itself = await run([String(bad.id), '--plugin', 'counter'], env);
    t.match(itself, { code: 0, out: /\(the recorded module\)[\s\S]*it runs as it did then/ }, 'without any sources');
    t.match((await s.admin('GET', '/audit?limit=1')).json.items, [
      { action: 'plugin.read_module', object_id: 'counter', after: { version: '1.0.0' } },
    ]);
    t.match(await run([file, '--plugin', 'counter'], env), { code: 0, out: /\(the recorded module\)/ });
    t.match(await run([file, '--plugin', 'other'], env), { code: 1, err: /is an execution of counter, not of other/ });
    t.match(await run([file, folder, '--plugin', 'counter'], env), {
      code: 2,
      err: /leave out the folder and --module/,
    });
    fs.writeFileSync(path.join(folder, 'index.ts'), SOURCE.replace("if (what === 'bad')", 'if (n > 1n)'));
    const mended = await run([file, folder]);
    t.equal(mended.code, 0, 'the mended module passes');
    t.match(mended.out, /it failed then, and ends well now$/m);
    t.match(mended.out, /counter, trigger \w+ \(another module than the recorded \d/);
    t.match(mended.out, /outcome: then "handler_error", now "ok"/);
    const goesOn = SOURCE.replace(
      / {2}if \(what === 'bad'\).*\n/,
      "  ctx.KVIncrement('m');\n  ctx.KVIncrement('m');\n",
    );
    fs.writeFileSync(path.join(folder, 'index.ts'), goesOn);
    const further = await run([file, folder]);
    t.match(
      further,
      { code: 0, out: /it failed then, and ends well now$/m },
      'also when it asks further than the failed one',
    );
    t.match(
      further.out,
      /host call 5: then no further call, now kv_increment\("m".*\(answered as in a test, with nothing stored\) at count/,
    );
    const wellThen = await replay(await moduleOf(folder), readRecording(recorded.text, 'it'), {});
    t.match(
      wellThen,
      { outcome: { kind: 'ok' }, calls: 4, differences: { length: 2 } },
      'also behind one that ended well',
    );
    t.match(await run([path.join(folder, 'index.ts'), folder]), { code: 1, err: /is no recording: it is not JSON/ });
    t.match(await run([file, folder, '--set', 'key']), { code: 2, err: /--set "key" is no field/ });
  });
});

const COMMAND = `import { type Context, definePlugin, KV, NewMessage, TriggerMessenger } from '@plugin-host/sdk';
definePlugin({
  ID: 'orders', Name: 'Orders', Version: '1.0.0',
  Requirements: [KV('Counts').Build()],
  Triggers: [{ Name: 'order', Type: TriggerMessenger, Handler: order }],
});
function order(ctx: Context): void {
  const dish = ctx.Message.Args[0] ?? 'soup';
  const n = ctx.KVIncrement('n:' + dish);
  ctx.Reply(NewMessage(dish + ' number ' + n));
}
`;

t.test('an execution of a recorded command runs again', async t => {
  const { s, sides, telegram } = await messengerWorld(t);
  const folder = folderOf(t, COMMAND);
  const module = await moduleOf(folder);
  await s.install(module);
  const order = async (text: string): Promise<Json> => {
    const before = telegram.shown.length;
    await sides[0]?.write(text);
    await telegram.until(before + 1);
    const list = await s.admin('GET', '/plugins/orders/executions?limit=1');
    const [item] = list.json.items as Json[];
    return (await s.admin('GET', `/plugins/orders/executions/${item?.id}`)).json;
  };
  t.equal((await order('/order tea')).recorded, false);
  const path = '/plugins/orders/commands/order';
  t.match(await s.admin('PUT', `${path}/record`, { record: 'yes' }), { status: 422 });
  t.match(await s.admin('PUT', `${path}/record`, { record: true }), { status: 200, json: { record: true } });
  t.match((await s.admin('GET', `${path}/settings`)).json, { record: true, enabled: true });
  const { id, recorded } = await order('/order tea ada@example.org');
  t.equal(recorded, true);
  const { json, text } = await s.admin('GET', `/plugins/orders/executions/${id}/recording`);
  t.match(json, {
    trigger: 'order',
    calls: [
      { function: 'kv_increment', arguments: ['n:tea', { int64: '1' }, 0], data: '2' },
      { function: 'reply', arguments: [/tea number 2/] },
    ],
    outcome: { kind: 'ok' },
  });
  t.notMatch(text, 'ada@example.org');
  const again = await replay(module, readRecording(text, 'it'), {});
  t.same([again.differences, again.calls], [[], 2]);
  const other = await moduleOf(folderOf(t, COMMAND.replace("' number '", "' no. '")));
  const { differences } = await replay(other, readRecording(text, 'it'), {});
  t.match(differences, [/^host call 2: then reply\(.*number 2.*, now reply\(.*no\. 2/]);
});

const LOCK = `import { type Context, definePlugin, KV, TriggerHTTP } from '@plugin-host/sdk';
definePlugin({
  ID: 'lock', Name: 'Lock', Version: '1.0.0',
  Requirements: [KV('Holder').Build()],
  Triggers: [{ Name: 'take', Type: TriggerHTTP, Path: '/take', Methods: ['POST'], Handler: take }],
});
function take(ctx: Context): void {
  const { written } = ctx.KVSetIfAbsent('holder', ctx.HTTP.Body);
  ctx.JSON(200, { written });
}
`;

t.test('a conditional write that was refused then stays refused for what another module reads', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  await s.install(await moduleOf(folderOf(t, LOCK)));
  await s.admin('PUT', '/plugins/lock/triggers/take/settings', { record: true });
  const holder = LOCK.replace('200, { written }', "200, { written, holder: ctx.KVGet('holder') }");
  const reads = await moduleOf(folderOf(t, holder));
  const recorded = async (body: string): Promise<string> => {
    await s.trigger('lock/take', { method: 'POST', body });
    const [item] = (await s.admin('GET', '/plugins/lock/executions?limit=1')).json.items as Json[];
    return (await s.admin('GET', `/plugins/lock/executions/${item?.id}/recording`)).text;
  };
  const written = await replay(reads, readRecording(await recorded('ada'), 'it'), {});
  t.match(written.differences.at(-1), /now .*true.*"ada/, 'what it wrote is there');
  const refused = await replay(reads, readRecording(await recorded('ben'), 'it'), {});
  t.match(refused.differences.at(-1), /now .*false.*"ada/, 'what was refused is not, what held it is');
});
