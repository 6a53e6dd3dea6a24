import t from 'tap';
import { openDatabase } from '../../src/db/database.ts';
import { addUserToken } from '../../src/identity/user-tokens.ts';
import { addUser } from '../../src/identity/users.ts';
import { makeDatabase } from '../support/database.ts';
import { buildExample } from '../support/sdk.ts';
import { startTestService } from '../support/service.ts';
import { databaseWay } from '../support/store-way.ts';

t.test(
  'while the database is unavailable public triggers answer, other requests get 503, and it recovers by itself',
  async t => {
    const { drop, url } = await makeDatabase();
    const way = await databaseWay(url);
    const s = await startTestService({ BOT_DATABASE_URL: way.url });
    const db = openDatabase(url, 1, () => {});
    t.teardown(async () => {
      way.mend();
      await db.close();
      await s.stop();
      way.close();
      await drop();
    });
    await s.install(await buildExample('hello'));
    await s.admin('PUT', '/plugins/hello/triggers/greet_name/settings', { allow_user_session: true });
    const user = await addUser(db, { displayName: 'Ada' });
    const token = async (): Promise<{ headers: Record<string, string> }> => {
      const { text } = await addUserToken(db, 'pht_', { userId: user.id, name: 'n', expiresAt: null });
      return { headers: { authorization: `Bearer ${text}` } };
    };
    const [known, fresh] = [await token(), await token()];
    t.equal((await s.trigger('hello/greet/ada', known)).status, 200);

    way.cut();
    t.equal((await s.trigger('hello/greet')).status, 200, 'a public trigger needs no database');
    t.equal((await s.trigger('hello/greet/ada', known)).status, 200, 'who was known a moment ago is known');
    const unknown = await s.trigger('hello/greet/ada', fresh);
    t.match(unknown.json, { status: 503, code: 'unavailable' });
    t.ok(unknown.headers.get('retry-after'));
    t.match((await s.admin('GET', '/plugins')).json, { status: 503, code: 'unavailable' });
    const health = async (): Promise<number[]> =>
      await Promise.all(['/healthz', '/readyz'].map(async p => (await fetch(s.base + p)).status));
    t.same(await health(), [200, 503], 'alive, and not ready');
    const behindProxy = await fetch(`${s.base}/readyz`, {
      headers: { 'x-forwarded-for': '203.0.113.9', ...known.headers },
    });
    t.match(await behindProxy.json(), {
      status: 'unavailable',
      check: 'database',
      reason: 'the database does not answer',
    });

    way.mend();
    let status = 0;
    for (let k = 0; k < 200 && status !== 200; k++) {
      await new Promise(resolve => setTimeout(resolve, 50));
      status = (await s.trigger('hello/greet/ada', fresh)).status;
    }
    t.equal(status, 200);
    t.same(await health(), [200, 200]);
  },
);
