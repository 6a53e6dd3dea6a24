import fs from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { ENTITIES } from '../../src/university/entities.ts';
import { type Answer, type Json, startTestService } from '../support/service.ts';
import { makeUniversity } from '../support/university.ts';
import { SOURCE_TOKEN, startUniversitySource } from '../support/university-source.ts';

const SMALL = { seed: 7, groups: 4, students: 20, teachers: 4, faculties: 2 };
const itemsOf = (a: Answer): Json[] => a.json.items as Json[];

const source = await startUniversitySource(makeUniversity(SMALL));
t.teardown(() => source.close());
const s = await startTestService({
  BOT_UNIVERSITY_SYNC_BASE_URL: source.url,
  BOT_UNIVERSITY_SYNC_TOKEN: SOURCE_TOKEN,
  BOT_EXECUTION_LANES: '1',
});
t.teardown(() => s.stop());
const typeNamed = async (type: string): Promise<Json> =>
  itemsOf(await s.admin('GET', '/university/types')).find(x => x.type === type) ?? {};

t.test('docs/university.md names the fields of each type, and which are required', async t => {
  const page = fs
    .readFileSync(path.resolve(import.meta.dirname, '../../docs/university.md'), 'utf8')
    .replace(/\s+/g, ' ');
  for (const { fields, path: name } of ENTITIES) {
    const shown = Object.entries(fields).map(([field, { check }]) =>
      check.safeParse(undefined).success ? `\`${field}\`` : `**\`${field}\`**`,
    );
    t.ok(page.includes(`- ${name}: ${shown.join(', ')} `), name);
  }
});

t.test('what the columns of files mean is kept by type, and must be fields', async t => {
  const put = (columns: unknown, type = 'person') => s.admin('PUT', `/university/types/${type}/columns`, { columns });
  t.same((await typeNamed('person')).columns, {});
  const columns = { Фамилия: 'last_name', 'Имя/First~name': 'first_name', СНИЛС: null };
  t.match(await put(columns), { status: 200, json: { columns } });
  t.same((await typeNamed('person')).columns, columns);
  t.same((await typeNamed('course')).columns, {}, 'of other types nothing');
  t.match(await put({ Пол: 'sex', 'Имя/First~name': 'name' }), {
    status: 422,
    json: {
      errors: [
        { pointer: '/columns/Пол', code: 'not_one_of', message: /^must be one of: external_id, last_name/ },
        { pointer: '/columns/Имя~1First~0name', code: 'not_one_of' },
      ],
    },
  });
  t.same((await typeNamed('person')).columns, columns, 'a refusal changes nothing');
  t.equal((await put({ '': 'last_name' })).status, 422);
  t.equal((await put(Object.fromEntries(Array.from({ length: 501 }, (_, n) => [`c${n}`, null])))).status, 422);
  t.equal((await put({}, 'nothing')).status, 404);
  t.match(await put({ Отчество: 'middle_name' }), { status: 200 });
  t.same((await typeNamed('person')).columns, { Отчество: 'middle_name' }, 'in the place of what was kept');
  t.match(itemsOf(await s.admin('GET', '/audit?action=university.columns'))[0], {
    object_id: 'person',
    before: { columns },
    after: { columns: { Отчество: 'middle_name' } },
  });
  await put({});
});

t.test('types say what they hold, what their records look like, and how their last import went', async t => {
  t.match(await typeNamed('faculty'), { records: 0, active: 0, last: null });
  await s.admin('POST', '/university/pull?wait=1', {});
  const faculties = await typeNamed('faculty');
  t.match(faculties, {
    path: 'faculties',
    phase: 1,
    records: 2,
    active: 2,
    last: { kind: 'pull', state: 'succeeded' },
  });
  await s.admin('POST', '/university/faculties', [
    { external_id: 'f-old', name: 'Old', is_active: false },
    { external_id: 'f-bad' },
  ]);
  t.match(await typeNamed('faculty'), {
    records: 3,
    active: 2,
    last: { kind: 'batch', state: 'partial', total: 2, success: 1, failed: 1 },
  });
  t.match((await typeNamed('department')).fields, [
    { name: 'external_id', kind: 'text', required: true },
    { name: 'name', required: true },
    { name: 'name_i18n', kind: 'object', required: false },
    { name: 'faculty_external_id', required: true, references: 'faculty' },
  ]);
  const person = (await typeNamed('person')).fields as Json[];
  t.match(
    person.find(f => f.name === 'locale'),
    { values: ['ru', 'en'], required: false },
  );
  t.match(
    person.find(f => f.name === 'channels'),
    { kind: 'list' },
  );
});

t.test('the source says where it is, and its last pull stays the last one after batches', async t => {
  const { json } = await s.admin('GET', '/university/source');
  t.match(json, {
    base_url: source.url,
    enabled: false,
    interval_seconds: 900,
    brake_percent: 20,
    next_pull_at: null,
    last_pull: { kind: 'pull', state: 'succeeded' },
  });
  const kinds = async (query: string): Promise<unknown[]> =>
    itemsOf(await s.admin('GET', `/university/imports${query}`)).map(i => i.kind);
  t.same(await kinds(''), ['batch', 'pull']);
  t.same(await kinds('?kind=pull'), ['pull']);
});

t.test('objects of the graph are found by their names, and named by their ids', async t => {
  const find = (query: string): Promise<Answer> => s.admin('GET', `/relationships/objects?${query}`);
  const groups = itemsOf(await find('type=study_group'));
  t.equal(groups.length, 4);
  const [first] = groups;
  t.same(
    itemsOf(await find(`type=study_group&search=${encodeURIComponent(String(first?.name).toLowerCase())}`))[0],
    first,
  );
  t.same(itemsOf(await find(`type=study_group&search=${encodeURIComponent(String(first?.id))}&limit=1`)), [first]);
  const ids = encodeURIComponent(JSON.stringify([first?.id, 'none such']));
  t.same(itemsOf(await find(`type=study_group&ids=${ids}`)), [first]);
  t.equal(itemsOf(await find('type=user&limit=100')).length, 24);
  t.same(itemsOf(await find('type=global_role')), []);
  await s.admin('POST', '/relationships', {
    resource_type: 'global_role',
    resource_id: 'librarian',
    relation: 'member',
    subject_id: 'e1',
  });
  t.same(itemsOf(await find('type=global_role&search=lib')), [{ id: 'librarian', name: null }]);
  t.match(await find('type=castle'), { status: 422, json: { errors: [{ pointer: 'query:type' }] } });
  t.match(await find('type=user&ids=e1'), { status: 422, json: { errors: [{ pointer: 'query:ids' }] } });
});
