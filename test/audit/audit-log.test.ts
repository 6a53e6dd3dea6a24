import t from 'tap';
import { appendAudit, eraseAuditOf, findBrokenSeals, listAudit, sealAudit } from '../../src/audit/audit-log.ts';
import { openDatabase } from '../../src/db/database.ts';
import { makeDatabase } from '../support/database.ts';
import { startWithRoot } from '../support/root-admin.ts';
import { startTestService, TOKEN } from '../support/service.ts';
import { okPlugin, watPlugin } from '../support/wat.ts';

type Entry = {
  id: number;
  action: string;
  object_type: string;
  object_id: string;
  before: Record<string, unknown> | null;
  after: Record<string, unknown> | null;
  actor: { kind: string };
  request_id: string;
  address: string;
};

const configured = (version: string): Uint8Array =>
  watPlugin({
    id: 'conf',
    version,
    imports: ['respond'],
    requirements: [
      {
        kind: 'kv',
        config: [
          { name: 'greeting', description: 'd', required: true },
          { name: 'api_key', description: 'd', required: true, sensitive: true },
        ],
      },
    ],
    handle: '(i32.const 0)',
  });

t.test('every change by an administrator is logged with actor, action, before and after, and no secret', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  const conf = { greeting: 'hello', api_key: 'the secret value' };
  const one = await s.install(configured('1.0.0'), conf);
  await s.install(configured('2.0.0'), { ...conf, greeting: 'hi' });
  await s.install(okPlugin('other'));
  await s.admin('PUT', '/plugins/conf/triggers/run/settings', { allow_service_key: true });
  await s.admin('PUT', '/plugins/conf/origins', { origins: ['https://app.uni.example'] });
  await s.admin('POST', '/plugins/conf/rollback', { wasm_key: one.wasmKey });
  await s.admin('POST', '/plugins/conf/disable');
  await s.admin('POST', '/plugins/conf/enable');
  const key = await s.admin('POST', '/service-keys', { name: 'sync', scopes: [{ plugin_id: 'conf', trigger: '*' }] });
  const rotated = await s.admin('POST', `/service-keys/${key.json.id}/rotate`, { overlap_seconds: 60 });
  await s.admin('DELETE', `/service-keys/${key.json.id}`);
  const user = await s.admin('POST', '/users', { display_name: 'Ada', external_id: 'e-1' });
  await s.admin('PATCH', `/users/${user.json.id}`, { locale: 'en' });
  await s.admin('DELETE', '/plugins/other');
  // What is refused or changes nothing leaves no entry.
  await s.admin('DELETE', '/plugins/other');
  await s.admin('DELETE', '/service-keys/99999');
  await s.admin('POST', '/plugins/conf/triggers/run/resume');
  await s.admin('PUT', '/plugins/conf/origins', { origins: ['*'] });

  const all = await s.admin('GET', '/audit?limit=200');
  const entries = (all.json.items as unknown as Entry[]).toReversed();
  t.same(
    entries.map(e => `${e.action} ${e.object_type} ${e.object_id}`),
    [
      'plugin.upload plugin conf',
      'plugin.install plugin conf',
      'plugin.upload plugin conf',
      'plugin.install plugin conf',
      'plugin.upload plugin other',
      'plugin.install plugin other',
      'trigger.settings trigger conf/run',
      'plugin.origins plugin conf',
      'plugin.rollback plugin conf',
      'plugin.disable plugin conf',
      'plugin.enable plugin conf',
      `service_key.create service_key ${key.json.id}`,
      `service_key.rotate service_key ${key.json.id}`,
      `service_key.revoke service_key ${key.json.id}`,
      `user.create user ${user.json.id}`,
      `user.change user ${user.json.id}`,
      'plugin.uninstall plugin other',
    ],
  );
  for (const entry of entries)
    t.same((await s.admin('GET', `/audit/${entry.id}`)).json, entry, `${entry.action} is read as the list has it`);
  for (const id of ['999999', '0', 'x'])
    t.match((await s.admin('GET', `/audit/${id}`)).json, {
      status: 404,
      detail: `there is no entry of the audit log ${id}`,
    });
  const of = (action: string, n = 0): Entry | undefined => entries.filter(e => e.action === action)[n];
  t.match(of('plugin.install', 1), {
    before: { version: '1.0.0', config: { greeting: 'hello' } },
    after: { version: '2.0.0', config: { greeting: 'hi' }, permissions: ['kv'] },
    actor: { kind: 'setup' },
    address: '127.0.0.1',
    request_id: /^[\w-]{8,64}$/,
  });
  t.match(of('trigger.settings'), { before: { allow_service_key: false }, after: { allow_service_key: true } });
  t.match(of('plugin.rollback'), { before: { version: '2.0.0' }, after: { version: '1.0.0' } });
  t.match(of('user.change'), { before: { locale: 'ru' }, after: { locale: 'en', external_id: 'e-1' } });
  t.match(of('plugin.uninstall'), { before: { version: '1.0.0' }, after: null });
  for (const secret of ['the secret value', TOKEN, String(key.json.key), String(rotated.json.key)])
    t.notOk(all.text.includes(secret.split('.').at(-1) ?? secret), 'no secret');
});

t.test('the log is filtered and paged, and no role can change it', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  const db = openDatabase(s.databaseUrl, 1, () => {});
  t.teardown(() => db.close());
  for (let k = 0; k < 5; k++) await s.admin('POST', '/users', { display_name: `U${k}` });
  await s.install(okPlugin());
  const ids = async (query: string): Promise<unknown[]> =>
    ((await s.admin('GET', `/audit?${query}`)).json.items as unknown as Entry[]).map(e => e.object_id);
  t.same(await ids('action=plugin.install'), ['neighbour']);
  t.equal((await ids('object_type=user')).length, 5);
  t.same(await ids('object_type=user&object_id=2'), ['2']);
  t.equal((await ids('since=2999-01-01')).length, 0);
  t.equal((await ids('until=2000-01-01')).length, 0);
  t.same(await ids('until=2999-01-01'), await ids(''));
  t.equal((await ids('actor=1')).length, 0);
  const seen: unknown[] = [];
  for (let cursor: unknown = ''; cursor !== null; ) {
    const page = await s.admin('GET', `/audit?limit=2${cursor === '' ? '' : `&cursor=${cursor}`}`);
    seen.push(...(page.json.items as unknown as Entry[]).map(e => e.id));
    cursor = page.json.next_cursor;
  }
  t.equal(new Set(seen).size, 7);
  t.same(
    seen,
    [...seen].sort((a, b) => Number(b) - Number(a)),
  );
  for (const bad of ['actor=x', 'since=yesterday', 'since=2026-02-30', 'until=soon', 'limit=0', 'what=1', 'cursor=x'])
    t.equal((await s.admin('GET', `/audit?${bad}`)).status, 422, bad);
  for (const sql of ["UPDATE audit_log SET action = 'x'", 'DELETE FROM audit_log', 'TRUNCATE audit_log'])
    await t.rejects(db.query(sql), /append-only/, sql);
});

t.test('the log comes as a table of all entries that the filters leave, and no cell is a formula', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  const db = openDatabase(s.databaseUrl, 1, () => {});
  t.teardown(() => db.close());
  await s.admin('POST', '/users', { display_name: '=HYPERLINK("http://evil.example")' });
  // More than the service reads at a time.
  await db.query(
    `INSERT INTO audit_log (actor_kind, actor_user_id, actor_name, action, object_type, object_id, after, request_id, address)
     SELECT 'admin', 7, '=1+1', 'file.delete', 'file', 'of "Анна", ' || n, '{"name":"a,b"}', '', '' FROM generate_series(1, 2500) n`,
  );
  const { headers, status, text } = await s.admin('GET', '/audit.csv?action=file.delete');
  t.equal(status, 200);
  t.equal(headers.get('content-type'), 'text/csv; charset=utf-8');
  t.match(headers.get('content-disposition'), /^attachment; filename="audit-\d{4}-\d\d-\d\d\.csv"$/);
  t.equal(headers.get('cache-control'), 'no-store');
  const lines = text.replace(/^\uFEFF/, '').split('\r\n');
  t.equal(
    lines[0],
    'id,at,actor,actor_kind,global_user_id,admin_key_id,action,object_type,object_id,before,after,request_id,address',
  );
  t.equal(lines.length, 2502, 'a head, the entries, and nothing behind the last break');
  t.match(
    lines[1],
    /^\d+,\d{4}-[^,]+Z,'=1\+1,admin,7,,file\.delete,file,"of ""Анна"", 2500",,"\{""name"":""a,b""\}",,$/,
  );
  t.match(lines[2500], /""Анна"", 1",/);
  t.equal(new Set(lines.slice(1, -1).map(l => l.split(',')[0])).size, 2500, 'each entry once');
  t.match((await s.admin('GET', '/audit.csv')).text, /user\.create/, 'without a filter all of them');
  const head = await s.admin('HEAD', '/audit.csv');
  t.same([head.status, head.headers.get('content-length')], [200, null], 'its length is not known before');
  t.match((await s.admin('GET', '/audit.csv?limit=10')).json, { status: 422, errors: [{ pointer: 'query:limit' }] });
});

t.test('entries are sealed in a chain: what is changed, added or taken out afterwards is found', async t => {
  const database = await makeDatabase();
  const [owner, service] = [database.url, database.serviceUrl].map(url => openDatabase(url, 1, () => {}));
  t.teardown(async () => {
    await owner?.close();
    await service?.close();
    await database.drop();
  });
  if (owner === undefined || service === undefined) return;
  const by = { kind: 'admin', userId: 1, name: 'root', requestId: 'r', address: '::1' } as const;
  const write = (n: number): Promise<void> =>
    appendAudit(service, by, { action: 'user.create', objectType: 'user', objectId: String(n), after: { n } });
  t.equal(await sealAudit(service), 0, 'nothing to seal');
  for (let n = 1; n <= 5; n++) await write(n);
  t.equal(await sealAudit(service), 5);
  t.equal(await sealAudit(service), 0);
  for (let n = 6; n <= 7; n++) await write(n);
  t.equal(await sealAudit(service), 2);
  t.same(await findBrokenSeals(service), []);

  // An entry that is under way is sealed when it is there, not before and not never.
  await service.withTransaction(async client => {
    await appendAudit(client, by, { action: 'user.create', objectType: 'user', objectId: 'slow' });
    t.equal(await sealAudit(owner), 0);
  });
  t.equal(await sealAudit(service), 1);

  await t.rejects(service.query("UPDATE audit_seals SET sha256 = ''"), /permission denied/);
  await t.rejects(service.query('DELETE FROM audit_seals'), /permission denied/);
  const tamper = async (sql: string): Promise<number[]> => {
    await owner.query('BEGIN');
    try {
      await owner.query('ALTER TABLE audit_log DISABLE TRIGGER USER');
      await owner.query(sql);
      return (await findBrokenSeals(owner)).map(s => s.firstId);
    } finally {
      await owner.query('ROLLBACK');
    }
  };
  const cases: Array<[string, number[]]> = [
    ["UPDATE audit_log SET actor_name = 'other' WHERE id = 3", [1]],
    ["UPDATE audit_log SET at = at + interval '1 microsecond' WHERE id = 6", [6]],
    ["UPDATE audit_log SET after = '{}' WHERE id = 5", [1]],
    ['DELETE FROM audit_log WHERE id = 7', [6]],
    ['DELETE FROM audit_log WHERE id <= 5', [1]],
    ["UPDATE audit_log SET action = 'user.change'", [1, 6, 8]],
    ['SELECT', []],
  ];
  for (const [sql, broken] of cases) t.same(await tamper(sql), broken, sql);
  await owner.query("UPDATE audit_seals SET sealed_at = now() - interval '91 days' WHERE first_id = 1");
  t.same(await tamper('DELETE FROM audit_log WHERE id <= 2'), [], 'what retention removes');
  t.same(await tamper("UPDATE audit_log SET address = '' WHERE id = 2"), [1], 'but no old entry is changed');
});

t.test('a person is erased from the log, and the chain still verifies what stays', async t => {
  const database = await makeDatabase();
  const [owner, service] = [openDatabase(database.url, 1, () => {}), openDatabase(database.serviceUrl, 1, () => {})];
  t.teardown(async () => {
    await owner.close();
    await service.close();
    await database.drop();
  });
  const actor = (userId: number, name: string) =>
    ({ kind: 'user', userId, name, requestId: 'r', address: '192.0.2.7' }) as const;
  const [ada, ben] = [actor(7, 'Ada'), actor(8, 'Ben')];
  const tuple = (id: string): string => `faculty:1#dean@user:${id}`;
  await appendAudit(service, ada, {
    action: 'token.create',
    objectType: 'user',
    objectId: '8',
    after: { name: 'of Ben' },
  });
  await appendAudit(service, ben, { action: 'user.change', objectType: 'user', objectId: '7', after: { name: 'Ada' } });
  await appendAudit(service, ada, { action: 'user.change', objectType: 'user', objectId: '7', after: { name: 'Ada' } });
  const relationship = { action: 'relationship.create', objectType: 'relationship' } as const;
  for (const id of ['e7', 'e77'])
    await appendAudit(service, ben, { ...relationship, objectId: tuple(id), after: { relationships: [tuple(id)] } });
  await appendAudit(service, ben, {
    ...relationship,
    objectId: '2 relationships',
    after: { relationships: [tuple('e7'), tuple('e77')] },
  });
  await appendAudit(service, ben, {
    action: 'relationship.delete',
    objectType: 'relationship',
    objectId: JSON.stringify({ subject_type: 'user', subject_id: 'e7' }),
    before: { relationships: [] },
  });
  await appendAudit(service, ben, {
    ...relationship,
    objectId: JSON.stringify({ subject_type: 'faculty', subject_id: 'e7' }),
    before: { relationships: [] },
  });
  for (const user_id of [7, 8])
    await appendAudit(service, ben, { action: 'file.delete', objectType: 'file', objectId: 'f', before: { user_id } });
  // An attempt to log in, and an external id of before that JSON escapes.
  const odd = 'UNI\\iv"an';
  await appendAudit(
    service,
    { ...ada, kind: 'anonymous', userId: null, name: 'anonymous' },
    { action: 'admin.login_failed', objectType: 'user', objectId: '7', after: { email: 'ada@uni.example' } },
  );
  await appendAudit(service, ben, {
    action: 'user.change',
    objectType: 'user',
    objectId: '7',
    before: { external_id: odd },
    after: { external_id: 'e7' },
  });
  await appendAudit(service, ben, { ...relationship, objectId: 'x', after: { relationships: [tuple(odd)] } });
  await sealAudit(service);
  for (const living of [
    "INSERT INTO global_users (id, external_id, display_name) OVERRIDING SYSTEM VALUE VALUES (7, 'e7', 'Ada')",
    "INSERT INTO persons (external_id, last_name, first_name, channels, is_active, metadata) VALUES ('e7', 'a', 'b', '{}', true, '{}')",
  ]) {
    await owner.query(living);
    await t.rejects(eraseAuditOf(service, 7, 'e7'), /the person is still there/);
    await owner.query('DELETE FROM global_users; DELETE FROM persons');
  }
  t.equal(await eraseAuditOf(service, 7, 'e7'), 10);
  const entries = (await listAudit(service, { before: 1000, limit: 100 })).reverse();
  const nameless = { name: '(erased)', address: '', userId: 7 };
  t.match(
    entries.map(({ actor, after, before, objectId }) => ({ actor, objectId, after, before })),
    [
      { actor: nameless, objectId: '8', after: { name: 'of Ben' } },
      { actor: { name: 'Ben', address: '192.0.2.7' }, objectId: '7', after: null },
      { actor: nameless, objectId: '7', after: null },
      { actor: { name: 'Ben' }, objectId: '(erased)', after: null },
      { actor: { name: 'Ben' }, objectId: tuple('e77'), after: { relationships: [tuple('e77')] } },
      { objectId: '(erased)', after: null },
      { objectId: '(erased)', before: null },
      { objectId: /faculty/, before: { relationships: [] } },
      { objectId: '(erased)', before: null },
      { objectId: 'f', before: { user_id: 8 } },
      { actor: { name: '(erased)', address: '', userId: null }, objectId: '7', after: null },
      { actor: { name: 'Ben' }, objectId: '7', before: null, after: null },
      { objectId: '(erased)', after: null },
    ],
  );
  t.equal(await eraseAuditOf(service, 7, 'e7'), 0, 'once');
  t.equal(await eraseAuditOf(service, null, null), 0);
  t.same(await findBrokenSeals(service), []);

  const found = async (sql: string): Promise<number> => {
    await owner.query('BEGIN');
    try {
      await owner.query('ALTER TABLE audit_log DISABLE TRIGGER USER');
      await owner.query(sql);
      return (await findBrokenSeals(owner)).length;
    } finally {
      await owner.query('ROLLBACK');
    }
  };
  for (const change of ["action = 'x'", 'actor_user_id = 9', "at = at - interval '1 s'", "actor_kind = 'admin'"])
    t.equal(await found(`UPDATE audit_log SET ${change} WHERE id = 3`), 1, change);
  t.equal(await found("UPDATE audit_log SET actor_name = 'x' WHERE id = 2"), 1, 'the part that was not erased');
  for (const change of ["actor_name = 'x'", "address = 'x'", "after = '{}'", "before = '{}'", "object_id = '8'"])
    t.equal(await found(`UPDATE audit_log SET ${change} WHERE id = 3`), 1, `${change}, where it was erased`);
  t.equal(await found("UPDATE audit_log SET object_id = 'x' WHERE id = 4"), 1, 'the same of a relationship');
  t.equal(await found('DELETE FROM audit_log WHERE id = 3'), 1);
  for (const change of [
    "action = 'x'",
    "actor_name = 'x'",
    'actor_sha256 = NULL',
    "after = '{}', states_sha256 = NULL",
  ])
    await t.rejects(
      owner.withTransaction(async client => {
        await client.query("SELECT set_config('plugin_host.audit_erasure', 'on', true)");
        await client.query(`UPDATE audit_log SET ${change} WHERE id = 1`);
      }),
      /append-only/,
      change,
    );

  // A sum whose salt is there could be guessed back to a name.
  const salted =
    'SELECT 1 FROM audit_log WHERE actor_salt IS NOT NULL AND actor_sha256 IS NOT NULL OR states_salt IS NOT NULL AND states_sha256 IS NOT NULL';
  t.equal((await owner.query(salted)).rowCount, 0);
  t.ok((await eraseAuditOf(service, 8, null)) > 0, 'the other part of the same entries');
  t.equal((await owner.query(salted)).rowCount, 0);
  t.same(await findBrokenSeals(service), []);
});

t.test('a table is cut off when its reader may not read on', async t => {
  const w = await startWithRoot(t);
  await w.db.query(
    `INSERT INTO audit_log (actor_kind, actor_name, action, object_type, object_id, after, request_id, address)
     SELECT 'admin', 'x', 'plugin.install', 'plugin', 'p' || i, jsonb_build_object('text', repeat('secret ', 100)), '', ''
     FROM generate_series(1, 60000) i`,
  );
  const made = await w.call(w.root, 'POST', '/keys', { name: 'auditor', scopes: ['read'], expires_at: null });
  const headers = { authorization: `Bearer ${made.json.key}` };
  const answer = await fetch(`${w.s.base}/api/admin/audit.csv`, { headers });
  const reader = answer.body!.getReader();
  await reader.read();
  t.equal((await w.call(w.root, 'DELETE', `/keys/${made.json.id}`)).status, 204);
  let bytes = 0;
  await t.rejects(async () => {
    for (let r = await reader.read(); !r.done; r = await reader.read()) bytes += r.value.length;
  }, 'the client sees that it is not whole');
  t.ok(bytes < 40_000_000, `${bytes} bytes came afterwards`);
});
