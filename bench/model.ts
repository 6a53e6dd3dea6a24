import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { startService } from '../src/app/service.ts';
import { makeLog } from '../src/base/log.ts';
import { loadConfig } from '../src/config/load.ts';
import { type Database, openDatabase } from '../src/db/database.ts';
import { sha256 } from '../src/identity/bearer-secret.ts';
import { startPostgres } from '../src/supervisor/stores/embedded-postgres.ts';
import { okPlugin } from '../test/support/wat.ts';

/**
 * A database as large as the service may get (`npm run model -- SHARE`), and what is asked of it: which table holds, which
 * index and query, what breaks first. The share is of 1,000,000 users, 100,000,000 relationships, and a month of records.
 */

const share = Number(process.argv[2] ?? 0.01);
const users = Math.round(1_000_000 * share);
const RELATIONSHIPS_PER_USER = 100;
const PLUGINS = 1000;
/** Plugins in the list of plugins; those with records are others. */
const LISTED_PLUGINS = 10_000;
/** A list of the administration pages answers within this time. */
const LIST_MS_MAX = 1000;
const executions = Math.round(100_000_000 * share);
const messages = Math.round(20_000_000 * share);
const TOKEN = 'model-setup-token';
const API_KEY = 'model-key-of-the-import';
/** A statement that is part of a request reads no more rows of a large table than a page and its index take. */
const READ_ROWS_MAX = 20_000;

const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'plugin-host-model-'));
fs.chmodSync(directory, 0o711);

/** Statements that fill tables without what the service would do for each row. */
const FILLING: ReadonlyArray<readonly [what: string, sql: string]> = [
  [
    'plugins',
    `WITH copies AS (SELECT 'q' || lpad(k::text, 5, '0') AS id FROM generate_series(1, ${LISTED_PLUGINS}) k),
       added AS (INSERT INTO plugins (id) SELECT id FROM copies RETURNING id)
     INSERT INTO plugin_versions (plugin_id, version, wasm_key, sha256, size, manifest, findings, permissions, runnable, uploaded_at)
     SELECT a.id, v.version, v.wasm_key || a.id, v.sha256, v.size, v.manifest || jsonb_build_object('id', a.id, 'name', 'Plugin ' || a.id),
       v.findings, v.permissions, v.runnable, v.uploaded_at
     FROM added a, plugin_versions v WHERE v.plugin_id = 'ok'`,
  ],
  [
    'installed',
    `UPDATE plugins p SET installed_version_id = v.id FROM plugin_versions v WHERE v.plugin_id = p.id AND p.installed_version_id IS NULL`,
  ],
  [
    'activity',
    `INSERT INTO trigger_activity (plugin_id, trigger_name, step, at, requests, failed, run_ms, taken)
     SELECT p, '', s, to_timestamp(floor(extract(epoch FROM now()) / s - n) * s), 100, 1, 500, array_fill(4, ARRAY[26])
     FROM (SELECT '' AS p UNION ALL SELECT 'p' || k FROM generate_series(1, ${PLUGINS}) k) AS named,
       (VALUES (60, 1440), (900, 672)) AS steps (s, most), generate_series(0, 1440) n WHERE n < most`,
  ],
  [
    'users',
    `INSERT INTO global_users (external_id, display_name) SELECT 's-' || k, 'Person ' || k FROM generate_series(1, ${users}) k`,
  ],
  [
    'tokens',
    `INSERT INTO user_tokens (global_user_id, name, public, secret_sha256)
     SELECT id, 'n', 'model' || id, '\\x00' FROM global_users`,
  ],
  [
    'persons',
    `INSERT INTO persons (external_id, last_name, first_name, channels, is_active, metadata)
     SELECT 's-' || k, 'Last', 'First', '[]', true, '{}' FROM generate_series(1, ${users}) k`,
  ],
  [
    'relationships',
    `INSERT INTO authz_tuples (resource_type, resource_id, relation, subject_type, subject_id, origin, outbox_id)
     SELECT 'study_group', (k * 7919 + n * 104729) % ${Math.max(200, Math.round(users / 5))}, 'member', 'user', 's-' || k, 'import', 0
     FROM generate_series(1, ${users}) k, generate_series(1, ${RELATIONSHIPS_PER_USER}) n ON CONFLICT DO NOTHING`,
  ],
  [
    'executions',
    `INSERT INTO execution_records (request_id, plugin_id, version, trigger_name, principal, outcome, status, started_at,
       queue_wait_ms, run_ms, host_calls, peak_pages, failure, log)
     SELECT 'r' || k, 'p' || k % ${PLUGINS}, '1', 't', 'user:' || 1 + k % ${users}, CASE WHEN k % 50 = 0 THEN 'trapped' ELSE 'ok' END,
       200, now() - (${executions} - k) * (1209600.0 / ${executions}) * interval '1 second', 0, 1, 0, 1, '', '[]'
     FROM generate_series(1, ${executions}) k`,
  ],
  [
    'messages',
    `INSERT INTO outgoing_messages (channel, chat_id, plugin_id, source, user_id, message, request_id, once_key, urgent, state, ended_at)
     SELECT 'TELEGRAM', k % ${users}, 'p' || k % ${PLUGINS}, 'notify_user', 1 + k % ${users}, '{"text": "x", "files": []}', 'r' || k,
       'k' || k, false, 'sent', now() - (${messages} - k) * (2592000.0 / ${messages}) * interval '1 second'
     FROM generate_series(1, ${messages}) k`,
  ],
  [
    'values',
    `INSERT INTO plugin_kv (plugin_id, key, value) SELECT 'ok', 'k' || k, '\\x0102' FROM generate_series(1, ${users * 5}) k`,
  ],
  [
    'outbox',
    `INSERT INTO authz_outbox (operation, payload, keys, processed_at)
     SELECT 'TOUCH', '{"tuples": []}', ARRAY['user:s-' || k], now() - interval '1 day' FROM generate_series(1, ${users}) k`,
  ],
  [
    'audit log',
    `INSERT INTO audit_log (actor_kind, actor_name, action, object_type, object_id, request_id, address)
     SELECT 'admin', 'a', 'plugin.install', 'plugin', 'p' || k % ${PLUGINS}, 'r', '' FROM generate_series(1, ${Math.round(users / 2)}) k`,
  ],
];

type Row = { what: string; ms: number; rows: number; tables: string };
const rows: Row[] = [];

const read = async (db: Database): Promise<Map<string, number>> => {
  await db.query('SELECT pg_stat_force_next_flush()');
  const found = await db.query<{ name: string; n: string }>(
    `SELECT relname AS name, seq_tup_read + coalesce(idx_tup_fetch, 0) AS n FROM pg_stat_user_tables WHERE schemaname = 'public'`,
  );
  return new Map(found.rows.map(r => [r.name, Number(r.n)]));
};

/** Runs something, and notes how long it took and how many rows of which tables it read. */
async function measured(db: Database, what: string, work: () => Promise<unknown>): Promise<void> {
  const before = await read(db);
  const at = performance.now();
  await work().catch((error: unknown) => console.log(String(error).slice(0, 250)));
  const ms = performance.now() - at;
  // Connections tell their numbers once a second.
  await new Promise(resolve => setTimeout(resolve, 1200));
  const after = await read(db);
  const grown = [...after].map(([name, n]) => [name, n - (before.get(name) ?? 0)] as const).filter(([, n]) => n > 100);
  const total = grown.reduce((sum, [, n]) => sum + n, 0);
  const tables = grown.toSorted((a, b) => b[1] - a[1]).map(([name, n]) => `${name} ${n}`);
  rows.push({ what, ms, rows: total, tables: tables.slice(0, 3).join(', ') });
  const row = rows.at(-1) as Row;
  const mark = row.rows > READ_ROWS_MAX ? 'MUCH ' : row.ms > LIST_MS_MAX ? 'SLOW ' : '     ';
  console.log(`${mark}${what.padEnd(46)} ${ms.toFixed(0).padStart(7)} ms  ${row.tables}`);
}

async function answer(base: string, where: string, init: RequestInit = {}, token = TOKEN): Promise<string> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const r = await fetch(`${base}${where}`, { headers, signal: AbortSignal.timeout(120_000), ...init });
  const text = await r.text();
  if (r.status >= 400) throw new Error(`${where}: ${r.status} ${text.slice(0, 300)}`);
  return text;
}

const postgres = await startPostgres({
  directory: path.join(directory, 'pg'),
  progress: () => {},
  settings: {
    shared_buffers: '1GB',
    fsync: 'off',
    synchronous_commit: 'off',
    max_wal_size: '8GB',
    maintenance_work_mem: '512MB',
  },
});
try {
  const config = loadConfig(null, {
    BOT_HTTP_PORT: '0',
    BOT_DATA_DIR: path.join(directory, 'data'),
    BOT_DATABASE_URL: postgres.url,
    BOT_ADMIN_API_KEY: API_KEY,
    // What the graph store holds is measured by itself; here it is away.
    BOT_SPICEDB_ENDPOINT: '127.0.0.1:9',
    BOT_SPICEDB_TLS: 'false',
    BOT_EXECUTION_LANES: '2',
  });
  const options = {
    config,
    log: makeLog(process.env.MODEL_LOG ?? 'silent'),
    setupToken: TOKEN,
    noteFile: null,
    suspects: [],
    pages: null,
  };
  const first = await startService(options);
  const form = new FormData();
  form.append('file', new Blob([new Uint8Array(okPlugin('ok'))]), 'p.wasm');
  const base = `http://127.0.0.1:${first.server.port}`;
  const headers = { authorization: `Bearer ${TOKEN}` };
  const uploaded = await fetch(`${base}/api/admin/plugins/upload`, { method: 'POST', headers, body: form });
  const { wasm_key } = (await uploaded.json()) as { wasm_key: string };
  const body = JSON.stringify({ wasm_key, config: {} });
  await answer(base, '/api/admin/plugins/ok/install', { method: 'POST', body });
  await first.stop(1000);

  const db = openDatabase(postgres.url, 2, () => {});
  for (const [what, sql] of FILLING) {
    const at = performance.now();
    const { rowCount } = await db.query(sql);
    console.log(`filled ${what}: ${rowCount} rows in ${((performance.now() - at) / 1000).toFixed(0)} s`);
  }
  const secret = 'x'.repeat(43);
  await db.query('UPDATE user_tokens SET secret_sha256 = $1 WHERE global_user_id = 7', [sha256(secret)]);
  await db.query('ANALYZE');
  const sizes = await db.query<{ name: string; table_mb: number; index_mb: number; rows: number }>(
    `SELECT relname AS name, (pg_table_size(oid) / 1048576)::int AS table_mb, (pg_indexes_size(oid) / 1048576)::int AS index_mb,
       reltuples::bigint::int AS rows FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
     ORDER BY pg_total_relation_size(oid) DESC LIMIT 9`,
  );
  for (const s of sizes.rows)
    console.log(`       ${s.name.padEnd(22)} ${s.rows} rows, ${s.table_mb} MB and ${s.index_mb} MB of indexes`);

  let service = first;
  await measured(db, 'start of the service', async () => {
    service = await startService(options);
  });
  const at = `http://127.0.0.1:${service.server.port}`;
  const get = (where: string) => () => answer(at, `/api/admin${where}`);
  const some = Math.round(users / 2);
  await measured(db, 'a trigger with a user token, first time', () =>
    fetch(`${at}/api/triggers/http/ok/run`, { headers: { authorization: `Bearer pht_model7.${secret}` } }),
  );
  await measured(db, 'users, a page', get('/users?limit=50'));
  await measured(db, 'users, by name', get('/users?search=Person%2077'));
  await measured(db, 'users, by a name that is not there', get('/users?search=No%20such%20name'));
  await measured(db, 'a user, with roles and sessions', async () => {
    await Promise.all(
      ['', '/roles', '/sessions', '/tokens', '/messenger-accounts'].map(x => get(`/users/${some}${x}`)()),
    );
  });
  await measured(db, 'tiles of university data', get('/university/types'));
  await measured(db, 'plugins, a page', get('/plugins?limit=50'));
  await measured(db, 'plugins, by name', get('/plugins?limit=50&search=Plugin%20q09'));
  await measured(db, 'plugins, by a name that is not there', get('/plugins?limit=50&search=nothing'));
  for (const window of ['15m', '1h', '24h', '7d'])
    await measured(db, `activity of ${window}`, get(`/activity?window=${window}`));
  await measured(db, 'activity of one plugin', get('/activity?window=7d&plugin=p5'));
  await measured(db, 'executions of a plugin', get('/plugins/p5/executions?limit=50'));
  await measured(db, 'executions that failed', get('/plugins/p5/executions?limit=50&outcome=trapped'));
  await measured(db, 'executions of a trigger that has none', get('/plugins/p5/executions?limit=50&trigger=none'));
  await measured(db, 'execution of a request', get(`/plugins/p5/executions?request_id=r${some}`));
  await measured(db, 'messages, a page', get('/messages?limit=50'));
  await measured(db, 'messages that failed', get('/messages?limit=50&state=failed'));
  await measured(db, 'messages of a request', get(`/messages?limit=50&request_id=r${some}`));
  await measured(db, 'outbox, a page', get('/outbox?limit=50'));
  await measured(db, 'outbox, by entity', get(`/outbox?limit=50&key=user:s-${some}`));
  await measured(db, 'audit log, a page', get('/audit?limit=50'));
  await measured(db, 'audit log of a plugin', get('/audit?limit=50&object_type=plugin&object_id=p7'));
  await measured(db, 'relationships of a user', get(`/relationships?subject_type=user&subject_id=s-${some}`));
  await measured(db, 'relationships of a group', get('/relationships?resource_type=study_group&resource_id=7'));
  await measured(db, 'relationships, a page', get('/relationships?limit=50'));
  await measured(db, 'queues', get('/jobs'));
  await measured(db, 'metrics', () => service.metrics());
  await measured(db, 'a right is given', () =>
    answer(at, '/api/admin/relationships', {
      method: 'POST',
      body: JSON.stringify({ resource_type: 'faculty', resource_id: 'f', relation: 'dean', subject_id: `s-${some}` }),
    }),
  );
  await measured(db, '1,000 persons are imported again', () =>
    answer(
      at,
      '/api/admin/university/persons',
      {
        method: 'POST',
        body: JSON.stringify(
          Array.from({ length: 1000 }, (_, k) => ({
            external_id: `s-${k + 1}`,
            last_name: 'New',
            first_name: 'First',
          })),
        ),
      },
      API_KEY,
    ),
  );
  await service.stop(1000);
  for (const [what, sql] of [
    ['records of a day are removed', "DELETE FROM execution_records WHERE started_at < now() - interval '13 days'"],
    [
      'records of a person (export)',
      "SELECT * FROM execution_records WHERE principal = 'user:7' ORDER BY id DESC LIMIT 100",
    ],
    ['messages of a person (export)', 'SELECT * FROM outgoing_messages WHERE user_id = 7 LIMIT 100'],
  ] as const)
    await measured(db, what, () => db.query(sql));
  await db.close();
} finally {
  await postgres.stop();
  fs.rmSync(directory, { recursive: true, force: true });
}
