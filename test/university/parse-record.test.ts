import t from 'tap';
import { parseExactJson } from '../../src/base/exact-json.ts';
import { ENTITIES, ENTITY_BY_TYPE, type Entity, type EntityType } from '../../src/university/entities.ts';
import { parseRecord } from '../../src/university/parse-record.ts';

/** What records may hold (docs/university.md "Records"). */
const TODAY = '2026-10-01';

const entityOf = (type: EntityType): Entity => {
  const entity = ENTITY_BY_TYPE.get(type);
  if (entity === undefined) throw new Error(type);
  return entity;
};

/** A value that the check of a required field takes. */
function required(entity: Entity): Record<string, unknown> {
  const values = ['x', '2026-09-01', 'faculty', 'dean'];
  const fields = Object.entries(entity.fields).filter(([, { check }]) => !check.safeParse(undefined).success);
  return Object.fromEntries([
    ['external_id', 'x1'],
    ...fields.map(([name, { check }]) => [name, values.find(v => check.safeParse(v).success)]),
  ]);
}

/** Its columns, or the errors. */
function parsed(type: EntityType, json: string): Record<string, unknown> | string[] {
  const result = parseRecord(entityOf(type), 0, parseExactJson(json), TODAY);
  return 'record' in result ? { ...result.record.columns } : result.errors.map(e => e.message);
}
const person = (more: string): string => `{"external_id":"e1","last_name":"A","first_name":"B",${more}}`;

t.test('an optional field that says nothing is as one that is not given, in each way registers write it', t => {
  for (const entity of ENTITIES) {
    const base = required(entity);
    const plain = parseRecord(entity, 0, base, TODAY);
    if (!('record' in plain)) return t.fail(JSON.stringify(plain));
    const names = [...Object.keys(entity.fields), 'is_active', 'updated_at', 'metadata'];
    for (const name of names.filter(n => !Object.hasOwn(base, n)))
      for (const nothing of ['', ' \t', '\u00a0', null, [], {}])
        t.same(
          parseRecord(entity, 0, { ...base, [name]: nothing }, TODAY),
          plain,
          `${name}: ${JSON.stringify(nothing)}`,
        );
    for (const name of Object.keys(base))
      for (const nothing of ['', null, {}])
        t.match(
          parseRecord(entity, 0, { ...base, [name]: nothing }, TODAY),
          { errors: [{ field: name }] },
          `${name} of ${entity.type} is required`,
        );
  }
  t.end();
});

t.test('members that say nothing are left out of names and channels', t => {
  const columns = parsed(
    'person',
    person(
      '"name_i18n":{"ru":"Анна","en":""},"channels":[{"channel":"VK","external_id":""},{"channel":"","external_id":null},{"channel":"TELEGRAM","external_id":"7"}]',
    ),
  );
  t.match(columns, { name_i18n: { ru: 'Анна' }, channels: [{ channel: 'TELEGRAM', external_id: '7' }] });
  t.same(parsed('person', person('"name_i18n":{"ru":"","en":null}')), parsed('person', person('"name_i18n":null')));
  t.match(parsed('person', person('"channels":[{"channel":"","external_id":"7"}]')), [/channels\/0\/channel/]);
  t.end();
});

t.test('what is only kept costs no record, and is kept as it came', t => {
  for (const time of ['2026-09-01T08:00:00Z', '2026-09-01T08:00:00.123456+03:00'])
    t.match(parsed('person', person(`"updated_at":"${time}"`)), { source_updated_at: time, metadata: {} }, time);
  for (const given of [
    '"2026-09-01T08:00:00"',
    '"2026-09-01 08:00:00"',
    '"2026-09-01T08:00:00+0300"',
    '"2026-09-01"',
    '"01.09.2026"',
    '"0000-00-00 00:00:00"',
    '"0000-01-01T00:00:00Z"',
    '"2026-09-01T08:00:00+23:00"',
    '1788249600',
    '{"date":"2026-09-01"}',
  ])
    t.match(
      parsed('person', person(`"updated_at":${given}`)),
      { source_updated_at: null, metadata: { updated_at: JSON.parse(given) } },
      given,
    );
  t.match(parsed('person', person('"metadata":"from SAP"')), { metadata: { metadata: 'from SAP' } });
  t.match(parsed('person', person('"metadata":["a"]')), { metadata: { metadata: ['a'] } });
  t.match(
    parsed(
      'student_position',
      '{"external_id":"x","person_external_id":"p","group_external_id":"g","start_date":"2026-09-01T00:00"}',
    ),
    [/\/start_date must be a date like 2026-09-01/],
  );
  t.end();
});

t.test('numbers keep their digits, and unknown keys are kept wherever they stand', t => {
  const kept = (more: string, name: string): string =>
    JSON.stringify((parsed('person', person(more)) as Record<string, unknown>)[name]);
  for (const number of [
    '1546130668394913822',
    '-1546130668394913822',
    '1.10',
    '0.1234567890123456789',
    '1e3',
    '-0',
    '7',
  ])
    t.equal(kept(`"no":${number},"deep":[{"no":${number}}]`, 'metadata'), `{"no":${number},"deep":[{"no":${number}}]}`);
  t.equal(kept('"metadata":{"no":1.10}', 'metadata'), '{"no":1.10}');
  t.equal(kept('"name_i18n":{"ru":"А","kk":"Ә"}', 'name_i18n'), '{"ru":"А","kk":"Ә"}');
  const channels = '[{"channel":"VK","external_id":"7","chat":1546130668394913822}]';
  t.equal(kept(`"channels":${channels}`, 'channels'), channels);
  t.equal(kept('"__proto__":{"a":1}', 'metadata'), '{"__proto__":{"a":1}}');
  const course = parsed('course', '{"external_id":"c","name":"n","credits":4.50,"hours":36.0}');
  t.equal(JSON.stringify([course].map(c => (Array.isArray(c) ? c : [c.credits, c.hours]))), '[[4.50,36.0]]');
  t.match(parsed('person', person('"no":1e400')), [/\/no must hold numbers of at most 1.8e308/]);
  t.match(parsed('person', person('"deep":{"no":[1e-5000]}')), [/\/deep must hold numbers/]);
  t.match(parsed('course', '{"external_id":"c","name":"n","credits":1e400}'), [/\/credits must be a number/]);
  t.end();
});
