import t from 'tap';
import { LIMITS } from '../../src/base/limits.ts';
import { openDatabase } from '../../src/db/database.ts';
import { CookieJar } from '../support/identity-provider.ts';
import { appointSecondAdmin } from '../support/second-admin.ts';
import { type Answer, request, startTestService, TOKEN } from '../support/service.ts';
import { okPlugin, watPlugin } from '../support/wat.ts';
import { rawZip } from '../support/zip.ts';

const PASSWORD = 'correct horse battery';

type Headers_ = Record<string, string>;
type Teardown = { teardown(fn: () => unknown): void };

const filled = (bytes: Uint8Array): FormData => {
  const form = new FormData();
  form.append('file', new Blob([new Uint8Array(bytes)]), 'plugin.wasm');
  return form;
};

async function world(t: Teardown) {
  const s = await startTestService({ BOT_ADMIN_API_KEY: 'the-key-of-the-imports' });
  t.teardown(() => s.stop());
  const db = openDatabase(s.databaseUrl, 2, () => {});
  t.teardown(() => db.close());
  const call = (method: string, where: string, headers: Headers_ = {}, body?: unknown): Promise<Answer> =>
    request(`${s.base}/api/admin${where}`, {
      method,
      headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  await s.install(okPlugin('mine'));
  const first = await call(
    'POST',
    '/auth/setup',
    { authorization: `Bearer ${TOKEN}` },
    { email: 'root@uni.example', password: PASSWORD },
  );
  const jar = new CookieJar();
  jar.take(first.headers);
  const root = jar.header;
  const make = async (...scopes: string[]): Promise<{ id: number; text: string; headers: Headers_ }> => {
    const a = await call('POST', '/keys', root, { name: scopes.join('+'), scopes });
    if (a.status !== 201) throw new Error(a.text);
    return { id: Number(a.json.id), text: String(a.json.key), headers: { authorization: `Bearer ${a.json.key}` } };
  };
  const upload = (bytes: Uint8Array, headers: Headers_, frontend?: Uint8Array): Promise<Answer> => {
    const body = filled(bytes);
    if (frontend !== undefined) body.append('frontend', new Blob([new Uint8Array(frontend)]), 'frontend.zip');
    return request(`${s.base}/api/admin/plugins/upload`, { method: 'POST', headers, body });
  };
  return { s, db, call, root, make, upload };
}

const w = await world(t);
const newest = async (action: string): Promise<unknown> =>
  ((await w.call('GET', `/audit?action=${action}`, w.root)).json.items as unknown[])[0];

/**
 * Which scopes open which row, in addition to `admin`, for keys and for roles of administrators. A row that is not
 * listed here fails the test below, so that none is added without saying who may use it.
 */
const OPENED_BY: Record<string, string> = {
  'GET /api/admin/gallery': 'read plugins:deploy',
  'POST /api/admin/gallery/:id': 'plugins:deploy plugins:deploy:mine',
  'GET /api/admin/plugins': 'read plugins:deploy',
  'GET /api/admin/plugins/:id': 'read plugins:deploy plugins:deploy:mine',
  'GET /api/admin/plugins/:id/versions': 'read operate plugins:deploy plugins:deploy:mine',
  'GET /api/admin/plugins/:id/versions/:key': 'read plugins:deploy plugins:deploy:mine',
  'GET /api/admin/plugins/:id/versions/:key/module': 'operate plugins:deploy plugins:deploy:mine',
  // The handler asks again when it has read which plugin it is.
  'POST /api/admin/plugins/upload': 'plugins:deploy plugins:deploy:mine plugins:deploy:other',
  'PUT /api/admin/plugins/:id/versions/:key/frontend': 'plugins:deploy plugins:deploy:mine',
  'POST /api/admin/plugins/:id/install': 'plugins:deploy plugins:deploy:mine',
  'POST /api/admin/plugins/:id/rollback': 'plugins:deploy plugins:deploy:mine',
  'POST /api/admin/plugins/:id/disable': 'plugins:deploy plugins:deploy:mine',
  'POST /api/admin/plugins/:id/enable': 'plugins:deploy plugins:deploy:mine',
  // The handler also asks for plugins:accept.
  'POST /api/admin/plugins/:id/databases/test': 'plugins:deploy plugins:deploy:mine',
  'GET /api/admin/plugins/:id/executions': 'read operate plugins:deploy plugins:deploy:mine',
  'GET /api/admin/plugins/:id/executions/:execution': 'read operate plugins:deploy plugins:deploy:mine',
  'GET /api/admin/plugins/:id/executions/:execution/recording': 'operate plugins:deploy plugins:deploy:mine',
  'DELETE /api/admin/plugins/:id': '',
  'PUT /api/admin/plugins/:id/frontend': 'access',
  'GET /api/admin/plugins/:id/triggers': 'read access',
  'GET /api/admin/plugins/:id/triggers/:name/settings': 'read access',
  'PUT /api/admin/plugins/:id/triggers/:name/settings': 'access',
  'GET /api/admin/plugins/:id/triggers/:name/policy/revisions': 'read access',
  'POST /api/admin/plugins/:id/triggers/:name/policy/revisions/:revision/restore': 'access',
  'PUT /api/admin/plugins/:id/origins': 'access',
  // Trusted pages run with the rights of the users who open them, administrators too.
  'PUT /api/admin/plugins/:id/html': 'never',
  'POST /api/admin/plugins/:id/triggers/:name/resume': 'operate',
  'POST /api/admin/plugins/:id/resume': 'operate',
  'GET /api/admin/plugins/:id/commands/settings': 'read access',
  'GET /api/admin/plugins/:id/commands/:cmd/settings': 'read access',
  'PUT /api/admin/plugins/:id/commands/:cmd/enabled': 'access',
  'PUT /api/admin/plugins/:id/commands/:cmd/policy': 'access',
  'PUT /api/admin/plugins/:id/commands/:cmd/record': 'access',
  'PUT /api/admin/plugins/:id/commands/:cmd/roles': 'access',
  'GET /api/admin/plugins/:id/commands/:cmd/policy/revisions': 'read access',
  'POST /api/admin/plugins/:id/commands/:cmd/policy/revisions/:revision/restore': 'access',
  'POST /api/admin/policies/check': 'read access',
  'POST /api/admin/policies/try': 'people access',
  'POST /api/admin/policies/compare': 'people access',
  'POST /api/admin/policies/rehearse': 'people access',
  'POST /api/admin/access/explain': 'people access',
  'GET /api/admin/relationships': 'people access',
  'POST /api/admin/relationships': 'access',
  'DELETE /api/admin/relationships': 'access',
  'GET /api/admin/relationships/lookup': 'people access',
  'GET /api/admin/relationships/objects': 'people',
  'GET /api/admin/schema/definitions': 'read access',
  'GET /api/admin/users/:user/roles': 'people access',
  'PUT /api/admin/users/:user/roles/:kind/:role': 'access',
  'DELETE /api/admin/users/:user/roles/:kind/:role': 'access',
  'PUT /api/admin/users/:user/roles/plugin/:plugin/:role': 'access',
  'DELETE /api/admin/users/:user/roles/plugin/:plugin/:role': 'access',
  'GET /api/admin/roles': 'read access',
  'GET /api/admin/roles/:role/users': 'people access',
  'GET /api/admin/outbox': 'read operate',
  'GET /api/admin/outbox/:entry': 'read operate',
  'POST /api/admin/outbox/:entry/retry': 'operate',
  'POST /api/admin/outbox/:entry/discard': 'operate',
  'GET /api/admin/authz/drift': 'read operate',
  'POST /api/admin/authz/drift/repair': 'operate',
  'GET /api/admin/events': 'read operate',
  'GET /api/admin/events/:event': 'read operate',
  'GET /api/admin/events/stream': 'read operate',
  'GET /api/admin/events/subscriptions': 'read operate',
  'POST /api/admin/events/subscriptions': 'operate',
  'GET /api/admin/events/subscriptions/:id': 'read operate',
  'PATCH /api/admin/events/subscriptions/:id': 'operate',
  'DELETE /api/admin/events/subscriptions/:id': 'operate',
  'GET /api/admin/events/subscriptions/:id/deliveries': 'read operate',
  'POST /api/admin/events/subscriptions/:id/retry': 'operate',
  'POST /api/admin/events/subscriptions/:id/test': 'operate',
  'GET /api/admin/messages': 'read operate',
  'GET /api/admin/messages/:message': 'read operate',
  'POST /api/admin/messages/:message/retry': 'operate',
  'GET /api/admin/plugins/:id/files': 'read',
  'DELETE /api/admin/plugins/:id/files/:file': '',
  'GET /api/admin/uninstalled': 'read',
  'POST /api/admin/uninstalled/:key/restore': 'plugins:deploy',
  'GET /api/admin/audit': 'read',
  'GET /api/admin/audit.csv': 'read',
  'GET /api/admin/audit/:entry': 'read',
  'GET /api/admin/activity': 'read operate',
  'GET /api/admin/attention': 'read operate',
  'GET /api/admin/executions': 'read operate',
  'GET /api/admin/files': 'read',
  'GET /api/admin/executions/stream': 'read operate',
  'GET /api/admin/hosts': 'read operate',
  'DELETE /api/admin/hosts/:host': 'operate',
  'GET /api/admin/jobs': 'read operate',
  'GET /api/admin/config': 'read operate',
  'GET /api/admin/doctor': 'operate',
  'POST /api/admin/mail/test': '',
  'GET /api/admin/support-bundle': 'operate',
  'GET /api/admin/suspensions': 'read operate',
  'GET /api/admin/service-keys': 'read',
  'GET /api/admin/service-keys/:key': 'read',
  'POST /api/admin/service-keys': '',
  'POST /api/admin/service-keys/:key/rotate': '',
  'DELETE /api/admin/service-keys/:key': '',
  'GET /api/admin/users': 'people',
  'GET /api/admin/users/:user': 'people',
  'GET /api/admin/users/:user/university': 'people',
  'POST /api/admin/users': '',
  'GET /api/admin/users/:user/export': 'never',
  'POST /api/admin/users/:user/erase': 'never',
  'PATCH /api/admin/users/:user': '',
  'GET /api/admin/users/:user/tokens': 'people',
  'DELETE /api/admin/users/:user/tokens/:token': '',
  'GET /api/admin/users/:user/sessions': 'people',
  'DELETE /api/admin/users/:user/sessions/:session': '',
  'GET /api/admin/users/:user/messenger-accounts': 'people',
  'DELETE /api/admin/users/:user/messenger-accounts/:channel': '',
  'GET /api/admin/admins': 'read',
  'POST /api/admin/admins': 'never',
  'POST /api/admin/admins/:user/reset-password': 'never',
  'DELETE /api/admin/admins/:user': 'never',
  'GET /api/admin/admins/roles': 'read',
  'PATCH /api/admin/admins/:user': 'never',
  // The own account: every administrator, whatever the role.
  'GET /api/admin/auth/second-factor': 'own',
  'POST /api/admin/auth/passkeys/begin': 'own',
  'POST /api/admin/auth/passkeys': 'own',
  'DELETE /api/admin/auth/passkeys/:passkey': 'own',
  'POST /api/admin/auth/totp/begin': 'own',
  'PUT /api/admin/auth/totp': 'own',
  'DELETE /api/admin/auth/totp': 'own',
  'POST /api/admin/auth/recovery-codes': 'own',
  'POST /api/admin/auth/confirm/passkey': 'own',
  'DELETE /api/admin/admins/:user/second-factor': 'never',
  'PUT /api/admin/auth/password': 'own',
  'POST /api/admin/auth/confirm': 'own',
  'GET /api/admin/keys': 'read',
  'GET /api/admin/keys/:key': 'read',
  'POST /api/admin/keys': 'never',
  'POST /api/admin/keys/:key/rotate': 'never',
  'DELETE /api/admin/keys/:key': '',
  'GET /api/admin/university/types': 'read university',
  'PUT /api/admin/university/types/:type/columns': 'university',
  'GET /api/admin/university/source': 'read university',
  'POST /api/admin/university/pull': 'university',
  'GET /api/admin/university/imports': 'read university',
  'GET /api/admin/university/imports/:id': 'read university',
  'GET /api/admin/university/imports/:id/ending/:type': 'people university',
  'GET /api/admin/university/imports/:id/errors': 'read university',
  'GET /api/admin/university/imports/:id/errors.csv': 'read university',
  'GET /api/admin/university/imports.csv': 'read university',
};
/** Batch imports, one row for each type of record. */
const expectedOf = (row: string): string | undefined =>
  /^POST \/api\/admin\/university\/[a-z-]+$/.test(row) ? 'university' : OPENED_BY[row];

t.test(
  'each row of the admin API opens to keys and roles with its scopes and to no others, and a refusal names what is missing',
  async t => {
    const scopes = [
      'read',
      'people',
      'plugins:deploy',
      'plugins:deploy:mine',
      'plugins:deploy:other',
      'access',
      'university',
      'operate',
      'admin',
    ];
    const keys = await Promise.all(scopes.map(async scope => ({ scope, ...(await w.make(scope)) })));
    const admins: Array<{ roles: string[]; held: string[]; headers: Headers_ }> = [];
    for (const { held, ...may } of [
      { roles: ['auditor'], held: 'read people' },
      { roles: ['operator'], held: 'read operate' },
      { roles: ['plugin_manager'], held: 'read plugins:deploy' },
      { roles: ['plugin_manager'], plugins: ['mine'], held: 'read plugins:deploy:mine' },
      { roles: ['plugin_manager'], plugins: ['other'], held: 'read plugins:deploy:other' },
      { roles: ['access_manager'], held: 'read people access university' },
      { roles: ['auditor', 'operator', 'access_manager'], held: 'read people operate access university' },
      { roles: ['owner'], held: 'admin never' },
    ]) {
      const { headers } = await appointSecondAdmin(w.s, w.db, w.root, PASSWORD, may);
      admins.push({ roles: may.roles, held: held.split(' '), headers });
    }
    const rows = w.s.service.routes.filter(r => r.guard !== 'none' && r.guard !== 'user');
    t.ok(rows.length > 90);
    for (const row of rows) {
      const name = `${row.method} ${row.path}`;
      const expected = expectedOf(name);
      if (expected === undefined) {
        t.fail(`${name} has no line in this table`);
        continue;
      }
      // Ids that no row has: a caller that is let in changes nothing.
      const where = row.path
        .replace('/api/admin', '')
        .replace(':id', /\/(plugins|gallery)\//.test(row.path) ? 'mine' : '999')
        .replace(/:\w+/g, '999');
      // A method that would act on `mine` itself is sent without a body it could act by.
      const acts = /^(POST .*(enable|disable|resume|repair)|DELETE .*plugins\/:id)$/.test(name);
      for (const { headers, scope } of keys) {
        const opens =
          expected !== 'never' && expected !== 'own' && (scope === 'admin' || expected.split(' ').includes(scope));
        if (opens && acts && scope !== 'admin') continue;
        if (opens && /DELETE .*plugins\/:id$/.test(name)) continue;
        const stop = new AbortController();
        const response = await fetch(`${w.s.base}/api/admin${where}`, {
          method: row.method,
          headers,
          signal: stop.signal,
        });
        const at = `${name} with ${scope}: ${response.status}`;
        if (opens) {
          t.not(response.status, 401, at);
          t.not(response.status, 403, at);
          stop.abort();
          continue;
        }
        const problem = (await response.json()) as { code: string; detail: string; missing_scopes?: string[] };
        t.equal(response.status, 403, at);
        t.equal(problem.code, 'forbidden', at);
        if (expected === 'never' || expected === 'own')
          t.match(problem.detail, /administration keys are not accepted here/, at);
        else {
          const wanted = problem.missing_scopes ?? [];
          for (const one of expected.split(' ').filter(s => s !== '' && !s.startsWith('plugins:deploy:')))
            t.ok(wanted.includes(one), `${at} names ${one}`);
          if (expected === '') t.same(wanted, ['admin'], at);
          t.match(response.headers.get('www-authenticate'), /error="insufficient_scope"/, at);
          t.match(problem.detail, wanted[0] ?? 'x', at);
        }
      }
      for (const { headers, held, roles } of admins) {
        const isOwner = held.includes('admin');
        const opens = isOwner || expected === 'own' || expected.split(' ').some(scope => held.includes(scope));
        if (opens && (acts || /DELETE .*plugins\/:id$/.test(name))) continue;
        const stop = new AbortController();
        const response = await fetch(`${w.s.base}/api/admin${where}`, {
          method: row.method,
          headers,
          signal: stop.signal,
        });
        const at = `${name} as ${roles.join(' and ')}: ${response.status}`;
        if (opens) {
          t.ok(response.status !== 401 && response.status !== 403, at);
          stop.abort();
          continue;
        }
        const problem = (await response.json()) as { code: string; detail: string; sufficient_roles?: string[] };
        t.equal(response.status, 403, at);
        t.match(problem.detail, `you are ${roles.join(' and ').replaceAll('_', ' ')}`, at);
        t.equal(problem.sufficient_roles?.at(-1), 'owner', at);
        if (expected === 'never' || expected === '') t.same(problem.sufficient_roles, ['owner'], at);
      }
    }
  },
);

t.test('a key is made by an administrator with a recent password, shown once, and revoked at once', async t => {
  const wrong: Array<[unknown, string]> = [
    [{ name: 'x', scopes: [] }, '/scopes'],
    [{ name: 'x', scopes: ['everything'] }, '/scopes/0'],
    [{ name: 'x', scopes: ['plugins:deploy:Not An Id'] }, '/scopes/0'],
    [{ name: 'x', scopes: ['read', 'plugins:accept'] }, '/scopes'],
    [{ name: '', scopes: ['read'] }, '/name'],
    [{ name: 'x', scopes: ['read'], expires_at: '2001-01-01T00:00:00Z' }, '/expires_at'],
  ];
  for (const [body, pointer] of wrong)
    t.match((await w.call('POST', '/keys', w.root, body)).json, { status: 422, errors: [{ pointer }] }, pointer);

  const made = await w.call('POST', '/keys', w.root, { name: 'ci', scopes: ['plugins:deploy:later', 'read', 'read'] });
  t.equal(made.status, 201);
  t.match(made.json.key, /^pha_[\w-]{16}\.[\w-]{43}$/);
  t.match(made.json, { scopes: ['plugins:deploy:later', 'read'], unknown_plugins: ['later'] });
  const days = (Date.parse(String(made.json.expires_at)) - Date.now()) / 86_400_000;
  t.ok(days > 89.9 && days <= 90, 'without a time it is good for 90 days');
  t.equal(
    (await w.call('POST', '/keys', w.root, { name: 'x', scopes: ['read'], expires_at: null })).json.expires_at,
    null,
  );
  const secret = String(made.json.key).split('.')[1] ?? 'x';
  const list = await w.call('GET', '/keys', w.root);
  t.notMatch(list.text, secret, 'it is shown once');
  const { rows } = await w.db.query<{ text: string }>(
    'SELECT k::text AS text FROM admin_keys k UNION ALL SELECT l::text FROM audit_log l',
  );
  t.notOk(
    rows.some(r => r.text.includes(secret)),
    'and stored nowhere',
  );

  const headers = { authorization: `Bearer ${made.json.key}` };
  t.equal((await w.call('GET', '/plugins', headers)).status, 200);
});

t.test('the administrator who made a key rotates it, and the old secret is good for the overlap alone', async t => {
  const made = await w.call('POST', '/keys', w.root, { name: 'turned', scopes: ['read'] });
  const first = String(made.json.key);
  const rotate = (body: unknown, by = w.root) => w.call('POST', `/keys/${made.json.id}/rotate`, by, body);
  const use = async (text: string) => (await w.call('GET', '/plugins', { authorization: `Bearer ${text}` })).status;
  const rotated = await rotate({ overlap_seconds: 600 });
  t.match(rotated.json, { id: made.json.id, scopes: ['read'], rotated_at: /^20/, old_secret_until: /^20/ });
  const second = String(rotated.json.key);
  t.not(second, first);
  t.equal(second.split('.')[0], first.split('.')[0], 'it is the same key');
  t.same([await use(first), await use(second)], [200, 200]);
  t.match(await newest('admin_key.rotate'), { before: { old_secret_until: null }, after: { old_secret_until: /^20/ } });
  await w.db.query("UPDATE admin_keys SET old_until = now() - interval '1 second' WHERE id = $1", [made.json.id]);
  t.same([await use(first), await use(second)], [401, 200], 'the overlap is over');
  const third = String((await rotate({})).json.key);
  t.same([await use(second), await use(third)], [401, 200], 'without an overlap the old one ends at once');
  t.match((await rotate({ overlap_seconds: -1 })).json, { status: 422, errors: [{ pointer: '/overlap_seconds' }] });
  t.equal((await w.call('POST', '/keys/999999/rotate', w.root, {})).status, 404);
  const other = await appointSecondAdmin(w.s, w.db, w.root, PASSWORD, { roles: ['auditor', 'owner'] });
  t.match((await rotate({}, other.headers)).json, { status: 403, detail: /only the administrator who made the key/ });
  t.equal(await use(third), 200, 'a refusal changes nothing');
  const expiring = (by: string) =>
    w.db.query('UPDATE admin_keys SET expires_at = now() + $2::interval WHERE id = $1', [made.json.id, by]);
  await expiring('1 minute');
  const short = (await rotate({ overlap_seconds: 600 })).json;
  t.equal(short.old_secret_until, short.expires_at, 'no secret outlives its key');
  await expiring('-1 second');
  t.match((await rotate({})).json, { status: 409, detail: /the key has expired/ });
  const { rows } = await w.db.query<{ text: string }>('SELECT k::text AS text FROM admin_keys k');
  t.notOk(
    rows.some(r => r.text.includes(third.split('.')[1] ?? 'x')),
    'the secret is stored nowhere',
  );
});

t.test('a key needs no recent password, acts in its own name, and ends when it lapses or is revoked', async t => {
  const key = await w.make('access');
  await w.db.query("UPDATE sessions SET password_at = now() - interval '11 minutes'");
  t.match((await w.call('POST', '/keys', w.root, { name: 'x', scopes: ['read'] })).json, {
    code: 'password_confirmation_required',
  });
  const set = () => w.call('PUT', '/plugins/mine/triggers/run/settings', key.headers, { allow_service_key: true });
  t.equal((await set()).status, 200);
  await w.db.query('UPDATE sessions SET password_at = now()');
  t.match(await newest('trigger.settings'), { actor: { kind: 'admin_key', admin_key_id: key.id, name: 'access' } });
  t.match(await newest('admin_key.create'), {
    actor: { kind: 'admin' },
    object_id: String(key.id),
    after: { scopes: ['access'] },
  });
  const wrong = `${key.text.slice(0, -1)}${key.text.endsWith('A') ? 'B' : 'A'}`;
  t.equal((await w.call('GET', '/roles', { authorization: `Bearer ${wrong}` })).status, 401);
  const plugin = await w.s.trigger('mine/run', { headers: key.headers });
  t.equal(plugin.status, 401, 'it opens no trigger');

  await w.db.query("UPDATE admin_keys SET expires_at = now() - interval '1 second'");
  t.match((await set()).json, { status: 401, detail: /unknown, expired, revoked, or replaced by a rotation/ });
  await w.db.query('UPDATE admin_keys SET expires_at = NULL');
  t.equal((await set()).status, 200);

  const other = await startTestService({}, w.s);
  t.teardown(() => other.stop());
  const there = () => request(`${other.base}/api/admin/roles`, { headers: key.headers });
  t.equal((await there()).status, 200);
  t.equal((await w.call('DELETE', `/keys/${key.id}`, w.root)).status, 204);
  t.equal((await there()).status, 401, 'revoked, it opens nothing on another host');
  t.equal((await set()).status, 401);
  t.equal((await w.call('DELETE', `/keys/${key.id}`, w.root)).status, 404);
  t.match(await newest('admin_key.revoke'), { before: { name: 'access' } });
});

t.test('a deploy key installs only versions of its own plugins, without new permissions', async t => {
  const one = await w.make('plugins:deploy:mine');
  const every = await w.make('plugins:deploy');
  const accepting = await w.make('plugins:deploy', 'plugins:accept');
  const version = (id: string, v: string, requirements: Array<{ kind: string }> = []): Uint8Array =>
    watPlugin({ id, version: v, imports: ['respond'], requirements, handle: '(i32.const 0)' });
  const install = (id: string, headers: Headers_, body: Record<string, unknown>) =>
    w.call('POST', `/plugins/${id}/install`, headers, body);

  const next = await w.upload(version('mine', '2.0.0'), one.headers);
  t.equal(next.status, 201);
  t.equal((await install('mine', one.headers, { wasm_key: next.json.wasm_key })).status, 200);
  t.equal((await w.call('POST', '/plugins/mine/disable', one.headers)).status, 200);
  t.equal((await w.call('POST', '/plugins/mine/enable', one.headers)).status, 200);

  t.match((await w.upload(version('other', '1.0.0'), one.headers)).json, {
    status: 403,
    missing_scopes: ['plugins:deploy', 'plugins:deploy:other'],
  });
  t.equal((await w.call('GET', '/plugins/other', w.root)).status, 404, 'what was refused is not kept');
  t.equal((await w.upload(version('other', '1.0.0'), every.headers)).status, 201);

  const kv = await w.upload(version('mine', '3.0.0', [{ kind: 'kv' }]), one.headers);
  const body = { wasm_key: kv.json.wasm_key, accept_permissions: true };
  t.match((await install('mine', every.headers, body)).json, {
    status: 403,
    detail: /the new permission kv/,
    missing_scopes: ['plugins:accept'],
  });
  t.equal((await w.call('GET', '/plugins/mine', w.root)).json.version, '2.0.0');
  t.equal((await install('mine', accepting.headers, body)).status, 200);

  const fresh = await w.upload(version('fresh', '1.0.0', [{ kind: 'network' }]), every.headers);
  t.match((await install('fresh', every.headers, { wasm_key: fresh.json.wasm_key })).json, {
    status: 403,
    missing_scopes: ['plugins:accept'],
  });
  t.equal((await install('fresh', w.root, { wasm_key: fresh.json.wasm_key })).status, 200);
  const wider = { wasm_key: fresh.json.wasm_key, config: { network: { private: ['10.0.0.0/8'] } } };
  t.match((await install('fresh', every.headers, wider)).json, {
    status: 403,
    detail: /which hosts/,
    missing_scopes: ['plugins:accept'],
  });

  const stored = await w.upload(version('store', '1.0.0', [{ kind: 'sql' }]), w.root);
  const own = { wasm_key: stored.json.wasm_key, config: { databases: { default: 'postgresql://u:p@10.0.0.1/a' } } };
  t.equal((await install('store', w.root, own)).status, 200);
  t.equal((await install('store', every.headers, own)).status, 200, 'the address it has');
  const elsewhere = { ...own, config: { databases: { default: 'postgresql://u:p@127.0.0.1/plugin_host' } } };
  t.match((await install('store', every.headers, elsewhere)).json, {
    status: 403,
    detail: /the address of the database "default"/,
    missing_scopes: ['plugins:accept'],
  });
  const zip = rawZip([{ name: 'index.html', data: Buffer.from('<p>hello') }]);
  const page = await w.upload(version('mine', '4.0.0', [{ kind: 'kv' }]), one.headers, zip);
  t.equal(page.status, 201);
  t.match((await install('mine', one.headers, { wasm_key: page.json.wasm_key, accept_widening: true })).json, {
    status: 403,
    detail: /a first frontend/,
    missing_scopes: ['plugins:accept'],
  });
  const renamed = await w.upload(
    watPlugin({
      id: 'mine',
      version: '5.0.0',
      requirements: [{ kind: 'kv' }],
      triggers: [{ name: 'runs', type: 'http', path: '/run', methods: ['GET', 'POST'] }],
      handle: '(i32.const 0)',
    }),
    one.headers,
  );
  const settings = { policy_expression: 'has_role("dean")' };
  t.equal((await w.call('PUT', '/plugins/mine/triggers/run/settings', w.root, settings)).status, 200);
  t.match((await install('mine', accepting.headers, { wasm_key: renamed.json.wasm_key, accept_widening: true })).json, {
    status: 403,
    detail: /had the policy has_role\("dean"\)/,
    missing_scopes: ['access'],
  });
  t.equal((await w.call('PUT', '/plugins/mine/triggers/run/settings', w.root, { policy_expression: '' })).status, 200);

  for (const says of [
    { accept_public: true },
    { accept_suggested_access: true },
    { triggers: { run: { allow_user_session: false } } },
  ])
    t.match(
      (await install('mine', accepting.headers, { ...body, ...says })).json,
      { status: 403, missing_scopes: ['access'] },
      'who may call is not for a key that deploys to say',
    );
  const back = { wasm_key: next.json.wasm_key };
  t.match((await w.call('POST', '/plugins/mine/rollback', every.headers, { ...back, accept_public: ['run'] })).json, {
    status: 403,
    missing_scopes: ['access'],
  });
  t.equal((await w.call('POST', '/plugins/mine/rollback', every.headers, back)).status, 200);
  t.match((await w.call('POST', '/plugins/mine/rollback', every.headers, { wasm_key: kv.json.wasm_key })).json, {
    missing_scopes: ['plugins:accept'],
  });
});

t.test('no key can appoint an administrator, and keys are revoked with the administrator who created them', async t => {
  const all = await w.make('admin');
  const user = await w.call('POST', '/users', all.headers, { display_name: 'Ada' });
  t.equal(user.status, 201);
  const { rows } = await w.db.query<{ id: number }>('SELECT global_user_id::int AS id FROM admin_credentials');
  const root = rows[0]?.id;
  t.match((await w.call('PATCH', `/users/${root}`, all.headers, { idp_accounts_id: 'of a stranger' })).json, {
    status: 403,
    errors: [{ pointer: '/idp_accounts_id' }],
  });
  t.equal((await w.call('PATCH', `/users/${root}`, all.headers, { locale: 'en' })).status, 200);
  t.equal((await w.call('PATCH', `/users/${user.json.id}`, all.headers, { idp_accounts_id: 'ada' })).status, 200);
  const admins = { global_user_id: user.json.id, email: 'ada@uni.example' };
  t.equal((await w.call('POST', '/admins', all.headers, admins)).status, 403);
  t.equal((await w.call('POST', '/keys', all.headers, { name: 'x', scopes: ['read'] })).status, 403);

  // A key of an administrator who is removed, and of one whose password is reset.
  t.equal((await w.call('POST', '/admins', w.root, admins)).status, 201);
  for (const [method, where] of [
    ['POST', `/admins/${user.json.id}/reset-password`],
    ['DELETE', `/admins/${user.json.id}`],
  ] as const) {
    await w.db.query('UPDATE admin_keys SET made_by = $1 WHERE id = $2', [user.json.id, all.id]);
    t.equal((await w.call('GET', '/plugins', all.headers)).status, 200);
    t.ok((await w.call(method, where, w.root)).status < 300);
    t.equal((await w.call('GET', '/plugins', all.headers)).status, 401, `${method} ${where}`);
    t.match(await newest('admin_key.revoke'), { actor: { kind: 'admin' }, object_id: String(all.id) });
    Object.assign(all, await w.make('admin'));
  }
});

t.test('a stream of events ends when the key that opened it is revoked', async t => {
  const key = await w.make('operate');
  const stream = await fetch(`${w.s.base}/api/admin/events/stream`, { headers: key.headers });
  t.equal(stream.status, 200);
  t.equal((await w.call('DELETE', `/keys/${key.id}`, w.root)).status, 204);
  // Read to its end: without one the test would not end either.
  t.match(await stream.text(), /^: events/);
});

t.test('the answer to a used setup token, and to a bearer token that is not a key, says what to do', async t => {
  const get = (text: string) => w.call('GET', '/plugins', { authorization: `Bearer ${text}` });
  t.match((await get(TOKEN)).json, {
    status: 401,
    detail: /setup token is no longer valid.*\/api\/admin\/auth\/login.*\/api\/admin\/keys/,
  });
  t.match((await get('something else')).json, { status: 401 });
  t.match((await get('x'.repeat(20))).json, { status: 401, detail: /not an administration key/ });
  const imports = (text: string) => w.call('POST', '/university/persons', { authorization: `Bearer ${text}` }, []);
  t.equal((await imports('the-key-of-the-imports')).status, 200, 'admin.api_key goes on to open the imports');
  t.equal((await imports((await w.make('university')).text)).status, 200);
  t.match((await imports((await w.make('operate')).text)).json, { status: 403, missing_scopes: ['university'] });
  t.match((await get('the-key-of-the-imports')).json, { status: 401 }, 'and nothing else');
  t.equal(LIMITS.adminKeyDefaultMs, 90 * 86_400_000);
});
