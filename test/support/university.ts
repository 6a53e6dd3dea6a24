import type { Database } from '../../src/db/database.ts';
import { ENTITIES } from '../../src/university/entities.ts';
import { random as makeRandom } from './graph.ts';

/** A realistic university of any size, the same for the same seed: records as the import takes them (docs/university.md "Records"). */

export type Rec = { external_id: string; [field: string]: unknown };
/** Lists by the last segment of their path, in the order of their import. */
export type University = Record<(typeof PATHS)[number], Rec[]>;

export const PATHS = [
  'persons',
  'courses',
  'semesters',
  'faculties',
  'departments',
  'programs',
  'streams',
  'groups',
  'subgroups',
  'teacher-positions',
  'student-positions',
  'student-subgroups',
  'teaching-assignments',
  'admin-appointments',
] as const;

export type Sizes = { seed: number; faculties?: number; groups: number; students: number; teachers: number };

const SURNAMES = [
  'Иванов',
  'Смирнов',
  'Кузнецов',
  'Попов',
  'Соколов',
  'Лебедев',
  'Козлов',
  'Новиков',
  'Морозов',
  'Петров',
  'Волков',
  'Соловьёв',
  'Васильев',
  'Зайцев',
  'Павлов',
];
const MEN: string[][] = [
  ['Александр', 'Дмитрий', 'Максим', 'Сергей', 'Андрей', 'Фёдор', 'Лев'],
  ['Александрович', 'Дмитриевич', 'Сергеевич', 'Андреевич', 'Ильич'],
];
const WOMEN: string[][] = [
  ['Анна', 'Мария', 'Елена', 'Дарья', 'Алина', 'Ольга', 'Юлия'],
  ['Александровна', 'Дмитриевна', 'Сергеевна', 'Андреевна', 'Ильинична'],
];
const FIELDS = [
  'информатики',
  'математики',
  'физики',
  'химии',
  'биологии',
  'экономики',
  'права',
  'истории',
  'филологии',
];
const COURSES = ['Алгебра', 'Анализ', 'Механика', 'Программирование', 'Базы данных', 'Философия', 'История', 'Право'];

/** Builds the whole of it. */
export function makeUniversity({
  seed,
  groups,
  students,
  teachers,
  faculties = Math.max(1, Math.round(groups / 100)),
}: Sizes): University {
  const random = makeRandom(seed);
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)]!;
  const person = (id: string, extra: Record<string, unknown> = {}): Rec => {
    const [isWoman, isForeign] = [random() < 0.5, random() < 0.08];
    const [first = [], middle = []] = isWoman ? WOMEN : MEN;
    return {
      external_id: id,
      last_name: pick(SURNAMES) + (isWoman ? 'а' : ''),
      first_name: pick(first),
      middle_name: isForeign ? null : pick(middle),
      email: `${id.toLowerCase()}@uni.example`,
      locale: isForeign ? 'en' : 'ru',
      nationality_type: isForeign ? 'foreign' : 'domestic',
      citizenship: isForeign ? 'CN' : 'RU',
      idp_account_id: `account-${id}`,
      primary_channel: pick(['TELEGRAM', 'VK', null]),
      ...extra,
    };
  };
  const range = (n: number): number[] => Array.from({ length: n }, (_, k) => k);
  const u = Object.fromEntries(PATHS.map(p => [p, []])) as unknown as University;
  u.semesters.push(
    {
      external_id: '2026-autumn',
      name: 'Осень 2026',
      academic_year: '2026/2027',
      kind: 'autumn',
      start_date: '2026-09-01',
      end_date: '2027-01-31',
      is_current: true,
    },
    {
      external_id: '2027-spring',
      name: 'Весна 2027',
      academic_year: '2026/2027',
      kind: 'spring',
      start_date: '2027-02-01',
      end_date: '2027-07-31',
    },
  );
  for (const k of range(Math.max(3, faculties * 4)))
    u.courses.push({
      external_id: `C${k}`,
      name: `${pick(COURSES)} ${k}`,
      code: `K-${k}`,
      credits: 1 + Math.floor(random() * 6),
      hours: 36 * (1 + Math.floor(random() * 4)),
    });
  for (const f of range(faculties)) {
    const of = FIELDS[f % FIELDS.length];
    u.faculties.push({
      external_id: `F${f}`,
      name: `Факультет ${of}`,
      short_name: `Ф${f}`,
      name_i18n: { ru: `Факультет ${of}`, en: `Faculty ${f}` },
    });
    for (const d of range(2)) {
      const department = `D${f}.${d}`;
      u.departments.push({ external_id: department, name: `Кафедра ${of} ${d}`, faculty_external_id: `F${f}` });
      for (const p of range(2))
        u.programs.push({
          external_id: `P${f}.${d}.${p}`,
          name: `Программа ${p}`,
          department_external_id: department,
          code: `09.03.0${p + 1}`,
          degree: 'bachelor',
          education_form: 'full_time',
          duration_years: 4,
        });
    }
  }
  const streams = Math.max(1, Math.ceil(groups / 5));
  for (const s of range(streams))
    u.streams.push({
      external_id: `S${s}`,
      name: `Поток ${s}`,
      program_external_id: pick(u.programs).external_id,
      admission_year: 2023 + (s % 4),
      study_year: 1 + (s % 4),
      is_foreign: s % 17 === 0,
    });
  for (const g of range(groups)) {
    u.groups.push({
      external_id: `ИС-${g}`,
      name: `Группа ИС-${g}`,
      stream_external_id: `S${g % streams}`,
      admission_year: 2023 + (g % 4),
      language: 'ru',
    });
    for (const k of [1, 2])
      u.subgroups.push({
        external_id: `ИС-${g}/${k}`,
        name: `Подгруппа ${k}`,
        group_external_id: `ИС-${g}`,
        kind: 'lab',
      });
  }
  for (const k of range(teachers)) {
    const id = `T${k}`;
    u.persons.push(person(id));
    u['teacher-positions'].push({
      external_id: `tp-${k}`,
      person_external_id: id,
      department_external_id: pick(u.departments).external_id,
      title: pick(['доцент', 'профессор', 'ассистент']),
      rate: pick([0.5, 1]),
      is_primary: true,
    });
    for (const n of range(2))
      u['teaching-assignments'].push({
        external_id: `ta-${k}-${n}`,
        person_external_id: id,
        stream_external_id: pick(u.streams).external_id,
        course_external_id: pick(u.courses).external_id,
        semester_external_id: '2026-autumn',
        kind: pick(['lecture', 'seminar', 'lab']),
        audience: random() < 0.1 ? 'foreign' : 'all',
      });
  }
  for (const k of range(students)) {
    const id = `E${k}`;
    const group = `ИС-${k % groups}`;
    u.persons.push(person(id));
    u['student-positions'].push({
      external_id: `sp-${k}`,
      person_external_id: id,
      group_external_id: group,
      record_book: `ЗК-${k}`,
      status: random() < 0.97 ? 'studying' : pick(['leave', 'expelled']),
      funding_type: pick(['budget', 'contract']),
      education_form: 'full_time',
      start_date: '2024-09-01',
    });
    u['student-subgroups'].push({
      external_id: `ss-${k}`,
      person_external_id: id,
      subgroup_external_id: `${group}/${1 + (k % 2)}`,
      semester_external_id: '2026-autumn',
    });
  }
  const appoint = (object_type: string, list: Rec[], role: string): void => {
    for (const o of list)
      u['admin-appointments'].push({
        external_id: `aa-${object_type}-${o.external_id}`,
        person_external_id: `T${Math.floor(random() * teachers)}`,
        object_type,
        object_external_id: o.external_id,
        role,
      });
  };
  appoint('faculty', u.faculties, 'dean');
  appoint('department', u.departments, 'head');
  appoint('program', u.programs, 'director');
  appoint('stream', u.streams.slice(0, Math.ceil(streams / 3)), 'curator');
  return u;
}

/** Everything an import has written, but for times and for what the source has no more. */
export async function dump(db: Database): Promise<Record<string, unknown[]>> {
  const out: Record<string, unknown[]> = {};
  const take = async (name: string, sql: string): Promise<void> => {
    out[name] = (await db.query<{ r: unknown }>(sql)).rows.map(row => row.r);
  };
  for (const { table } of ENTITIES)
    await take(
      table,
      `SELECT to_jsonb(t) - 'changed_at' - 'missing_since' AS r FROM ${table} t WHERE missing_since IS NULL ORDER BY external_id`,
    );
  await take(
    'graph',
    `SELECT resource_type || ':' || resource_id || '#' || relation || '@' || subject_type || ':' || subject_id AS r FROM authz_tuples ORDER BY 1`,
  );
  await take(
    'users',
    `SELECT to_jsonb(u) - 'id' - 'created_at' - 'updated_at' AS r FROM global_users u JOIN persons p USING (external_id) WHERE p.is_active ORDER BY external_id`,
  );
  await take(
    'roles',
    `SELECT u.external_id || ' ' || r.role AS r FROM user_roles r JOIN global_users u ON u.id = r.global_user_id ORDER BY 1`,
  );
  return out;
}
