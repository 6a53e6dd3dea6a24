import t from 'tap';
import { callerPlugin, callHost } from '../support/caller.ts';
import { messengerWorld } from '../support/messenger-world.ts';
import { until } from '../support/until.ts';

t.test('a call that was answered 504 sends nothing afterwards: its caller calls again', async t => {
  const { db, s, sides, telegram } = await messengerWorld(t, { BOT_EXECUTION_TIMEOUT_MS: '500' });
  const requirements = ['notify', 'events'].map(kind => ({ kind, description: 'x' }));
  await s.install(callerPlugin({ id: 'caller', requirements }));
  await sides[0]?.write('/help');
  await telegram.until(1);
  const calls = [
    ['outgoing_messages', ['notify_chat', 'TELEGRAM:11', '{"text":"the exam is off"}']],
    ['events', ['event_publish', 'grade.given', '{"n":1}']],
  ] as const;
  for (const [table, call] of calls) {
    const count = async (): Promise<number> => (await db.query(`SELECT 1 FROM ${table}`)).rows.length;
    const before = await count();
    await db.withTransaction(async client => {
      await client.query(`LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`);
      await t.rejects(callHost(s, 'caller', [[...call]]), { message: /^504 / });
    });
    const open = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND xact_start IS NOT NULL AND pid <> pg_backend_pid()
      AND query ILIKE '%${table}%'`;
    await until(async () => (await db.query(open)).rows.length === 0);
    t.equal(await count(), before, table);
    await s.admin('POST', '/plugins/caller/triggers/run/resume');
    await callHost(s, 'caller', [[...call]]);
    t.equal(await count(), before + 1, `${table}: in time it is done`);
  }
});
