import http from 'node:http';
import t from 'tap';
import { openDatabase } from '../../src/db/database.ts';
import { listenFor } from '../support/listen.ts';
import { type Answer, type Json, startTestService } from '../support/service.ts';
import { makeUniversity, PATHS, type University } from '../support/university.ts';
import { SOURCE_TOKEN, startUniversitySource } from '../support/university-source.ts';

type Scope = { teardown(fn: () => unknown): void };

const SMALL = { seed: 7, groups: 12, students: 240, teachers: 30, faculties: 2 };

async function world(t: Scope, university: University = makeUniversity(SMALL), env: Record<string, string> = {}) {
  const source = await startUniversitySource(university);
  t.teardown(() => source.close());
  const s = await startTestService({
    BOT_UNIVERSITY_SYNC_BASE_URL: source.url,
    BOT_UNIVERSITY_SYNC_TOKEN: SOURCE_TOKEN,
    BOT_UNIVERSITY_SYNC_RETRY_WAIT: '20ms',
    BOT_EXECUTION_LANES: '1',
    ...env,
  });
  t.teardown(() => s.stop());
  const db = openDatabase(s.databaseUrl, 2, () => {});
  t.teardown(() => db.close());
  const pull = (body: Json = {}): Promise<Answer> => s.admin('POST', '/university/pull?wait=1', body);
  const count = async (sql: string): Promise<number> =>
    Number((await db.query<{ n: string }>(`SELECT count(*) AS n FROM ${sql}`)).rows[0]?.n);
  return { source, s, db, pull, count };
}

const typesOf = (a: Answer): Map<string, Json> =>
  new Map((a.json.types as Json[]).map(type => [String(type.type), type]));

t.test('a pull imports all types in order; a second one changes nothing and queues nothing', async t => {
  const { count, db, pull, source } = await world(t);
  source.pageSize = 50;
  const first = await pull();
  t.equal(first.status, 200);
  t.match(first.json, { kind: 'pull', state: 'succeeded', started_by: 'setup mode', problem: null });
  t.same(first.json.starter, { kind: 'setup', name: null });
  t.same([...new Set(source.log.map(line => line.split(' ')[0]))], [...PATHS], 'in dependency order');
  for (const [type, of] of typesOf(first)) t.match(of, { state: 'succeeded', failed: 0 }, type);
  t.equal(await count('persons'), 270);
  t.equal(await count("authz_tuples WHERE relation = 'member' AND resource_type = 'subgroup'"), 240);
  const before = await count('authz_outbox');
  const state = (await db.query('SELECT max(changed_at) AS at FROM persons')).rows;
  const second = await pull();
  t.match(second.json, { state: 'succeeded' });
  for (const [type, of] of typesOf(second)) t.match(of, { created: 0, updated: 0, deactivated: 0 }, type);
  t.equal(await count('authz_outbox'), before);
  t.same((await db.query('SELECT max(changed_at) AS at FROM persons')).rows, state);
});

t.test('students whose positions come back under other ids are in their groups meanwhile', async t => {
  const university = makeUniversity(SMALL);
  const { count, pull } = await world(t, university);
  await pull();
  const students = await count("user_roles WHERE role = 'student'");
  const queued = await count('authz_outbox');
  for (const [k, record] of university['student-positions'].entries()) if (k < 40) record.external_id = `again-${k}`;
  t.match(typesOf(await pull()).get('student_position'), { state: 'succeeded', created: 40, deactivated: 40 });
  t.equal(await count("user_roles WHERE role = 'student'"), students);
  t.ok((await count('authz_outbox')) > queued);
  const lost = await count(
    `authz_outbox d WHERE id > ${queued} AND operation LIKE 'DELETE%' AND NOT EXISTS (SELECT FROM authz_outbox e
       WHERE e.operation = 'TOUCH' AND e.created_at = d.created_at AND e.keys && d.keys)`,
  );
  t.equal(lost, 0, 'what is taken from one is given again in the same transaction');
});

t.test('an unchanged list is not fetched again, unless a batch wrote to its type meanwhile', async t => {
  const { pull, s, source } = await world(t);
  await pull();
  source.log.length = 0;
  const second = await pull();
  t.match(second.json, { state: 'succeeded' });
  t.ok(
    source.log.every(line => line.endsWith(' 304')),
    source.log.join(),
  );
  t.equal(typesOf(second).get('person')?.state, 'unchanged');
  await s.admin('POST', '/university/courses', [{ external_id: 'by-hand', name: 'X' }]);
  source.log.length = 0;
  const third = await pull();
  t.same(
    source.log.filter(line => !line.endsWith(' 304')),
    ['courses 200'],
  );
  t.equal(typesOf(third).get('course')?.deactivated, 1, 'the complete list has no such course');
});

t.test('who is erased and is still at the source comes back whole with the next pull', async t => {
  const { count, pull, s, source } = await world(t);
  await pull();
  const [position] = source.university['student-positions'];
  const person = String(position?.person_external_id);
  const ofPerson = `student_positions WHERE person_external_id = '${person}'`;
  const before = await count(ofPerson);
  t.ok(before > 0);
  const found = await s.admin('GET', `/users?search=${encodeURIComponent(person)}`);
  const [user] = found.json.items as Json[];
  t.equal((await s.admin('POST', `/users/${String(user?.id)}/erase`, { erase: true })).status, 200);
  t.equal(await count(ofPerson), 0);
  t.match((await pull()).json, { state: 'succeeded' });
  t.equal(await count(ofPerson), before, 'the positions too, whose list has not changed');
});

t.test('a problem with one list is reported, and the other lists are imported', async t => {
  const { count, pull, source } = await world(t, makeUniversity(SMALL), { BOT_UNIVERSITY_SYNC_PAGE_TIMEOUT: '700ms' });
  const { courses, ...rest } = source.university;
  t.ok(courses.length > 0);
  source.university = rest as University;
  source.faults.set('semesters', { kind: 'status', status: 403 });
  source.faults.set('faculties', { kind: 'body', body: '{"faculties": []}' });
  const first = await pull();
  t.match(first.json, { state: 'partial' });
  const types = typesOf(first);
  t.equal(types.get('course')?.state, 'not_offered');
  t.match(types.get('semester'), {
    state: 'failed',
    problem: /\/api\/semesters answers 403: university_sync.token is not accepted/,
  });
  t.match(types.get('faculty'), { state: 'failed', problem: /without a list "items"/ });
  t.match(types.get('person'), { state: 'succeeded' });
  t.match(types.get('department'), { state: 'failed', failed: 4, total: 4 }, 'departments without their faculties');
  t.equal(await count('persons'), 270);
  t.notMatch(first.text, new RegExp(SOURCE_TOKEN));
  source.university = makeUniversity(SMALL);
  source.faults.clear();
  // Passing faults are tried again within one pull.
  source.pageSize = 100;
  source.faults.set('persons', { kind: 'cut', times: 1 });
  source.faults.set('courses', { kind: 'status', status: 500, times: 1 });
  source.faults.set('semesters', { kind: 'status', status: 429, retryAfter: '0', times: 2 });
  source.faults.set('faculties', { kind: 'truncated', times: 1 });
  source.faults.set('departments', { kind: 'slow', ms: 2000, times: 1 });
  const second = await pull();
  t.match(second.json, { state: 'succeeded' }, second.text);
  t.equal(await count('departments'), 4);
});

t.test('a source that offers none of the lists is a failure that names the setting', async t => {
  const { pull, source } = await world(t, makeUniversity(SMALL));
  source.university = {} as University;
  const { json } = await pull();
  t.match(json, { state: 'failed', problem: /offers none of the fourteen lists .* correct university_sync\.base_url/ });
});

t.test('one bad record does not stop its list, and keeps its former state', async t => {
  const { db, pull, source } = await world(t);
  await pull();
  const [first, second] = source.university['student-positions'];
  source.university['student-positions'] = source.university['student-positions'].map(r =>
    r === first ? { ...r, group_external_id: 'nowhere' } : r === second ? { ...r, status: 'asleep' } : r,
  );
  const a = await pull();
  t.match(a.json, { state: 'partial' });
  t.match(typesOf(a).get('student_position'), { state: 'partial', failed: 2, deactivated: 0 });
  const { rows } = await db.query('SELECT is_active FROM student_positions WHERE external_id IN ($1, $2)', [
    first?.external_id,
    second?.external_id,
  ]);
  t.same(rows, [{ is_active: true }, { is_active: true }]);
  // The source would say that the list is what it was; but it is not what was taken over.
  source.log.length = 0;
  const again = await pull();
  t.same(
    source.log.filter(line => !line.endsWith(' 304')),
    ['student-positions 200'],
    'the mark of a list with failed records is not kept',
  );
  t.match(typesOf(again).get('student_position'), { state: 'partial', failed: 2 });
});

t.test('too large, redirected or malformed answers of a source are refused, without quoting their content', async t => {
  const { count, pull, s, source } = await world(t);
  await pull();
  const problemOf = async (body: string): Promise<string> => {
    source.faults.set('persons', { kind: 'body', body });
    const a = await pull();
    source.faults.clear();
    t.equal(typesOf(a).get('person')?.state, 'failed', body.slice(0, 60));
    return String(typesOf(a).get('person')?.problem);
  };
  t.match(
    await problemOf('{"items": [], "next": "/api/persons?at=1"}'),
    /a page without items and another one behind it/,
  );
  t.match(await problemOf('{"items": [1], "next": "http://elsewhere.example/x"}'), /leads to another server/);
  t.match(await problemOf(`{"items": [1], "next": "${source.url}/persons"}`), /go round/);
  t.match(await problemOf('{"items": [1], "next": 5}'), /"next" of .* is not an address/);
  const secret = await problemOf('[{"citizenship":SECRET}]');
  t.match(secret, /element 0 is not JSON/);
  t.notMatch(secret, /SECRET|citizen/);
  t.notMatch(await problemOf('{"items": [{"citizenship":SECRET}]}'), /SECRET|citizen/);
  t.match(await problemOf(`["${'x'.repeat(300_000)}"]`), /element 0 has 300002 bytes; one may have 262144/);
  source.faults.set('persons', { kind: 'status', status: 302 });
  t.match(typesOf(await pull()).get('person')?.problem, /answers 302, which is not followed/);
  let followed = 0;
  const elsewhere = http.createServer((_, response) => {
    followed++;
    response.writeHead(200, { 'content-type': 'application/json' }).end('[]');
  });
  source.faults.set('persons', { kind: 'status', status: 307, location: await listenFor(t, elsewhere) });
  t.match(typesOf(await pull()).get('person'), { state: 'failed', problem: /answers 307, which is not followed/ });
  t.equal(followed, 0, 'no other server is asked');
  source.faults.clear();
  // One record that is nested too deeply spoils no other; one without its id marks no other as missing.
  const all = source.university.persons;
  source.university.persons = [
    ...all.slice(1),
    JSON.parse(`{"external_id":"deep","last_name":${'['.repeat(1000)}${']'.repeat(1000)}}`),
  ];
  t.match(typesOf(await pull()).get('person'), { state: 'partial', failed: 1, deactivated: 0, problem: null });
  source.university.persons = all.map((r, k) => (k === 3 ? ({ ...r, external_id: 3 } as unknown as typeof r) : r));
  t.match(typesOf(await pull()).get('person'), { state: 'partial', failed: 1, deactivated: 0 });
  t.equal(await count('persons WHERE is_active'), all.length);
  source.university.persons = all;
  t.match((await pull()).json, { state: 'succeeded' });
  await t.rejects(startTestService({ BOT_UNIVERSITY_SYNC_ENABLED: 'true' }, s), {
    message: /university_sync.base_url \(BOT_UNIVERSITY_SYNC_BASE_URL\) is missing/,
  });
  for (const url of ['http://u:p@x.example', 'http://x.example/?a', 'http://x.example/#a', 'ftp://x'])
    await t.rejects(startTestService({ BOT_UNIVERSITY_SYNC_BASE_URL: url }, s), {
      message: /without a name, a password/,
    });
});

t.test('a batch that comes in while a list is taken over is not hidden by its mark', async t => {
  const { pull, s, source } = await world(t);
  await pull();
  // The same list is asked for; while it is under way a batch writes.
  source.university.courses = [...source.university.courses].reverse();
  const [asked, written] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  source.faults.set('courses', { kind: 'held', asked: asked.resolve, until: written.promise, times: 1 });
  const under = pull();
  await asked.promise;
  await s.admin('POST', '/university/courses', [{ external_id: 'between', name: 'X' }]);
  written.resolve();
  await under;
  const next = await pull();
  t.equal(typesOf(next).get('course')?.state, 'succeeded', 'it was fetched again');
});

t.test('a list that has lost more than a fifth stops only its type, until an administrator confirms it', async t => {
  const { count, pull, s, source } = await world(t);
  await pull();
  const all = source.university['student-subgroups'];
  source.university['student-subgroups'] = all.slice(0, 191);
  const stopped = await pull();
  t.match(stopped.json, { state: 'partial' });
  t.match(typesOf(stopped).get('student_subgroup'), {
    state: 'stopped',
    problem: /make 49 of 240 active records inactive, more than 20 %/,
  });
  t.equal(await count('student_subgroups WHERE is_active'), 240);
  t.equal(typesOf(stopped).get('teaching_assignment')?.state, 'unchanged', 'the others go on');
  t.same(typesOf(stopped).get('student_subgroup')?.brake, { ending: 49, active: 240 });
  t.equal(typesOf(stopped).get('teaching_assignment')?.brake, null);
  await t.test('the records it would end are listed, with whose they are', async t => {
    const ending = async (query: string) =>
      (await s.admin('GET', `/university/imports/${stopped.json.id}/ending/${query}`)).json;
    const first = await ending('student_subgroup?limit=40');
    const rest = await ending(`student_subgroup?limit=40&cursor=${encodeURIComponent(String(first.next_cursor))}`);
    t.same([(rest.items as Json[]).length, rest.next_cursor], [9, null]);
    const found = [...(first.items as Json[]), ...(rest.items as Json[])];
    t.same(
      found.map(r => r.external_id),
      all
        .slice(191)
        .map(r => r.external_id)
        .sort(),
    );
    const person = source.university.persons.find(p => p.external_id === all.at(-1)?.person_external_id);
    const mine = found.find(r => r.external_id === all.at(-1)?.external_id);
    t.match(mine?.name, new RegExp(`^${person?.last_name} ${person?.first_name}`));
    t.same((await ending('person')).items, [], 'of a type that was not stopped there are none');
    t.equal((await ending('pigeon')).status, 404);
    t.equal((await s.admin('GET', '/university/imports/999999/ending/person')).status, 404);
  });
  source.university['student-subgroups'] = all.map((r, k) => ({ ...r, is_active: k >= 60 }));
  t.equal(typesOf(await pull()).get('student_subgroup')?.state, 'stopped', 'nor may as many be switched off');
  source.university['student-subgroups'] = [];
  t.equal(typesOf(await pull()).get('student_subgroup')?.state, 'stopped', 'an empty list least of all');
  t.equal((await pull({ release_brake: ['pigeon'] })).status, 422);
  source.university['student-subgroups'] = all.slice(0, 191);
  const fewer = await pull({ release_brake: ['student_subgroup'], ending_max: 48 });
  t.equal(typesOf(fewer).get('student_subgroup')?.state, 'stopped', 'nor more than were confirmed');
  t.equal(await count('student_subgroups WHERE is_active'), 240);
  const released = await pull({ release_brake: ['student_subgroup'], ending_max: 49 });
  t.match(typesOf(released).get('student_subgroup'), { state: 'succeeded', deactivated: 49 });
  t.equal(await count("authz_tuples WHERE resource_type = 'subgroup' AND relation = 'member'"), 191);
  // At most a fifth goes by itself, and comes back.
  source.university['student-subgroups'] = all.slice(0, 160);
  t.match(typesOf(await pull()).get('student_subgroup'), { state: 'succeeded', deactivated: 31 });
  source.university['student-subgroups'] = all;
  t.match(typesOf(await pull()).get('student_subgroup'), { state: 'succeeded', updated: 80 });
  t.equal(await count("authz_tuples WHERE resource_type = 'subgroup' AND relation = 'member'"), 240);
});

t.test('of two pulls at once one is refused; progress is seen; without a source there is none', async t => {
  const { s, source } = await world(t);
  source.faults.set('persons', { kind: 'slow', ms: 400, times: 1 });
  const begun = await s.admin('POST', '/university/pull', {});
  t.equal(begun.status, 202);
  t.match(begun.json, { state: 'running' });
  const refused = await s.admin('POST', '/university/pull', {});
  t.match(refused.json, { status: 409, detail: /a pull is under way/ });
  const other = await startTestService(
    { BOT_UNIVERSITY_SYNC_BASE_URL: source.url, BOT_UNIVERSITY_SYNC_TOKEN: SOURCE_TOKEN },
    s,
  );
  t.teardown(() => other.stop());
  t.equal((await other.admin('POST', '/university/pull', {})).status, 409, 'nor on another host');
  const where = begun.headers.get('location')?.replace('/api/admin', '') ?? '';
  const states = new Set<string>();
  for (let state = 'running'; state === 'running'; ) {
    const run = await s.admin('GET', where);
    state = String(run.json.state);
    for (const type of run.json.types as Json[]) states.add(String(type.state));
  }
  t.ok(states.has('waiting') && states.has('fetching') && states.has('succeeded'), [...states].join());
  // The lock is let go behind the state that was seen.
  let again = await s.admin('POST', '/university/pull?wait=1', {});
  while (again.status === 409) again = await s.admin('POST', '/university/pull?wait=1', {});
  t.equal(again.status, 200, 'the lock is free again');
  const alone = await startTestService();
  t.teardown(() => alone.stop());
  t.match((await alone.admin('POST', '/university/pull', {})).json, {
    status: 409,
    detail: /set university_sync.base_url/,
  });
});

t.test(
  'a pull that is asked for is an entry of the audit log with what it releases; one that is refused is none',
  async t => {
    const { pull, s } = await world(t);
    const [first, second] = [await pull(), await pull({ release_brake: ['group'] })];
    t.equal((await pull({ release_brake: ['king'] })).status, 422);
    const { json } = await s.admin('GET', '/audit?object_type=import');
    const by = { action: 'university.pull', actor: { kind: 'setup', name: 'setup mode' } };
    t.match(json.items, [
      { ...by, object_id: String(second.json.id), after: { release_brake: ['group'] } },
      { ...by, object_id: String(first.json.id), after: { release_brake: [] } },
    ]);
    t.equal((json.items as unknown[]).length, 2);
  },
);

t.test('enabled, it pulls by itself at its interval, on one of many hosts; disabled, it never does', async t => {
  const env = { BOT_UNIVERSITY_SYNC_ENABLED: 'true', BOT_UNIVERSITY_SYNC_INTERVAL: '2s' };
  const off = await world(t, makeUniversity(SMALL), { BOT_UNIVERSITY_SYNC_INTERVAL: '1s' });
  const { db, s, source } = await world(t, makeUniversity(SMALL), env);
  const second = await startTestService(
    { ...env, BOT_UNIVERSITY_SYNC_BASE_URL: source.url, BOT_UNIVERSITY_SYNC_TOKEN: SOURCE_TOKEN },
    s,
  );
  t.teardown(() => second.stop());
  type Span = { started_at: Date; finished_at: Date; started_by: string };
  let spans: Span[] = [];
  while (spans.length < 3) {
    await new Promise(resolve => setTimeout(resolve, 100));
    spans = (await db.query<Span>("SELECT * FROM university_imports WHERE state = 'succeeded' ORDER BY id")).rows;
  }
  t.equal(spans[0]?.started_by, 'schedule');
  for (let k = 1; k < spans.length; k++) t.ok(spans[k]!.started_at >= spans[k - 1]!.finished_at, 'one after the other');
  t.same(off.source.log, [], 'nothing was asked of the other source');
  t.equal(await off.count('university_imports'), 0);
});
