import t from 'tap';
import { LIMITS } from '../../src/base/limits.ts';
import { openDatabase } from '../../src/db/database.ts';
import { ExecutionRecords } from '../../src/records/execution-records.ts';

t.test('of one trigger a few successes of a second are recorded, and of all together a bounded number', async t => {
  const db = openDatabase('postgresql://u@127.0.0.1:1/x', 1, () => {});
  t.teardown(() => db.close());
  const records = new ExecutionRecords(db, () => {});
  const recorded = (triggers: number, second: number): number => {
    let count = 0;
    for (let k = 0; k < triggers; k++) {
      const trigger = {};
      for (let n = 0; n < 20; n++) if (records.wants(trigger, second * 1000 + n)) count++;
    }
    return count;
  };
  t.equal(recorded(1, 1), LIMITS.recordedSuccessesPerSecond);
  t.equal(recorded(1000, 2), LIMITS.recordedSuccessesOfAllPerSecond);
  t.equal(recorded(1, 3), LIMITS.recordedSuccessesPerSecond, 'the next second has its own');
});
