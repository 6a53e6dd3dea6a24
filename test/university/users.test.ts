import path from 'node:path';
import t from 'tap';
import { openDatabase } from '../../src/db/database.ts';
import { findUser } from '../../src/identity/find-users.ts';
import { findAccountUser, linkAccount, makeLinkCode } from '../../src/identity/messenger-accounts.ts';
import { addUserToken } from '../../src/identity/user-tokens.ts';
import { addUser, findOrAddIdpUser } from '../../src/identity/users.ts';
import { Imports } from '../../src/university/imports.ts';
import { startGraphStore } from '../support/graph.ts';
import { ROOT_EMAIL, startWithRoot } from '../support/root-admin.ts';
import { type Json, request, startTestService } from '../support/service.ts';
import { makeUniversity, PATHS, type Rec } from '../support/university.ts';

type Scope = { teardown(fn: () => unknown): void };

async function world(t: Scope, env: Record<string, string> = {}) {
  const s = await startTestService({ BOT_EXECUTION_LANES: '1', ...env });
  t.teardown(() => s.stop());
  const db = openDatabase(s.databaseUrl, 2, () => {});
  t.teardown(() => db.close());
  const post = (where: string, ...records: Rec[]) => s.admin('POST', `/university/${where}`, records);
  const put = async (where: string, ...records: Rec[]): Promise<void> => {
    const a = await post(where, ...records);
    if (a.status !== 200) throw new Error(`${where}: ${a.status} ${a.text}`);
  };
  const userOf = async (externalId: string) => {
    const { rows } = await db.query<{ id: string }>('SELECT id FROM global_users WHERE external_id = $1', [externalId]);
    return rows[0] === undefined ? undefined : await findUser(db, Number(rows[0].id));
  };
  return { s, db, post, put, userOf };
}

const ANNA: Rec = { external_id: 'e1', last_name: 'Иванова', first_name: 'Анна', middle_name: 'Ильинична' };
const ACCOUNT = 'account-1';

t.test('a person is found by a part of the email, that of the data or that of their login', async t => {
  const { call, root } = await startWithRoot(t);
  await call(root, 'PATCH', '/users/1', { display_name: 'Root' });
  const persons = [
    { ...ANNA, email: 'Anna.Ivanova@uni.example' },
    { ...ANNA, external_id: 'e2', first_name: 'Ольга' },
  ];
  t.equal((await call(root, 'POST', '/university/persons', persons)).status, 200);
  const found = async (search: string): Promise<unknown[]> =>
    ((await call(root, 'GET', `/users?search=${encodeURIComponent(search)}`)).json.items as Json[]).map(
      u => u.display_name,
    );
  t.same(await found('anna.iv'), ['Иванова Анна Ильинична']);
  t.same(await found(ROOT_EMAIL.slice(0, 6).toUpperCase()), ['Root']);
  t.same(await found('%.ivanova'), [], 'signs mean themselves');
});

t.test('the positions of a person are read with their places, those that count today first', async t => {
  const { put, s, userOf } = await world(t);
  const u = makeUniversity({ seed: 3, groups: 4, students: 8, teachers: 4, faculties: 1 });
  for (const where of PATHS) await put(where, ...u[where]);
  await put('persons', { ...ANNA, email: 'anna@uni.example', phone: '+7 900' });
  const of = { person_external_id: 'e1' };
  await put(
    'student-positions',
    { ...of, external_id: 'sp-1', group_external_id: 'ИС-1', start_date: '2020-09-01', end_date: '2021-06-30' },
    { ...of, external_id: 'sp-2', group_external_id: 'ИС-2', start_date: '2021-09-01' },
  );
  const [faculty] = u.faculties;
  const office = { object_type: 'faculty', object_external_id: faculty?.external_id, role: 'dean' };
  await put('admin-appointments', { ...of, external_id: 'aa', ...office });
  const anna = await userOf('e1');
  const read = await s.admin('GET', `/users/${anna?.id}/university`);
  t.same(read.json, {
    person: { email: 'anna@uni.example', phone: '+7 900', is_active: true },
    positions: [
      {
        ...{ kind: 'student', external_id: 'sp-2', object_type: 'study_group', object_id: 'ИС-2' },
        ...{ object_name: u.groups.find(g => g.external_id === 'ИС-2')?.name, title: 'studying' },
        ...{ start_date: '2021-09-01', end_date: null, holds: true },
      },
      {
        ...{ kind: 'appointment', external_id: 'aa', object_type: 'faculty', object_id: faculty?.external_id },
        ...{ object_name: faculty?.name, title: 'dean', start_date: null, end_date: null, holds: true },
      },
      {
        ...{ kind: 'student', external_id: 'sp-1', object_type: 'study_group', object_id: 'ИС-1' },
        ...{ object_name: u.groups.find(g => g.external_id === 'ИС-1')?.name, title: 'studying' },
        ...{ start_date: '2020-09-01', end_date: '2021-06-30', holds: false },
      },
    ],
  });
  const kinds = new Set<unknown>();
  for (const { external_id: id } of u.persons) {
    const { positions } = (await s.admin('GET', `/users/${(await userOf(String(id)))?.id}/university`)).json;
    for (const p of positions as Json[]) {
      kinds.add(p.kind);
      t.type(p.object_name, 'string', `${p.kind} of ${id} is at a place with a name`);
    }
  }
  t.same([...kinds].sort(), ['appointment', 'student', 'subgroup', 'teacher', 'teaching']);
  const stranger = (await s.admin('POST', '/users', { display_name: 'Bob', external_id: 'x' })).json;
  t.same((await s.admin('GET', `/users/${stranger.id}/university`)).json, { person: null, positions: [] });
  t.equal((await s.admin('GET', '/users/999999/university')).status, 404);
});

t.test('a student who logs in has groups, roles and attributes, and loses them with the next import', async t => {
  const { spicedb } = await startGraphStore(t);
  const { db, put, s } = await world(t, { BOT_SPICEDB_ENDPOINT: spicedb.endpoint, BOT_SPICEDB_TLS: 'false' });
  const u = makeUniversity({ seed: 3, groups: 4, students: 8, teachers: 4, faculties: 1 });
  for (const where of PATHS) await put(where, ...u[where]);
  await put('persons', {
    ...ANNA,
    idp_account_id: ACCOUNT,
    locale: 'en',
    nationality_type: 'foreign',
    primary_channel: 'VK',
  });
  const position: Rec = {
    external_id: 'sp',
    person_external_id: 'e1',
    group_external_id: 'ИС-2',
    funding_type: 'budget',
    education_form: 'remote',
  };
  await put('student-positions', position);
  const anna = await findOrAddIdpUser(db, { sub: ACCOUNT, name: 'A. I.', locale: null });
  t.match(anna, { externalId: 'e1', displayName: 'Иванова Анна Ильинична' });
  const know = async (): Promise<Json> => {
    const a = await s.admin('POST', '/policies/try', {
      expression: '"ИС-2" in user.groups && has_role("student")',
      user: anna.id,
    });
    return a.json;
  };
  const until = async (want: Json): Promise<Json> => {
    let is = await know();
    for (
      let k = 0;
      k < 200 &&
      !Object.entries(want).every(
        ([name, value]) => JSON.stringify((is.user as Json)?.[name]) === JSON.stringify(value),
      );
      k++
    ) {
      await new Promise(resolve => setTimeout(resolve, 20));
      is = await know();
    }
    return is;
  };
  const first = await until({ groups: ['ИС-2'] });
  t.match(first, {
    result: true,
    user: {
      external_id: 'e1',
      groups: ['ИС-2'],
      roles: ['student'],
      primary_channel: 'VK',
      locale: 'en',
      nationality_type: 'foreign',
      funding_type: 'budget',
      education_form: 'remote',
    },
  });
  // What is remembered for 30 s does not outlive an import.
  await put('student-positions', { ...position, group_external_id: 'ИС-3', funding_type: 'contract' });
  t.match(await until({ groups: ['ИС-3'] }), { result: false, user: { groups: ['ИС-3'], funding_type: 'contract' } });
  await put('student-positions', { ...position, status: 'expelled' });
  t.match(await until({ groups: [] }), {
    result: false,
    user: { groups: [], roles: [], funding_type: '', education_form: '' },
  });
  // The dean of the faculty sees his groups; a teacher of another stream does not.
  const [dean] = u['admin-appointments'];
  const asked = (permission: string, user: unknown) =>
    s.admin('GET', `/relationships/lookup?resource_type=study_group&permission=${permission}&user=${user}`);
  t.match((await asked('view_all', dean?.person_external_id)).json.items, [{ resource_id: 'ИС-0' }]);
  t.same((await asked('view_all', 'e1')).json.items, []);
});

t.test('roles by import come and go with positions; what was given by hand stays', async t => {
  const { db, put, s, userOf } = await world(t);
  await put('persons', ANNA);
  await put('faculties', { external_id: 'f', name: 'Ф' });
  await put('departments', { external_id: 'd', name: 'К', faculty_external_id: 'f' });
  const position: Rec = { external_id: 'tp', person_external_id: 'e1', department_external_id: 'd', title: 'доцент' };
  await put('teacher-positions', position, { ...position, external_id: 'tp2' });
  const id = (await userOf('e1'))?.id;
  const roles = async () => (await s.admin('GET', `/users/${id}/roles`)).json.items;
  t.match(await roles(), [{ kind: 'database', role: 'teacher', origin: 'import' }]);
  await put('teacher-positions', { ...position, is_active: false });
  t.match(await roles(), [{ role: 'teacher' }], 'the second position holds');
  await put('teacher-positions', { ...position, external_id: 'tp2', end_date: '2020-01-01' });
  t.same(await roles(), []);
  await put('teacher-positions', position);
  t.match(await roles(), [{ role: 'teacher', origin: 'import' }]);
  await s.admin('PUT', `/users/${id}/roles/database/teacher`);
  await put('teacher-positions', { ...position, is_active: false });
  t.match(await roles(), [{ role: 'teacher', origin: 'manual' }]);
  t.equal((await db.query('SELECT 1 FROM user_roles')).rows.length, 1);
});

t.test(
  'a user who gets another external id is another person: rights of the former one go, those of this one come',
  async t => {
    const { put, s, userOf } = await world(t);
    const u = makeUniversity({ seed: 3, groups: 4, students: 2, teachers: 2, faculties: 1 });
    for (const where of PATHS) await put(where, ...u[where]);
    await put('persons', ANNA);
    const group = String(u.groups[0]?.external_id);
    const position = { external_id: 'sp', person_external_id: 'e1', group_external_id: group };
    await put('student-positions', { ...position, funding_type: 'budget', education_form: 'full_time' });
    const roles = async (id: number) => (await s.admin('GET', `/users/${id}/roles`)).json.items;
    const wrong = (await userOf('e1'))?.id ?? 0;
    await s.admin('PUT', `/users/${wrong}/roles/database/editor`);
    t.match(await roles(wrong), [{ role: 'editor' }, { role: 'student', origin: 'import' }]);

    const moved = await s.admin('PATCH', `/users/${wrong}`, { external_id: 'someone-else' });
    t.match(moved.json, { external_id: 'someone-else', funding_type: null, education_form: null });
    t.same(
      ((await roles(wrong)) as Json[]).map(r => r.role),
      ['editor'],
      'what was given by hand stays',
    );
    const right = await s.admin('POST', '/users', {
      external_id: 'e1',
      display_name: 'Anna',
      education_form: 'remote',
    });
    t.match(right.json, { funding_type: 'budget', education_form: 'remote' }, 'what the request says counts more');
    t.match(await roles(Number(right.json.id)), [{ role: 'student', origin: 'import' }]);
    await put('student-positions', { ...position, is_active: false });
    t.same(await roles(Number(right.json.id)), [], 'the import reaches the right one');

    // What the data call the former person is not what they call this one.
    await put('persons', { ...ANNA, nationality_type: 'foreign' });
    await put('persons', { ...ANNA, external_id: 'e2', nationality_type: 'domestic', locale: 'en' });
    const second = (await userOf('e2'))?.id ?? 0;
    await s.admin('PATCH', `/users/${second}`, { external_id: 'e2-former' });
    const renamed = await s.admin('PATCH', `/users/${String(right.json.id)}`, { external_id: 'e2' });
    t.match(renamed.json, { nationality_type: 'domestic', locale: 'en' });
    const unknown = await s.admin('PATCH', `/users/${String(right.json.id)}`, { external_id: 'e3' });
    t.match(unknown.json, { nationality_type: null });

    // A person whose user was taken away gets another one, with what the positions give.
    await put('student-positions', { ...position, funding_type: 'budget' });
    await put('persons', { ...ANNA, first_name: 'Анна-Мария' });
    const again = await userOf('e1');
    t.match(again, { fundingType: 'budget' });
    t.match(await roles(again?.id ?? 0), [{ role: 'student', origin: 'import' }]);

    // A user whom no data name keeps what an administrator has written.
    const plain = await s.admin('POST', '/users', { display_name: 'Guest', funding_type: 'contract' });
    const named = await s.admin('PATCH', `/users/${String(plain.json.id)}`, { external_id: 'guest' });
    t.match(named.json, { external_id: 'guest', funding_type: 'contract' });
  },
);

t.test('a messenger account that was linked with the account of another person is linked no more', async t => {
  const { db, put, userOf } = await world(t);
  await put('persons', { ...ANNA, idp_account_id: 'wrong' });
  const user = await findOrAddIdpUser(db, { sub: 'wrong', name: '', locale: null });
  t.equal(user.id, (await userOf('e1'))?.id);
  const link = async (accountId: string): Promise<unknown> => {
    const { code } = await makeLinkCode(db, user.id);
    return await db.withTransaction(c => linkAccount(c, { channel: 'TELEGRAM', accountId, chatId: accountId }, code));
  };
  t.match(await link('77'), { kind: 'linked' });
  const { code } = await makeLinkCode(db, user.id);
  await put('persons', { ...ANNA, idp_account_id: 'right' });
  t.equal(await findAccountUser(db, 'TELEGRAM', '77'), undefined);
  const late = { channel: 'TELEGRAM', accountId: '78', chatId: '78' } as const;
  t.match(
    await db.withTransaction(c => linkAccount(c, late, code)),
    { kind: 'wrong' },
    'nor is one by a code from before',
  );
});

t.test('accounts: who logged in before the import, who changes accounts, who shares one', async t => {
  const { db, post, put, userOf } = await world(t);
  // Logged in first.
  const before = await findOrAddIdpUser(db, { sub: ACCOUNT, name: 'Anna', locale: 'en' });
  await put('persons', { ...ANNA, idp_account_id: ACCOUNT });
  t.match(await userOf('e1'), {
    id: before.id,
    idpAccountsId: ACCOUNT,
    displayName: 'Иванова Анна Ильинична',
    locale: 'en',
  });
  // Imported, then logged in with an account the import did not know, then the import tells.
  await put('persons', { ...ANNA, external_id: 'e2' });
  const second = await findOrAddIdpUser(db, { sub: 'account-2', name: 'B', locale: null });
  await put('persons', { ...ANNA, external_id: 'e2', idp_account_id: 'account-2' });
  t.match(await userOf('e2'), { id: second.id, idpAccountsId: 'account-2' }, 'the user without any use is given up');
  // The same, but the imported user was used.
  await put('persons', { ...ANNA, external_id: 'e3' });
  const used = await userOf('e3');
  await addUserToken(db, 'pht_', { userId: used!.id, name: 't', expiresAt: null });
  await findOrAddIdpUser(db, { sub: 'account-3', name: 'C', locale: null });
  const refused = await post('persons', { ...ANNA, external_id: 'e3', idp_account_id: 'account-3' });
  t.match(refused.json, {
    success: 0,
    errors: [
      {
        external_id: 'e3',
        field: 'idp_account_id',
        code: 'conflict',
        message: /is the account of user \d+, and the person is user \d+, who has logged in/,
      },
    ],
  });
  // Used in a messenger alone, and a long time ago.
  await put('persons', { ...ANNA, external_id: 'e9' });
  const silent = await userOf('e9');
  await db.query(
    `INSERT INTO messenger_accounts (channel, account_id, chat_id, global_user_id) VALUES ('TELEGRAM', '9', '9', $1)`,
    [silent!.id],
  );
  await findOrAddIdpUser(db, { sub: 'account-9', name: 'D', locale: null });
  const kept = await post('persons', { ...ANNA, external_id: 'e9', idp_account_id: 'account-9' });
  t.match(kept.json, { errors: [{ field: 'idp_account_id', code: 'conflict' }] });
  t.equal((await userOf('e9'))?.id, silent!.id, 'with the messenger account');
  // One account, two persons; and it goes round.
  const shared = await post('persons', { ...ANNA, external_id: 'e4', idp_account_id: ACCOUNT });
  t.match(shared.json, { errors: [{ code: 'conflict', message: /is the account of person "e1" already/ }] });
  const twice = await post(
    'persons',
    { ...ANNA, external_id: 'e5', idp_account_id: 'new' },
    { ...ANNA, external_id: 'e6', idp_account_id: 'new' },
  );
  t.match(twice.json, { success: 1, errors: [{ index: 1, code: 'conflict', message: /person "e5"/ }] });
  await put(
    'persons',
    { ...ANNA, idp_account_id: 'account-2' },
    { ...ANNA, external_id: 'e2', idp_account_id: ACCOUNT },
  );
  t.match(await userOf('e1'), { id: before.id, idpAccountsId: 'account-2' });
  t.match(await userOf('e2'), { id: second.id, idpAccountsId: ACCOUNT });
  // A person who has left releases the account.
  await put('persons', { ...ANNA, idp_account_id: 'account-2', is_active: false });
  await db.query(
    "INSERT INTO sessions (kind, global_user_id, secret_sha256, expires_at, address, user_agent, browser) VALUES ('user', $1, 'x', now() + interval '1 day', '', '', false)",
    [before.id],
  );
  await put('persons', { ...ANNA, external_id: 'e7', idp_account_id: 'account-2' });
  t.equal((await db.query('SELECT 1 FROM sessions')).rowCount, 0, 'and the sessions that it opened end');
  t.match(await userOf('e1'), { idpAccountsId: null });
  t.match(await userOf('e7'), { idpAccountsId: 'account-2' });
  // An account that was given by hand is not taken by data that name none.
  const byHand = await addUser(db, { externalId: 'e8', idpAccountsId: 'by-hand', displayName: 'x' });
  await put('persons', { ...ANNA, external_id: 'e8' });
  t.match(await userOf('e8'), { id: byHand.id, idpAccountsId: 'by-hand' });
});

t.test('an import never changes who may log in as an administrator', async t => {
  const { db, put, s, userOf } = await world(t, { BOT_ADMIN_API_KEY: 'university-api-key-of-tests' });
  // Imported first, made an administrator then; another one with an account and no person.
  await put('persons', { ...ANNA, idp_account_id: 'account-of-anna' });
  const anna = await userOf('e1');
  const boss = await findOrAddIdpUser(db, { sub: 'account-of-boss', name: 'Boss', locale: null });
  for (const [id, email] of [
    [anna?.id, 'anna@uni.example'],
    [boss.id, 'boss@uni.example'],
  ])
    await db.query("INSERT INTO admin_credentials (global_user_id, email, password_hash) VALUES ($1, $2, 'x')", [
      id,
      email,
    ]);
  const importAs = (record: Rec) =>
    request(`${s.base}/api/admin/university/persons`, {
      method: 'POST',
      headers: { authorization: 'Bearer university-api-key-of-tests', 'content-type': 'application/json' },
      body: JSON.stringify([record]),
    });
  for (const record of [
    { ...ANNA, idp_account_id: 'account-of-a-stranger' },
    { ...ANNA, external_id: 'x', idp_account_id: 'account-of-boss' },
    { ...ANNA, external_id: 'y', idp_account_id: 'account-of-anna' },
  ]) {
    const a = await importAs(record);
    t.equal(a.status, 422, record.external_id);
    t.match(a.json, { errors: [{ field: 'idp_account_id', code: 'conflict', message: /who is an administrator/ }] });
  }
  t.equal((await importAs({ ...ANNA, first_name: 'Аня' })).status, 200, 'the rest of a person may change');
  t.match(await userOf('e1'), { id: anna?.id, idpAccountsId: 'account-of-anna', displayName: 'Иванова Аня Ильинична' });
  t.match(await findUser(db, boss.id), { externalId: null, idpAccountsId: 'account-of-boss' });
});

t.test(
  'a person linked to another user keeps the rights of his positions; a changed account ends sessions of the old one',
  async t => {
    const { db, put, s, userOf } = await world(t);
    await put('persons', ANNA);
    await put('faculties', { external_id: 'f', name: 'Ф' });
    await put('departments', { external_id: 'd', name: 'К', faculty_external_id: 'f' });
    await put('programs', { external_id: 'p', name: 'П', department_external_id: 'd' });
    await put('streams', { external_id: 'st', name: 'П', program_external_id: 'p' });
    await put('groups', { external_id: 'g', name: 'Г', stream_external_id: 'st' });
    await put('student-positions', {
      external_id: 'sp',
      person_external_id: 'e1',
      group_external_id: 'g',
      funding_type: 'budget',
    });
    await put('teacher-positions', {
      external_id: 'tp',
      person_external_id: 'e1',
      department_external_id: 'd',
      title: 'x',
    });
    const before = await userOf('e1');
    const login = await findOrAddIdpUser(db, { sub: ACCOUNT, name: 'A', locale: null });
    await put('persons', { ...ANNA, idp_account_id: ACCOUNT });
    const after = await userOf('e1');
    t.match(after, { id: login.id, fundingType: 'budget' });
    t.not(after?.id, before?.id);
    const roles = (await s.admin('GET', `/users/${login.id}/roles`)).json.items as Json[];
    t.same(
      roles.map(r => r.role),
      ['student', 'teacher'],
    );
    await addUserToken(db, 'pht_', { userId: login.id, name: 't', expiresAt: null });
    await db.query(
      "INSERT INTO sessions (kind, global_user_id, secret_sha256, expires_at, address, user_agent, browser) VALUES ('user', $1, 'x', now() + interval '1 day', '', '', false)",
      [login.id],
    );
    await put('persons', { ...ANNA, idp_account_id: 'account-of-another' });
    t.equal((await db.query('SELECT 1 FROM sessions')).rows.length, 0);
    t.equal((await db.query('SELECT 1 FROM user_tokens')).rows.length, 0);
  },
);

t.test('positions begin and end with the day, without any import', async t => {
  const { db, put, s, userOf } = await world(t);
  await put('persons', ANNA);
  await put('faculties', { external_id: 'f', name: 'Ф' });
  const term = { person_external_id: 'e1', object_type: 'faculty', object_external_id: 'f', role: 'dean' };
  const [day, dayAfter] = ['2090-06-01', '2090-06-02'];
  await put(
    'admin-appointments',
    { ...term, external_id: 'until', end_date: day },
    { ...term, external_id: 'from', role: 'staff', start_date: dayAfter },
  );
  await put('departments', { external_id: 'd', name: 'К', faculty_external_id: 'f' });
  await put('teacher-positions', {
    external_id: 'tp',
    person_external_id: 'e1',
    department_external_id: 'd',
    title: 'x',
    end_date: day,
  });
  let today = '2090-05-31';
  const imports = new Imports({
    db,
    settings: { databaseUrl: s.databaseUrl, baseUrl: '', token: '', pageMs: 1000, firstWaitMs: 1, brakePercent: 20 },
    directory: path.join(s.directory, 'university-of-another'),
    log: { info() {}, warn() {} },
    today: () => today,
  });
  t.teardown(() => imports.close());
  const roles = async () =>
    (
      await db.query<{ relation: string }>(
        "SELECT relation FROM authz_tuples WHERE resource_type = 'faculty' AND subject_type = 'user' ORDER BY 1",
      )
    ).rows.map(r => r.relation);
  const settled = async (at: string): Promise<number> => {
    today = at;
    return await imports.settleDates();
  };
  t.same(await roles(), ['dean']);
  t.equal(await settled(day), 0, 'the last day counts');
  t.equal(await settled(dayAfter), 3);
  t.same(await roles(), ['staff']);
  t.same((await s.admin('GET', `/users/${(await userOf('e1'))?.id}/roles`)).json.items, []);
  t.equal(await settled(dayAfter), 0);
  t.equal(await settled(day), 3, 'a clock that was wrong is followed back');
  t.same(await roles(), ['dean']);
});

t.test('an administrator exports what is held of a person, and erases the person', async t => {
  const { db, put, s, userOf } = await world(t);
  await put('persons', { ...ANNA, idp_account_id: ACCOUNT });
  await findOrAddIdpUser(db, { sub: ACCOUNT, name: 'Anna', locale: 'ru' });
  const anna = await userOf('e1');
  if (anna === undefined) throw new Error('no user');
  await s.admin('PUT', `/users/${anna.id}/roles/database/editor`);
  const held = await s.admin('GET', `/users/${anna.id}/export`);
  t.match(held.json, {
    user: { id: anna.id, externalId: 'e1' },
    university: { persons: [{ external_id: 'e1' }] },
    roles: [{ role: 'editor' }],
  });
  t.match(held.headers.get('content-disposition'), `person-${anna.id}.json`);
  t.match((await s.admin('POST', `/users/${anna.id}/erase`, {})).json, { errors: [{ pointer: '/erase' }] });
  const erased = await s.admin('POST', `/users/${anna.id}/erase`, { erase: true });
  t.match(erased, {
    status: 200,
    json: {
      remarks: [
        /audit log/,
        /recordings/,
        /messenger account/,
        /Idempotency-Key/,
        /outbox/,
        /a pull brings the records back/,
      ],
    },
  });
  const removed = erased.json.removed as Json[];
  t.match(
    removed.find(r => r.what === 'records of the university'),
    { count: 1 },
  );
  for (const where of ['', '/export']) t.equal((await s.admin('GET', `/users/${anna.id}${where}`)).status, 404);
  t.equal((await s.admin('POST', `/users/${anna.id}/erase`, { erase: true })).status, 404);
  t.equal(await userOf('e1'), undefined);
  const actions = ((await s.admin('GET', '/audit?limit=3')).json.items as Json[]).map(e => e.action);
  t.ok(actions.includes('person.erase') && actions.includes('person.export'), String(actions));
});
