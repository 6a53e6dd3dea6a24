import fs from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { makeLog } from '../../src/base/log.ts';
import { openDatabase } from '../../src/db/database.ts';
import { RUNNABLE_FORMAT } from '../../src/plugins/gate/rewrite.ts';
import { openModuleStorage } from '../../src/plugins/module-storage.ts';
import { removeOldVersions } from '../../src/plugins/old-versions.ts';
import { removeUninstalled } from '../../src/plugins/uninstalled.ts';
import { buildExample } from '../support/sdk.ts';
import { type Json, publicAccess, request, startTestService, TOKEN } from '../support/service.ts';
import { assemble, respondText, watPlugin } from '../support/wat.ts';

const answering = (text: string, more: Partial<Parameters<typeof watPlugin>[0]> = {}): Uint8Array =>
  watPlugin({
    imports: ['respond'],
    body: `(data (i32.const 64) "${text}")`,
    handle: `${respondText(64, text.length)} (i32.const 0)`,
    ...more,
  });

t.test('upload answers what the plugin asks for, and installs nothing', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  const bytes = await buildExample('guestbook');
  const a = await s.upload(bytes);
  t.equal(a.status, 201);
  t.match(a.json, {
    id: 'guestbook',
    name: 'Guestbook',
    version: '1.0.0',
    abi: 5,
    size: bytes.length,
    sha256: /^[0-9a-f]{64}$/,
    wasm_key: /^[0-9a-f]{32}$/,
    permissions: ['kv'],
    new_permissions: [],
    installed_version: null,
    findings: [],
    memory_pages: { max: 8192 },
    requirements: [
      {
        kind: 'kv',
        description: 'Keeps the entries of the guestbook',
        config: [
          { name: 'title', required: false },
          { name: 'moderator_key', required: true, sensitive: true },
        ],
      },
    ],
    triggers: [{ name: 'entries', type: 'http', path: '/entries', methods: ['GET', 'POST'] }, { name: 'entry' }],
  });
  t.match((await s.admin('GET', '/plugins')).json, {
    items: [{ id: 'guestbook', state: 'uploaded' }],
    next_cursor: null,
  });
  t.equal((await s.trigger('guestbook/entries')).status, 404);
  t.equal((await s.admin('GET', '/plugins/guestbook/triggers/entries/settings')).status, 409);
  t.equal(fs.readdirSync(path.join(s.directory, 'modules')).length, 2, 'the module and its compiled form are stored');
});

t.test('a refused upload stores nothing and names every finding', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  const modules = path.join(s.directory, 'modules');
  const refused = await s.upload(
    watPlugin({ moreImports: '(import "env" "a" (func)) (import "env" "b" (func))', handle: '(i32.const 0)' }),
  );
  t.equal(refused.status, 422);
  t.match(refused.json, {
    code: 'module_refused',
    errors: [
      { pointer: '/file', message: /env.a/ },
      { pointer: '/file', message: /env.b/ },
    ],
  });
  const post = (init: RequestInit) =>
    request(`${s.base}/api/admin/plugins/upload`, {
      method: 'POST',
      ...init,
      headers: { authorization: `Bearer ${TOKEN}`, ...init.headers },
    });
  const form = (field: string, ...more: string[]): FormData => {
    const f = new FormData();
    for (const name of [field, ...more]) f.append(name, new Blob([new Uint8Array(answering('x'))]), 'p.wasm');
    return f;
  };
  t.match((await post({ body: form('module') })).json, {
    status: 422,
    errors: [{ pointer: '/file', message: /field "module".*belongs into "file"/ }],
  });
  t.match((await post({ body: form('file', 'file') })).json, {
    status: 422,
    errors: [{ pointer: '/file', message: /twice/ }],
  });
  t.match((await post({ body: new URLSearchParams({ file: 'x' }) })).json, {
    status: 415,
    detail: /multipart\/form-data/,
  });
  const empty = new FormData();
  empty.append('note', 'x');
  t.match((await post({ body: empty })).json, { status: 422, errors: [{ pointer: '/file', message: /no file/ }] });
  t.match((await post({ body: 'x', headers: { 'content-type': 'multipart/form-data; boundary=zz' } })).json, {
    status: 400,
  });
  t.same(fs.readdirSync(modules), [], 'nothing is left on disk');
  t.match((await s.admin('GET', '/plugins')).json, { items: [] });
});

t.test('a module larger than http.max_module is refused with the limit', async t => {
  const s = await startTestService({ BOT_HTTP_MAX_MODULE: '1000' });
  t.teardown(() => s.stop());
  const a = await s.upload(Buffer.alloc(300_000));
  t.equal(a.status, 413);
  t.match(a.json, { code: 'body_too_large', detail: /http.max_module \(1000 bytes\)/ });
  t.same(fs.readdirSync(path.join(s.directory, 'modules')), []);
  t.equal((await s.trigger('none/x')).status, 404, 'the service goes on');
});

t.test('install checks required, sensitive, unknown and database fields, and names each', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  const bytes = answering('ok', {
    id: 'cfg',
    imports: ['respond', 'sql_open'],
    requirements: [
      {
        kind: 'sql',
        description: 'grades',
        name: 'grades',
        config: [
          { type: 'string', name: 'api_key', description: 'Key', required: true, sensitive: true },
          { type: 'string', name: 'title', description: 'Title' },
        ],
      },
    ],
  });
  const { json } = await s.upload(bytes);
  const install = (body: unknown) => s.admin('POST', '/plugins/cfg/install', body);
  const key = json.wasm_key;
  const pointers = async (body: unknown): Promise<string[]> =>
    ((await install(body)).json.errors as Array<{ pointer: string }>).map(e => e.pointer).sort();
  t.same(await pointers({ wasm_key: key }), ['/config/api_key', '/config/databases/grades']);
  t.same(
    await pointers({
      wasm_key: key,
      config: { api_key: 5, extra: 'x', databases: { other: 'x', grades: 'mysql://x' } },
    }),
    ['/config/api_key', '/config/databases/grades', '/config/databases/other', '/config/extra'],
  );
  t.same(await pointers({ wasm_key: 'no such key', config: {} }), ['/wasm_key']);
  t.same(await pointers({ config: {} }), ['/wasm_key']);
  t.same(await pointers({ wasm_key: key, config: [] }), ['/config']);
  t.equal((await install({ wasm_key: key, surplus: 1 })).status, 422);
  t.equal((await s.admin('POST', '/plugins/nope/install', { wasm_key: key })).status, 404);
  const secret = 'hunter2-secret';
  const url = 'postgresql://grader:hunter2-secret@db.example/grades';
  const installed = await install({
    wasm_key: key,
    config: { api_key: secret, title: 'Grades', databases: { grades: url } },
  });
  t.equal(installed.status, 200);
  t.match(installed.json, {
    state: 'enabled',
    config: [
      { name: 'api_key', sensitive: true },
      { name: 'title', value: 'Grades' },
    ],
  });
  for (const where of ['/plugins/cfg', '/plugins', '/plugins/cfg/versions'])
    t.notMatch((await s.admin('GET', where)).text, /hunter2/, 'secrets are never returned');
  const db = openDatabase(s.databaseUrl, 1, () => {});
  const { rows } = await db.query<{ text: string }>(
    "SELECT v::text || encode(v.secrets, 'escape') AS text FROM plugin_versions v",
  );
  await db.close();
  t.notMatch(JSON.stringify(rows), /hunter2/, 'secrets are encrypted at rest');
  t.same(s.service.registry.find('cfg')?.databases, { grades: url });
  const again = await install({ wasm_key: key, config: { title: 'New' } });
  t.equal(again.status, 200, 'what is left out keeps its stored value');
  t.same(s.service.registry.find('cfg')?.config, { api_key: secret, title: 'New' });
});

t.test('an upgrade that asks for more permissions says which and needs their acceptance', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  await s.install(answering('one', { id: 'up', version: '1' }));
  const kv = { kind: 'kv', description: 'k' };
  const { json } = await s.upload(
    answering('two', {
      id: 'up',
      version: '2',
      imports: ['respond', 'kv_get'],
      requirements: [kv, { kind: 'plugins:call', target: 'other', description: 'c' }],
    }),
  );
  t.match(json, {
    installed_version: '1',
    permissions: ['kv', 'plugins:call:other'],
    new_permissions: ['kv', 'plugins:call:other'],
  });
  const install = (accept?: unknown) =>
    s.admin('POST', '/plugins/up/install', {
      wasm_key: json.wasm_key,
      ...(accept === undefined ? {} : { accept_permissions: accept }),
    });
  t.match(await install(), {
    status: 409,
    json: {
      code: 'permissions_not_accepted',
      new_permissions: ['kv', 'plugins:call:other'],
      detail: /kv, plugins:call:other/,
    },
  });
  t.match(await install(['kv']), { status: 409, json: { detail: /plugins:call:other/ } });
  t.equal((await s.trigger('up/run')).text, 'one', 'the installed version goes on');
  t.equal((await install(['kv', 'plugins:call:other'])).status, 200);
  t.equal((await s.trigger('up/run')).text, 'two');
});

t.test('versions are listed, rolled back to, disabled, enabled and uninstalled', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  const keys: string[] = [];
  for (const v of ['one', 'two', 'tre']) keys.push((await s.install(answering(v, { id: 'life', version: v }))).wasmKey);
  t.match((await s.admin('GET', '/plugins/life/versions')).json, {
    items: [{ version: 'tre', installed: true }, { version: 'two', installed: false }, { version: 'one' }],
  });
  const page = await s.admin('GET', '/plugins/life/versions?limit=2');
  t.equal((page.json.items as Json[]).length, 2);
  t.match((await s.admin('GET', `/plugins/life/versions?limit=2&cursor=${String(page.json.next_cursor)}`)).json, {
    items: [{ version: 'one' }],
    next_cursor: null,
  });
  t.equal((await s.admin('POST', '/plugins/life/rollback', { wasm_key: keys[0] })).status, 200);
  t.equal((await s.trigger('life/run')).text, 'one');
  t.equal((await s.admin('POST', '/plugins/life/rollback', { wasm_key: keys[0] })).status, 409);
  t.match(await s.admin('POST', '/plugins/life/rollback', { wasm_key: 'x' }), {
    status: 422,
    json: { errors: [{ pointer: '/wasm_key' }] },
  });
  const { json } = await s.upload(answering('for', { id: 'life', version: 'for' }));
  t.match(await s.admin('POST', '/plugins/life/rollback', { wasm_key: json.wasm_key }), {
    status: 409,
    json: { detail: /never installed/ },
  });
  t.match((await s.admin('POST', '/plugins/life/disable')).json, { state: 'disabled' });
  t.equal((await s.trigger('life/run')).status, 404);
  t.match((await s.admin('POST', '/plugins/life/enable')).json, { state: 'enabled' });
  t.equal((await s.trigger('life/run')).text, 'one');
  t.equal((await s.admin('DELETE', '/plugins/life')).status, 204);
  t.equal((await s.trigger('life/run')).status, 404);
  t.equal((await s.admin('GET', '/plugins/life')).status, 404);
  t.equal((await s.admin('DELETE', '/plugins/life')).status, 404);
  const modules = path.join(s.directory, 'modules');
  const stored = fs.readdirSync(modules).length;
  t.ok(stored >= 8, 'modules of an uninstalled plugin are kept');
  const kept = (await s.admin('GET', '/uninstalled')).json.items as Json[];
  t.same(kept.map(v => v.wasm_key).sort(), [...keys, json.wasm_key].sort());
  const days =
    (new Date(String(kept[0]?.kept_until)).getTime() - new Date(String(kept[0]?.uninstalled_at)).getTime()) /
    86_400_000;
  t.equal(days, 30);
  for (const file of fs.readdirSync(modules)) fs.utimesSync(path.join(modules, file), 1, 1);
  t.equal(await s.service.installer.removeOrphans(), 0, 'they are no leftovers of broken uploads');

  t.equal((await s.admin('POST', '/uninstalled/none/restore')).status, 404);
  t.match(await s.admin('POST', `/uninstalled/${keys[1]}/restore`), {
    status: 200,
    json: { id: 'life', version: 'two', wasm_key: keys[1] },
  });
  t.equal((await s.trigger('life/run')).status, 404, 'what is brought back is not installed');
  t.match(
    (await s.admin('POST', '/plugins/life/rollback', { wasm_key: keys[1] })).status,
    409,
    'and has no configuration',
  );
  t.equal(
    (
      await s.admin('POST', '/plugins/life/install', {
        wasm_key: keys[1],
        triggers: { run: { allow_user_session: false } },
        accept_public: true,
      })
    ).status,
    200,
  );
  t.equal((await s.trigger('life/run')).text, 'two');

  const db = openDatabase(s.databaseUrl, 1, () => {});
  t.teardown(() => db.close());
  const storage = openModuleStorage(modules);
  t.equal(await removeUninstalled(db, storage, 30 * 86_400_000), 0, 'none is old enough');
  await db.query("UPDATE uninstalled_versions SET uninstalled_at = now() - interval '30 days' WHERE wasm_key <> $1", [
    keys[0],
  ]);
  t.equal(await removeUninstalled(db, storage, 30 * 86_400_000), 2);
  const left = new Set(fs.readdirSync(modules).map(file => file.split('.')[0]));
  t.same([...left].sort(), [keys[0], keys[1]].sort(), 'what is too old is gone, what is kept or installed stays');
});

t.test('old versions are removed beyond as many of those that were installed and of those that never were', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  const db = openDatabase(s.databaseUrl, 1, () => {});
  t.teardown(() => db.close());
  const remove = () =>
    removeOldVersions(db, openModuleStorage(path.join(s.directory, 'modules')), 2, makeLog('silent'));
  const upload = async (version: string): Promise<string> => {
    const a = await s.upload(answering(version, { id: 'kept', version }));
    t.equal(a.status, 201, a.text);
    return String(a.json.wasm_key);
  };
  const versions = async (): Promise<unknown> =>
    ((await s.admin('GET', '/plugins/kept/versions')).json.items as Json[]).map(v => v.version);
  const first = await upload('1.0.0');
  await s.install(answering('2.0.0', { id: 'kept', version: '2.0.0' }));
  t.equal(await remove(), 0);
  for (const version of ['3.0.0', '4.0.0', '5.0.0']) await upload(version);
  t.same(await versions(), ['5.0.0', '4.0.0', '3.0.0', '2.0.0', '1.0.0']);
  t.equal(await remove(), 2);
  t.same(await versions(), ['5.0.0', '4.0.0', '2.0.0'], 'two, and the one before them that runs');
  const files = fs.readdirSync(path.join(s.directory, 'modules'));
  t.equal(files.length, 6, 'a module and its compiled form for each');
  t.notOk(files.some(name => name.startsWith(first)));
  t.match(await s.trigger('kept/run'), { status: 200, text: '2.0.0' });
  t.match((await s.admin('POST', '/plugins/kept/rollback', { wasm_key: first })).json, { code: 'validation_failed' });

  await s.install(answering('6.0.0', { id: 'kept', version: '6.0.0' }));
  for (const version of ['7.0.0', '8.0.0', '9.0.0']) await upload(version);
  t.equal(await remove(), 3);
  t.same(await versions(), ['9.0.0', '8.0.0', '6.0.0', '2.0.0'], 'uploads do not push out what was installed');
  const { items } = (await s.admin('GET', '/plugins/kept/versions')).json;
  const before = (items as Json[]).find(v => v.version === '2.0.0');
  t.equal((await s.admin('POST', '/plugins/kept/rollback', { wasm_key: before?.wasm_key })).status, 200);
  t.equal((await s.trigger('kept/run')).text, '2.0.0');
  for (const version of ['3.0.1', '4.0.1']) await s.install(answering(version, { id: 'kept', version }));
  await remove();
  t.match(await versions(), ['4.0.1', '3.0.1', '9.0.0', '8.0.0', '2.0.0'], 'a rollback counts as an installation');
});

t.test('a module that was swapped on disk after its upload is not run', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  const db = openDatabase(s.databaseUrl, 1, () => {});
  t.teardown(() => db.close());
  const swap = async (id: string): Promise<void> => {
    const { json } = await s.upload(answering('ok', { id }));
    const file = path.join(s.directory, 'modules', `${json.wasm_key}.run${RUNNABLE_FORMAT}.wasm`);
    fs.writeFileSync(file, answering('no'));
    if (id === 'lost') await db.query('DELETE FROM stored_contents');
    const body = { wasm_key: json.wasm_key, config: {}, ...publicAccess(json) } as Json;
    t.equal((await s.admin('POST', `/plugins/${id}/install`, body)).status, 200);
  };
  await swap('healed');
  t.match(await s.trigger('healed/run'), { status: 200, text: 'ok' }, 'the database has the right one');
  await swap('lost');
  t.equal((await s.trigger('lost/run')).status, 500);
  t.match((await s.admin('GET', '/plugins/lost/executions')).json, {
    items: [{ outcome: 'load_failed', failure: /not the one that was checked/ }],
  });
});

t.test('a module rewritten by an older host is rewritten again from the upload', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  const { wasmKey } = await s.install(answering('ok', { id: 'older' }));
  const changed = await s.install(answering('ok', { id: 'changed' }));
  const db = openDatabase(s.databaseUrl, 1, () => {});
  t.teardown(() => db.close());
  await db.query(`UPDATE plugin_versions SET runnable = runnable - 'format' || '{"hasInitialize": true}'`);
  const modules = path.join(s.directory, 'modules');
  for (const key of [wasmKey, changed.wasmKey]) fs.rmSync(path.join(modules, `${key}.run${RUNNABLE_FORMAT}.wasm`));
  fs.appendFileSync(path.join(modules, `${changed.wasmKey}.wasm`), '\0');
  const seen: unknown[] = [];
  await s.service.installer.upgrade((version, problem) => seen.push([version.pluginId, problem]));
  // Several are looked at side by side.
  t.same(seen.sort().reverse(), [
    ['older', null],
    ['changed', 'the stored module differs from the upload'],
  ]);
  // This host holds what it has compiled; another one reads what is stored.
  const other = await startTestService({}, s);
  t.teardown(() => other.stop());
  t.equal((await other.trigger('older/run')).text, 'ok');
  t.equal((await other.trigger('changed/run')).status, 500, 'an upload that was changed is not run');
  await s.service.installer.upgrade(version => seen.push(version.pluginId));
  t.equal(seen.at(-1), 'changed', 'what was brought up to date is not touched again');
});

t.test('hosts that start together bring each stored module up to date once', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  const random = '(import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))';
  const drawing = (id: string) =>
    answering('ok', {
      id,
      moreImports: random,
      start: 'once',
      body: '(data (i32.const 64) "ok") (func $init (drop (call $random (i32.const 128) (i32.const 4096)))) (start $init)',
    });
  const ids = ['one', 'two', 'three', 'four'];
  for (const id of ids) await s.install(drawing(id));
  const db = openDatabase(s.databaseUrl, 1, () => {});
  t.teardown(() => db.close());
  await db.query(`UPDATE plugin_versions SET runnable = jsonb_set(runnable, '{format}', '1')`);
  const others = await Promise.all([startTestService({}, s), startTestService({}, s), startTestService({}, s)]);
  for (const other of others) {
    t.teardown(() => other.stop());
    for (const id of ids)
      t.equal((await other.trigger(`${id}/run`)).text, 'ok', 'what is stored is what the database says');
  }
  const { rows } = await db.query<{ refused: number; old: number }>(
    `SELECT count(*) FILTER (WHERE runnable ? 'refused')::int AS refused, count(*) FILTER (WHERE runnable ->> 'format' <> $1)::int AS old FROM plugin_versions`,
    [String(RUNNABLE_FORMAT)],
  );
  t.same(rows[0], { refused: 0, old: 0 });
  t.same(
    fs.readdirSync(path.join(s.directory, 'modules')).filter(f => /start|part/.test(f)),
    [],
    'nothing of a moment is left',
  );
});

t.test('files that belong to no version are removed once they are old enough', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  const { wasmKey } = await s.install(answering('ok', { id: 'kept' }));
  const modules = path.join(s.directory, 'modules');
  const old = new Date(Date.now() - 2 * 3_600_000);
  for (const file of ['aaaa.wasm', 'aaaa.part', 'bbbb.run1.wasm']) fs.writeFileSync(path.join(modules, file), 'x');
  for (const file of fs.readdirSync(modules)) fs.utimesSync(path.join(modules, file), old, old);
  fs.writeFileSync(path.join(modules, 'cccc.part'), 'under way');
  t.equal(await s.service.installer.removeOrphans(), 3);
  t.same(
    fs.readdirSync(modules).sort(),
    [`${wasmKey}.run${RUNNABLE_FORMAT}.wasm`, `${wasmKey}.wasm`, 'cccc.part'].sort(),
  );
});

t.test('two hosts on one database: a plugin installed on one runs on the other after the notification', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  const { startService } = await import('../../src/app/service.ts');
  const { loadConfig } = await import('../../src/config/load.ts');
  const { makeLog } = await import('../../src/base/log.ts');
  const config = loadConfig(null, {
    BOT_HTTP_PORT: '0',
    BOT_DATA_DIR: s.directory,
    BOT_DATABASE_URL: s.databaseUrl,
    BOT_EXECUTION_LANES: '8',
  });
  const other = await startService({
    config,
    log: makeLog('silent'),
    setupToken: TOKEN,
    noteFile: null,
    suspects: [],
    pages: null,
  });
  t.teardown(() => other.stop(1000));
  await s.install(answering('ok', { id: 'both' }));
  const url = `http://127.0.0.1:${other.server.port}/api/triggers/http/both/run`;
  for (let k = 0; k < 100 && (await request(url)).status !== 200; k++) await new Promise(r => setTimeout(r, 10));
  t.equal((await request(url)).text, 'ok');
});

t.test('the admin API wants the setup token, and says so', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  const url = `${s.base}/api/admin/plugins`;
  for (const authorization of ['', 'Bearer wrong', `Basic ${TOKEN}`, `Bearer ${TOKEN}x`]) {
    const a = await request(url, authorization === '' ? {} : { headers: { authorization } });
    t.equal(a.status, 401, authorization);
    t.match(a.headers.get('www-authenticate'), /Bearer/);
    t.match(a.json, {
      code: 'unauthorized',
      request_id: /./,
      error: /token/,
      type: /unauthorized/,
      instance: '/api/admin/plugins',
    });
  }
  t.match(await s.admin('GET', '/plugins?limit=0'), { status: 422, json: { errors: [{ pointer: 'query:limit' }] } });
  t.match(await s.admin('GET', '/plugins?limt=1'), { status: 422, json: { errors: [{ pointer: 'query:limt' }] } });
  t.match(await s.admin('PATCH', '/plugins'), { status: 405, headers: { get: Function } });
  t.equal((await s.admin('PATCH', '/plugins')).headers.get('allow'), 'GET');
  t.equal((await s.admin('GET', '/nothing')).status, 404);
  const raw = (body: string, type: string) =>
    request(`${url}/x/install`, {
      method: 'POST',
      headers: { authorization: `Bearer ${TOKEN}`, 'content-type': type },
      body,
    });
  t.match(await raw('{', 'application/json'), { status: 400, json: { detail: /not JSON/ } });
  t.match(await raw('a=1', 'application/x-www-form-urlencoded'), { status: 415 });
  t.match(await raw(`"${'x'.repeat(1_100_000)}"`, 'application/json'), {
    status: 413,
    json: { detail: /1048576 bytes/ },
  });
  const loopback = await startTestService({ BOT_ADMIN_SETUP: 'loopback' });
  t.teardown(() => loopback.stop());
  t.equal((await request(`${loopback.base}/api/admin/plugins`)).status, 200, 'admin.setup: loopback');
});

t.test('a module that does not describe itself is refused for what it did, not for its manifest', async t => {
  const s = await startTestService({ BOT_EXECUTION_TIMEOUT_MS: '500' });
  t.teardown(() => s.stop());
  const describing = (body: string): Uint8Array =>
    assemble(`(module (memory (export "memory") 1)
      (func (export "plugin_handle") (result i32) (i32.const 0))
      (func (export "plugin_describe") (result i32) ${body} (i32.const 0)))`);
  const findingsOf = async (body: string) => {
    const { json, status } = await s.upload(describing(body));
    t.equal(status, 422);
    return (json.findings as Json[]).filter(f => f.level === 'refusal');
  };
  t.match(await findingsOf('(loop $l (br $l))'), [
    { rule: 'time', message: 'plugin_describe took longer than 500 ms' },
  ]);
  t.match(await findingsOf('unreachable'), [{ rule: 'manifest', message: /^plugin_describe failed: trapped / }]);
});
