import t from 'tap';
import { openDatabase } from '../../src/db/database.ts';
import { ENTITIES } from '../../src/university/entities.ts';
import { CookieJar } from '../support/identity-provider.ts';
import { type Answer, type Json, request, startTestService, TOKEN } from '../support/service.ts';
import { PATHS, type Rec } from '../support/university.ts';

const KEY = 'university-api-key-of-tests';

type Scope = { teardown(fn: () => unknown): void };

async function world(t: Scope, env: Record<string, string> = {}) {
  const s = await startTestService({ BOT_ADMIN_API_KEY: KEY, BOT_EXECUTION_LANES: '1', ...env });
  t.teardown(() => s.stop());
  const db = openDatabase(s.databaseUrl, 2, () => {});
  t.teardown(() => db.close());
  const raw = (where: string, body: string, headers: Record<string, string> = {}): Promise<Answer> =>
    request(`${s.base}/api/admin/university/${where}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', ...headers },
      body,
    });
  const post = (where: string, records: unknown): Promise<Answer> => raw(where, JSON.stringify(records));
  /** Posts records that are all right. */
  const put = async (where: string, ...records: Rec[]): Promise<void> => {
    const a = await post(where, records);
    if (a.status !== 200) throw new Error(`${where}: ${a.status} ${a.text}`);
  };
  /** The graph, as text. */
  const graph = async (): Promise<string[]> => {
    const { rows } = await db.query<{ t: string }>(
      `SELECT resource_type || ':' || resource_id || '#' || relation || '@' || subject_type || ':' || subject_id AS t FROM authz_tuples ORDER BY 1`,
    );
    return rows.map(r => r.t);
  };
  let seen = 0;
  /** Entries of the outbox since the last call, each as its operation and what it names. */
  const queued = async (): Promise<string[]> => {
    const { rows } = await db.query<{ id: string; operation: string; payload: Payload }>(
      'SELECT id, operation, payload FROM authz_outbox WHERE id > $1 ORDER BY id',
      [seen],
    );
    seen = Number(rows.at(-1)?.id ?? seen);
    return rows.map(
      r =>
        `${r.operation} ${[filterText(r.payload.filter), ...(r.payload.tuples ?? []).map(tupleText)].join(' ').trim()}`,
    );
  };
  return { s, db, raw, post, put, graph, queued };
}

type Part = Record<'resource_type' | 'resource_id' | 'relation' | 'subject_type' | 'subject_id', string>;
type Payload = { filter?: Partial<Part>; tuples?: Part[] };
const tupleText = (p: Part): string =>
  `${p.resource_type}:${p.resource_id}#${p.relation}@${p.subject_type}:${p.subject_id}`;
const filterText = (f: Partial<Part> | undefined): string =>
  f === undefined
    ? ''
    : `[${f.resource_type ?? '*'}:${f.resource_id ?? '*'}#${f.relation ?? '*'}@${f.subject_type ?? '*'}:${f.subject_id ?? '*'}]`;

/** One right record of each type, each naming those before it. */
const RIGHT: Record<string, Rec> = {
  persons: { external_id: 'e1', last_name: 'Иванова', first_name: 'Анна' },
  courses: { external_id: 'c1', name: 'Алгебра' },
  semesters: {
    external_id: 's1',
    name: 'Осень',
    academic_year: '2026/2027',
    start_date: '2026-09-01',
    end_date: '2027-01-31',
  },
  faculties: { external_id: 'f1', name: 'Факультет' },
  departments: { external_id: 'd1', name: 'Кафедра', faculty_external_id: 'f1' },
  programs: { external_id: 'p1', name: 'Программа', department_external_id: 'd1' },
  streams: { external_id: 'st1', name: 'Поток', program_external_id: 'p1' },
  groups: { external_id: 'g1', name: 'Группа', stream_external_id: 'st1' },
  subgroups: { external_id: 'sg1', name: 'Подгруппа', group_external_id: 'g1' },
  'teacher-positions': { external_id: 'tp1', person_external_id: 'e1', department_external_id: 'd1', title: 'доцент' },
  'student-positions': { external_id: 'sp1', person_external_id: 'e1', group_external_id: 'g1' },
  'student-subgroups': { external_id: 'ss1', person_external_id: 'e1', subgroup_external_id: 'sg1' },
  'teaching-assignments': {
    external_id: 'ta1',
    person_external_id: 'e1',
    stream_external_id: 'st1',
    course_external_id: 'c1',
    semester_external_id: 's1',
  },
  'admin-appointments': {
    external_id: 'aa1',
    person_external_id: 'e1',
    object_type: 'faculty',
    object_external_id: 'f1',
    role: 'dean',
  },
};

/** What each row of docs/university.md "Types" queues for its record above. */
const QUEUES: Record<string, string[]> = {
  persons: [],
  courses: [],
  semesters: [],
  faculties: [],
  departments: ['REPLACE [department:d1#parent@*:*] department:d1#parent@faculty:f1'],
  programs: ['REPLACE [program:p1#parent@*:*] program:p1#parent@department:d1'],
  streams: ['REPLACE [stream:st1#parent@*:*] stream:st1#parent@program:p1'],
  groups: ['REPLACE [study_group:g1#parent@*:*] study_group:g1#parent@stream:st1'],
  subgroups: ['REPLACE [subgroup:sg1#parent@*:*] subgroup:sg1#parent@study_group:g1'],
  'teacher-positions': [],
  'student-positions': ['DELETE_BY_SUBJECT [study_group:*#member@user:e1]', 'TOUCH study_group:g1#member@user:e1'],
  'student-subgroups': ['TOUCH subgroup:sg1#member@user:e1'],
  'teaching-assignments': ['TOUCH stream:st1#teacher@user:e1'],
  'admin-appointments': ['TOUCH faculty:f1#dean@user:e1'],
};

async function fill({ put }: { put(where: string, ...records: Rec[]): Promise<void> }, ...left: string[]) {
  for (const path of PATHS) if (!left.includes(path)) await put(path, RIGHT[path]!);
}

t.test('every row of the table queues its operation with its tuples, once', async t => {
  const { db, post, queued } = await world(t);
  for (const path of PATHS) {
    const a = await post(path, [RIGHT[path]]);
    t.equal(a.status, 200, path);
    t.same(a.json, { total: 1, success: 1, errors: [] });
    t.same(await queued(), QUEUES[path], path);
    const table = ENTITIES.find(e => e.path === path)?.table;
    const { rows: before } = await db.query(`SELECT * FROM ${table}`);
    t.equal(rows(before), 1);
    t.same((await post(path, [RIGHT[path]])).json, { total: 1, success: 1, errors: [] });
    t.same(await queued(), [], `${path} again writes nothing`);
    t.same((await db.query(`SELECT * FROM ${table}`)).rows, before);
  }
});
const rows = (list: unknown[]): number => list.length;

t.test('appointments and audiences: each role writes its relation, and no other pair is taken', async t => {
  const { post, put, queued } = await world(t);
  await fill({ put }, 'admin-appointments', 'teaching-assignments');
  await queued();
  const base = RIGHT['admin-appointments']!;
  const objects: Record<string, [string, string]> = {
    faculty: ['faculty', 'f1'],
    department: ['department', 'd1'],
    program: ['program', 'p1'],
    stream: ['stream', 'st1'],
    group: ['study_group', 'g1'],
  };
  const right = [
    'faculty dean',
    'faculty staff',
    'department head',
    'department staff',
    'program director',
    'program staff',
    'stream curator',
    'group curator',
  ];
  let n = 0;
  for (const [type, [name, id]] of Object.entries(objects))
    for (const role of ['dean', 'head', 'director', 'curator', 'staff']) {
      const a = await post('admin-appointments', [
        { ...base, external_id: `a${n++}`, object_type: type, object_external_id: id, role },
      ]);
      if (right.includes(`${type} ${role}`)) {
        t.equal(a.status, 200);
        t.same(await queued(), [`TOUCH ${name}:${id}#${role}@user:e1`]);
      } else {
        t.equal(a.status, 422, `${role} of a ${type}`);
        t.match(a.json, { errors: [{ field: 'role', code: 'invalid', message: /^\/0\/role must be \w+/ }] });
        t.same(await queued(), []);
      }
    }
  await put('teaching-assignments', { ...RIGHT['teaching-assignments']!, audience: 'foreign' });
  t.same(await queued(), ['TOUCH stream:st1#foreign_teacher@user:e1']);
  await put('teaching-assignments', { ...RIGHT['teaching-assignments']!, audience: 'all' });
  t.same(await queued(), ['DELETE stream:st1#foreign_teacher@user:e1', 'TOUCH stream:st1#teacher@user:e1']);
});

t.test('moves, second positions, endings and reactivation leave exactly the right tuples', async t => {
  const w = await world(t);
  const { graph, put, s } = w;
  await fill(w);
  await put('groups', { external_id: 'g2', name: 'Вторая', stream_external_id: 'st1' });
  await put('persons', { external_id: 'e2', last_name: 'Петров', first_name: 'Пётр' });
  const groupsOf = async (person: string): Promise<string[]> =>
    (await graph())
      .filter(x => x.startsWith('study_group') && x.endsWith(`#member@user:${person}`))
      .map(x => /:(\w+)#/.exec(x)![1]!);
  // By hand, and another relation: an import leaves both.
  await s.admin('POST', '/relationships', {
    resource_type: 'study_group',
    resource_id: 'g9',
    relation: 'member',
    subject_id: 'e1',
  });
  await s.admin('POST', '/relationships', {
    resource_type: 'study_group',
    resource_id: 'g1',
    relation: 'curator',
    subject_id: 'e1',
  });
  const position = RIGHT['student-positions']!;
  await put('student-positions', { ...position, group_external_id: 'g2' });
  t.same(await groupsOf('e1'), ['g2', 'g9'], 'a move');
  await put('student-positions', { ...position, external_id: 'sp2' });
  t.same(await groupsOf('e1'), ['g1', 'g2', 'g9'], 'a second position');
  await put('student-positions', { ...position, status: 'expelled' });
  t.same(await groupsOf('e1'), ['g1', 'g9'], 'one ends, the other stays');
  await put('student-positions', { ...position, external_id: 'sp3', group_external_id: 'g1' });
  await put('student-positions', { ...position, external_id: 'sp2', end_date: '2025-01-31' });
  t.same(await groupsOf('e1'), ['g1', 'g9'], 'of two positions in one group one ends');
  await put('student-positions', { ...position, external_id: 'sp3', person_external_id: 'e2' });
  t.same(await groupsOf('e1'), ['g9'], 'a position passes to another person');
  t.same(await groupsOf('e2'), ['g1']);
  await put('student-positions', { ...position, external_id: 'sp3', person_external_id: 'e2', is_active: false });
  t.same(await groupsOf('e2'), []);
  await put('student-positions', { ...position, external_id: 'sp3', person_external_id: 'e2' });
  t.same(await groupsOf('e2'), ['g1'], 'reactivated');
  for (const [status, holds] of [
    ['leave', true],
    ['graduated', false],
    ['studying', true],
  ] as const) {
    await put('student-positions', { ...position, external_id: 'sp3', person_external_id: 'e2', status });
    t.same(await groupsOf('e2'), holds ? ['g1'] : [], status);
  }
  await put('student-positions', {
    ...position,
    external_id: 'sp3',
    person_external_id: 'e2',
    start_date: '2999-09-01',
  });
  t.same(await groupsOf('e2'), [], 'not before it begins');
  t.ok((await graph()).includes('study_group:g1#curator@user:e1'), 'no other relation is touched');

  // Two records give one tuple; it goes with the last of them.
  const assignment = RIGHT['teaching-assignments']!;
  await put('courses', { external_id: 'c2', name: 'Анализ' });
  await put('teaching-assignments', { ...assignment, external_id: 'ta2', course_external_id: 'c2' });
  await put('teaching-assignments', { ...assignment, is_active: false });
  t.ok((await graph()).includes('stream:st1#teacher@user:e1'));
  await put('teaching-assignments', { ...assignment, external_id: 'ta2', course_external_id: 'c2', is_active: false });
  t.notOk((await graph()).includes('stream:st1#teacher@user:e1'));

  // A group that moves, a node that ends and comes back.
  await put('streams', { external_id: 'st2', name: 'Второй', program_external_id: 'p1' });
  await put('groups', { ...RIGHT.groups!, stream_external_id: 'st2' });
  const parents = async () => (await graph()).filter(x => x.startsWith('study_group:g1#parent'));
  t.same(await parents(), ['study_group:g1#parent@stream:st2']);
  await put('groups', { ...RIGHT.groups!, stream_external_id: 'st2', is_active: false });
  t.same(await parents(), []);
  await put('groups', { ...RIGHT.groups!, stream_external_id: 'st2' });
  t.same(await parents(), ['study_group:g1#parent@stream:st2']);
});

t.test('a wrong record is reported with every mistake, and does not affect other records', async t => {
  const w = await world(t);
  const { db, graph, post } = w;
  await fill(w);
  const before = await graph();
  for (const entity of ENTITIES) {
    const right = RIGHT[entity.path]!;
    const good = { ...right, external_id: 'good' };
    for (const field of Object.keys(right)) {
      const { [field]: _, ...without } = { ...right, external_id: 'bad' } as Rec;
      const a = await post(entity.path, [without, good]);
      t.equal(a.status, 206, `${entity.type} without ${field}`);
      t.match(a.json, {
        total: 2,
        success: 1,
        errors: [
          {
            index: 0,
            external_id: field === 'external_id' ? null : 'bad',
            field,
            code: 'missing',
            message: `/0/${field} is missing; it must be`,
          },
        ],
      });
      const wrong = await post(entity.path, [{ ...right, external_id: 'bad', [field]: 17 }]);
      t.equal(wrong.status, 422, `${entity.type} with a number as ${field}`);
      t.match(wrong.json, { total: 1, success: 0, errors: [{ index: 0, field, code: 'invalid' }] });
    }
    for (const [field, { references }] of Object.entries(entity.fields)) {
      if (references === undefined) continue;
      const a = await post(entity.path, [good, { ...right, external_id: 'bad', [field]: 'missing' }]);
      t.equal(a.status, 206, `${entity.type} with an unknown ${field}`);
      t.match(a.json, {
        success: 1,
        errors: [
          {
            index: 1,
            external_id: 'bad',
            field,
            code: 'unknown_reference',
            message: /^\/1\/\w+ names [\w ]+ "missing"/,
          },
        ],
      });
    }
    t.equal((await db.query(`SELECT 1 FROM ${entity.table} WHERE external_id = 'bad'`)).rows.length, 0);
    await post(entity.path, [{ ...good, is_active: false }]);
  }
  const a = await post('admin-appointments', [{ ...RIGHT['admin-appointments'], object_external_id: 'nowhere' }]);
  t.match(a.json, { errors: [{ field: 'object_external_id', code: 'unknown_reference' }] });
  t.same(await graph(), before);
});

t.test('a value that only the database refuses, or a conflict of fields, fails only its record', async t => {
  const w = await world(t);
  await fill(w);
  const person = (k: number, more: Record<string, unknown> = {}): Rec => ({
    ...RIGHT.persons!,
    external_id: `x${k}`,
    ...more,
  });
  const a = await w.post('persons', [
    person(0),
    person(1, { metadata: { note: 'a\0b' } }),
    person(2, { first_name: 'a\0b' }),
    'text',
    null,
    person(3, { metadata: { big: 'x'.repeat(20_000) } }),
    person(4, { locale: 'de', channels: [{ channel: 'PIGEON', external_id: '1' }] }),
    person(5, { shoe_size: 43, metadata: { hat: 'L' } }),
    person(6, { external_id: 'x'.repeat(129) }),
    person(0, { first_name: 'Другая' }),
  ]);
  t.equal(a.status, 206);
  t.match(a.json, {
    total: 10,
    success: 2,
    errors: [
      { index: 1, field: null, code: 'invalid' },
      { index: 2, field: 'first_name', code: 'invalid' },
      { index: 3, external_id: null, code: 'not_an_object', message: '/3 must be an object' },
      { index: 4, code: 'not_an_object' },
      { index: 5, field: 'metadata', code: 'invalid' },
      { index: 6, field: 'locale', message: '/6/locale must be one of ru, en' },
      { index: 6, field: 'channels/0/channel' },
      { index: 8, field: 'external_id', code: 'invalid' },
      {
        index: 9,
        external_id: 'x0',
        field: 'external_id',
        code: 'duplicate',
        message: /^\/9\/external_id is the same as that of \/0/,
      },
    ],
  });
  const { rows } = await w.db.query(
    "SELECT external_id, first_name, metadata FROM persons WHERE external_id LIKE 'x%' ORDER BY 1",
  );
  t.same(rows, [
    { external_id: 'x0', first_name: 'Анна', metadata: {} },
    { external_id: 'x5', first_name: 'Анна', metadata: { hat: 'L', shoe_size: 43 } },
  ]);
  const b = await w.post('semesters', [
    { ...RIGHT.semesters, end_date: '2026-01-01' },
    { ...RIGHT.semesters, external_id: 's2', start_date: '2026-02-30' },
  ]);
  t.match(b.json, {
    success: 0,
    errors: [{ field: 'end_date' }, { field: 'start_date', message: /must be a date like/ }],
  });
});

t.test('a record that is refused for its id does not stand in the way of another one', async t => {
  const { post } = await world(t);
  const faculty = (external_id: string): Rec => ({ external_id, name: 'F' });
  const a = await post('faculties', [faculty('A'.repeat(129)), faculty('A'.repeat(128))]);
  t.match(a.json, { total: 2, success: 1 });
  t.same(
    (a.json.errors as Json[]).map(e => [e.index, e.field]),
    [[0, 'external_id']],
  );
  const late = { ...faculty('late'), updated_at: `2026-09-01T00:00:00.${'1'.repeat(200)}Z` };
  t.equal((await post('faculties', [late])).status, 200, 'more digits of a second than the database reads');
});

t.test('a text that the database cannot hold fails only its record, and is in the import log', async t => {
  const { raw, db, post } = await world(t);
  for (const bad of ['nul \u0000 inside', 'half a pair \ud800']) {
    const a = await post('persons', [
      { external_id: bad, first_name: 'N', last_name: 'N' },
      { external_id: 'p-1', first_name: bad, last_name: 'N' },
      { external_id: 'p-2', first_name: 'Right', last_name: 'N', metadata: { note: bad } },
      { external_id: 'p-right', first_name: 'Right', last_name: 'N' },
    ]);
    t.equal(a.status, 206, JSON.stringify(a.json));
    t.match(a.json.errors, [{ index: 0 }, { index: 1 }], 'each names its record');
    const { rows } = await db.query("SELECT FROM persons WHERE external_id = 'p-right'");
    t.equal(rows.length, 1);
    const { rows: kept } = await db.query<{ external_id: string }>(
      'SELECT external_id FROM university_import_errors WHERE import_id = (SELECT max(id) FROM university_imports) ORDER BY index',
    );
    t.equal(kept[0]?.external_id, bad.replace('\u0000', '\\x00').toWellFormed());
    t.equal(
      (await raw('persons', JSON.stringify([{ external_id: 'p-right', first_name: 'Right', last_name: 'N' }]))).status,
      200,
    );
  }
});

t.test('a body that is not an array of records is refused and changes nothing', async t => {
  const { db, post, raw } = await world(t);
  t.same((await post('persons', [])).json, { total: 0, success: 0, errors: [] });
  t.equal((await post('persons', [])).status, 200);
  const good = JSON.stringify(RIGHT.persons);
  for (const [body, status, detail] of [
    ['', 400, /empty/],
    ['{"items": []}', 422, /must be a JSON array of records, not an object/],
    ['"text"', 422, /not a string/],
    ['17', 422, /not a number/],
    ['null', 422, /not null/],
    ['<xml>', 400, /byte 0/],
    [`[${good}`, 400, /breaks off in element 1?/],
    [`[${good},`, 400, /breaks off/],
    [`[${good},]`, 400, /an element is missing/],
    [`[,${good}]`, 400, /an element is missing/],
    [`[${good} ${good}]`, 400, /element 0/],
    [`[${good}]x`, 400, /something follows/],
    [`[${good},{"external_id":}]`, 400, /element 1/],
    [`[${good},{"a":"\\x"}]`, 400, /element 1/],
    [`[${good},"${'x'.repeat(300_000)}"]`, 413, /element 1/],
  ] as const) {
    const a = await raw('persons', body);
    t.equal(a.status, status, body.slice(0, 60));
    t.match(a.json, { detail });
  }
  t.equal((await raw('persons', '[]', { 'content-type': 'text/csv' })).status, 415);
  t.equal((await raw('nobodies', '[]')).status, 404);
  t.match((await raw('persons?dryrun=1', '[]')).json, { status: 422, detail: /dryrun is not a parameter/ });
  t.equal((await raw('persons?dry_run=perhaps', '[]')).status, 422);
  t.equal((await db.query('SELECT 1 FROM persons')).rows.length, 0);
});

t.test('only the university key, or a session with a recent password, may import', async t => {
  const { raw, s } = await world(t);
  const refused = async (headers: Record<string, string>, status = 401): Promise<void> => {
    const a = await raw('persons', '[]', headers);
    t.equal(a.status, status, JSON.stringify(headers));
    t.equal((await request(`${s.base}/api/admin/university/imports`, { headers })).status, status);
  };
  t.equal((await raw('persons', '[]', { authorization: 'Bearer test-setup-token' })).status, 200, 'in setup mode');
  for (const headers of [{ authorization: `Bearer ${KEY}x` }, { authorization: '' }]) {
    const a = await raw('persons', '[]', headers);
    t.match(a.json, { status: 401, detail: /send admin\.api_key as/ });
    t.equal(/^this is not the key: /.test(String(a.json.detail)), headers.authorization !== '');
  }
  await s.admin('POST', '/auth/setup', { email: 'a@uni.example', password: 'a long password' });
  await refused({ authorization: '' });
  await refused({ authorization: `Bearer ${KEY}x` });
  await refused({ authorization: `Bearer ${KEY.slice(1)}` });
  await refused({ authorization: 'Bearer test-setup-token' });
  await refused({ authorization: `Basic ${KEY}` });
  t.equal(
    (await request(`${s.base}/api/admin/plugins`, { headers: { authorization: `Bearer ${KEY}` } })).status,
    401,
    'the key opens nothing else',
  );
  const login = await request(`${s.base}/api/admin/auth/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ email: 'a@uni.example', password: 'a long password' }),
  });
  const cookie = login.headers
    .getSetCookie()
    .map(c => c.split(';')[0])
    .join('; ');
  t.equal((await raw('persons', '[]', { authorization: '', cookie })).status, 200);
  const db = openDatabase(s.databaseUrl, 1, () => {});
  await db.query("UPDATE sessions SET password_at = now() - interval '11 minutes'");
  await db.close();
  t.match((await raw('persons', '[]', { authorization: '', cookie })).json, { code: 'password_confirmation_required' });
});

t.test('a dry run reports what would change and writes nothing', async t => {
  const w = await world(t);
  await fill(w, 'student-positions', 'admin-appointments');
  await w.queued();
  const count = async (): Promise<string> =>
    JSON.stringify(
      (
        await w.db.query(
          'SELECT (SELECT count(*) FROM student_positions) a, (SELECT count(*) FROM authz_tuples) b, (SELECT count(*) FROM university_imports) c',
        )
      ).rows,
    );
  const before = await count();
  const position = RIGHT['student-positions']!;
  const a = await w.post('student-positions?dry_run=1', [
    position,
    { ...position, external_id: 'sp2', group_external_id: 'none' },
  ]);
  t.equal(a.status, 206);
  t.match(a.json, { total: 2, success: 1, errors: [{ index: 1, code: 'unknown_reference' }] });
  t.equal(a.headers.get('x-import-id'), null);
  t.equal(await count(), before);
  t.same(await w.queued(), []);
});

t.test('the import log lists the imports and their mistakes', async t => {
  const { post, s } = await world(t);
  const many = Array.from({ length: 1500 }, (_, k) => ({ external_id: `p${k}`, last_name: 'Л' }));
  const a = await post('persons', [...many, RIGHT.persons]);
  t.equal(a.status, 206);
  t.equal((a.json.errors as unknown[]).length, 1000);
  t.equal(a.json.errors_total, 1500);
  const id = a.headers.get('x-import-id');
  t.match((await s.admin('GET', `/university/imports/${id}`)).json, {
    kind: 'batch',
    state: 'partial',
    started_by: 'admin.api_key',
    types: [{ type: 'person', state: 'partial', total: 1501, success: 1, created: 1, failed: 1500 }],
  });
  const page = await s.admin('GET', `/university/imports/${id}/errors?limit=200`);
  t.equal((page.json.items as unknown[]).length, 200);
  t.match(page.json, {
    items: [{ type: 'person', index: 0, external_id: 'p0', field: 'first_name', code: 'missing' }],
  });
  let [sum, cursor] = [200, page.json.next_cursor];
  while (cursor !== null) {
    const next = await s.admin('GET', `/university/imports/${id}/errors?limit=200&cursor=${cursor}`);
    sum += (next.json.items as unknown[]).length;
    cursor = next.json.next_cursor ?? null;
  }
  t.equal(sum, 1500);
  const table = await s.admin('GET', `/university/imports/${id}/errors.csv`);
  const lines = table.text.trimEnd().split(/\r\n/);
  t.equal(lines.length, 1501, 'a heading, and a line for each error');
  t.match(lines[0], /type.*index.*external_id.*field.*code.*message/);
  t.match(lines[1], /^person,0,p0,first_name,missing,/);
  t.equal((await s.admin('GET', '/university/imports/99999')).status, 404);
  t.match((await s.admin('GET', '/university/imports?limit=1')).json, {
    items: [{ id: Number(id) }],
    next_cursor: null,
  });
});

t.test(
  'each import is one entry of the audit log: who, which type, how many; a dry run and a refusal are none',
  async t => {
    const { post, raw, s } = await world(t);
    const { base } = s;
    const people = (...ids: string[]) => ids.map(id => ({ external_id: id, last_name: 'A', first_name: 'B' }));
    const done = await post('persons', people('a', 'b'));
    const some = await post('persons', [...people('a', 'c'), { external_id: 'd' }]);
    t.equal(some.status, 206);
    await post('courses', []);
    await post('persons?dry_run=1', people('e'));
    await raw('persons', '{"external_id": "f"}');
    await raw('persons', '[{"external_id": "g"');
    const send = (where: string, headers: Record<string, string>, body: unknown) =>
      request(`${base}/api/admin${where}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
      });
    const first = { email: 'root@uni.example', password: 'correct horse battery' };
    const jar = new CookieJar();
    jar.take((await send('/auth/setup', { authorization: `Bearer ${TOKEN}` }, first)).headers);
    t.equal((await send('/university/courses', jar.header, [{ external_id: 'c', name: 'C' }])).status, 200);
    const key = (await send('/keys', jar.header, { name: 'sis', scopes: ['university'] })).json;
    const byKey = await send('/university/persons', { authorization: `Bearer ${key.key}` }, people('a'));

    const log = await request(`${base}/api/admin/audit?object_type=import`, { headers: jar.header });
    const entries = (log.json.items as Json[]).toReversed();
    const importKey = { kind: 'import_key', global_user_id: null, name: 'admin.api_key' };
    const none = { total: 0, success: 0, created: 0, updated: 0, failed: 0 };
    t.match(entries, [
      {
        action: 'university.import',
        object_id: done.headers.get('x-import-id'),
        actor: importKey,
        address: '127.0.0.1',
        before: null,
        after: { ...none, type: 'person', state: 'succeeded', total: 2, success: 2, created: 2 },
      },
      {
        object_id: some.headers.get('x-import-id'),
        actor: importKey,
        after: { ...none, type: 'person', state: 'partial', total: 3, success: 2, created: 1, failed: 1 },
      },
      { actor: importKey, after: { ...none, type: 'course', state: 'succeeded' } },
      { actor: { kind: 'admin', name: 'root@uni.example' }, after: { type: 'course', created: 1 } },
      {
        object_id: byKey.headers.get('x-import-id'),
        actor: { kind: 'admin_key', admin_key_id: key.id, name: 'sis' },
        after: { ...none, type: 'person', total: 1, success: 1 },
      },
    ]);
    t.equal(entries.length, 5);
    t.notMatch(log.text, /last_name|external_id/, 'records do not stand in it');
    t.match((await request(`${base}/api/admin/audit/${entries[0]?.id}`, { headers: jar.header })).json, entries[0]);
  },
);
