import t from 'tap';
import { startGraphStore } from '../support/graph.ts';
import { type Answer, type Json, request, startTestService, TOKEN } from '../support/service.ts';

/** `/healthz` and `/readyz`: what they say, and to which client. */

const { spicedb } = await startGraphStore(t);
const s = await startTestService({
  BOT_SPICEDB_ENDPOINT: spicedb.endpoint,
  BOT_SPICEDB_TOKEN: 'any',
  BOT_SPICEDB_TLS: 'false',
});
t.teardown(() => s.stop());

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
      ['changes', 'ok', null],
      ['database', 'ok', null],
      ['disk', 'ok', null],
      ['graph', 'ok', null],
    ],
  );
  t.same((await ask('/readyz', PROXY)).json, { status: 'ready' });
  t.match((await ask('/healthz')).json, { status: 'alive', version: /^\d/, pid: process.pid, uptime_seconds: Number });
  t.same((await ask('/healthz', PROXY)).json, { status: 'alive' });
});

t.test('an administrator reads each check from anywhere, and another credential does not', async t => {
  const admin = await ask('/readyz', { ...PROXY, authorization: `Bearer ${TOKEN}` });
  t.match(admin.json, { status: 'ready', checks: [{ name: 'changes' }] });
  t.same((await ask('/readyz', { ...PROXY, authorization: 'Bearer wrong' })).json, { status: 'ready' });
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
