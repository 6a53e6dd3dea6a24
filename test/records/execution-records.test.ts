import t from 'tap';
import { LIMITS } from '../../src/base/limits.ts';
import { openDatabase } from '../../src/db/database.ts';
import { type ExecutionRecord, ExecutionRecords, removeRecordings } from '../../src/records/execution-records.ts';
import { makeDatabase } from '../support/database.ts';
import { databaseWay } from '../support/store-way.ts';

/** How records come to the database (docs/plugins.md "Records"). */

const RECORD: Omit<ExecutionRecord, 'recording'> = {
  requestId: '',
  traceId: '',
  pluginId: 'p',
  version: '1.0.0',
  trigger: 'run',
  principal: 'public',
  outcome: 'trapped',
  status: 502,
  startedAt: new Date(),
  queueWaitMs: 0,
  runMs: 0,
  hostCalls: 0,
  peakPages: 1,
  failure: 'unreachable',
  log: [],
  decision: null,
};

const database = await makeDatabase();
const db = openDatabase(database.url, 2, () => {});
t.teardown(async () => {
  await db.close();
  await database.drop();
});

t.test('a plugin fills no more than its part of an hour with log lines, and others theirs', async t => {
  const records = new ExecutionRecords(db, error => t.fail(String(error)));
  const at = new Date(Math.floor(Date.now() / 3_600_000) * 3_600_000);
  const note = (requestId: string, pluginId: string, bytes: number, hours = 0): void =>
    records.append({
      ...RECORD,
      requestId,
      pluginId,
      startedAt: new Date(at.getTime() - hours * 3_600_000),
      log: [{ level: 1, text: 'x'.repeat(bytes) }],
    });
  note('first', 'p', LIMITS.logBytesPerPluginHour - 100);
  note('beyond', 'p', 100);
  note('fits', 'p', 10);
  note('of another', 'q', 100);
  note('of another hour', 'p', 200, 1);
  await records.close();
  const { rows } = await db.query<{ id: string; level: number; bytes: number; text: string }>(
    `SELECT request_id AS id, (log->0->>'level')::int AS level, length(log->0->>'text') AS bytes, left(log->0->>'text', 60) AS text
     FROM execution_records ORDER BY execution_records.id`,
  );
  t.match(rows, [
    { id: 'first', bytes: LIMITS.logBytesPerPluginHour - 100 },
    { id: 'beyond', level: 2, text: `log dropped: the plugin has used up its ${LIMITS.logBytesPerPluginHour} bytes` },
    { id: 'fits', bytes: 10 },
    { id: 'of another', bytes: 100 },
    { id: 'of another hour', bytes: 200 },
  ]);
});

t.test('a recording beyond the allowance of the hour is not packed, and its record is kept', async t => {
  const records = new ExecutionRecords(db, error => t.fail(String(error)));
  let packed = 0;
  const recording = (bytes: number) => ({
    bytes,
    pack() {
      packed++;
      return Buffer.from('{}');
    },
  });
  const many = LIMITS.recordingBytesPerPluginHour / LIMITS.recordingBytesMax;
  const record = { ...RECORD, pluginId: 'recorded', startedAt: new Date() };
  records.append(record, recording(LIMITS.recordingBytesMax + 1));
  for (let k = 0; k < many; k++) records.append(record, recording(LIMITS.recordingBytesMax));
  records.append(record, recording(1));
  await records.flush();
  const { rows } = await db.query(
    `SELECT count(*)::int AS records, count(recording)::int AS recordings FROM execution_records
     WHERE plugin_id = 'recorded'`,
  );
  t.same(rows, [{ records: many + 2, recordings: many }]);
  t.equal(packed, many);
});

t.test('a recording that cannot be packed ends nothing: its record is kept without it', async t => {
  const errors: string[] = [];
  const records = new ExecutionRecords(db, error => errors.push(String(error)));
  const pack = (): Buffer => {
    throw new Error('too much');
  };
  records.append({ ...RECORD, requestId: 'unpacked' }, { bytes: 1, pack });
  await records.flush();
  const { rows } = await db.query("SELECT recording FROM execution_records WHERE request_id = 'unpacked'");
  t.same(rows, [{ recording: null }]);
  t.same(errors, ['Error: too much']);
});

t.test('the oldest recordings of a plugin go when it has more than its share, and all that are too old', async t => {
  const day = 86_400_000;
  const add = (pluginId: string, bytes: number, count: number, age = '1 hour'): Promise<unknown> =>
    db.query(
      `INSERT INTO execution_records (request_id, plugin_id, version, trigger_name, principal, outcome, status, started_at,
         queue_wait_ms, run_ms, host_calls, peak_pages, failure, log, recording)
       SELECT k, $1, '1', 'run', 'public', 'ok', 200, now() - $4::interval, 0, 0, 0, 1, '', '[]',
         decode(repeat('00', $2), 'hex') FROM generate_series(1, $3) AS k`,
      [pluginId, bytes, count, age],
    );
  await add('large', 2 ** 20, 3);
  await add('large', LIMITS.recordingBytesPerPlugin - 2 ** 21, 1);
  await add('many', 1, LIMITS.recordingsPerPlugin + 2);
  await add('old', 1, 1, '15 days');
  await add('young', 1, 1, '13 days');
  t.equal(await removeRecordings(db, 14 * day), 4);
  const { rows } = await db.query(
    `SELECT plugin_id, count(*)::int AS records, (array_agg(request_id ORDER BY id) FILTER (WHERE recording IS NULL)) AS gone
     FROM execution_records WHERE plugin_id IN ('large', 'many', 'old', 'young') GROUP BY 1 ORDER BY 1`,
  );
  t.same(rows, [
    { plugin_id: 'large', records: 4, gone: ['1'] },
    { plugin_id: 'many', records: LIMITS.recordingsPerPlugin + 2, gone: ['1', '2'] },
    { plugin_id: 'old', records: 1, gone: ['1'] },
    { plugin_id: 'young', records: 1, gone: null },
  ]);
  t.equal(await removeRecordings(db, 14 * day), 0);
});

t.test('records wait while the database is away, and are written when it is back', async t => {
  const way = await databaseWay(database.url);
  const away = openDatabase(way.url, 1, () => {});
  t.teardown(async () => {
    await away.close();
    way.close();
  });
  let lost = 0;
  let failures = 0;
  const failed = Promise.withResolvers<void>();
  const records = new ExecutionRecords(away, (_error, count) => {
    failures++;
    lost += count;
    failed.resolve();
  });
  way.cut();
  records.append({ ...RECORD, requestId: 'waits' });
  await records.flush();
  await failed.promise;
  way.mend();
  await records.close();
  t.equal((await db.query("SELECT FROM execution_records WHERE request_id = 'waits'")).rowCount, 1);
  t.same([failures, lost], [1, 0]);
});
