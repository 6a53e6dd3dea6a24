import t from 'tap';
import { CookieJar } from '../support/identity-provider.ts';
import { type Answer, type Json, request, startTestService, TOKEN } from '../support/service.ts';
import { watPlugin } from '../support/wat.ts';

/** docs/api.md "Changing what was read". */

const s = await startTestService();
t.teardown(() => s.stop());

const bytes = (version: string): Uint8Array =>
  watPlugin({
    id: 'tagged',
    version,
    handle: '(i32.const 0)',
    requirements: [
      { kind: 'kv', description: 'notes', config: [{ name: 'greeting' }, { name: 'pass', sensitive: true }] },
    ],
    triggers: [
      { name: 'read', type: 'http', path: '/read', methods: ['GET'] },
      { name: 'menu', type: 'messenger' },
    ],
  });
const { wasmKey } = await s.install(bytes('1.0.0'), { greeting: 'Hello', pass: 'first' }, 'default');

const TRIGGER = '/plugins/tagged/triggers/read/settings';
const COMMAND = '/plugins/tagged/commands/menu';

/** Of the administrator, from when there is one: the setup token opens nothing then. */
let cookies: Record<string, string> | null = null;

function send(method: string, where: string, ifMatch: string | null, body?: unknown): Promise<Answer> {
  return request(`${s.base}/api/admin${where}`, {
    method,
    headers: {
      ...(cookies ?? { authorization: `Bearer ${TOKEN}` }),
      ...(ifMatch === null ? {} : { 'if-match': ifMatch }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}
const read = async (where: string): Promise<{ tag: string; json: Json }> => {
  const a = await send('GET', where, null);
  return { tag: a.headers.get('etag') ?? '', json: a.json };
};

t.test('a change of a trigger goes through with the tag of what was read, and answers the new one', async t => {
  const { tag } = await read(TRIGGER);
  t.match(tag, /^"[\w.-]+"$/);
  const changed = await send('PUT', TRIGGER, tag, { allow_service_key: true });
  t.equal(changed.status, 200);
  t.not(changed.headers.get('etag'), tag);
  t.equal(changed.headers.get('etag'), (await read(TRIGGER)).tag);
});

t.test('a change of settings that another one changed is refused with 412, which names the members', async t => {
  const { tag } = await read(TRIGGER);
  await send('PUT', TRIGGER, null, { policy_expression: 'has_role("a")', enabled: false });
  const outdated = await send('PUT', TRIGGER, tag, { allow_service_key: false });
  t.equal(outdated.status, 412);
  t.equal(outdated.json.code, 'precondition_failed');
  t.same(outdated.json.changed, ['enabled', 'policy_expression']);
  t.match(outdated.json.detail, /the settings of trigger "read" changed since it was read: enabled, policy_expression/);
  t.equal(outdated.headers.get('etag'), (await read(TRIGGER)).tag, 'the refusal has the tag of now');
  t.equal((await read(TRIGGER)).json.allow_service_key, true, 'nothing was changed');
});

t.test('without If-Match, with * and with one of several tags a change goes through', async t => {
  t.equal((await send('PUT', TRIGGER, null, { enabled: true })).status, 200);
  t.equal((await send('PUT', TRIGGER, '*', { enabled: true })).status, 200);
  const { tag } = await read(TRIGGER);
  t.equal((await send('PUT', TRIGGER, `"other", ${tag}`, { enabled: true })).status, 200);
});

t.test('a weak tag, a foreign tag and what is no tag do not match', async t => {
  const { tag } = await read(TRIGGER);
  t.equal((await send('PUT', TRIGGER, `W/${tag}`, { enabled: true })).status, 412);
  const foreign = await send('PUT', TRIGGER, '"abc"', { enabled: true });
  t.equal(foreign.status, 412);
  t.same(foreign.json.changed, []);
  t.match(foreign.json.detail, /does not hold the ETag of the settings of trigger "read"/);
  const none = await send('PUT', TRIGGER, 'abc', { enabled: true });
  t.equal(none.status, 400);
  t.match(none.json.detail, /If-Match must hold the ETag/);
});

t.test('of two changes with one tag at the same time one is refused', async t => {
  const { tag } = await read(TRIGGER);
  const both = await Promise.all(
    ['has_role("b")', 'has_role("c")'].map(p => send('PUT', TRIGGER, tag, { policy_expression: p })),
  );
  t.same(both.map(a => a.status).sort(), [200, 412]);
});

t.test('the settings of a command: enabled, policy and roles', async t => {
  const { json, tag } = await read(`${COMMAND}/settings`);
  t.equal(json.command, 'menu');
  t.equal((await send('PUT', `${COMMAND}/policy`, tag, { expression: 'has_role("a")' })).status, 200);
  const outdated = await send('PUT', `${COMMAND}/roles`, tag, { system_role: 'admin' });
  t.equal(outdated.status, 412);
  t.same(outdated.json.changed, ['policy_expression']);
  t.equal((await send('PUT', `${COMMAND}/enabled`, tag, { enabled: false })).status, 412);
  const now = await read(`${COMMAND}/settings`);
  t.equal(now.json.enabled, true);
  const done = await send('PUT', `${COMMAND}/enabled`, now.tag, { enabled: false });
  t.equal(done.status, 200);
  const revisions = await send('GET', `${COMMAND}/policy/revisions`, null);
  const first = (revisions.json.items as Json[])[0]?.id;
  const restore = `${COMMAND}/policy/revisions/${first}/restore`;
  t.equal((await send('POST', restore, now.tag)).status, 412);
  t.equal((await send('POST', restore, done.headers.get('etag'))).status, 200);
});

t.test('an installation over another configuration than was read is refused', async t => {
  const { tag } = await read('/plugins/tagged');
  const install = (ifMatch: string | null, config: Json) =>
    send('POST', '/plugins/tagged/install', ifMatch, { wasm_key: wasmKey, config });
  t.equal((await install(tag, { greeting: 'Good day', pass: 'first' })).status, 200);
  const outdated = await install(tag, { greeting: 'Hi' });
  t.equal(outdated.status, 412);
  t.same(outdated.json.changed, ['config'], 'the secret is as it was');
  const now = (await read('/plugins/tagged')).tag;
  t.equal((await install(null, { pass: 'second' })).status, 200);
  const secret = await install(now, { greeting: 'Hi' });
  t.equal(secret.status, 412, 'a changed secret changes the tag');
  t.same(secret.json.changed, ['secrets']);
  t.notOk(JSON.stringify(secret.json).includes('second'), 'and is not shown');
  const config = (await read('/plugins/tagged')).json.config as Json[];
  t.equal(config.find(f => f.name === 'greeting')?.value, 'Good day');
});

t.test('a rollback from another version than was read is refused', async t => {
  const { tag } = await read('/plugins/tagged');
  await s.install(bytes('2.0.0'), {}, 'default');
  const outdated = await send('POST', '/plugins/tagged/rollback', tag, { wasm_key: wasmKey });
  t.equal(outdated.status, 412);
  t.ok((outdated.json.changed as string[]).includes('wasm_key'));
  const now = (await read('/plugins/tagged')).tag;
  t.equal((await send('POST', '/plugins/tagged/rollback', now, { wasm_key: wasmKey })).status, 200);
});

t.test('what else administrators set of a plugin: enabled, origins, pages and their trust', async t => {
  const changes: Array<[string, string, Json | undefined, string]> = [
    ['POST', '/disable', undefined, 'enabled'],
    ['PUT', '/origins', { origins: ['https://app.example.org'] }, 'frontend_origins'],
    ['PUT', '/frontend', { access: 'session' }, 'frontend_access'],
    ['PUT', '/html', { trust: 'trusted' }, 'html_trust'],
    ['POST', '/enable', undefined, 'enabled'],
  ];
  const root = await request(`${s.base}/api/admin/auth/setup`, {
    method: 'POST',
    headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify({ email: 'root@uni.example', password: 'correct horse battery' }),
  });
  const jar = new CookieJar();
  jar.take(root.headers);
  cookies = jar.header;
  for (const [method, where, body, name] of changes) {
    const { tag } = await read('/plugins/tagged');
    const done = await send(method, `/plugins/tagged${where}`, tag, body);
    t.equal(done.status, 200, `${where} ${done.text}`);
    const again = await send(method, `/plugins/tagged${where}`, tag, body);
    t.equal(again.status, 412, where);
    t.same(again.json.changed, [name], where);
  }
});

t.test('a plugin that another administrator has changed meanwhile is not uninstalled', async t => {
  const { tag } = await read('/plugins/tagged');
  t.equal((await send('PUT', '/plugins/tagged/origins', null, { origins: [] })).status, 200);
  t.match(await send('DELETE', '/plugins/tagged', tag), { status: 412, json: { changed: ['frontend_origins'] } });
  const now = (await read('/plugins/tagged')).tag;
  t.equal((await send('DELETE', '/plugins/tagged', now)).status, 204);
  t.equal((await send('GET', '/plugins/tagged', null)).status, 404);
});
