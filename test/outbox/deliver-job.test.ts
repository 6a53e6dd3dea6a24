import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { type Database, openDatabase } from '../../src/db/database.ts';
import { childServices } from '../support/child-service.ts';
import { makeDatabase } from '../support/database.ts';
import { startGraphStore } from '../support/graph.ts';
import { append, bothGraphs, touch } from '../support/outbox.ts';
import { startTestService } from '../support/service.ts';

/** Several seconds of work. */
const ENTRIES = 30_000;

async function until<T>(what: string, look: () => Promise<T | undefined>): Promise<T> {
  for (const end = performance.now() + 180_000; performance.now() < end; await sleep(10)) {
    const found = await look();
    if (found !== undefined) return found;
  }
  throw new Error(`it did not come: ${what}`);
}

const pending = async (db: Database): Promise<number> => {
  const { rows } = await db.query<{ n: string }>('SELECT count(*) AS n FROM authz_outbox WHERE processed_at IS NULL');
  return Number(rows[0]?.n);
};

const ownerOf = async (db: Database): Promise<string | null> => {
  const { rows } = await db.query<{ owner: string | null }>('SELECT owner FROM authz_stream');
  return rows[0]?.owner ?? null;
};

/** What became of jobs that deliver, as all jobs are looked at. */
const jobsWith = async (db: Database, state: string, output: string): Promise<number> => {
  const { rows } = await db.query<{ n: string }>(
    "SELECT count(*) AS n FROM pgboss.job WHERE name = 'outbox_deliver' AND state::text = $1 AND output::text LIKE $2",
    [state, `%${output}%`],
  );
  return Number(rows[0]?.n);
};

t.test('a host that is killed in the middle of a delivery is taken over from within five seconds', async t => {
  const { spicedb, store } = await startGraphStore(t);
  const database = await makeDatabase();
  const db = openDatabase(database.url, 2, () => {});
  t.teardown(async () => {
    await db.close();
    await database.drop();
  });
  const start = childServices(t, database.serviceUrl, {
    BOT_SPICEDB_ENDPOINT: spicedb.endpoint,
    BOT_SPICEDB_TLS: 'false',
  });
  const { child: first } = await start();
  await append(db, touch('study_group:g#member@user:u'));
  const firstOwner = await until('the first delivery', async () =>
    (await pending(db)) === 0 ? ownerOf(db) : undefined,
  );
  const { child: second } = await start();
  const users = Array.from({ length: ENTRIES }, (_, k) => touch(`study_group:g${k % 100}#member@user:m${k}`));
  await append(db, ...users);
  // Not at the end of its turn, so that it is known which of them runs the job.
  const owner = await until('the middle', async () => {
    const { rows } = await db.query<{ owner: string }>(
      `SELECT owner FROM authz_stream, pgboss.job WHERE name = 'outbox_deliver' AND state = 'active'
         AND started_on > clock_timestamp() - interval '2 seconds' AND worked_at > started_on
         AND (SELECT count(*) FROM authz_outbox WHERE processed_at IS NULL) < $1`,
      [ENTRIES - 1000],
    );
    return rows[0]?.owner;
  });
  const deliverer = owner === firstOwner ? first : second;
  deliverer.kill('SIGKILL');
  await once(deliverer, 'exit');
  const killedAt = performance.now();
  const left = await pending(db);
  t.ok(left > 1000, `${left} entries are left`);
  await until('the takeover', async () => ((await pending(db)) < left - 100 ? true : undefined));
  const tookMs = Math.round(performance.now() - killedAt);
  t.ok(tookMs < 5000, `taken over after ${tookMs} ms`);
  t.not(await ownerOf(db), owner);
  t.equal(await jobsWith(db, 'retry', 'its host was silent'), 1, 'the job of the host that is gone has failed');
  await until('the end', async () => ((await pending(db)) === 0 ? true : undefined));
  const { found, wanted } = await bothGraphs(db, store);
  t.equal(found.length, ENTRIES + 1);
  t.ok(found.join() === wanted.join(), 'the store has what the database wants');
});

t.test(
  'a store that is away fails the job, and the reason is shown with it; hosts without a store take none',
  async t => {
    const { spicedb } = await startGraphStore(t);
    const s = await startTestService({ BOT_SPICEDB_ENDPOINT: spicedb.endpoint, BOT_SPICEDB_TLS: 'false' });
    // An embedded store belongs to one host: this one has none, and leaves the job to the other.
    const without = await startTestService({}, s);
    t.teardown(async () => {
      await without.stop();
      await s.stop();
    });
    const db = openDatabase(s.databaseUrl, 1, () => {});
    t.teardown(() => db.close());
    const role = { resource_type: 'system_role', resource_id: 'boss', relation: 'member', subject_id: 'e1' };
    await until('the store', async () => ((await s.admin('GET', '/authz/drift')).status === 200 ? true : undefined));
    t.match((await s.admin('POST', '/relationships', role)).json, { delivered: true });
    t.match((await without.admin('DELETE', '/relationships', role)).status, 200);
    await until('the deletion', async () => ((await pending(db)) === 0 ? true : undefined));
    t.equal(await jobsWith(db, 'retry', ''), 0);
    await spicedb.stop();
    t.match((await s.admin('POST', '/relationships', role)).json, { delivered: false });
    await until('the failure', async () =>
      (await jobsWith(db, 'retry', 'the graph store cannot be written')) === 1 ? true : undefined,
    );
  },
);
