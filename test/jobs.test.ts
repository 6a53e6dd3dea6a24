import t from 'tap';
import { openDatabase } from '../src/db/database.ts';
import { type JobQueue, Jobs } from '../src/jobs.ts';
import { makeDatabase } from './support/database.ts';

const queue = (parts: Pick<JobQueue<object>, 'name' | 'run' | 'gaveUp'>): JobQueue<object> => ({
  ...parts,
  parse: data => ({ ...(data as object) }),
  attemptsMax: 2,
  firstDelaySeconds: 1,
  delaySecondsMax: 1,
  seconds: 1,
});

t.test('a job is tried again, and a job that is given up is reported: also when an attempt never ended', async t => {
  const { drop, url } = await makeDatabase();
  const db = openDatabase(url, 4, () => {});
  const tried: string[] = [];
  const told = new Map<string, (data: unknown) => void>();
  const gaveUp = (name: string): Promise<unknown> => new Promise(resolve => told.set(name, resolve));
  const [failing, hanging] = [gaveUp('failing'), gaveUp('hanging')];
  const jobs = new Jobs(db, { warn() {} });
  t.teardown(async () => {
    await jobs.close();
    await db.close();
    await drop();
  });
  jobs.start([
    queue({
      name: 'failing',
      async run() {
        tried.push('failing');
        throw new Error('no');
      },
      gaveUp: async data => told.get('failing')?.(data),
    }),
    queue({
      name: 'hanging',
      async run() {
        tried.push('hanging');
        await new Promise(() => {});
      },
      gaveUp: async data => told.get('hanging')?.(data),
    }),
  ]);
  await db.withTransaction(client => jobs.enqueue(client, 'failing', { n: 1 }));
  await db.withTransaction(client => jobs.enqueue(client, 'hanging', { n: 2 }));
  await t.rejects(
    db.withTransaction(async client => {
      await jobs.enqueue(client, 'failing', { n: 3 });
      throw new Error('rolled back');
    }),
  );
  t.same(await failing, { n: 1 });
  t.same(await hanging, { n: 2 });
  t.same(tried.sort(), ['failing', 'failing', 'hanging', 'hanging'], 'what was rolled back was never queued');
});

t.test(
  'a job that a release without dead-letter queues has queued is reported as well when it is given up',
  async t => {
    const { drop, url } = await makeDatabase();
    const db = openDatabase(url, 4, () => {});
    const told: unknown[] = [];
    let tell: () => void = () => {};
    const isTold = new Promise<void>(resolve => {
      tell = resolve;
    });
    const log = { warn() {} };
    const idle: JobQueue<object> = queue({ name: 'old', run: async () => {}, gaveUp: async () => {} });
    const before = new Jobs(db, log);
    before.start([idle]);
    // In a transaction that is still open the job is not seen before it is made an old one.
    await db.withTransaction(async client => {
      await before.enqueue(client, 'old', { userId: 7 });
      await client.query("UPDATE pgboss.job SET dead_letter = NULL WHERE name = 'old'");
      await client.query("UPDATE pgboss.job SET start_after = now() + interval '1 hour' WHERE name = 'old'");
    });
    await before.close();
    await db.query("UPDATE pgboss.job SET start_after = now() WHERE name = 'old'");
    const run = async (): Promise<void> => {
      throw new Error('no');
    };
    const gaveUp = async (data: object): Promise<void> => {
      told.push(data);
      tell();
    };
    const after = new Jobs(db, log);
    t.teardown(async () => {
      await after.close();
      await db.close();
      await drop();
    });
    after.start([queue({ name: 'old', run, gaveUp })]);
    await isTold;
    t.same(told, [{ userId: 7 }]);
  },
);
