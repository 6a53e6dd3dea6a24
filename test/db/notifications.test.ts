import t from 'tap';
import { openDatabase } from '../../src/db/database.ts';
import { NotificationListener } from '../../src/db/notifications.ts';
import { makeDatabase } from '../support/database.ts';
import { until } from '../support/until.ts';

/** Changes of other hosts (docs/ARCHITECTURE.md "How a change reaches other hosts"). */

t.test('a change that is heard and not applied in time is none that counts: all is read again', async t => {
  const database = await makeDatabase();
  const db = openDatabase(database.url, 1, () => {});
  const listener = new NotificationListener();
  t.teardown(async () => {
    await listener.close();
    await db.close();
    await database.drop();
  });
  const readings: number[] = [];
  const readAgain = Promise.withResolvers<void>();
  const wasCurrent: boolean[] = [];
  await listener.start({
    url: database.url,
    channels: ['changed'],
    // The statement that reads what was changed hangs.
    apply: () => new Promise(() => {}),
    async readAll() {
      readings.push(performance.now());
      if (readings.length === 2) readAgain.resolve();
    },
    onGap: () => void wasCurrent.push(listener.isCurrent()),
    log: { info() {}, warn() {} },
  });
  t.ok(listener.isCurrent());
  await db.query("SELECT pg_notify('changed', '')");
  const late = new Promise<string>(resolve => setTimeout(resolve, 60_000, 'never').unref());
  t.equal(await Promise.race([readAgain.promise.then(() => 'again'), late]), 'again', 'all is read');
  t.same(wasCurrent, [false, false], 'not current when the connection is given up, nor when there is another one');
  await until(() => listener.isCurrent());
});
