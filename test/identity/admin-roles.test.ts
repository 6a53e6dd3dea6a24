import t from 'tap';
import { openDatabase } from '../../src/db/database.ts';
import { isScope, scopeBeyond, scopesOf } from '../../src/identity/admin-roles.ts';
import { CookieJar } from '../support/identity-provider.ts';
import { appointSecondAdmin, type SecondAdmin } from '../support/second-admin.ts';
import { type Answer, request, startTestService, TOKEN } from '../support/service.ts';
import { okPlugin } from '../support/wat.ts';

/** Roles of administrators (docs/administrators.md "Roles and scopes"). `admin-keys.test.ts` shows which row opens to which. */

const PASSWORD = 'correct horse battery';

async function world(t: { teardown(fn: () => unknown): void }) {
  const s = await startTestService();
  t.teardown(() => s.stop());
  const db = openDatabase(s.databaseUrl, 2, () => {});
  t.teardown(() => db.close());
  const call = (headers: Record<string, string>, method: string, where: string, body?: unknown): Promise<Answer> =>
    request(`${s.base}/api/admin${where}`, {
      method,
      headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  for (const id of ['mine', 'other']) await s.install(okPlugin(id));
  const jar = new CookieJar();
  const first = { email: 'root@uni.example', password: PASSWORD };
  const made = await call({ authorization: `Bearer ${TOKEN}` }, 'POST', '/auth/setup', first);
  jar.take(made.headers);
  const root = jar.header;
  const appoint = ({ round: _, ...may }: Record<string, unknown>): Promise<SecondAdmin> =>
    appointSecondAdmin(s, db, root, PASSWORD, may);
  const rootId = Number((made.json.admin as { global_user_id: number }).global_user_id);
  return { s, db, call, root, rootId, made, appoint };
}

t.test('roles are sets of the scopes of keys', async t => {
  t.same(scopesOf({ roles: ['auditor'], plugins: null }), ['read', 'people']);
  t.same(scopesOf({ roles: ['operator', 'access_manager'], plugins: null }), [
    'read',
    'people',
    'access',
    'university',
    'operate',
  ]);
  t.same(scopesOf({ roles: ['plugin_manager'], plugins: ['a', 'b'] }), [
    'read',
    'plugins:deploy:a',
    'plugins:deploy:b',
    'plugins:accept',
  ]);
  t.same(scopesOf({ roles: ['owner'], plugins: null }), ['admin']);
  t.equal(scopeBeyond(['read'], ['read', 'operate']), 'operate');
  t.equal(scopeBeyond(['plugins:deploy'], ['plugins:deploy:a']), undefined);
  t.equal(scopeBeyond(['plugins:deploy:a'], ['plugins:deploy']), 'plugins:deploy');
  t.equal(scopeBeyond(['plugins:deploy:a'], ['plugins:deploy:b']), 'plugins:deploy:b');
  t.equal(scopeBeyond(['admin'], ['access', 'plugins:deploy:b']), undefined);
});

t.test('a scope is one of the words, or names one plugin by a whole id', t => {
  for (const scope of ['read', 'admin', 'plugins:deploy', 'plugins:deploy:a', `plugins:deploy:${'a'.repeat(64)}`])
    t.ok(isScope(scope), scope);
  const others = ['', 'reading', 'read ', 'plugins:deploy:', 'plugins:deploy:a b', 'plugins:deploy:a,admin'];
  for (const text of [...others, 'xplugins:deploy:a', 'plugins:deploy:-a', `plugins:deploy:${'a'.repeat(65)}`])
    t.notOk(isScope(text), text);
  t.end();
});

t.test('the first administrator is an owner, and so is one appointed without a word of roles', async t => {
  const w = await world(t);
  t.match(w.made.json, { admin: { roles: ['owner'], scopes: ['admin'] } });
  const second = await w.appoint({});
  t.match(second.appointed, { roles: ['owner'], plugins: null });
  t.match((await w.call(second.headers, 'GET', '/auth/check')).json, { admin: { roles: ['owner'] } });
});

t.test('the roles of an appointment are checked, shown, and listed with their scopes', async t => {
  const w = await world(t);
  const user = await w.call(w.root, 'POST', '/users', { display_name: 'Ada' });
  const wrong: Array<[Record<string, unknown>, string]> = [
    [{ roles: [] }, '/roles'],
    [{ roles: ['king'] }, '/roles/0'],
    [{ roles: ['auditor'], plugins: ['mine'] }, '/plugins'],
    [{ roles: ['plugin_manager'], plugins: [] }, '/plugins'],
  ];
  for (const [may, pointer] of wrong) {
    const body = { global_user_id: user.json.id, email: 'ada@uni.example', ...may };
    t.match((await w.call(w.root, 'POST', '/admins', body)).json, { status: 422, errors: [{ pointer }] });
    t.match((await w.call(w.root, 'PATCH', `/admins/${w.rootId}`, may)).json, { status: 422, errors: [{ pointer }] });
  }
  const manager = await w.appoint({ roles: ['plugin_manager', 'auditor', 'auditor'], plugins: ['mine', 'mine'] });
  t.match(manager.appointed, { roles: ['auditor', 'plugin_manager'], plugins: ['mine'] });
  const check = await w.call(manager.headers, 'GET', '/auth/check');
  t.match(check.json, { admin: { scopes: ['read', 'people', 'plugins:deploy:mine', 'plugins:accept'] } });
  const roles = (await w.call(manager.headers, 'GET', '/admins/roles')).json.items as Array<{ role: string }>;
  t.same(
    roles.map(r => r.role),
    ['auditor', 'operator', 'plugin_manager', 'access_manager', 'owner'],
  );
});

t.test('an operator reads no people, not even in the audit log', async t => {
  const w = await world(t);
  const ada = await w.call(w.root, 'POST', '/users', { display_name: 'Ada', external_id: 'e-1' });
  const { headers: operator } = await w.appoint({ roles: ['operator'] });
  const { headers: auditor } = await w.appoint({ roles: ['auditor'], round: 2 });
  const where = `/audit?action=user.create&object_type=user&object_id=${ada.json.id}`;
  const entryOf = async (headers: Record<string, string>) =>
    ((await w.call(headers, 'GET', where)).json.items as Array<Record<string, unknown>>)[0];
  t.match(await entryOf(auditor), { after: { display_name: 'Ada' } });
  const masked = await entryOf(operator);
  t.match(masked, { object_id: String(ada.json.id), before: null, after: null });
  t.match((await w.call(operator, 'GET', `/audit/${masked?.id}`)).json, { before: null, after: null });
  const dean = {
    ...{ resource_type: 'faculty', resource_id: 'f-1', relation: 'dean' },
    ...{ subject_type: 'user', subject_id: 'e-77' },
  };
  t.match(await w.call(w.root, 'POST', '/relationships', dean), { status: 201 });
  t.notMatch((await w.call(operator, 'GET', '/audit.csv')).text, /Ada|e-77/);
  const who = encodeURIComponent('faculty:f-1#dean@user:e-77');
  for (const query of [`object_type=relationship&object_id=${who}`, `object_id=${who}`]) {
    t.equal((await w.call(auditor, 'GET', `/audit?${query}`)).status, 200);
    for (const path of ['/audit', '/audit.csv'])
      t.equal((await w.call(operator, 'GET', `${path}?${query}`)).status, 403, 'nor whether there is an entry');
  }
  t.match((await w.call(auditor, 'GET', '/audit.csv')).text, /e-77/);
  t.match((await w.call(auditor, 'GET', '/audit.csv')).text, 'Ada');
  t.match((await w.call(operator, 'GET', `/users/${ada.json.id}`)).json, {
    status: 403,
    detail: /needs the role auditor or access manager or owner; you are operator$/,
    sufficient_roles: ['auditor', 'access_manager', 'owner'],
  });
});

t.test('who may only look does not see the secret in the address of a subscriber', async t => {
  const w = await world(t);
  const url = 'https://subscriber.example.org/events?key=of-the-subscriber';
  const made = await w.call(w.root, 'POST', '/events/subscriptions', { name: 'timetable', url });
  t.match(made, { status: 201, json: { url } });
  const { headers: operator } = await w.appoint({ roles: ['operator'] });
  const { headers: auditor } = await w.appoint({ roles: ['auditor'], round: 2 });
  for (const [headers, shown] of [
    [operator, url],
    [auditor, 'https://subscriber.example.org/events?...'],
  ] as const) {
    t.match((await w.call(headers, 'GET', '/events/subscriptions')).json, { items: [{ url: shown }] });
    t.match((await w.call(headers, 'GET', `/events/subscriptions/${made.json.id}`)).json, { url: shown });
  }
});

t.test('a manager of one plugin manages that one, and a refusal names what is missing for another', async t => {
  const w = await world(t);
  const { headers } = await w.appoint({ roles: ['plugin_manager'], plugins: ['mine'] });
  t.equal((await w.call(headers, 'POST', '/plugins/mine/disable')).status, 200);
  t.equal((await w.call(headers, 'POST', '/plugins/mine/enable')).status, 200);
  const refused = await w.call(headers, 'POST', '/plugins/other/disable');
  t.match(refused.json, {
    status: 403,
    code: 'forbidden',
    detail:
      'POST /api/admin/plugins/other/disable needs the role plugin manager or owner; you are plugin manager, limited to the plugin mine',
    sufficient_roles: ['plugin_manager', 'owner'],
  });
  const form = (id: string): FormData => {
    const body = new FormData();
    body.append('file', new Blob([new Uint8Array(okPlugin(id))]), 'plugin.wasm');
    return body;
  };
  const upload = (id: string) =>
    request(`${w.s.base}/api/admin/plugins/upload`, { method: 'POST', headers, body: form(id) });
  t.equal((await upload('mine')).status, 201);
  t.match((await upload('other')).json, { status: 403, detail: /an upload of plugin "other" needs the role/ });
  // What they may not do with their own plugin: say who may call it.
  const settings = await w.call(headers, 'PUT', '/plugins/mine/triggers/t/settings', { enabled: false });
  t.match(settings.json, { status: 403, sufficient_roles: ['access_manager', 'owner'] });
});

t.test('a change of roles counts from the next request on, is audited, and revokes keys that open more', async t => {
  const w = await world(t);
  const second = await w.appoint({ roles: ['owner'] });
  const make = async (scopes: string[]) =>
    (await w.call(second.headers, 'POST', '/keys', { name: scopes.join('+'), scopes })).json;
  const reads = await make(['read']);
  const grants = await make(['read', 'access']);
  t.equal((await w.call(second.headers, 'GET', '/plugins')).status, 200);
  const changed = await w.call(w.root, 'PATCH', `/admins/${second.id}`, { roles: ['auditor'] });
  t.match(changed.json, { roles: ['auditor'], plugins: null });
  t.match((await w.call(second.headers, 'POST', '/plugins/mine/disable')).json, {
    status: 403,
    detail: /needs the role plugin manager or owner; you are auditor$/,
  });
  t.equal((await w.call(second.headers, 'GET', '/plugins')).status, 200, 'the session goes on');
  const using = (key: Record<string, unknown>) => w.call({ authorization: `Bearer ${key.key}` }, 'GET', '/plugins');
  t.equal((await using(reads)).status, 200);
  t.equal((await using(grants)).status, 401, 'a key beyond the new roles is revoked');
  const [entry] = (await w.call(w.root, 'GET', '/audit?action=admin.roles')).json.items as unknown[];
  t.match(entry, { object_id: String(second.id), before: { roles: ['owner'] }, after: { roles: ['auditor'] } });
  t.match((await w.call(second.headers, 'POST', '/keys', { name: 'x', scopes: ['read'] })).json, {
    status: 403,
    sufficient_roles: ['owner'],
  });
});

t.test('an owner is always left', async t => {
  const w = await world(t);
  const second = await w.appoint({ roles: ['operator'] });
  const last = { status: 409, detail: /the last owner; make another administrator an owner first/ };
  t.match((await w.call(w.root, 'PATCH', `/admins/${w.rootId}`, { roles: ['auditor'] })).json, last);
  t.match((await w.call(w.root, 'DELETE', `/admins/${w.rootId}`)).json, last);
  t.equal((await w.call(w.root, 'PATCH', `/admins/${second.id}`, { roles: ['owner'] })).status, 200);
  // Of two owners who step down at once, one stays.
  const both = await Promise.all([
    w.call(w.root, 'PATCH', `/admins/${w.rootId}`, { roles: ['auditor'] }),
    w.call(second.headers, 'PATCH', `/admins/${second.id}`, { roles: ['auditor'] }),
  ]);
  t.same(both.map(a => a.status).sort(), [200, 409]);
});

t.test('a right that is taken away meanwhile counts: no key and no appointment comes after it', async t => {
  const w = await world(t);
  for (let round = 0; round < 5; round++) {
    const second = await w.appoint({ roles: ['owner', 'auditor'], plugins: null, round });
    const make = () => w.call(second.headers, 'POST', '/keys', { name: 'x', scopes: ['admin'] });
    const back = () => w.call(second.headers, 'PATCH', `/admins/${second.id}`, { roles: ['owner'] });
    const work = [make(), back(), make(), w.call(w.root, 'PATCH', `/admins/${second.id}`, { roles: ['auditor'] })];
    await Promise.all([...work, make(), back(), make(), back()]);
    await w.call(w.root, 'PATCH', `/admins/${second.id}`, { roles: ['auditor'] });
    const { rows } = await w.db.query('SELECT 1 FROM admin_keys WHERE made_by = $1', [second.id]);
    t.equal(rows.length, 0, `round ${round}: an auditor holds no key that opens more`);
    t.match((await w.call(w.root, 'GET', `/admins?user=${second.id}`)).json, { items: [{ roles: ['auditor'] }] });
    await w.call(w.root, 'DELETE', `/admins/${second.id}`);
  }
});
