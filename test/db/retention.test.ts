import t from 'tap';
import { removeOldAudit } from '../../src/audit/audit-log.ts';
import { LIMITS } from '../../src/base/limits.ts';
import { loadConfig } from '../../src/config/load.ts';
import { openDatabase } from '../../src/db/database.ts';
import { EMBEDDED_ROLE, grantServiceRole } from '../../src/db/service-role.ts';
import { removeOldEvents } from '../../src/events/publish.ts';
import { removeOldMessages } from '../../src/messaging/outgoing.ts';
import { removeOldEntries } from '../../src/outbox/stream.ts';
import { ExecutionRecords } from '../../src/records/execution-records.ts';
import { beginImport, endImport, removeOldImports } from '../../src/university/import-log.ts';
import { makeDatabase } from '../support/database.ts';

/** How long what is over is kept (docs/operating.md "What is kept how long"). */

const database = await makeDatabase();
const owner = openDatabase(database.url, 1, () => {});
await grantServiceRole(owner, EMBEDDED_ROLE);
const db = openDatabase(database.serviceUrl, 2, () => {});
t.teardown(async () => {
  await db.close();
  await owner.close();
  await database.drop();
});

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const numbers = async (statement: string): Promise<number[]> =>
  (await db.query<{ n: number }>(statement)).rows.map(r => Number(r.n));

t.test('records of executions go after their time, batch by batch', async t => {
  await db.query(
    `INSERT INTO execution_records (request_id, plugin_id, version, trigger_name, principal, outcome, status, started_at, queue_wait_ms,
       run_ms, host_calls, peak_pages, failure, log)
     SELECT 'r' || k, 'p', '1', 't', 'public', 'ok', 200, now() - (200 + k) * interval '1 hour', 0, 0, 0, 0, '', '[]' FROM generate_series(1, 6000) k`,
  );
  const records = new ExecutionRecords(db, () => {});
  t.match(await records.removeOld(250 * HOUR), { rows: 6000 - 49 });
  t.same(await numbers('SELECT count(*) AS n FROM execution_records'), [49]);
  t.match(await records.removeOld(200 * HOUR), { rows: 49 });
});

t.test('records lie in parts of a week, which are dropped when they are over', async t => {
  const records = new ExecutionRecords(db, () => {});
  const add = (days: number): Promise<unknown> =>
    db.query(
      `INSERT INTO execution_records (request_id, plugin_id, version, trigger_name, principal, outcome, status, started_at,
         queue_wait_ms, run_ms, host_calls, peak_pages, failure, log)
       VALUES ('r', 'p', '1', 't', 'public', 'ok', 200, now() + $1 * interval '1 day', 0, 0, 0, 0, '', '[]')`,
      [days],
    );
  const parts = async (): Promise<string[]> =>
    (
      await db.query<{ part: string }>(
        `SELECT c.relname || ' ' || (SELECT count(*) FROM execution_records e WHERE e.tableoid = c.oid) AS part
         FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid
         WHERE inhparent = 'execution_records'::regclass AND relkind = 'r' ORDER BY 1`,
      )
    ).rows.map(r => r.part.replace('execution_records_', ''));
  const made = (await parts()).filter(p => !p.startsWith('other'));
  t.equal(made.length, 2, 'this week and the next');
  t.match(made[0], /^\d{8}_\d{8} 0$/);
  for (const days of [0, 6, 400, -400]) await add(days);
  t.match(
    (await parts()).find(p => p.startsWith('other')),
    'other 2',
    'of a wrong clock',
  );
  t.match(await records.removeOld(2 * DAY), { parts: 0, rows: 1 });
  // As if they had been made three weeks ago.
  const [first = ''] = made[0]?.split(' ') ?? [];
  await owner.query(`ALTER TABLE execution_records_${first} RENAME TO execution_records_20200106_20200113`);
  t.match(await records.removeOld(2 * DAY), { parts: 1, rows: 0 });
  t.notOk((await parts()).some(p => p.startsWith('2020')));
  t.same(await Promise.all([1, 2, 3].map(() => records.removeOld(2 * DAY))), Array(3).fill({ parts: 0, rows: 0 }));
});

t.test('messages go after they have ended, and those that wait stay', async t => {
  await db.query(
    `INSERT INTO outgoing_messages (channel, chat_id, source, message, request_id, urgent, state, created_at, ended_at)
     VALUES ('VK', '1', 'host', '{}', 'r', false, 'sent', now() - interval '9 days', now() - interval '9 days'),
       ('VK', '2', 'host', '{}', 'r', false, 'queued', now() - interval '9 days', NULL),
       ('VK', '3', 'host', '{}', 'r', false, 'failed', now() - interval '9 days', now() - interval '1 day')`,
  );
  t.equal(await removeOldMessages(db, 2 * DAY), 1);
  t.same(await numbers('SELECT chat_id AS n FROM outgoing_messages ORDER BY 1'), [2, 3]);
});

t.test('events stay while a delivery waits', async t => {
  await db.query(
    `INSERT INTO events (plugin_id, type, data, request_id, at)
     SELECT 'p', 't', '{}', 'r', now() - interval '9 days' FROM generate_series(1, 2)`,
  );
  const events = await numbers('SELECT id AS n FROM events ORDER BY id');
  t.equal(events.length, 2);
  const [subscription] = await numbers(
    "INSERT INTO event_subscriptions (name, url, secret, types, plugins) VALUES ('s', 'https://x.example', '', '{}', '{}') RETURNING id AS n",
  );
  await db.query('INSERT INTO event_deliveries (subscription_id, event_id, plugin_id) VALUES ($1, $2, $3)', [
    subscription,
    events[0],
    'p',
  ]);
  t.equal(await removeOldEvents(db, 2 * DAY), 1);
  t.same(await numbers('SELECT id AS n FROM events'), [events[0]]);
});

t.test('the log of imports goes after its time, and the last pull stays', async t => {
  await db.query(
    `INSERT INTO university_imports (kind, state, started_by, started_at, finished_at)
     SELECT kind, 'succeeded', 'schedule', now() - interval '9 days', now() - interval '9 days' FROM unnest(ARRAY['pull', 'batch', 'pull']) AS kind`,
  );
  t.equal(await removeOldImports(db, 2 * DAY), 2);
  t.same(await numbers('SELECT id AS n FROM university_imports'), [3]);
});

t.test('of more imports than are kept the oldest go, and the last pull stays', async t => {
  await db.query('DELETE FROM university_imports');
  const pull = await beginImport(db, 'pull', 'schedule', []);
  await endImport(db, pull, 'succeeded', null);
  await db.query(
    `INSERT INTO university_imports (kind, state, started_by, finished_at)
     SELECT 'batch', 'succeeded', 'key', now() FROM generate_series(1, $1)`,
    [LIMITS.importsKept],
  );
  const batch = await beginImport(db, 'batch', 'key', []);
  await endImport(db, batch, 'succeeded', null);
  const left = await numbers('SELECT id AS n FROM university_imports ORDER BY id');
  t.equal(left.length, LIMITS.importsKept + 1);
  t.same([left[0], left.at(-1)], [pull, batch]);
});

t.test('entries of the outbox that are long done go, and the table is not read once for each', async t => {
  await owner.query(
    `INSERT INTO authz_outbox (operation, payload, keys, processed_at)
     SELECT 'TOUCH', '{}', '{}', now() - interval '9 days' FROM generate_series(1, 3000)`,
  );
  const scans = async (): Promise<number> => {
    // Of this one connection, which otherwise writes down later what it has counted.
    await owner.query('SELECT pg_stat_force_next_flush()');
    const { rows } = await owner.query<{ n: number }>(
      "SELECT seq_scan::int AS n FROM pg_stat_user_tables WHERE relname = 'authz_outbox'",
    );
    return rows[0]?.n ?? 0;
  };
  const before = await scans();
  await removeOldEntries(owner);
  t.same(await numbers('SELECT count(*)::int AS n FROM authz_outbox'), [0]);
  t.ok((await scans()) - before < 100, 'what a removed entry was requeued as is found by an index');
});

t.test('the audit log keeps 90 days whatever it is asked for, and only its function removes', async t => {
  await owner.query(
    `INSERT INTO audit_log (at, actor_kind, actor_name, action, object_type, object_id, request_id, address)
     SELECT now() - d * interval '1 day', 'setup', 'x', 'a', 'o', d::text, '', '' FROM unnest(ARRAY[1, 89, 91, 200]) AS d`,
  );
  const left = (): Promise<number[]> => numbers('SELECT object_id::int AS n FROM audit_log ORDER BY 1');
  t.equal(await removeOldAudit(db, 150 * DAY), 1);
  t.same(await left(), [1, 89, 91]);
  t.equal(await removeOldAudit(db, DAY), 1, 'less than 90 days counts as 90');
  t.same(await left(), [1, 89]);
  await t.rejects(db.query('DELETE FROM audit_log'), /permission denied/);
  await t.rejects(
    db.withTransaction(async client => {
      await client.query("SELECT set_config('plugin_host.audit_retention', 'on', true)");
      await client.query('DELETE FROM audit_log');
    }),
    /permission denied/,
  );
  await t.rejects(owner.query('DELETE FROM audit_log'), /audit_log is append-only/);
  await t.rejects(owner.query("UPDATE audit_log SET action = 'b'"), /audit_log is append-only/);
});

t.test('the configuration says how long, and refuses less for the audit log', async t => {
  const { values } = loadConfig(null, {});
  t.match(values, {
    'retention.executions': '14d',
    'retention.messages': '30d',
    'retention.events': '30d',
    'retention.imports': '365d',
    'retention.audit': '',
  });
  t.throws(() => loadConfig(null, { BOT_RETENTION_AUDIT: '30d' }), /retention\.audit.*90d/);
  t.throws(() => loadConfig(null, { BOT_RETENTION_EVENTS: '5m' }), /retention\.events.*from 1h to 3650d/);
});
