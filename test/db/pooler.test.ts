import fs from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { openDatabase } from '../../src/db/database.ts';
import { NotificationListener } from '../../src/db/notifications.ts';
import { assertOwnSession } from '../../src/db/own-session.ts';
import { makeDatabase } from '../support/database.ts';
import { PGBOUNCER, startPooler } from '../support/pooler.ts';
import { takePort } from '../support/ports.ts';
import { request, startTestService, TOKEN } from '../support/service.ts';
import { ROOT, start } from '../support/started-service.ts';
import { until } from '../support/until.ts';
import { watPlugin } from '../support/wat.ts';

/** A pooler before the database (docs/operating.md "PostgreSQL"). */
const skip = PGBOUNCER === null ? 'pgbouncer is not installed' : false;
const REFUSED = /database\.url leads to a pooler in transaction mode.*pool_mode = session/;

t.test('the database itself gives each connection a session of its own', async t => {
  const database = await makeDatabase();
  t.teardown(() => database.drop());
  await assertOwnSession(database.url);
});

t.test('transaction mode is found out, also while other clients use the pool', { skip }, async t => {
  const database = await makeDatabase();
  const url = await startPooler(t, database.url, 'transaction');
  const pool = openDatabase(url, 8, () => {});
  t.teardown(async () => {
    await pool.close();
    await database.drop();
  });
  await Promise.all(Array.from({ length: 8 }, () => pool.query('SELECT pg_sleep(0.05)')));
  for (let k = 0; k < 10; k++) await t.rejects(assertOwnSession(url), { message: REFUSED });
});

t.test('a service behind transaction mode does not start, and says why in one line', { skip }, async t => {
  const database = await makeDatabase();
  t.teardown(() => database.drop());
  const url = await startPooler(t, database.url, 'transaction');
  const directory = fs.mkdtempSync(path.join(ROOT, 'pooled-'));
  const run = start(directory, { BOT_DATABASE_URL: url, BOT_HTTP_PORT: String(await takePort()) });
  t.not(await run.exited, 0);
  t.match(run.output(), REFUSED);
  t.notMatch(run.output(), /\n\s+at /, 'no stack');
});

t.test('a listener whose connection is led to other sessions does not count as current', { skip }, async t => {
  const database = await makeDatabase();
  const url = await startPooler(t, database.url, 'transaction');
  const pool = openDatabase(url, 8, () => {});
  const listener = new NotificationListener();
  t.teardown(async () => {
    await listener.close();
    await pool.close();
    await database.drop();
  });
  const log = { info() {}, warn() {} };
  await listener.start({ url, channels: ['c'], apply() {}, readAll: async () => {}, onGap() {}, log });
  // Other clients take the sessions in turns, as under load.
  let busy = true;
  const load = Promise.all(
    Array.from({ length: 8 }, async () => {
      while (busy) await pool.query('SELECT pg_sleep(0.01)');
    }),
  );
  await until(async () => !(listener.isCurrent() || (await listener.heard())));
  t.notOk(listener.isCurrent());
  busy = false;
  await load;
});

t.test('in session mode the service works, and a revocation counts at once', { skip }, async t => {
  const database = await makeDatabase();
  const url = await startPooler(t, database.url, 'session');
  await assertOwnSession(url);
  const s = await startTestService({ BOT_DATABASE_URL: url });
  t.teardown(async () => {
    await s.stop();
    await database.drop();
  });
  await s.install(watPlugin({ id: 'p', handle: '(i32.const 0)' }), {}, 'default');
  await s.admin('PUT', '/plugins/p/triggers/run/settings', { allow_service_key: true });
  for (let k = 0; k < 5; k++) {
    const body = { name: `key ${k}`, scopes: [{ plugin_id: 'p', trigger: 'run' }] };
    const made = await s.admin('POST', '/service-keys', body);
    t.equal(made.status, 201, made.text);
    const headers = { authorization: `Bearer ${made.json.key}` };
    t.equal((await s.trigger('p/run', { headers })).status, 204);
    const revoked = await request(`${s.base}/api/admin/service-keys/${made.json.id}`, {
      method: 'DELETE',
      headers: { authorization: `Bearer ${TOKEN}` },
    });
    t.equal(revoked.status, 204);
    t.equal((await s.trigger('p/run', { headers })).status, 401, 'not one call late');
  }
});
