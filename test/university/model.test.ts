import { randomInt } from 'node:crypto';
import t from 'tap';
import { openDatabase } from '../../src/db/database.ts';
import { findOrAddIdpUser } from '../../src/identity/users.ts';
import { ENTITIES } from '../../src/university/entities.ts';
import { random, startGraphStore } from '../support/graph.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { dump, makeUniversity, PATHS, type Rec, type University } from '../support/university.ts';
import { SOURCE_TOKEN, startUniversitySource } from '../support/university-source.ts';

const seed = Number(process.env.MODEL_SEED ?? randomInt(2 ** 31));
const ROUNDS = Number(process.env.MODEL_ROUNDS ?? 4);

/** Something that happens at a university; what refers to what stays true. */
function happen(u: University, rnd: () => number, next: () => number, login: (account: string) => void): string {
  const at = <T>(list: T[]): T => list[Math.floor(rnd() * list.length)]!;
  const some = (path: keyof University): Rec => at(u[path]);
  const change = (path: keyof University, changes: (r: Rec) => Record<string, unknown>): string => {
    const r = some(path);
    const given = changes(r);
    u[path] = u[path].map(x => (x === r ? { ...x, ...given } : x));
    return `${path} ${r.external_id} ${Object.keys(given).join()}`;
  };
  const leave = (person: string): void => {
    for (const path of PATHS)
      u[path] = u[path].filter(r => (path === 'persons' ? r.external_id : r.person_external_id) !== person);
  };
  const day = (): string | null => at([null, '2024-01-01', '2030-01-01']);
  const students = (): Rec[] => u.persons.filter(r => r.external_id.startsWith('E'));
  const events: Array<() => string> = [
    () => change('student-positions', () => ({ group_external_id: some('groups').external_id })),
    () => change('student-positions', () => ({ group_external_id: some('groups').external_id })),
    () => change('student-positions', () => ({ status: at(['studying', 'leave', 'expelled', 'graduated']) })),
    () =>
      change('student-positions', () =>
        at([
          { start_date: null, end_date: day() },
          { start_date: '2020-09-01', end_date: day() },
          { start_date: '2029-09-01', end_date: null },
        ]),
      ),
    () => change('student-positions', () => ({ funding_type: at(['budget', 'contract', null]) })),
    () =>
      change('student-positions', r => ({
        person_external_id: at(students()).external_id,
        record_book: `${r.record_book}*`,
      })),
    () => change('student-subgroups', () => ({ subgroup_external_id: some('subgroups').external_id })),
    () => change('student-subgroups', () => ({ end_date: day() })),
    () => change('groups', () => ({ stream_external_id: some('streams').external_id })),
    () => change('streams', () => ({ program_external_id: some('programs').external_id })),
    () =>
      change(at(['groups', 'subgroups', 'streams', 'student-positions', 'teaching-assignments'] as const), () => ({
        is_active: rnd() < 0.5,
      })),
    () =>
      change('persons', () => ({
        last_name: at(['Орлов', 'Гусев', 'Wang']),
        locale: at(['ru', 'en']),
        updated_at: '2026-10-01T00:00:00Z',
      })),
    () =>
      change('persons', r => ({
        idp_account_id:
          rnd() < 0.3
            ? null
            : rnd() < 0.5
              ? `account-later-${Math.floor(rnd() * 40)}-${r.external_id}`
              : `account-${r.external_id}-${next()}`,
      })),
    () =>
      change('teaching-assignments', () => ({
        audience: at(['all', 'foreign']),
        stream_external_id: some('streams').external_id,
      })),
    () => change('teacher-positions', () => ({ end_date: day() })),
    () => change('admin-appointments', () => ({ person_external_id: `T${Math.floor(rnd() * 20)}`, end_date: day() })),
    () => {
      const person = at(students()).external_id;
      leave(person);
      return `${person} leaves`;
    },
    () => {
      const [id, n] = [at(students()).external_id, next()];
      u['student-positions'].push({
        external_id: `sp-second-${n}`,
        person_external_id: id,
        group_external_id: some('groups').external_id,
        start_date: '2025-09-01',
        funding_type: 'contract',
      });
      return `${id} studies twice`;
    },
    () => {
      const n = next();
      // Perhaps with the account of a person who has left.
      const gone = rnd() < 0.3 ? Math.floor(rnd() * 150) : -1;
      const account =
        u.persons.some(r => String(r.idp_account_id).startsWith(`account-E${gone}`)) || gone < 0
          ? `account-new-${n}`
          : `account-E${gone}`;
      if (u.persons.some(r => r.idp_account_id === account)) return 'no person comes';
      u.persons.push({
        external_id: `E-new-${n}`,
        last_name: 'Новый',
        first_name: 'Студент',
        locale: 'ru',
        idp_account_id: account,
      });
      u['student-positions'].push({
        external_id: `sp-new-${n}`,
        person_external_id: `E-new-${n}`,
        group_external_id: some('groups').external_id,
      });
      return `E-new-${n} comes with ${account}`;
    },
    () => {
      const gone = some('teaching-assignments');
      u['teaching-assignments'] = u['teaching-assignments'].filter(r => r !== gone);
      return 'an assignment goes';
    },
    () => {
      // A user logs in, perhaps before the data name the account.
      const person = at(u.persons);
      login(
        rnd() < 0.5 ? String(person.idp_account_id) : `account-later-${Math.floor(rnd() * 40)}-${person.external_id}`,
      );
      return `${person.external_id} logs in`;
    },
    () => {
      // Everything is given in another order.
      const path = at([...PATHS]);
      u[path] = [...u[path]].reverse();
      return `${path} in another order`;
    },
  ];
  return at(events)();
}

/** Types that did not go well, of a pull. */
const failedOf = (text: string): string =>
  (/"types":\[(.*)\]/.exec(text)?.[1] ?? text)
    .split('},{')
    .filter(type => !/"state":"(succeeded|unchanged)"/.test(type))
    .join();

t.test('after random changes and faults a clean pull leaves what a fresh import gives', async t => {
  t.comment(`seed ${seed}, MODEL_SEED=${seed} repeats it`);
  const rnd = random(seed);
  let n = 0;
  const next = (): number => ++n;
  const source = await startUniversitySource(
    makeUniversity({ seed, groups: 10, students: 150, teachers: 20, faculties: 2 }),
  );
  t.teardown(() => source.close());
  const env = {
    BOT_UNIVERSITY_SYNC_BASE_URL: source.url,
    BOT_UNIVERSITY_SYNC_TOKEN: SOURCE_TOKEN,
    BOT_UNIVERSITY_SYNC_RETRY_WAIT: '5ms',
    BOT_UNIVERSITY_SYNC_PAGE_TIMEOUT: '2s',
    BOT_EXECUTION_LANES: '1',
  };
  const { spicedb } = await startGraphStore(t);
  const s = await startTestService({ ...env, BOT_SPICEDB_ENDPOINT: spicedb.endpoint, BOT_SPICEDB_TLS: 'false' });
  t.teardown(() => s.stop());
  const db = openDatabase(s.databaseUrl, 2, () => {});
  t.teardown(() => db.close());
  const pull = async (of: TestService): Promise<string> => {
    const release_brake = ENTITIES.map(e => e.type);
    const a = await of.admin('POST', '/university/pull?wait=1', { release_brake });
    if (a.status !== 200) throw new Error(a.text);
    return a.text;
  };
  const log: string[] = [];
  const accounts: string[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    for (let k = Math.floor(rnd() * 25); k > 0; k--)
      log.push(happen(source.university, rnd, next, account => accounts.push(account)));
    // Without a session: the data may still show that the user is another person.
    for (const account of accounts.splice(0)) await findOrAddIdpUser(db, { sub: account, name: 'X', locale: null });
    source.pageSize = rnd() < 0.5 ? 0 : 1 + Math.floor(rnd() * 60);
    const good = source.university;
    if (rnd() < 0.7) {
      // Something is wrong with the source for once.
      const path = PATHS[Math.floor(rnd() * PATHS.length)]!;
      const kind = Math.floor(rnd() * 6);
      log.push(`fault ${kind} of ${path}`);
      if (kind === 0) source.faults.set(path, { kind: 'status', status: 500 });
      if (kind === 1) source.faults.set(path, { kind: 'cut', times: 2 });
      if (kind === 2) source.faults.set(path, { kind: 'truncated' });
      if (kind === 3) source.faults.set(path, { kind: 'status', status: 404 });
      if (kind === 4)
        source.university = {
          ...good,
          [path]: good[path].map((r, i) => (i % 7 === 3 ? { ...r, external_id: 17 } : r)),
        } as unknown as University;
      if (kind === 5) source.university = { ...good, [path]: good[path].filter(() => rnd() < 0.8) };
      await pull(s);
      source.university = good;
      source.faults.clear();
    }
    const text = await pull(s);
    t.match(JSON.parse(text), { state: 'succeeded' }, `round ${round}: ${log.slice(-30).join('; ')} ${failedOf(text)}`);
    if (round % 4 !== 3) continue;
    const fresh = await startTestService(env);
    const freshDb = openDatabase(fresh.databaseUrl, 2, () => {});
    t.match(JSON.parse(await pull(fresh)), { state: 'succeeded' });
    const [is, should] = [await dump(db), await dump(freshDb)];
    for (const name of Object.keys(should)) t.same(is[name], should[name], `${name} in round ${round}`);
    await freshDb.close();
    await fresh.stop();
  }
  const drift = async () => (await s.admin('GET', '/authz/drift')).json;
  let last = await drift();
  for (let k = 0; k < 300 && Number(last.pending ?? 1) > 0; k++) {
    await new Promise(resolve => setTimeout(resolve, 100));
    last = await drift();
  }
  t.match(last, { missing: [], extra: [], pending: 0 }, 'and the graph store follows');
  if (!t.passing()) t.comment(log.join('\n'));
});
