import t from 'tap';
import { LIMITS } from '../../src/base/limits.ts';
import { openDatabase } from '../../src/db/database.ts';
import { type ExecutionRecord, ExecutionRecords } from '../../src/records/execution-records.ts';
import { makeDatabase } from '../support/database.ts';
import { databaseWay } from '../support/store-way.ts';

/** How records come to the database (docs/plugins.md "Records"). */

const RECORD: ExecutionRecord = {
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
  recording: null,
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
