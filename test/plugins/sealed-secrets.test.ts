import t from 'tap';
import { openDatabase } from '../../src/db/database.ts';
import { callerPlugin, callHost } from '../support/caller.ts';
import { startTestService } from '../support/service.ts';
import { type Subscriber, startSubscriber } from '../support/subscriber.ts';
import { until } from '../support/until.ts';
import { okPlugin } from '../support/wat.ts';

t.test('an encrypted value can be decrypted only in its own row', async t => {
  const s = await startTestService({ BOT_EVENTS_PRIVATE_RANGES: '127.0.0.1' });
  t.teardown(() => s.stop());
  const field = { type: 'string', name: 'api_key', description: 'Key', required: true, sensitive: true };
  await s.install(okPlugin('keeper', { requirements: [{ kind: 'kv', config: [field] }] }), { api_key: 'hunter2' });
  await s.install(okPlugin('plain'));
  const [right, moved] = [await startSubscriber(t), await startSubscriber(t)];
  const subscribe = async (to: Subscriber): Promise<number> => {
    const { json } = await s.admin('POST', '/events/subscriptions', { name: 'x', url: to.url });
    to.secret = String(json.secret);
    return Number(json.id);
  };
  const [a, b] = [await subscribe(right), await subscribe(moved)];
  const db = openDatabase(s.databaseUrl, 1, () => {});
  t.teardown(() => db.close());
  await db.query(
    'UPDATE event_subscriptions SET secret = (SELECT secret FROM event_subscriptions WHERE id = $1) WHERE id = $2',
    [a, b],
  );
  await s.install(callerPlugin({ id: 'teller', requirements: [{ kind: 'events' }] }));
  await callHost(s, 'teller', [['event_publish', 'told', '{}']]);
  await right.until(1);
  const off = async () => (await s.admin('GET', `/events/subscriptions/${b}`)).json;
  await until(async () => (await off()).enabled !== true);
  t.match(await off(), {
    disabled_why: /cannot be decrypted: .*copied from another row.*give the subscription a new secret/,
  });
  t.equal(moved.attempts, 0, 'nothing is signed with the secret of another address');
  const mended = { new_secret: true, enabled: true };
  const answer = await s.admin('PATCH', `/events/subscriptions/${b}`, mended);
  t.equal(answer.status, 200);
  moved.secret = String(answer.json.secret);
  await moved.until(1);

  const versionOf = `SELECT installed_version_id FROM plugins WHERE id =`;
  await db.query(
    `UPDATE plugin_versions SET secrets = (SELECT secrets FROM plugin_versions WHERE id = (${versionOf} 'keeper'))
     WHERE id = (${versionOf} 'plain')`,
  );
  const other = await startTestService({ BOT_DATABASE_URL: s.databaseUrl }, s);
  t.teardown(() => other.stop());
  t.equal((await other.trigger('keeper/run')).status, 200);
  t.equal((await other.trigger('plain/run')).status, 404, 'a plugin with the secrets of another one does not run');
});
