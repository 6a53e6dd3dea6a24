import t from 'tap';
import { isUnavailable, openDatabase } from '../../src/db/database.ts';
import { makeDatabase } from '../support/database.ts';
import { buildExample } from '../support/sdk.ts';
import { startTestService } from '../support/service.ts';
import { databaseWay } from '../support/store-way.ts';

const USER = { display_name: 'Ada' };

t.test(
  'a database that dies at any point of a request is 503 with Retry-After, and the same request succeeds later',
  async t => {
    const hello = await buildExample('hello');
    const { drop, url } = await makeDatabase();
    const way = await databaseWay(url);
    const s = await startTestService({ BOT_DATABASE_URL: way.url });
    t.teardown(async () => {
      way.onSent = () => true;
      await s.stop();
      way.close();
      await drop();
    });
    const requests: Array<[name: string, send: () => ReturnType<typeof s.admin>]> = [
      ['an upload', () => s.upload(hello)],
      ['a user', () => s.admin('POST', '/users', USER)],
      ['settings', () => s.admin('PUT', '/plugins/hello/triggers/greet/settings', { allow_user_session: true })],
      ['a suspension lifted', () => s.admin('POST', '/plugins/hello/triggers/greet/resume')],
      ['a list', () => s.admin('GET', '/plugins')],
    ];
    await s.install(hello);
    for (const [name, send] of requests) {
      const statuses = new Set<number>();
      let cuts = 0;
      for (let nth = 1; nth < 60; nth++) {
        let sent = 0;
        let cut = false;
        // The heartbeat or other queries at the same time may be hit instead; the answer must be right in any case.
        way.onSent = () => {
          if (cut || ++sent !== nth) return true;
          cut = true;
          return false;
        };
        const answer = await send();
        way.onSent = () => true;
        statuses.add(answer.status);
        if (answer.status === 503) {
          t.equal(answer.json.code, 'unavailable');
          t.ok(answer.headers.get('retry-after'));
        }
        if (!cut) break;
        cuts++;
      }
      t.ok(cuts > 0, `${name}: ${cuts} points`);
      t.notOk(statuses.has(500), `${name}: ${[...statuses].join(', ')}`);
      let status = 503;
      for (let k = 0; k < 100 && status === 503; k++) ({ status } = await send());
      t.ok(status < 500, `${name} afterwards: ${status}`);
    }
  },
);

t.test('a server that ends a session in the middle of a transaction says why, and counts as unavailable', async t => {
  const { drop, url } = await makeDatabase();
  const db = openDatabase(url, 1, () => {});
  const other = openDatabase(url, 1, () => {});
  t.teardown(async () => {
    await db.close();
    await other.close();
    await drop();
  });
  const errorOf = (sql: string): Promise<unknown> =>
    db
      .withTransaction(async client => {
        const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
        const asked = client.query(sql);
        asked.catch(() => {});
        let waits = 0;
        while (waits === 0)
          waits = (
            await other.query("SELECT 1 FROM pg_stat_activity WHERE pid = $1 AND wait_event = 'PgSleep'", [
              rows[0]?.pid,
            ])
          ).rows.length;
        await other.query('SELECT pg_terminate_backend($1)', [rows[0]?.pid]);
        await asked;
      })
      .catch((error: unknown) => error);
  const error = await errorOf('SELECT pg_sleep(60)');
  t.match(error, { code: '57P01' });
  t.ok(isUnavailable(error));
  await t.rejects(
    db.withTransaction(async client => {
      await client.query("SET LOCAL idle_in_transaction_session_timeout = '50ms'");
      const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
      let left = 1;
      while (left > 0)
        left = (await other.query('SELECT 1 FROM pg_stat_activity WHERE pid = $1', [rows[0]?.pid])).rows.length;
      await client.query('SELECT 1').catch((e: unknown) => {
        t.ok(isUnavailable(e), String(e));
        throw e;
      });
    }),
  );
  const coded = (code: string, more: object = {}): Error => Object.assign(new Error('x'), { code, ...more });
  for (const code of ['57P01', '57P02', '57P03', '57P05', '53300', '08000', '08006', '25006', '25P03', 'EPIPE'])
    t.ok(isUnavailable(coded(code)), code);
  t.ok(isUnavailable(coded('08P01', { severity: 'FATAL' })), 'a pooler that lost its server');
  t.notOk(isUnavailable(coded('08P01', { severity: 'ERROR' })), 'a statement with a wrong number of values');
  t.ok(isUnavailable(coded('ENOENT', { syscall: 'connect' })));
  for (const text of [
    'Connection terminated unexpectedly',
    'Connection terminated due to connection timeout',
    'Client has encountered a connection error and is not queryable',
    'Client was closed and is not queryable',
    'timeout exceeded when trying to connect',
    'timeout expired',
  ])
    t.ok(isUnavailable(new Error(text)), text);
  t.ok(isUnavailable(new AggregateError([coded('ECONNREFUSED')])));
  for (const code of ['23505', '42601', 'ENOENT', '57014']) t.notOk(isUnavailable(coded(code)), code);
});
