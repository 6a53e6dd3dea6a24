import { openDatabase } from '../src/db/database.ts';
import { admin } from './host.ts';
import { add } from './report.ts';

/** Rows of each list that grows without end. */
const ROWS = 1_000_000;
const PLUGINS = 10_000;
const PEOPLE = 30_000;
const TIMES = 3;

/** What fills the lists; `$1` is how many rows. */
const FILLINGS: ReadonlyArray<[what: string, rows: number, sql: string]> = [
  ['plugins', PLUGINS, "INSERT INTO plugins (id) SELECT 'listed-' || n FROM generate_series(1, $1::int) n"],
  [
    'people',
    PEOPLE,
    `INSERT INTO global_users (external_id, display_name)
     SELECT 'listed-' || n, 'Person ' || md5(n::text) FROM generate_series(1, $1::int) n`,
  ],
  [
    'executions',
    ROWS,
    `INSERT INTO execution_records (request_id, plugin_id, version, trigger_name, principal, outcome, status, started_at,
       queue_wait_ms, run_ms, host_calls, peak_pages, failure, log)
     SELECT 'r' || n, 'listed-' || n % 1000 + 1, '1.0.0', 'trigger-' || n % 10, 'user:' || n % 30000 + 1,
       CASE WHEN n % 1000 = 0 THEN 'trapped' ELSE 'ok' END, 200, now() - n * interval '1 s', 0.1, 1, 2, 3, '',
       '[{"level":1,"text":"a line of the log"}]'
     FROM generate_series($1::int, 1, -1) n`,
  ],
  [
    'activity',
    ROWS,
    `INSERT INTO trigger_activity (plugin_id, trigger_name, step, at, requests, failed, run_ms, taken)
     SELECT 'listed-' || n % 1000, '', s.step, to_timestamp(floor(extract(epoch FROM now()) / s.step) * s.step) - k * make_interval(secs => s.step),
       10, 1, 12, array_fill(1, ARRAY[26])
     FROM generate_series(0, $1::int - 1) n,
       LATERAL (SELECT CASE WHEN n / 1000 % 5 = 0 THEN 3600 ELSE 900 END, CASE WHEN n / 1000 % 5 = 0 THEN n / 5000 ELSE n / 5000 * 4 + n / 1000 % 5 - 1 END) s (step, k)`,
  ],
  [
    'relationships',
    ROWS,
    `INSERT INTO authz_tuples (resource_type, resource_id, relation, subject_type, subject_id, origin, outbox_id)
     SELECT 'study_group', 'g' || n / 30, 'member', 'user', 'listed-' || n % 30000 + 1, 'import', 1
     FROM generate_series(1, $1::int) n`,
  ],
  [
    'outbox',
    ROWS,
    `INSERT INTO authz_outbox (operation, payload, keys, processed_at)
     SELECT 'TOUCH', '{"tuples":[]}', ARRAY['study_group:g' || n], now() FROM generate_series(1, $1::int) n`,
  ],
  [
    'messages',
    ROWS,
    `INSERT INTO outgoing_messages (channel, chat_id, source, message, request_id, urgent, state, ended_at)
     SELECT 'TELEGRAM', n::text, 'notify_chat', '{"text":"a"}', 'r' || n, false, CASE WHEN n % 1000 = 0 THEN 'failed' ELSE 'sent' END, now() - n * interval '1 s'
     FROM generate_series($1::int, 1, -1) n`,
  ],
  [
    'events',
    ROWS,
    `INSERT INTO events (plugin_id, type, data, request_id)
     SELECT 'listed-' || n % 1000, 'type.' || n % 10, '{"n":1}', 'r' || n FROM generate_series(1, $1::int) n`,
  ],
  [
    'files',
    ROWS,
    `INSERT INTO files (id, plugin_id, user_id, name, mime_type, file_type, size, state, store, completed_at, digest)
     SELECT 'listed-' || n, 'listed-' || n % 1000 + 1, n % 30000 + 1, 'a.txt', 'text/plain', 'document', 1, 'ready', 'disk', now(), 'x'
     FROM generate_series(1, $1::int) n`,
  ],
  [
    'audit log',
    ROWS,
    `INSERT INTO audit_log (actor_kind, actor_name, action, object_type, object_id, after, request_id, address)
     SELECT 'setup', 'setup', CASE WHEN n % 1000 = 0 THEN 'plugin.install' ELSE 'user.change' END, 'user', n::text, '{"a":1}', 'r' || n, '127.0.0.1'
     FROM generate_series(1, $1::int) n`,
  ],
];

/** What the pages ask: each list as it opens, and with filters that few rows match. */
const ASKED = [
  '/plugins?limit=50',
  '/plugins?limit=50&search=listed-9999',
  '/users?limit=50',
  '/users?limit=50&search=listed-29999',
  '/executions?limit=50',
  '/executions?limit=50&outcome=failed',
  '/executions?limit=50&principal=user:29999',
  '/executions?limit=50&plugin=listed-7&outcome=failed',
  '/executions?limit=50&plugin=listed-7&trigger=trigger-7',
  '/executions?limit=50&trigger=none',
  `/executions?limit=50&until=${new Date(Date.now() - 10 * 86_400_000).toISOString()}`,
  '/executions?limit=50&outcome=deadline',
  '/executions?limit=50&request_id=r999999',
  '/plugins/listed-7/executions?limit=50&outcome=failed',
  '/activity?window=7d',
  '/activity?window=7d&plugin=listed-7',
  '/attention',
  '/relationships?limit=50',
  '/relationships?limit=50&subject_type=user&subject_id=listed-29999',
  '/outbox?limit=50',
  '/outbox?limit=50&state=dead',
  '/outbox?limit=50&key=study_group:g999999',
  '/outbox?limit=50&key=user:none',
  '/messages?limit=50',
  '/messages?limit=50&state=failed',
  '/messages?limit=50&state=uncertain',
  '/messages?limit=50&channel=VK',
  '/messages?limit=50&plugin=none',
  '/messages?limit=50&request_id=r999999',
  '/events?limit=50',
  '/events?limit=50&plugin=listed-7&type=type.7',
  '/events?limit=50&type=none',
  '/files?limit=50',
  '/files?limit=50&plugin=listed-7',
  '/files?limit=50&user=29999',
  '/files?limit=50&state=pending',
  '/files?limit=1&file=listed-999999',
  '/audit?limit=50',
  '/audit?limit=50&action=plugin.install',
  '/audit?limit=50&action=host.forget',
  '/audit?limit=50&actor=29999',
  '/audit?limit=50&object_id=none',
  '/audit?limit=50&object_type=host',
  '/audit?limit=50&since=2999-01-01',
];

/** How long each list of the administration takes over many rows. */
export async function lists(port: number, databaseUrl: string): Promise<void> {
  const db = openDatabase(databaseUrl, 1, () => {});
  try {
    await db.query('SET statement_timeout = 0');
    // One transaction that changes a row of the usage a thousand times takes as long as its versions are many.
    await db.query('ALTER TABLE files DISABLE TRIGGER files_counted');
    for (const [what, rows, sql] of FILLINGS) {
      const began = performance.now();
      await db.query(sql, [rows]);
      console.log(`# ${rows} rows of ${what} in ${((performance.now() - began) / 1000).toFixed(0)} s`);
    }
    await db.query('ALTER TABLE files ENABLE TRIGGER files_counted');
    await db.query(
      `INSERT INTO file_usage (plugin_id, user_id, files, pending, bytes)
       SELECT plugin_id, u.id, count(*), 0, sum(size) FROM files, LATERAL (VALUES (-1), (user_id)) u(id) GROUP BY plugin_id, u.id`,
    );
    await db.query('VACUUM ANALYZE');
    const { rows } = await db.query<{ mb: number }>(
      "SELECT (pg_total_relation_size('trigger_activity') / 2.0 ^ 20)::float8 AS mb",
    );
    add(`${ROWS} rows of activity`, `${(rows[0]?.mb ?? 0).toFixed(0)} MB`);
  } finally {
    await db.close();
  }
  for (const path of ASKED) {
    let worst = 0;
    for (let k = 0; k < TIMES; k++) {
      const began = performance.now();
      const response = await admin(port, 'GET', path);
      const text = await response.text();
      worst = Math.max(worst, performance.now() - began);
      if (response.status !== 200) throw new Error(`${path}: ${response.status} ${text.slice(0, 300)}`);
    }
    add(`GET ${path}, slowest of ${TIMES}`, `${worst.toFixed(0)} ms`, { atMost: 1000, aim: 200, unit: 'ms' });
  }
}
