import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { openDatabase } from '../src/db/database.ts';
import { type JobQueue, Jobs, scheduledJob } from '../src/jobs.ts';
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

t.test(
  'a run of a schedule that has taken too long is waited for, and the next one does not work next to it',
  async t => {
    let begun = 0;
    let end = (): void => {};
    const job = scheduledJob('slow', '* * * * *', 60, () => {
      begun++;
      return new Promise(resolve => {
        end = resolve;
      });
    });
    const { signal } = new AbortController();
    const runs = [job.run({}, signal), job.run({}, signal)];
    t.equal(begun, 1);
    end();
    await Promise.all(runs);
    const failing = scheduledJob('fails', '* * * * *', 60, async () => {
      begun++;
      throw new Error('no');
    });
    for (let k = 0; k < 2; k++) await t.rejects(failing.run({}, signal), /no/);
    t.equal(begun, 3, 'after its end the next one works');
  },
);

t.test(
  'an exclusive queue runs one job on all hosts, on those that take jobs, and the one that waits behind it',
  async t => {
    const { drop, url } = await makeDatabase();
    const db = openDatabase(url, 4, () => {});
    const begun: string[] = [];
    let now = 0;
    let most = 0;
    let release = (): void => {};
    const held = new Promise<void>(resolve => {
      release = resolve;
    });
    const queueOf = (host: string): JobQueue<object> => ({
      ...queue({
        name: 'exclusive',
        async run() {
          most = Math.max(most, ++now);
          begun.push(host);
          if (begun.length === 1) await held;
          now--;
        },
        gaveUp: async () => {},
      }),
      isExclusive: true,
      seconds: 60,
      pollSeconds: 1,
    });
    const log = { warn: (fields: object, text: string) => t.comment(`${text} ${JSON.stringify(fields)}`) };
    const hosts = [new Jobs(db, log), new Jobs(db, log)];
    const [one, two] = [hosts[0]!, hosts[1]!];
    t.teardown(async () => {
      release();
      for (const jobs of hosts) await jobs.close();
      await db.close();
      await drop();
    });
    const until = async (n: number): Promise<void> => {
      for (const end = performance.now() + 20_000; begun.length < n; await sleep(10))
        if (performance.now() > end) throw new Error(`${begun.length} of ${n} have begun`);
    };
    one.start([queueOf('one')]);
    await one.request('exclusive');
    await sleep(300);
    t.same(begun, [], 'a host that does not take jobs takes none');
    await one.close();
    // As the library leaves it when it counts while a job is active.
    await db.query("UPDATE pgboss.queue SET singletons_active = '{NULL}' WHERE name = 'exclusive'");
    const again = new Jobs(db, log);
    hosts[0] = again;
    again.start([queueOf('one')]);
    again.resume('exclusive');
    await until(1);
    two.start([queueOf('two')]);
    two.resume('exclusive');
    for (let k = 0; k < 5; k++) await two.request('exclusive');
    await two.requestAgain('exclusive');
    await sleep(2500);
    t.same(begun, ['one'], 'its host is alive');
    const { rows } = await db.query<{ state: string }>(
      "SELECT state FROM pgboss.job WHERE name = 'exclusive' ORDER BY 1",
    );
    t.same(
      rows.map(r => r.state),
      ['created', 'active'],
      'however often it is asked for',
    );
    again.pause('exclusive');
    release();
    await until(2);
    t.same([begun, most], [['one', 'two'], 1]);
  },
);
