import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { openDatabase } from '../../src/db/database.ts';
import { readMarks } from '../../src/graph/graph.ts';
import { readGraphSchema } from '../../src/graph/graph-schema.ts';
import { appendGraphChanges, keysOf } from '../../src/outbox/append.ts';
import { Deliverer } from '../../src/outbox/deliver.ts';
import { takeDue } from '../../src/outbox/plan.ts';
import { makeDatabase } from '../support/database.ts';
import { startGraphStore, tuple } from '../support/graph.ts';
import { type Json, startTestService, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

const schema = readGraphSchema();
const WITHOUT = schema.text.replaceAll(/\trelation foreign_teacher: user\n/g, '').replaceAll('foreign_teacher + ', '');

const isFilled = async (s: TestService) => (await s.admin('GET', '/authz/drift')).status === 200;

async function world(t: { teardown(fn: () => unknown): void }) {
  const { connect, spicedb, store } = await startGraphStore(t);
  const s = await startTestService({ BOT_SPICEDB_ENDPOINT: spicedb.endpoint, BOT_SPICEDB_TLS: 'false' });
  t.teardown(() => s.stop());
  const db = openDatabase(s.databaseUrl, 2, () => {});
  t.teardown(() => db.close());
  await until(() => isFilled(s));
  return { s, db, store, connect };
}

t.test('the wait after a failure doubles from two seconds to five minutes', async t => {
  const { db } = await world(t);
  const { rows } = await db.query<{ s: string }>(
    'SELECT extract(epoch FROM authz_backoff(n))::int AS s FROM generate_series(1, 12) n ORDER BY n',
  );
  t.same(
    rows.map(r => Number(r.s)),
    [2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300, 300],
  );
});

t.test('an entry names what keeps its place, and what shares a name with one that waits stays behind it', async t => {
  const touch = (text: string) => ({ operation: 'TOUCH' as const, tuples: [tuple(text)] });
  t.same(keysOf(touch('study_group:g1#member@user:u1')), ['study_group:g1', 'user:u1']);
  t.same(
    keysOf({
      operation: 'DELETE_BY_SUBJECT',
      filter: { resourceType: 'study_group', relation: 'member', subjectType: 'user', subjectId: 'u1' },
    }),
    ['user:u1'],
  );
  const entry = (id: number, keys: string[], parked = false) => ({
    id,
    operation: 'TOUCH' as const,
    tuples: [],
    filter: null,
    removed: null,
    keys,
    attempts: 0,
    mark: '',
    parkedMs: parked ? 5 : 0,
  });
  const line = [
    entry(1, ['g1', 'u1'], true),
    entry(2, ['g2', 'u2']),
    entry(3, ['g3', 'u1']),
    entry(4, ['g3', 'u4']),
    entry(5, ['g2', 'u5']),
  ];
  t.same(
    takeDue(line, 10).map(e => e.id),
    [2, 5],
    'three waits for one, and four for three',
  );
  t.same(
    takeDue(line, 1).map(e => e.id),
    [2],
  );
});

t.test(
  'what the store refuses is tried ten times, then leaves the line, is shown, and can be tried again or discarded',
  async t => {
    const { db, s, store } = await world(t);
    await db.query(
      "CREATE OR REPLACE FUNCTION authz_backoff(attempts int) RETURNS interval LANGUAGE sql IMMUTABLE AS $$ SELECT interval '20 ms' $$",
    );
    // The store of an older release: it does not know the relation yet.
    await store.writeSchema(WITHOUT);
    const relate = (method: string, text: string) => {
      const { relation, resourceId, resourceType, subjectId } = tuple(text);
      const body = { resource_type: resourceType, resource_id: resourceId, relation, subject_id: subjectId };
      return s.admin(method, '/relationships', body);
    };
    const poison = 'study_group:g1#foreign_teacher@user:u1';
    await relate('POST', 'study_group:g1#member@user:u2');
    const [bad, behind, next] = await Promise.all([
      relate('POST', poison),
      sleep(5).then(() => relate('DELETE', 'study_group:g1#member@user:u2')),
      sleep(5).then(() => relate('POST', 'study_group:g2#member@user:u3')),
    ]);
    t.equal(bad.status, 201);
    t.match(next.json, { delivered: true });
    await until(async () => (await s.admin('GET', '/outbox')).json.dead === 1);
    await until(async () => (await s.admin('GET', '/outbox')).json.pending === 0);
    t.equal(behind.status, 200);
    t.same(
      await store.read({ resourceType: 'study_group', resourceId: 'g1' }),
      [],
      'the revocation behind it has flowed',
    );
    const dead = await s.admin('GET', '/outbox?state=dead');
    const [entry] = dead.json.items as Json[];
    t.match(entry, { operation: 'TOUCH', state: 'dead', attempts: 10, last_error: /foreign_teacher/ });
    t.same((await s.admin('GET', '/outbox?key=user:u1')).json.items, dead.json.items);
    t.match((await s.admin('GET', '/outbox')).json, { pending: 0, backing_off: 0 }, 'what is dead backs off no more');
    await db.query(
      `INSERT INTO authz_outbox (operation, payload, keys, attempts, locked_until)
       VALUES ('TOUCH', '{"tuples":[]}', ARRAY['user:waits'], 3, now() + interval '4 minutes')`,
    );
    t.match((await s.admin('GET', '/outbox')).json, { pending: 1, backing_off: 1, dead: 1 });
    await db.query("DELETE FROM authz_outbox WHERE keys = ARRAY['user:waits']");
    t.equal((await s.admin('GET', `/outbox/${entry?.id}`)).json.state, 'dead');
    t.match((await s.admin('GET', '/authz/drift')).json, { missing: [poison] });

    await store.writeSchema(schema.text);
    const retried = await s.admin('POST', `/outbox/${entry?.id}/retry`);
    t.match(retried, { status: 200, json: { delivered: true } });
    t.equal((await store.read({ resourceType: 'study_group', resourceId: 'g1' })).length, 1);
    t.match((await s.admin('GET', `/outbox/${entry?.id}`)).json, { state: 'requeued' });
    t.match((await s.admin('GET', `/outbox/${retried.json.requeued_as}`)).json, {
      requeue_of: entry?.id,
      state: 'processed',
    });
    t.equal((await s.admin('POST', `/outbox/${entry?.id}/retry`)).status, 409);

    // What it said then is no longer wanted: what is tried again is what is wanted now.
    await relate('DELETE', poison);
    await store.writeSchema(WITHOUT);
    await relate('POST', poison);
    await until(async () => (await s.admin('GET', '/outbox')).json.dead === 1);
    await store.writeSchema(schema.text);
    await relate('DELETE', poison);
    const [second] = (await s.admin('GET', '/outbox?state=dead')).json.items as Json[];
    t.match(await s.admin('POST', `/outbox/${second?.id}/retry`), { status: 200, json: { delivered: true } });
    t.same(await store.read({ resourceType: 'study_group', resourceId: 'g1' }), []);

    await store.writeSchema(WITHOUT);
    await relate('POST', poison);
    await until(async () => (await s.admin('GET', '/outbox')).json.dead === 1);
    const [third] = (await s.admin('GET', '/outbox?state=dead')).json.items as Json[];
    t.match(await s.admin('POST', `/outbox/${third?.id}/discard`), { status: 200, json: { discarded: true } });
    t.equal((await s.admin('POST', `/outbox/${third?.id}/discard`)).status, 409);
    t.equal((await s.admin('GET', '/outbox')).json.dead, 0);
    t.match((await s.admin('GET', '/outbox?state=discarded')).json.items, [{ id: third?.id }]);
    t.equal((await s.admin('POST', '/outbox/999999/retry')).status, 404);
    t.match(await s.admin('GET', '/outbox?state=lost'), {
      status: 422,
      json: { errors: [{ pointer: 'query:state' }] },
    });
    const audit = await s.admin('GET', '/audit?object_type=outbox');
    t.same(
      (audit.json.items as Json[]).map(e => e.action),
      ['outbox.discard', 'outbox.retry', 'outbox.retry'],
    );
  },
);

t.test(
  'a change of the graph is there if and only if its transaction commits, and a wrong one is refused by place',
  async t => {
    const { db, store } = await world(t);
    const member = tuple('study_group:g1#member@user:u1');
    await t.rejects(
      db.withTransaction(async client => {
        await appendGraphChanges(client, schema, 'import', [{ operation: 'TOUCH', tuples: [member] }]);
        throw new Error('no');
      }),
      /no/,
    );
    t.equal((await db.query('SELECT 1 FROM authz_tuples')).rowCount, 0);
    t.equal((await db.query('SELECT 1 FROM authz_outbox')).rowCount, 0);
    await t.rejects(
      db.withTransaction(client =>
        appendGraphChanges(client, schema, 'import', [
          { operation: 'TOUCH', tuples: [member] },
          { operation: 'TOUCH', tuples: [{ ...member, relation: 'dean' }] },
        ]),
      ),
      { code: 'validation_failed', errors: [{ pointer: '/1/tuples/0/relation' }] },
    );
    await db.withTransaction(client =>
      appendGraphChanges(client, schema, 'import', [
        { operation: 'TOUCH', tuples: [member, tuple('study_group:g1#teacher@user:u1')] },
        {
          operation: 'REPLACE',
          filter: { resourceType: 'study_group', resourceId: 'g1', relation: 'member' },
          tuples: [tuple('study_group:g1#member@user:u2')],
        },
      ]),
    );
    const texts = async () =>
      (await store.read({ resourceType: 'study_group' })).map(x => `${x.relation} ${x.subjectId}`).sort();
    await until(async () => (await texts()).length === 2);
    t.same(await texts(), ['member u2', 'teacher u1']);
  },
);

t.test('what was given by hand stays when an import takes its own away, in the database and in the store', async t => {
  const { db, s, store } = await world(t);
  const append = (origin: 'import' | 'manual', ...changes: Parameters<typeof appendGraphChanges>[3]) =>
    db.withTransaction(client => appendGraphChanges(client, schema, origin, changes));
  const texts = async () => {
    await until(async () => (await s.admin('GET', '/outbox')).json.pending === 0);
    const there = (await store.read({ resourceType: 'faculty' })).map(x => x.subjectId).sort();
    const { rows } = await db.query<{ subject_id: string }>('SELECT subject_id FROM authz_tuples ORDER BY 1');
    t.same(
      there,
      rows.map(r => r.subject_id),
    );
    return there;
  };
  const dean = (user: string) => tuple(`faculty:f#dean@user:${user}`);
  await append('manual', { operation: 'TOUCH', tuples: [dean('hand')] });
  await append('import', { operation: 'TOUCH', tuples: [dean('hand'), dean('imported')] });
  t.same(await texts(), ['hand', 'imported']);
  await append('import', { operation: 'DELETE', tuples: [dean('hand')] });
  t.same(await texts(), ['hand', 'imported']);
  await append('import', { operation: 'DELETE_BY_OBJECT', filter: { resourceType: 'faculty', resourceId: 'f' } });
  t.same(await texts(), ['hand']);
  await append('import', { operation: 'DELETE_BY_SUBJECT', filter: { subjectType: 'user', subjectId: 'hand' } });
  t.same(await texts(), ['hand']);
  await append('import', {
    operation: 'REPLACE',
    filter: { resourceType: 'faculty', resourceId: 'f', relation: 'dean' },
    tuples: [dean('new')],
  });
  t.same(await texts(), ['hand', 'new']);
  t.match((await s.admin('GET', '/relationships?origin=manual')).json.items, [{ subject_id: 'hand' }]);
  await append('manual', { operation: 'DELETE_BY_OBJECT', filter: { resourceType: 'faculty', resourceId: 'f' } });
  t.same(await texts(), []);
});

t.test(
  'a large graph is filled into a new store in pages, and a successor takes over without a wrong answer',
  async t => {
    const first = await startGraphStore(t);
    const second = await startGraphStore(t);
    const used: string[] = [];
    const s = await startTestService({}, undefined, endpoint => used.push(endpoint));
    t.teardown(() => s.stop());
    const db = openDatabase(s.databaseUrl, 1, () => {});
    t.teardown(() => db.close());
    await db.withTransaction(async client => {
      for (let k = 0; k < 5; k++)
        await appendGraphChanges(client, schema, 'import', [
          {
            operation: 'TOUCH',
            tuples: Array.from({ length: 500 }, (_, i) => tuple(`study_group:g${k}#member@user:u${i}`)),
          },
        ]);
    });
    t.equal((await s.admin('GET', '/authz/drift')).status, 503, 'without a store the drift is not known');
    t.match((await s.admin('GET', '/outbox')).json, { pending: 5 });
    s.service.useEmbeddedGraph(first.spicedb.endpoint);
    await until(() => isFilled(s));
    t.match((await s.admin('GET', '/authz/drift')).json, { compared: 2500, missing: [], extra: [] });
    t.match((await s.admin('GET', '/outbox')).json, { pending: 0 }, 'what was filled is not delivered again');

    const { graph } = s.service.authz;
    const ask = (subjectId: string) =>
      graph.check({
        resourceType: 'study_group',
        resourceId: 'g4',
        permission: 'member',
        subjectType: 'user',
        subjectId,
      });
    const answers = { yes: 0, wrong: 0 };
    let ended = false;
    const asking = (async () => {
      while (!ended) {
        answers[(await ask('u499')) ? 'yes' : 'wrong']++;
        if (await ask('stranger')) answers.wrong++;
      }
    })();
    s.service.useEmbeddedGraph(second.spicedb.endpoint);
    await until(async () => used.includes(second.spicedb.endpoint));
    ended = true;
    await asking;
    t.equal(answers.wrong, 0);
    t.ok(answers.yes > 0);
    await s.admin('POST', '/relationships', {
      resource_type: 'faculty',
      resource_id: 'f',
      relation: 'dean',
      subject_id: 'x',
    });
    t.equal((await second.store.read({ resourceType: 'faculty' })).length, 1, 'the successor is written');
    t.equal((await first.store.read({ resourceType: 'faculty' })).length, 0);
  },
);

t.test(
  'an embedded store belongs to one host: another of the same database says 503, and takes over with a whole store',
  async t => {
    const [first, second] = [await startGraphStore(t), await startGraphStore(t)];
    const one = await startTestService();
    const two = await startTestService({}, one);
    t.teardown(async () => {
      await two.stop();
      await one.stop();
    });
    one.service.useEmbeddedGraph(first.spicedb.endpoint);
    await until(() => isFilled(one));
    two.service.useEmbeddedGraph(second.spicedb.endpoint);
    const role = { resource_type: 'system_role', resource_id: 'boss', relation: 'member', subject_id: 'e1' };
    t.match(await one.admin('POST', '/relationships', role), { json: { delivered: true } });
    const ask = (s: TestService) =>
      s.admin('GET', '/relationships/lookup?resource_type=system_role&permission=is_member&user=e1');
    t.same((await ask(one)).json.items, [{ resource_type: 'system_role', resource_id: 'boss' }]);
    for (let k = 0; k < 20; k++) {
      t.equal((await ask(two)).status, 503);
      await sleep(20);
    }
    // The first host loses its session: the other one takes the lock, and what it delivers does not reach the first.
    const db = openDatabase(one.databaseUrl, 1, () => {});
    t.teardown(() => db.close());
    const endSession = () =>
      db.query<{ pid: number }>(
        `SELECT pid, pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND classid = 7391046 AND granted
           AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
      );
    /**
     * The host that has taken the lock since that session ended. A host that has not noticed the end yet still answers
     * for a moment.
     */
    const successor = async (ended: number) => {
      let filled: TestService[] = [];
      await until(async () => {
        const { rows } = await db.query<{ pid: number }>(
          `SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND classid = 7391046 AND granted
           AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
        );
        filled = [];
        for (const s of [one, two]) if (await isFilled(s)) filled.push(s);
        return rows[0] !== undefined && rows[0].pid !== ended && filled.length === 1;
      });
      return filled[0]!;
    };
    const has = await successor((await endSession()).rows[0]!.pid);
    const hasNot = has === one ? two : one;
    t.match(await has.admin('DELETE', '/relationships', role), { json: { delivered: true } });
    t.same((await ask(has)).json.items, []);
    t.equal((await ask(hasNot)).status, 503);
    const next = await successor((await endSession()).rows[0]!.pid);
    t.same((await ask(next)).json.items, [], 'what was taken back meanwhile is not there');
  },
);

t.test('an entry the store refuses holds up no other entry, and a pause left by a dead deliverer ends', async t => {
  const { connect, spicedb, store } = await startGraphStore(t);
  const env = { BOT_SPICEDB_ENDPOINT: spicedb.endpoint, BOT_SPICEDB_TLS: 'false' };
  const first = await startTestService(env);
  t.teardown(() => first.stop());
  await until(() => isFilled(first));
  const db = openDatabase(first.databaseUrl, 1, () => {});
  t.teardown(() => db.close());
  await first.admin('POST', '/relationships', {
    relationships: Array.from({ length: 300 }, (_, k) => ({
      resource_type: 'study_group',
      resource_id: `g${k}`,
      relation: 'member',
      subject_id: 'u',
    })),
  });
  // A mistake of ours, as a release that drops a relation would leave it.
  await db.query(
    "INSERT INTO authz_tuples (resource_type, resource_id, relation, subject_type, subject_id, origin, outbox_id) VALUES ('study_group', 'g7', 'gone', 'user', 'u', 'import', 1)",
  );
  const marks = await readMarks(store, 'loaded');
  await connect().write(marks.map(tuple => ({ operation: 'delete', tuple })));
  // Nothing is written: who asks finds out, and the store is filled again.
  const lookup = () =>
    first.admin('GET', '/relationships/lookup?resource_type=study_group&permission=member&user=u&limit=200');
  t.equal((await lookup()).status, 503);
  await until(async () => (await lookup()).status === 200);
  t.match((await first.admin('GET', '/authz/drift')).json, {
    missing: ['study_group:g7#gone@user:u'],
    compared: 301,
  });

  // A process that paused the stream for five minutes and ended.
  await first.service.authz.outbox.close();
  await db.query("UPDATE authz_stream SET paused_until = now() + interval '5 minutes', failures = 8, worked_at = NULL");
  const second = await startTestService(env, first);
  t.teardown(() => second.stop());
  const added = await second.admin('POST', '/relationships', {
    resource_type: 'faculty',
    resource_id: 'f',
    relation: 'dean',
    subject_id: 'x',
  });
  t.equal(added.status, 201);
  await until(async () => (await second.admin('GET', '/outbox')).json.pending === 0);
  t.equal((await store.read({ resourceType: 'faculty' })).length, 1);
});

t.test(
  'a store that cannot be reached is named in the outbox: since when nothing is delivered, until when, and why',
  async t => {
    const { spicedb } = await startGraphStore(t);
    const env = { BOT_SPICEDB_ENDPOINT: spicedb.endpoint, BOT_SPICEDB_TLS: 'false' };
    const role = { resource_type: 'system_role', resource_id: 'boss', relation: 'member', subject_id: 'e1' };
    const s = await startTestService(env);
    t.teardown(() => s.stop());
    await until(() => isFilled(s));
    t.equal((await s.admin('GET', '/outbox')).json.paused, null);
    await spicedb.stop();
    t.match((await s.admin('POST', '/relationships', role)).json, { delivered: false });
    const paused = async () => (await s.admin('GET', '/outbox')).json.paused !== null;
    await until(paused);
    const { json } = await s.admin('GET', '/outbox');
    const why = { since: /^20/, reason: /./ };
    t.match(json, { pending: 1, paused: why, items: [{ state: 'pending', attempts: 0, paused: why }] });
    const [entry] = json.items as Json[];
    t.match((await s.admin('GET', `/outbox/${entry?.id}`)).json, { paused: why });
    // A host that starts now, and never reached it, says the same.
    const db = openDatabase(s.databaseUrl, 1, () => {});
    t.teardown(() => db.close());
    await s.service.authz.outbox.close();
    await db.query(
      'UPDATE authz_stream SET paused_since = NULL, paused_until = NULL, last_error = NULL, worked_at = NULL',
    );
    t.equal(await paused(), false);
    const other = await startTestService(env, s);
    t.teardown(() => other.stop());
    await until(paused);
  },
);

t.test('of a kind of relationship the store does not know a few are tried, and all others are filled in', async t => {
  const { store, connect } = await startGraphStore(t);
  const database = await makeDatabase();
  const db = openDatabase(database.url, 3, () => {});
  t.teardown(async () => {
    await db.close();
    await database.drop();
  });
  await db.query(
    `INSERT INTO authz_tuples (resource_type, resource_id, relation, subject_type, subject_id, origin, outbox_id)
     SELECT 'study_group', 'g' || k, r, 'user', 'u', 'import', 1 FROM generate_series(1, 1500) k, unnest(ARRAY['member', 'gone']) r`,
  );
  let writes = 0;
  const counted = connect();
  const write = counted.write.bind(counted);
  counted.write = (...args) => {
    writes++;
    return write(...args);
  };
  const { filled, rejected } = await new Deliverer(db, schema).prepare(counted);
  t.equal(filled, true);
  t.equal(rejected.count, 1500);
  t.ok(rejected.examples.length <= 20);
  t.equal((await store.read({ resourceType: 'study_group' })).length, 1500);
  t.ok(writes < 200, `${writes} writes`);
});
