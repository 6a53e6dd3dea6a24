import t from 'tap';
import { openDatabase } from '../../src/db/database.ts';
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
  for (const bad of ['actor=x', 'since=yesterday', 'limit=0', 'what=1', 'cursor=x'])
    t.equal((await s.admin('GET', `/audit?${bad}`)).status, 422, bad);
  for (const sql of ["UPDATE audit_log SET action = 'x'", 'DELETE FROM audit_log', 'TRUNCATE audit_log'])
    await t.rejects(db.query(sql), /append-only/, sql);
});
