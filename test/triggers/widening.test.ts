import t from 'tap';
import { type Answer, type Json, startTestService } from '../support/service.ts';
import { watPlugin } from '../support/wat.ts';
import { rawZip } from '../support/zip.ts';

/** One list of what an installation widens (docs/access.md "What an installation widens"). */
const s = await startTestService();
t.teardown(() => s.stop());

type Trigger = { name: string; path?: string; methods?: string[]; type?: string };
type Version = { requirements?: Json[]; frontend?: boolean };

async function upload(id: string, version: string, triggers: Trigger[], more: Version = {}): Promise<Json> {
  const module = watPlugin({
    id,
    version,
    requirements: more.requirements ?? [],
    triggers: triggers.map(tr =>
      tr.type === 'messenger' ? tr : { type: 'http', path: `/${tr.name}`, methods: ['GET'], ...tr },
    ),
    handle: '(i32.const 0)',
  });
  const form = new FormData();
  form.append('file', new Blob([new Uint8Array(module)]), 'plugin.wasm');
  if (more.frontend === true)
    form.append(
      'frontend',
      new Blob([new Uint8Array(rawZip([{ name: 'index.html', data: Buffer.from('<p>hello') }]))]),
      'f.zip',
    );
  const headers = { authorization: 'Bearer test-setup-token' };
  const answer = await fetch(`${s.base}/api/admin/plugins/upload`, { method: 'POST', headers, body: form });
  const json = (await answer.json()) as Json;
  if (answer.status !== 201) throw new Error(JSON.stringify(json));
  return json;
}

const install = (id: string, body: Json): Promise<Answer> => s.admin('POST', `/plugins/${id}/install`, body);
const key = (up: Json): Json => ({ wasm_key: String(up.wasm_key) });
const kinds = (value: unknown): string[] => (value as Json[]).map(w => `${w.kind} ${w.name}`.trim());

async function withPolicy(id: string, triggers: Trigger[], policies: Record<string, string>): Promise<void> {
  const up = await upload(id, '1', triggers);
  const settings = Object.fromEntries(Object.entries(policies).map(([name, p]) => [name, { policy_expression: p }]));
  t.equal((await install(id, { ...key(up), triggers: settings })).status, 200);
}

const DEAN = 'has_role("dean")';

t.test('a trigger under another name does not lose its policy unseen', async t => {
  const cases: Array<[string, Trigger[], Trigger[], string[]]> = [
    ['renamed on its path', [{ name: 'marks' }], [{ name: 'grades', path: '/marks' }], ['policy grades']],
    ['renamed with its path', [{ name: 'marks' }], [{ name: 'grades' }], ['policy grades']],
    [
      'covered by a pattern that stays',
      [
        { name: 'marks', path: '/of/marks' },
        { name: 'any', path: '/of/:id' },
      ],
      [{ name: 'any', path: '/of/:id' }],
      ['policy any'],
    ],
    [
      'a part of its pattern',
      [{ name: 'marks', path: '/marks/:id' }],
      [
        { name: 'marks', path: '/marks/:id' },
        { name: 'all', path: '/marks/all' },
      ],
      ['policy all'],
    ],
    [
      'another trigger takes its path',
      [{ name: 'marks' }, { name: 'any' }],
      [
        { name: 'marks', path: '/any' },
        { name: 'any', path: '/marks' },
      ],
      ['policy any'],
    ],
    ['kept', [{ name: 'marks' }], [{ name: 'marks', path: '/elsewhere' }], []],
    ['a new one elsewhere', [{ name: 'marks' }], [{ name: 'marks' }, { name: 'more' }], []],
    [
      'patterns that were there before',
      [
        { name: 'marks', path: '/of/marks' },
        { name: 'any', path: '/of/:id' },
      ],
      [
        { name: 'marks', path: '/of/marks' },
        { name: 'any', path: '/of/:id' },
      ],
      [],
    ],
    [
      'an other method of its path',
      [{ name: 'marks' }],
      [{ name: 'marks' }, { name: 'set', path: '/marks', methods: ['PUT'] }],
      [],
    ],
  ];
  for (const [k, [what, before, after, expected]] of cases.entries()) {
    const id = `case${k}`;
    await withPolicy(id, before, { marks: DEAN });
    const up = await upload(id, '2', after);
    t.same(kinds(up.widens), expected, `${what}: the review`);
    const answer = await install(id, key(up));
    if (expected.length === 0) {
      t.equal(answer.status, 200, what);
      continue;
    }
    t.equal(answer.status, 409, what);
    t.equal(answer.json.code, 'confirmation_required', what);
    t.same(kinds(answer.json.widens), expected, what);
    t.match(answer.json, {
      detail: /has_role\("dean"\)/,
      becomes_public: [],
      errors: [{ pointer: '/accept_widening' }],
    });
    const name = expected[0]?.replace(' ', ':') ?? '';
    t.equal(
      (await install(id, { ...key(up), accept_widening: ['policy:other'] })).status,
      409,
      `${what}: another is confirmed`,
    );
    t.equal((await install(id, { ...key(up), accept_widening: [name] })).status, 200, `${what}: confirmed by name`);
  }
});

t.test('a disabled trigger and one for service keys are protected too', async t => {
  const shut: Json[] = [{ enabled: false }, { allow_user_session: false, allow_service_key: true }];
  for (const [k, settings] of shut.entries()) {
    const id = `shut${k}`;
    const one = await upload(id, '1', [{ name: 'a' }]);
    await install(id, { ...key(one), triggers: { a: settings } });
    const two = await upload(id, '2', [{ name: 'b', path: '/a' }]);
    t.same(kinds((await install(id, key(two))).json.widens), ['policy b']);
    const said = { ...key(two), triggers: { b: settings } };
    t.equal((await install(id, said)).status, 200, 'settings in the request are the word of the administrator');
    t.match(
      await s.admin('POST', `/plugins/${id}/rollback`, key(one)),
      { status: 200 },
      'and back, to stored settings',
    );
  }
});

t.test('a command under another name does not lose its role unseen', async t => {
  const one = await upload('talk', '1', [{ name: 'marks', type: 'messenger' }]);
  await install('talk', key(one));
  t.equal((await s.admin('PUT', '/plugins/talk/commands/marks/policy', { expression: DEAN })).status, 200);
  const two = await upload('talk', '2', [{ name: 'grades', type: 'messenger' }]);
  const refused = await install('talk', key(two));
  t.match(refused.json, { status: 409, detail: /command "marks" had the policy has_role\("dean"\) and is gone/ });
  t.equal((await install('talk', { ...key(two), accept_widening: true })).status, 200);
  t.equal((await s.admin('PUT', '/plugins/talk/commands/grades/enabled', { enabled: false })).status, 200);
  const three = await upload('talk', '3', [{ name: 'notes', type: 'messenger' }]);
  t.match((await install('talk', key(three))).json, { status: 409, detail: /command "grades" was disabled/ });
});

t.test('a first frontend, and new triggers of trusted pages, are confirmed', async t => {
  const one = await upload('page', '1', [{ name: 'a' }]);
  await install('page', key(one));
  const two = await upload('page', '2', [{ name: 'a' }], { frontend: true });
  t.match((await install('page', key(two))).json, { status: 409, widens: [{ kind: 'frontend' }] });
  t.equal((await install('page', { ...key(two), accept_widening: ['frontend'] })).status, 200);
  const three = await upload('page', '3', [{ name: 'a' }, { name: 'b' }], { frontend: true });
  t.same(three.widens, [], 'it had one already, and its pages are not trusted');
  t.equal((await s.admin('PUT', '/plugins/page/html', { trust: 'trusted' })).status, 200);
  t.match((await install('page', key(three))).json, { status: 409, widens: [{ kind: 'html', message: /\(b\)/ }] });
  t.equal((await install('page', { ...key(three), accept_widening: ['html'] })).status, 200);
  t.equal((await s.admin('POST', '/plugins/page/rollback', key(one))).status, 200, 'back to less');
  t.equal((await s.admin('POST', '/plugins/page/rollback', key(three))).status, 200, 'it was confirmed then');
});

t.test('a rollback to what lets more in now is confirmed', async t => {
  const one = await upload('back', '1', [{ name: 'a', path: '/x' }]);
  await install('back', key(one));
  const two = await upload('back', '2', [{ name: 'b', path: '/x' }]);
  t.equal((await install('back', { ...key(two), triggers: { b: { policy_expression: DEAN } } })).status, 200);
  t.same(kinds((await s.admin('POST', '/plugins/back/rollback', key(one))).json.widens), ['policy a']);
  const back = { ...key(one), accept_widening: ['policy:a'] };
  t.equal((await s.admin('POST', '/plugins/back/rollback', back)).status, 200);
});

t.test('a first installation confirms nothing that its review shows, but what becomes public', async t => {
  const up = await upload('first', '1', [{ name: 'a' }], {
    frontend: true,
    requirements: [
      { kind: 'sql', description: 'd' },
      { kind: 'kv', description: 'd' },
    ],
  });
  t.same(kinds(up.widens), ['permission kv', 'permission sql', 'database default', 'frontend']);
  const config = { databases: { default: 'postgresql://u:p@db.example.org/x' } };
  t.equal((await install('first', { ...key(up), config })).status, 200);
});

t.test('all that is open is named at once', async t => {
  await withPolicy('both', [{ name: 'marks' }, { name: 'other' }], { marks: DEAN });
  const up = await upload('both', '2', [{ name: 'grades', path: '/marks' }, { name: 'other' }, { name: 'free' }], {
    frontend: true,
  });
  const free = { free: { allow_user_session: false } };
  const { json } = await install('both', { ...key(up), triggers: free });
  t.match(json, {
    becomes_public: [{ trigger: 'free' }],
    errors: [
      { pointer: '/accept_public' },
      { pointer: '/accept_widening', message: 'must be true or name frontend, policy:grades' },
    ],
  });
  const all = { ...key(up), triggers: free, accept_public: true, accept_widening: ['frontend', 'policy:grades'] };
  t.equal((await install('both', all)).status, 200);
});

t.test('a trigger that takes service keys widens the path of one that did not', async t => {
  const first = await upload('desk', '1.0.0', [
    { name: 'a', path: '/x' },
    { name: 'b', path: '/y' },
  ]);
  t.equal((await install('desk', key(first))).status, 200);
  await s.admin('PUT', '/plugins/desk/triggers/b/settings', { allow_service_key: true });
  const moved = await upload('desk', '1.1.0', [{ name: 'b', path: '/x' }]);
  t.match(moved.widens, [{ kind: 'policy', name: 'b', message: /GET .*\/x was not for service keys/ }]);
  t.equal((await install('desk', key(moved))).status, 409);
});

t.test('a guarded command that gets another name is seen, also when an HTTP trigger takes the old one', async t => {
  const first = await upload('tutor', '1.0.0', [{ name: 'grade', type: 'messenger' }]);
  t.equal((await install('tutor', key(first))).status, 200);
  t.equal((await s.admin('PUT', '/plugins/tutor/commands/grade/roles', { system_role: 'staff' })).status, 200);
  const marks = { name: 'marks', type: 'messenger' };
  for (const more of [[], [{ name: 'grade', path: '/grade' }]]) {
    const next = await upload('tutor', `1.${more.length + 1}.0`, [marks, ...more]);
    t.match(next.widens, [{ kind: 'policy', name: 'marks', message: /command "grade" had .* and is gone/ }]);
  }
});
