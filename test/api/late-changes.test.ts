import t from 'tap';
import { startTestService } from '../support/service.ts';
import { databaseWay } from '../support/store-way.ts';

/** A change of which this host cannot tell in time that it acts on it (docs/operating.md "PostgreSQL"). */
t.test('what is stored but was not heard to come back is 202, not plain success', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  const way = await databaseWay(s.databaseUrl);
  const behind = await startTestService({ BOT_DATABASE_URL: way.url }, s);
  t.teardown(async () => {
    await behind.stop();
    way.close();
  });
  t.equal((await behind.admin('POST', '/users', { display_name: 'In time' })).status, 201);
  way.lateMs = 1300;
  const late = await behind.admin('POST', '/users', { display_name: 'Late' });
  way.lateMs = 0;
  t.match(late, { status: 202, json: { display_name: 'Late' } }, late.text);
  t.equal((await s.admin('GET', `/users/${late.json.id}`)).status, 200, 'it is stored');
  t.equal((await behind.admin('DELETE', '/plugins/none')).status, 404, 'a refusal is none of these');
});
