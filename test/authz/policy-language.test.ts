import { randomInt } from 'node:crypto';
import t from 'tap';
import { compileForSaving, compilePolicy, type PolicySubject, partsOf, passPolicy } from '../../src/authz/policy.ts';
import { PolicyError } from '../../src/authz/policy-ast.ts';
import { readGraphSchema } from '../../src/graph/graph-schema.ts';
import { random } from '../support/graph.ts';
import { anyExpression, brokenExpression, offeredExpression, randomFrom } from '../support/policy-generator.ts';
import { startTestService } from '../support/service.ts';

/** The part of CEL that policies are written in (docs/RATIONALE.md "What policies may hold"). */
const schema = readGraphSchema();
const seed = Number(process.env.POLICY_SEED ?? randomInt(2 ** 31));
const user = {
  id: 1n,
  external_id: 'e1',
  groups: ['g1', 'g2'],
  roles: ['tutor'],
  primary_channel: '',
  locale: 'ru',
  nationality_type: '',
  funding_type: '',
  education_form: '',
};
const subject: PolicySubject = { kind: 'user', user, roles: new Set(user.roles) };

/** Every mistake as `text of the place: message`. */
function mistakesOf(source: string): string[] {
  try {
    compileForSaving(source, schema);
    return [];
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error;
    return error.all.map(e => `${source.slice(e.start, e.end)}: ${e.message}`);
  }
}

t.test(
  'expressions that the library evaluates differently from CEL are refused when saved and when evaluated',
  async t => {
    // The library says true to each; CEL says false, or that there is no answer.
    const rows: Array<[source: string, message: RegExp]> = [
      ['9223372036854775808 > 0', /the largest whole number is 9223372036854775807/],
      ['-9223372036854775808 < 0', /the largest whole number is/],
      ['-(-9223372036854775807 - 1) > 0', /a minus sign is only allowed before a literal number/],
      ['-user.id < 0', /a minus sign is only allowed before a literal number/],
      ['(-9223372036854775807 - 1) / -1 > 0', /a literal whole number above zero/],
      ['(-9223372036854775807 - 1) % -1 == 0', /a literal whole number above zero/],
      ['user.id / user.id == 1', /a literal whole number above zero/],
      ['1 / 0 == 1', /a literal whole number above zero/],
      ['"\u{1F600}" < "\uFFFF"', /< compares whole numbers/],
      ['user.locale >= "a"', />= compares whole numbers/],
      ['false < true', /< compares whole numbers/],
      ['{"a": 1, "a": 2}["a"] == 2', /\{key: value\} is not supported/],
      ['{"__proto__": 1} == {}', /\{key: value\} is not supported/],
      ['!has(user.nope)', /No such key: nope/],
      ['has(user)', /has needs an attribute/],
      ['int("") == 0', /int is not supported/],
      ['int("0b1") == 1', /int is not supported/],
      ['int(1e21) > 0', /int is not supported/],
      ['dyn(1u) == 1', /dyn is not supported/],
      ['dyn(1) in [dyn(1.0)]', /dyn is not supported/],
      ['1u == 1u', /unsigned numbers are not supported/],
      ['b"\u00e9" == b"\\xe9"', /bytes .* are not supported/],
      ['string(1e20) == "100000000000000000000"', /numbers with a fraction are not supported/],
      ['0.5 < 1', /numbers with a fraction are not supported/],
      ['null == null', /null is not supported/],
      ['type(1) == int', /type is not supported/],
      ['user in [user]', /user has no value by itself/],
      ['user[user.locale] == "x"', /must be a literal name/],
      ['user.groups.exists(user, user == "g1")', /the name user is in use/],
      ['google == google', /Unknown variable: google/],
      ['timestamp(1) == timestamp(1)', /timestamp is not supported/],
    ];
    for (const [source, message] of rows) {
      t.match(mistakesOf(source)[0], message, source);
      t.throws(() => compilePolicy(source), PolicyError, `${source}: neither when it is evaluated`);
      t.throws(() => compilePolicy(source), PolicyError, `${source}: nor when it is remembered`);
    }
  },
);

t.test('policies are evaluated as the CEL specification says', async t => {
  const rows: Array<[source: string, want: boolean | 'failed']> = [
    ['size("\u{1F600}") == 1', true],
    ['"\u{1F600}".size() == 1', true],
    ['9223372036854775807 + 1 > 0', 'failed'],
    ['-9223372036854775807 - 2 < 0', 'failed'],
    ['0 - user.id == -1', true],
    ['-7 / 2 == -3 && -7 % 2 == -1', true],
    ['user.id <= 1 && user.id >= 1 && !(user.id > 1)', true],
    ['user["locale"] == "ru" && has(user.locale)', true],
    ['user.groups[2] == "x" || true', true],
    ['user.groups[2] == "x"', 'failed'],
    ['[[1], [2]].exists(x, x == [2])', true],
    ['user.groups.filter(g, g == "g1").size() == 1', true],
    ['r"\\n" == "\\\\n" && """a"b""" == "a\\"b"', true],
    [Array(60).fill('user.id == 1').join(' && '), true],
  ];
  for (const [source, want] of rows) {
    const pass = passPolicy(compilePolicy(source), subject, new Map());
    t.equal(pass.kind === 'result' ? pass.allowed : pass.kind, want, source);
  }
});

t.test('all mistakes are reported at once, each with its position, and unknown names with a suggestion', async t => {
  t.same(
    mistakesOf(
      'user.locle == "ru" && usr.locale == "x" &&\n has_rule("a") && check("viw_all", "facult", "f1") && user.id == "x"',
    ),
    [
      'locle: No such key: locle; did you mean "locale"?',
      'usr: Unknown variable: usr; did you mean "user"?',
      'has_rule("a"): has_rule is not supported; did you mean "has_role"?',
      `"facult": there is no object type "facult"; there are ${[...schema.types.keys()].join(', ')}; did you mean "faculty"?`,
      'user.id == "x": no such overload: int == string',
    ],
  );
  t.match(mistakesOf('check("viw_all", "faculty", "f1")'), [/"viw_all": .*; did you mean "view_all"\?$/]);
  t.same(mistakesOf('(user.id) == ("x") || (1 + ("a")) == 2 || has_role(1)').length, 3);
  t.same(mistakesOf('user.groups.all(g, g == 1 || other == "x")'), [
    'g == 1: no such overload: string == int',
    'other: Unknown variable: other',
  ]);
  t.same(mistakesOf('locale == "ru"'), ['locale: Unknown variable: locale; did you mean "user.locale"?']);
  t.equal(mistakesOf(Array(30).fill('user.x == 1').join(' || ')).length, 20, 'twenty at most');
});

t.test('every part of a policy is shown as it is written, with its value', async t => {
  const source = '(user.locale == ")") || /* no */ true'.replace('/* no */ ', '// ")\n ');
  const parts = partsOf(compilePolicy(source), subject, new Map());
  t.same(
    parts.map(p => [p.expression, p.value]),
    [
      [source, true],
      ['user.locale == ")"', false],
      ['user.locale', 'ru'],
    ],
  );
  const nested = partsOf(compilePolicy('((user.id) + 1) * (2) == (4)'), subject, new Map());
  t.same(
    nested.map(p => [p.expression, p.value, p.error]),
    [
      ['((user.id) + 1) * (2) == (4)', true, undefined],
      ['((user.id) + 1) * (2)', 4, undefined],
      ['(user.id) + 1', 2, undefined],
      ['user.id', 1, undefined],
    ],
  );
});

t.test('no generated expression makes the host fail with an error of its own', async t => {
  t.comment(`seed ${seed}, POLICY_SEED=${seed} repeats it`);
  const rnd = randomFrom(random(seed));
  let compiled = 0;
  for (let k = 0; k < 1500; k++) {
    const source = [anyExpression, brokenExpression, offeredExpression][k % 3]?.(rnd) ?? '';
    try {
      const policy = compilePolicy(source);
      compiled++;
      const pass = passPolicy(policy, subject, new Map());
      const parts = partsOf(policy, subject, new Map());
      if (pass.kind === 'result') t.equal(parts[0]?.value ?? pass.allowed, pass.allowed, source);
      for (const { end, expression, start } of parts) t.equal(source.slice(start, end), expression);
    } catch (error) {
      if (!(error instanceof PolicyError)) throw Object.assign(new Error(`${seed}: ${source}`), { cause: error });
      for (const e of error.all) t.ok(e.start >= 0 && e.start <= e.end, `${e.message} has a place`);
    }
  }
  t.ok(compiled > 300, `${compiled} of them are policies`);
});

t.test('trying a policy never answers 500, whatever is sent', async t => {
  t.comment(`seed ${seed}, POLICY_SEED=${seed} repeats it`);
  const s = await startTestService();
  t.teardown(() => s.stop());
  const made = await s.admin('POST', '/users', { display_name: 'Ada', external_id: 'e1' });
  const rnd = randomFrom(random(seed + 1));
  const deep = (open: string, close: string) => `${open.repeat(1300)}true${close.repeat(1300)}`;
  const sources = [
    ...['size("\u{1F600}") == 1', 'int(1e21) > 0', Array(24).fill('user.id == 1').join(' || ')],
    ...[deep('(', ')'), deep('[', ']'), '!'.repeat(4090), '-'.repeat(4090), '"'.repeat(4096), '"\\'.repeat(1300)],
    ...['(/*', '"""'.repeat(900), 'true ? '.repeat(500), 'a.'.repeat(2000), '\u0000', '.', '//', 'true // \u{1F600}'],
    ...Array.from({ length: 100 }, () => anyExpression(rnd)),
    ...Array.from({ length: 50 }, () => brokenExpression(rnd)),
    ...Array.from({ length: 50 }, () => offeredExpression(rnd)),
  ];
  const statuses = new Map<number, number>();
  for (const source of sources)
    for (const [where, body] of [
      ['try', { expression: source, user: made.json.id ?? 0 }],
      ['check', { expression: source }],
    ] as const) {
      const { status, text } = await s.admin('POST', `/policies/${where}`, body);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      t.ok(
        status === 200 || status === 422 || status === 503,
        `${status} ${where} ${source.slice(0, 200)} ${text.slice(0, 200)}`,
      );
    }
  t.comment(JSON.stringify([...statuses]));
});
