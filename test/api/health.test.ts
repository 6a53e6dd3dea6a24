import t from 'tap';
import { openDatabase } from '../../src/db/database.ts';
import { startGraphStore } from '../support/graph.ts';
import { type Answer, type Json, rawRequest, request, startTestService, TOKEN } from '../support/service.ts';
import { storeWay } from '../support/store-way.ts';

/** `/healthz` and `/readyz`: what they say, and to which client. */

const { spicedb } = await startGraphStore(t);
const way = await storeWay(spicedb.endpoint.replace('unix:', ''));
t.teardown(() => way.close());
const s = await startTestService({
  BOT_SPICEDB_ENDPOINT: `127.0.0.1:${way.port}`,
  BOT_SPICEDB_TOKEN: 'any',
  BOT_SPICEDB_TLS: 'false',
});
t.teardown(() => s.stop());
const db = openDatabase(s.databaseUrl, 1, () => {});
t.teardown(() => db.close());

const ask = (path: string, headers: Record<string, string> = {}): Promise<Answer> =>
  request(`${s.base}${path}`, { headers });
const PROXY = { 'x-forwarded-for': '203.0.113.7' };

async function until(state: string): Promise<Answer> {
  for (let k = 0; k < 200; k++) {
    const answer = await ask('/readyz');
    if (answer.json.status === state) return answer;
    await new Promise(r => setTimeout(r, 50));
  }
  throw new Error(`it never was ${state}`);
}

t.test('a client on the machine reads each check, one behind a proxy only the status', async t => {
  const near = await until('ready');
  t.equal(near.status, 200);
  t.same(
    (near.json.checks as Json[]).map(c => [c.name, c.state, c.detail]),
    [
      ['database', 'ok', null],
      ['changes', 'ok', null],
      ['writes', 'ok', null],
      ['disk', 'ok', null],
      ['graph', 'ok', null],
    ],
  );
  t.same((await ask('/readyz', PROXY)).json, { status: 'ready' });
  t.match((await ask('/healthz')).json, { status: 'alive', version: /^\d/, pid: process.pid, uptime_seconds: Number });
  t.same((await ask('/healthz', PROXY)).json, { status: 'alive' });
  // A proxy on this machine that says nothing of its clients passes on the name they asked for.
  const named = await rawRequest(`${s.base}/healthz`, { host: 'plugins.uni.example' });
  t.same(named.json, { status: 'alive' });
});

t.test('an administrator reads each check from anywhere, and another credential does not', async t => {
  const admin = await ask('/readyz', { ...PROXY, authorization: `Bearer ${TOKEN}` });
  t.match(admin.json, { status: 'ready', checks: [{ name: 'database' }] });
  t.same((await ask('/readyz', { ...PROXY, authorization: 'Bearer wrong' })).json, { status: 'ready' });
});

/** What a check says in words, once its metric says the same. */
async function found(name: string, failed: 0 | 1): Promise<unknown> {
  for (let k = 0; k < 200; k++) {
    const metric = (await s.service.metrics()).find(m => m.name === 'plugin_host_check_failed');
    if (metric?.values.find(v => v.labels.check === name)?.value === failed)
      return ((await ask('/readyz')).json.checks as Json[]).find(c => c.name === name)?.detail;
    await new Promise(resolve => setTimeout(resolve, 50));
  }
  throw new Error(`plugin_host_check_failed of ${name} never was ${failed}`);
}

t.test('a graph store that answers late makes the service degraded, in words and in its metric', async t => {
  way.lateMs = 700;
  await until('degraded');
  t.match(await found('graph', 1), /^the graph store answers after \d+ ms/);
  way.lateMs = 0;
  await until('ready');
  t.equal(await found('graph', 0), null);
});

t.test('a database that takes no changes makes the service degraded, and a change says so', async t => {
  const { rows } = await db.query<{ name: string }>('SELECT quote_ident(current_database()) AS name');
  const name = rows[0]?.name ?? '';
  const renew = (): Promise<unknown> =>
    db.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`,
    );
  await db.query(`ALTER DATABASE ${name} SET default_transaction_read_only = on`);
  await renew();
  await until('degraded');
  t.match(await found('writes', 1), /^the database is read-only/);
  const refused = await s.admin('POST', '/users', { display_name: 'Ada' });
  t.equal(refused.status, 503, refused.text);
  await db.query('SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE');
  await db.query(`ALTER DATABASE ${name} RESET default_transaction_read_only`);
  await renew();
  await until('ready');
  t.equal(await found('writes', 0), null);
});

t.test('doctor is asked over the API, once for all who ask at the same time', async t => {
  const asked = await Promise.all([1, 2, 3].map(() => s.admin('GET', '/doctor')));
  const [first] = asked;
  t.equal(first?.status, 200);
  const states = new Map(((first?.json.checks ?? []) as Json[]).map(c => [c.name, c.state]));
  for (const name of ['data directory', 'database', 'graph store', 'audit log', 'stored secrets', 'files'])
    t.equal(states.get(name), 'ok', name);
  t.equal(new Set(asked.map(a => a.json.looked_at)).size, 1, 'one look');
  t.equal((await s.admin('GET', '/doctor')).json.looked_at, first?.json.looked_at, 'and a moment later the same');
});

t.test('without the graph store the service is degraded, not away', async t => {
  await spicedb.stop();
  const answer = await until('degraded');
  t.equal(answer.status, 200);
  t.match((answer.json.checks as Json[]).at(-1), {
    name: 'graph',
    state: 'degraded',
    detail: /^the graph store does not answer: /,
  });
  t.same((await ask('/readyz', PROXY)).json, { status: 'degraded' });
});
