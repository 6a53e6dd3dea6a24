import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { openDatabase } from '../../src/db/database.ts';
import { CHANGES_STALE_MS } from '../../src/db/notifications.ts';
import { addUserToken } from '../../src/identity/user-tokens.ts';
import { addUser } from '../../src/identity/users.ts';
import { buildExample } from '../support/sdk.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { signalBackend } from '../support/signals.ts';
import { databaseWay } from '../support/store-way.ts';

type Asked = { sentAt: number; status: number };

/** Asks again and again until `until` holds of an answer. */
async function ask(of: () => Promise<number>, until: (status: number) => boolean): Promise<Asked[]> {
  const all: Asked[] = [];
  for (const end = performance.now() + 60_000; performance.now() < end; ) {
    const sentAt = performance.now();
    const status = await of();
    all.push({ sentAt, status });
    if (until(status)) return all;
    await sleep(50);
  }
  throw new Error(`it did not come; last ${all.at(-1)?.status}`);
}

t.test('a host that cannot hear changes refuses what they may have revoked, and reads everything again', async t => {
  const hello = await buildExample('hello');
  const one = await startTestService();
  t.teardown(() => one.stop());
  const db = openDatabase(one.databaseUrl, 1, () => {});
  const way = await databaseWay(one.databaseUrl);
  await one.install(hello);
  const protect = (trigger: string, body: object) =>
    one.admin('PUT', `/plugins/hello/triggers/${trigger}/settings`, body);
  await protect('greet_name', { allow_user_session: true });
  const listeners = async (): Promise<number[]> => {
    const { rows } = await db.query<{ pid: number }>(
      "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'plugin-host listener'",
    );
    return rows.map(r => r.pid);
  };
  const before = await listeners();
  const two: TestService = await startTestService({ BOT_DATABASE_URL: way.url }, one);
  t.teardown(async () => {
    await db.close();
    way.mend();
    await two.stop();
    way.close();
  });
  const user = await addUser(db, { displayName: 'Ada' });
  const { text } = await addUserToken(db, 'pht_', { userId: user.id, name: 'n', expiresAt: null });
  const greet = async (s: TestService): Promise<number> =>
    (await s.trigger('hello/greet/ada', { headers: { authorization: `Bearer ${text}` } })).status;
  const ready = async (): Promise<number> => (await fetch(`${two.base}/readyz`)).status;
  const setEnabled = async (enabled: boolean): Promise<number> => {
    const answer = await one.admin('POST', `/plugins/hello/${enabled ? 'enable' : 'disable'}`);
    t.equal(answer.status, 200);
    return performance.now();
  };
  const lateOf = (asked: readonly Asked[], at: number): Asked[] =>
    asked.filter(a => a.status === 200 && a.sentAt > at + CHANGES_STALE_MS);
  t.equal(await greet(two), 200);

  await t.test('its backend was stopped, so that the connection is dead without a close', async t => {
    const own = (await listeners()).filter(pid => !before.includes(pid));
    t.equal(own.length, 1);
    const [pid] = own;
    const database = new URL(one.databaseUrl).pathname.slice(1);
    signalBackend(pid, database, 'SIGSTOP');
    t.teardown(() => signalBackend(pid, database, 'SIGCONT'));
    const at = await setEnabled(false);
    const asked = await ask(
      () => greet(two),
      status => status === 404,
    );
    t.same(lateOf(asked, at), [], 'what was disabled is not served more than five seconds later');
    await ask(ready, status => status === 200);
    await setEnabled(true);
    await ask(
      () => greet(two),
      status => status === 200,
    );
  });

  await t.test('no packet passes between it and the database, and nothing is closed', async t => {
    way.freeze();
    const at = await setEnabled(false);
    const asked = await ask(
      () => greet(two),
      status => status === 503,
    );
    t.same(lateOf(asked, at), []);
    const refused = await two.trigger('hello/greet/ada', { headers: { authorization: `Bearer ${text}` } });
    t.match(refused, { status: 503, json: { code: 'unavailable', detail: /cannot hear changes/ } });
    t.ok(refused.headers.get('retry-after'));
    t.match(await two.admin('GET', '/plugins'), { status: 503, json: { detail: /cannot hear changes/ } });
    t.match(await two.trigger('hello/greet'), { status: 200 }, 'public triggers go on');
    const readyz = await fetch(`${two.base}/readyz`);
    t.match(
      { status: readyz.status, body: await readyz.json() },
      {
        status: 503,
        body: { status: 'unavailable', check: 'database', reason: /^the check of the database had no answer/ },
      },
    );
    t.equal((await fetch(`${two.base}/healthz`)).status, 200);

    way.mend();
    await ask(ready, status => status === 200);
    t.equal(await greet(two), 404, 'ready again, it knows what was changed meanwhile');
    await setEnabled(true);
    await ask(
      () => greet(two),
      status => status === 200,
    );
  });
});
