import t from 'tap';
import { openDatabase } from '../../src/db/database.ts';
import { listLines } from '../../src/events/deliveries.ts';
import { type JobQueue, Jobs } from '../../src/jobs.ts';
import { listDue } from '../../src/messaging/outgoing.ts';
import { listLeftChats } from '../../src/messaging/updates.ts';
import { Deliverer } from '../../src/outbox/deliver.ts';
import { Quarantine } from '../../src/records/quarantine.ts';
import { beginImport, endInterrupted } from '../../src/university/import-log.ts';
import { makeDatabase } from '../support/database.ts';
import { startGraphStore } from '../support/graph.ts';
import { append, bothGraphs, outboxDatabase, remove, schema, touch } from '../support/outbox.ts';
import { shiftTimes } from '../support/shift-times.ts';

const member = (user: string): string => `study_group:g1#member@user:${user}`;
const DAY = 86_400;

for (const [name, seconds] of [
  ['set back', DAY],
  ['set forward', -DAY],
] as const) {
  t.test(`a clock ${name} by a day holds up no revocation, whatever waits, pauses or has just delivered`, async t => {
    const { store } = await startGraphStore(t);
    const { db } = await outboxDatabase(t);
    const before = new Deliverer(db, schema);
    await before.prepare(store);
    await append(db, touch(member('a'), member('b')));
    await before.cycle(store);
    await append(db, remove(member('a')));
    await append(db, remove(member('b')));
    await db.query(
      `UPDATE authz_stream SET failures = 8, worked_at = clock_timestamp(), paused_until = clock_timestamp() + authz_backoff(8)`,
    );
    await db.query(
      `UPDATE authz_outbox SET attempts = 9, locked_until = clock_timestamp() + authz_backoff(9)
       WHERE processed_at IS NULL AND 'user:b' = ANY (keys)`,
    );
    t.same(await new Deliverer(db, schema).cycle(store), { kind: 'not_our_turn' }, 'without the step it waits');
    await shiftTimes(db, ['public'], seconds);
    const after = new Deliverer(db, schema);
    await after.prepare(store);
    t.match(await after.cycle(store), { kind: 'delivered', entries: 2 });
    t.same((await bothGraphs(db, store)).found, []);
  });

  t.test(`messages, events, imports, updates and suspensions survive a clock ${name} by a day`, async t => {
    const { drop, url } = await makeDatabase();
    const db = openDatabase(url, 2, () => {});
    t.teardown(async () => {
      await db.close();
      await drop();
    });
    await db.query(
      `INSERT INTO outgoing_messages (channel, chat_id, source, message, request_id, urgent, next_at)
       VALUES ('TELEGRAM', '1', 'host', '{"text": "x", "files": []}', 'r', true, now() + interval '50 minutes')`,
    );
    await db.query(
      `WITH s AS (INSERT INTO event_subscriptions (name, url, secret, types, plugins) VALUES ('s', 'http://x', '', '{}', '{}') RETURNING id),
         e AS (INSERT INTO events (plugin_id, type, data, request_id) VALUES ('p', 't', '1', 'r') RETURNING id)
       INSERT INTO event_deliveries (subscription_id, event_id, plugin_id, next_at) SELECT s.id, e.id, 'p', now() + interval '4 minutes' FROM s, e`,
    );
    await db.query(
      "INSERT INTO messenger_updates (channel, update_id, chat_id, payload) VALUES ('VK', '1', '7', '{}')",
    );
    await beginImport(db, 'pull', 'x', ['person']);
    const nowMs = Date.now();
    await db.query("INSERT INTO plugins (id) VALUES ('p')");
    await db.query(
      `INSERT INTO plugin_quarantine (plugin_id, trigger_name, since, until, level, reason, details, cause)
       VALUES ('p', 'run', $1, $2, 4, 'trapped', '{"failure": "x", "version": null, "crashes": []}', 'trapped: x')`,
      [new Date(nowMs), new Date(nowMs + 600_000)],
    );
    const state = async () => {
      const quarantine = new Quarantine(
        db,
        () => {},
        () => {},
        () => {},
      );
      await quarantine.load();
      return {
        messages: (await listDue(db, 'TELEGRAM', [], 10)).length,
        events: (await listLines(db)).filter(l => l.dueMs <= 0).length,
        chats: (await listLeftChats(db, 60_000)).length,
        suspended: quarantine.find({ id: 'p', versionId: 1 }, 'run', 'user:1', Date.now()) !== undefined,
      };
    };
    t.same(await state(), { messages: 0, events: 0, chats: 0, suspended: true });
    await shiftTimes(db, ['public'], seconds);
    t.same(await state(), { messages: 1, events: 1, chats: 1, suspended: false });
    t.equal(await endInterrupted(db, 'pull', 0), 1);
  });

  t.test(`jobs come round and are tried again after a clock ${name} by a day`, async t => {
    const { drop, url } = await makeDatabase();
    const db = openDatabase(url, 4, () => {});
    const waiting: Array<() => void> = [];
    const runs: string[] = [];
    const comes = async (what: string): Promise<void> => {
      while (!runs.includes(what)) await new Promise<void>(resolve => waiting.push(resolve));
    };
    let fails = true;
    const queue = (of: Pick<JobQueue<object>, 'name'> & Partial<JobQueue<object>>): JobQueue<object> => ({
      parse: () => ({}),
      gaveUp: () => Promise.resolve(),
      run: async () => {
        runs.push(of.name);
        for (const resolve of waiting.splice(0)) resolve();
        if (of.name === 'retried' && fails) throw new Error('not yet');
      },
      ...{ attemptsMax: 5, firstDelaySeconds: 100, delaySecondsMax: 200, seconds: 60, pollSeconds: 0.5 },
      ...of,
    });
    const start = (): Jobs => {
      const jobs = new Jobs(db, { warn: (fields, text) => t.comment(`${text} ${JSON.stringify(fields)}`) });
      jobs.start([queue({ name: 'retried' }), queue({ name: 'round', everySeconds: 3600 })]);
      return jobs;
    };
    let jobs = start();
    t.teardown(async () => {
      await jobs.close();
      await db.close();
      await drop();
    });
    await db.withTransaction(client => jobs.enqueue(client, 'retried', {}));
    await Promise.all([comes('retried'), comes('round')]);
    await jobs.close();
    await shiftTimes(db, ['pgboss'], seconds);
    runs.length = 0;
    fails = false;
    jobs = start();
    await Promise.all([comes('retried'), comes('round')]);
    t.same([...new Set(runs)].sort(), ['retried', 'round']);
    const { rows } = await db.query("SELECT 1 FROM pgboss.version WHERE cron_on > now() + interval '1 minute'");
    t.same(rows, [], 'schedules go on');
  });
}
