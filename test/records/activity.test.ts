import t from 'tap';
import { openDatabase } from '../../src/db/database.ts';
import {
  Activity,
  addUp,
  busiestPlugins,
  busiestTriggers,
  countFailed,
  quantile,
  readActivity,
  removeOldActivity,
} from '../../src/records/activity.ts';
import { makeDatabase } from '../support/database.ts';
import { startTestService } from '../support/service.ts';
import { okPlugin, watPlugin } from '../support/wat.ts';

const LONG_AGO = new Date(0);

async function database(t: { teardown(fn: () => unknown): void }) {
  const made = await makeDatabase();
  const db = openDatabase(made.url, 4, () => {});
  t.teardown(async () => {
    await db.close();
    await made.drop();
  });
  return db;
}

t.test(
  'what several processes count is added up by plugin and trigger, in steps of a minute, a quarter of an hour and an hour',
  async t => {
    const db = await database(t);
    const [one, two] = [new Activity(db), new Activity(db)];
    for (let k = 0; k < 90; k++) one.add('a', 'run', { kind: 'ok', status: 200, queueWaitMs: 1, runMs: 3 });
    for (let k = 0; k < 10; k++) two.add('a', 'other', { kind: 'trapped', status: 502, queueWaitMs: 0, runMs: 180 });
    two.add('b', 'run', { kind: 'ok', status: 504, queueWaitMs: 4000, runMs: 5000 });
    two.add('', '', { kind: 'ok', status: 200, queueWaitMs: 0, runMs: 0.1 });
    // At once, as two hosts write.
    await Promise.all([one.flush(), two.flush()]);
    await one.flush();
    for (const step of [60, 900, 3600] as const) {
      // The clock may pass a full minute between two writes.
      const a = addUp(await readActivity(db, { plugin: 'a' }, step, LONG_AGO));
      t.match(a, { requests: 100, failed: 10, runMs: 90 * 3 + 10 * 180 });
      const all = addUp(await readActivity(db, { plugin: null }, step, LONG_AGO));
      t.match(all, { requests: 102, failed: 11 });
      t.same(
        (await busiestPlugins(db, step, LONG_AGO, 10)).map(({ plugin, sum }) => [plugin, sum.requests, sum.failed]),
        [
          ['a', 100, 10],
          ['b', 1, 1],
        ],
      );
      const one = addUp(await readActivity(db, { plugin: 'a', trigger: 'other' }, step, LONG_AGO));
      t.match(one, { requests: 10, failed: 10 });
      t.same(
        (await busiestTriggers(db, 'a', step, LONG_AGO, 10)).map(({ sum, trigger }) => [
          trigger,
          sum.requests,
          sum.failed,
        ]),
        [
          ['run', 90, 0],
          ['other', 10, 10],
        ],
      );
      const [busiest] = await busiestPlugins(db, step, LONG_AGO, 1);
      t.same(busiest?.sum.taken, a.taken);
      const [p50, p99] = [quantile(a.taken, 0.5) ?? 0, quantile(a.taken, 0.99) ?? 0];
      t.ok(p50 > 3 && p50 <= 5, `half took ${p50} ms: the wait counts`);
      t.ok(p99 > 150 && p99 <= 200, `the slowest took ${p99} ms`);
    }
    t.same([...(await countFailed(db, ['a', 'b', 'c'], LONG_AGO))].sort(), [
      ['a', 10],
      ['b', 1],
    ]);
  },
);

t.test('names that callers choose do not fill the table, and none is missing in the sum of the plugin', async t => {
  const db = await database(t);
  const activity = new Activity(db);
  for (let k = 0; k < 500; k++) activity.add('a', `call:${k}`, { kind: 'ok', status: 200, queueWaitMs: 0, runMs: 1 });
  activity.add('b', 'run', { kind: 'ok', status: 200, queueWaitMs: 0, runMs: 1 });
  await activity.flush();
  t.match(addUp(await readActivity(db, { plugin: 'a' }, 900, LONG_AGO)), { requests: 500 });
  t.equal((await busiestTriggers(db, 'a', 900, LONG_AGO, 1000)).length, 100);
  t.match(addUp(await readActivity(db, { plugin: 'b', trigger: 'run' }, 900, LONG_AGO)), { requests: 1 });
});

t.test('durations are interpolated within a bucket, and none are made up', async t => {
  const empty = Array.from({ length: 26 }, () => 0);
  t.equal(quantile(empty, 0.5), null);
  const tens = [...empty];
  tens[9] = 100;
  t.equal(quantile(tens, 0), 10);
  t.equal(quantile(tens, 0.5), 12.5);
  t.equal(quantile(tens, 1), 15);
  const late = [...empty];
  late[25] = 1;
  t.equal(quantile(late, 0.5), 5000, 'what took longer than every bound took at least that long');
});

t.test(
  'numbers that are over are removed: minutes, quarters of an hour after a week, hours after what is configured',
  async t => {
    const db = await database(t);
    const activity = new Activity(db);
    activity.add('a', 'run', { kind: 'ok', status: 200, queueWaitMs: 0, runMs: 1 });
    await activity.flush();
    const DAY_MS = 86_400_000;
    t.equal(await removeOldActivity(db, 400 * DAY_MS), 0);
    await db.query("UPDATE trigger_activity SET at = at - interval '3 hours'");
    t.equal(await removeOldActivity(db, 400 * DAY_MS), 3, 'the minutes of the trigger, of the plugin and of all');
    await db.query("UPDATE trigger_activity SET at = at - interval '8 days'");
    t.equal(await removeOldActivity(db, 400 * DAY_MS), 3, 'the quarters of an hour');
    t.equal(await removeOldActivity(db, 9 * DAY_MS), 0);
    t.equal(await removeOldActivity(db, 8 * DAY_MS), 3, 'the hours, after what is configured');
  },
);

t.test('executions are there over the API, and the list of plugins shows failures of a day', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  await s.install(okPlugin('fine'));
  await s.install(watPlugin({ id: 'bad', handle: 'unreachable' }));
  const empty = await s.admin('GET', '/activity');
  t.match(empty.json, {
    window: '1h',
    step_seconds: 60,
    slots_max: 8,
    total: { requests: 0, p50_ms: null },
    points: [],
  });
  for (let k = 0; k < 3; k++) await s.trigger('fine/run');
  await s.trigger('bad/run');
  for (const [window, step] of [
    ['15m', 60],
    ['1h', 60],
    ['24h', 900],
    ['7d', 900],
    ['30d', 3600],
  ] as const) {
    const all = (await s.admin('GET', `/activity?window=${window}`)).json;
    t.match(all, { window, step_seconds: step, total: { requests: 4, failed: 1 } });
    t.match(all.plugins, [
      { plugin: 'fine', requests: 3, failed: 0 },
      { plugin: 'bad', requests: 1, failed: 1 },
    ]);
    t.ok((all.points as unknown[]).length >= 1);
    const one = (await s.admin('GET', `/activity?window=${window}&plugin=fine`)).json;
    t.match(one, { total: { requests: 3, failed: 0 }, plugins: [], triggers: [{ trigger: 'run', requests: 3 }] });
    const run = (await s.admin('GET', `/activity?window=${window}&plugin=fine&trigger=run`)).json;
    t.match(run, { total: { requests: 3 }, triggers: [] });
    t.ok((one.total as { p99_ms: number }).p99_ms > 0);
  }
  const list = (await s.admin('GET', '/plugins')).json;
  t.match(list.items, [
    { id: 'bad', failed_24h: 1 },
    { id: 'fine', failed_24h: 0 },
  ]);
  t.match((await s.admin('GET', '/activity?trigger=run')).json, {
    status: 422,
    errors: [{ pointer: 'query:plugin', message: 'is needed with trigger' }],
  });
  t.match((await s.admin('GET', '/activity?window=2h')).json, { status: 422, errors: [{ pointer: 'query:window' }] });
});
