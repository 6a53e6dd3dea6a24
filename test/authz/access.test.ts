import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { findBrokenPolicies } from '../../src/authz/stored-policies.ts';
import { openDatabase } from '../../src/db/database.ts';
import { addServiceKey } from '../../src/identity/service-keys.ts';
import { addUserToken } from '../../src/identity/user-tokens.ts';
import { startEmbeddedSpicedb } from '../../src/supervisor/stores/embedded-spicedb.ts';
import { BARE_ENV } from '../support/bare-env.ts';
import { startGraphStore } from '../support/graph.ts';
import { takePort } from '../support/ports.ts';
import { type Answer, type Json, startTestService, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';
import { watPlugin } from '../support/wat.ts';

/** Answers every request, and has commands. */
const plugin = (): Uint8Array =>
  watPlugin({
    id: 'desk',
    imports: ['respond'],
    triggers: [
      { name: 'run', type: 'http', path: '/run', methods: ['GET', 'POST'] },
      { name: 'menu', type: 'messenger', description: 'what there is' },
      { name: 'grade', type: 'messenger' },
    ],
    handle: `(drop (call $respond (i32.const 200) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))) (i32.const 0)`,
  });

type Test = { teardown(fn: () => unknown): void };

async function startWorld(t: Test, endpoint: string, other?: TestService) {
  const s = await startTestService(
    { BOT_SPICEDB_ENDPOINT: endpoint, BOT_SPICEDB_TOKEN: 'any', BOT_SPICEDB_TLS: 'false' },
    other,
  );
  t.teardown(() => s.stop());
  await filled(s);
  return s;
}

/** Until the graph answers. */
async function filled(s: TestService): Promise<void> {
  await until(async () => (await s.admin('GET', '/schema/definitions')).json.source === 'store');
  await until(async () => (await s.admin('GET', '/authz/drift')).status === 200);
}

const { spicedb } = await startGraphStore(t);
const s = await startWorld(t, spicedb.endpoint);
const db = openDatabase(s.databaseUrl, 2, () => {});
t.teardown(() => db.close());
await s.install(plugin());

let people = 0;
async function person(attributes: Json = {}) {
  const externalId = `e${++people}`;
  const made = await s.admin('POST', '/users', { external_id: externalId, display_name: externalId, ...attributes });
  const id = Number(made.json.id);
  const { text } = await addUserToken(db, 'pht_', { userId: id, name: 'n', expiresAt: null });
  const call = (init: RequestInit = {}, at = s) =>
    at.trigger('desk/run', { ...init, headers: { authorization: `Bearer ${text}` } });
  return { id, externalId, call };
}

const settings = (body: Json) => s.admin('PUT', '/plugins/desk/triggers/run/settings', body);
const setPolicy = async (policy_expression: string) =>
  settings({ enabled: true, allow_user_session: true, allow_service_key: true, policy_expression });
const explain = (body: Json, at = s) => at.admin('POST', '/access/explain', { plugin: 'desk', ...body });
const steps = (a: Answer) =>
  (a.json.steps as Json[]).map(step => `${step.step}: ${step.holds === null ? '-' : step.holds ? 'yes' : 'no'}`);
const relate = (method: string, body: Json) => s.admin(method, '/relationships', body);

t.test('a policy on an HTTP trigger lets in the users it names, and no others', async t => {
  const ada = await person({ locale: 'en' });
  const ivan = await person();
  t.equal((await setPolicy('user.locale == "en"')).status, 200);
  t.equal((await ada.call()).status, 200);
  t.equal((await ivan.call()).status, 403);
  t.match((await ivan.call()).json, { code: 'forbidden', detail: 'the policy of this trigger does not let you in' });
  t.equal((await s.trigger('desk/run')).status, 401);
  t.equal((await ivan.call({ method: 'POST', body: 'x' })).status, 403);
  t.equal((await ada.call({ method: 'POST', body: 'x'.repeat(200_000) })).status, 200);

  await setPolicy('principal.kind == "service"');
  t.equal((await ada.call()).status, 403);
  const key = await addServiceKey(
    db,
    'phk_',
    { name: 'k', scopes: [{ pluginId: 'desk', trigger: 'run' }], expiresAt: null },
    { kind: 'setup', userId: null, name: 'test', requestId: 'r', address: '' },
  );
  const service = () => s.trigger('desk/run', { headers: { authorization: `Bearer ${key.text}` } });
  t.equal((await service()).status, 200);
  await setPolicy('user.locale == "en"');
  t.equal((await service()).status, 403, 'a key is no user');

  const refused = await settings({ policy_expression: 'user.locle == "ru"' });
  t.equal(refused.status, 422);
  t.match(refused.json, {
    errors: [{ pointer: '/policy_expression', message: 'line 1, column 6: No such key: locle' }],
    position: { start: 5, end: 10, line: 1, column: 6 },
  });
  t.equal((await ada.call()).status, 200, 'the policy before it still holds');

  await setPolicy('');
  t.equal((await ivan.call()).status, 200, 'an empty policy is none');
});

t.test('changes of roles and attributes take effect when they are answered', async t => {
  const ada = await person();
  await setPolicy('has_role("editor") || user.funding_type == "budget"');
  t.equal((await ada.call()).status, 403);
  for (let round = 0; round < 5; round++) {
    t.match(await s.admin('PUT', `/users/${ada.id}/roles/database/editor`), { status: 200, json: { changed: true } });
    t.equal((await ada.call()).status, 200);
    t.equal((await s.admin('DELETE', `/users/${ada.id}/roles/database/editor`)).status, 200);
    t.equal((await ada.call()).status, 403);
    await s.admin('PATCH', `/users/${ada.id}`, { funding_type: 'budget' });
    t.equal((await ada.call()).status, 200);
    await s.admin('PATCH', `/users/${ada.id}`, { funding_type: 'contract' });
    t.equal((await ada.call()).status, 403);
  }
  t.match(await s.admin('PUT', `/users/${ada.id}/roles/database/editor`), { json: { changed: true } });
  t.match(await s.admin('PUT', `/users/${ada.id}/roles/database/editor`), { json: { changed: false } });
  t.match((await s.admin('GET', '/roles/editor/users')).json, { items: [{ user: ada.id, granted_by: 'setup mode' }] });
  t.match((await s.admin('GET', '/roles/editor/users?kind=global')).json.items, [], 'a role of another kind');
  t.same((await s.admin('GET', '/roles')).json.items, [
    { role: 'editor', holders: 1, imported: false },
    { role: 'student', holders: 0, imported: true },
    { role: 'teacher', holders: 0, imported: true },
  ]);
  const wrong: Array<[string, number, RegExp]> = [
    [`/users/${ada.id}/roles/other/editor`, 422, /kind "other" must be one of database, system, global, plugin/],
    [`/users/${ada.id}/roles/plugin/editor`, 422, /needs the plugin/],
    [`/users/${ada.id}/roles/plugin/none/editor`, 404, /plugin "none" is not installed/],
    [`/users/${ada.id}/roles/database/a%20b`, 422, /role "a b" must be letters/],
    ['/users/999999/roles/database/editor', 404, /no user 999999/],
  ];
  for (const [path, status, text] of wrong) {
    const answer = await s.admin('PUT', path);
    t.equal(answer.status, status, path);
    t.match(answer.json.detail, text);
  }
});

t.test('a relationship counts when it has reached the graph: groups, members, inherited rights', async t => {
  const ada = await person();
  await setPolicy('"ИВТ-21" in user.groups');
  t.equal((await ada.call()).status, 403);
  const member = {
    resource_type: 'study_group',
    resource_id: 'ИВТ-21',
    relation: 'member',
    subject_id: ada.externalId,
  };
  t.match(await relate('POST', member), { status: 201, json: { delivered: true } });
  t.equal((await ada.call()).status, 200, 'a group that was looked up a moment ago is looked up again');
  t.match(await relate('DELETE', member), { status: 200, json: { deleted: 1, delivered: true } });
  t.equal((await ada.call()).status, 403);

  await setPolicy('check("view_all", "study_group", "ИВТ-21")');
  t.match(
    await relate('POST', {
      relationships: [
        {
          resource_type: 'study_group',
          resource_id: 'ИВТ-21',
          relation: 'parent',
          subject_type: 'stream',
          subject_id: 's',
        },
        { resource_type: 'stream', resource_id: 's', relation: 'parent', subject_type: 'program', subject_id: 'p' },
        { resource_type: 'program', resource_id: 'p', relation: 'director', subject_id: ada.externalId },
      ],
    }),
    { status: 201, json: { delivered: true } },
  );
  t.equal((await ada.call()).status, 200);
  const question = `resource_type=study_group&permission=view_all&user=${ada.externalId}`;
  t.match((await s.admin('GET', `/relationships/lookup?${question}`)).json, { items: [{ resource_id: 'ИВТ-21' }] });
  t.match(
    (await s.admin('GET', `/relationships/lookup?${question}&resource_id=${encodeURIComponent('ИВТ-21')}`)).json,
    {
      allowed: true,
      path: [
        'study_group:ИВТ-21#view_all',
        'stream:s#view_all',
        'program:p#view_all',
        `program:p#director@user:${ada.externalId}`,
      ],
    },
  );
  t.same(
    (await s.admin('GET', '/relationships/lookup?resource_type=program&permission=admin&resource_id=p')).json.items,
    [{ user: ada.externalId }],
  );
  const listed = await s.admin('GET', '/relationships?resource_type=stream&origin=manual');
  t.match(listed.json, { items: [{ resource_id: 's', relation: 'parent', origin: 'manual' }], next_cursor: null });
  const first = await s.admin('GET', '/relationships?limit=1');
  const second = await s.admin('GET', `/relationships?limit=1&cursor=${first.json.next_cursor}`);
  t.notSame(first.json.items, second.json.items);
  t.match(await relate('DELETE', { filter: { subject_id: ada.externalId } }), {
    json: { deleted: 1, delivered: true },
  });
  t.equal((await ada.call()).status, 403);
  t.match(await relate('DELETE', { filter: { resource_type: 'study_group' } }), { json: { deleted: 1 } });
  t.match(await relate('DELETE', { filter: { resource_type: 'stream', resource_id: 's' } }), { json: { deleted: 1 } });
  t.same((await s.admin('GET', '/relationships')).json.items, []);
});

t.test('a wrong relationship is refused with its place, and nothing of the request is done', async t => {
  const good = { resource_type: 'faculty', resource_id: 'f', relation: 'dean', subject_id: 'x' };
  const rows: Array<[string, Json, string]> = [
    ['POST', { ...good, resource_type: 'school' }, '/resource_type'],
    ['POST', { ...good, relation: 'member' }, '/relation'],
    ['POST', { ...good, subject_type: 'faculty' }, '/subject_type'],
    ['POST', { ...good, subject_id: '' }, '/subject_id'],
    ['POST', { ...good, extra: 1 }, '/extra'],
    ['POST', { relationships: [good, { ...good, resource_id: '' }] }, '/relationships/1/resource_id'],
    ['POST', { relationships: [] }, '/relationships'],
    ['POST', { ...good, resource_type: 'outbox_fence' }, '/resource_type'],
    ['DELETE', { filter: {} }, '/filter'],
    ['DELETE', { filter: { resource_id: 'f' } }, '/filter/resource_type'],
    ['DELETE', { filter: { resource_type: 'school' } }, '/filter/resource_type'],
    ['DELETE', { ...good, relation: 'x' }, '/relation'],
  ];
  for (const [method, body, pointer] of rows) {
    const answer = await relate(method, body);
    t.equal(answer.status, 422, JSON.stringify(body));
    t.ok(
      (answer.json.errors as Json[]).some(e => e.pointer === pointer),
      `${JSON.stringify(body)}: ${answer.text}`,
    );
  }
  for (const [query, pointer] of [
    ['resource_type=school', 'query:resource_type'],
    ['resource_type=faculty&resource_type=faculty', 'query:resource_type'],
    ['origin=me', 'query:origin'],
    ['cursor=x', 'query:cursor'],
    ['resource=x', 'query:resource'],
  ] as const)
    t.match(await s.admin('GET', `/relationships?${query}`), { status: 422, json: { errors: [{ pointer }] } }, query);
  for (const [query, pointer] of [
    ['resource_type=school&permission=admin&user=x', 'query:resource_type'],
    ['resource_type=faculty&permission=fly&user=x', 'query:permission'],
    ['resource_type=faculty&permission=admin', 'query:user'],
  ] as const)
    t.match(
      await s.admin('GET', `/relationships/lookup?${query}`),
      { status: 422, json: { errors: [{ pointer }] } },
      query,
    );
  t.match(
    await s.admin('GET', '/relationships/lookup?user=x'),
    { status: 422, json: { errors: [{ pointer: 'query:resource_type', message: /must be one of .*faculty/ }] } },
    'the error names what is left out, and what would be right',
  );
  t.same((await s.admin('GET', '/relationships')).json.items, []);
});

t.test(
  'commands: enabled, roles of three levels, then the policy; each is explained and can be mended as told',
  async t => {
    const ada = await person();
    const put = (what: string, body: Json) => s.admin('PUT', `/plugins/desk/commands/grade/${what}`, body);
    const why = () => explain({ user: ada.id, command: 'grade' });
    t.match((await s.admin('GET', '/plugins/desk/commands/settings')).json, {
      items: [
        { command: 'menu', description: 'what there is', enabled: true, open_to_everyone: true },
        { command: 'grade', policy_expression: '', system_role: null, global_roles: [], plugin_role: null },
      ],
    });
    t.match((await why()).json, { allowed: true, status: 200 });
    t.match(await put('enabled', { enabled: false }), {
      status: 200,
      json: { enabled: false, open_to_everyone: false },
    });
    t.match((await why()).json, { allowed: false, status: 403, to_change: [/enabled/] });
    await put('enabled', { enabled: true });

    await put('roles', { system_role: 'staff', global_roles: ['a', 'b'], plugin_role: 'teacher' });
    t.same(steps(await why()), [
      'plugin installed: yes',
      'plugin enabled: yes',
      'command exists: yes',
      'command enabled: yes',
      'system role staff: no',
      'global role a: -',
      'global role b: -',
      'plugin role desk/teacher: -',
      'not suspended: -',
    ]);
    for (const role of ['system/staff', 'global/a', 'global/b', 'plugin/desk/teacher']) {
      const answer = await why();
      t.equal(answer.json.allowed, false, `before ${role}`);
      t.match(answer.json.to_change, [new RegExp(`PUT /api/admin/users/${ada.id}/roles/${role}`)]);
      t.match(await s.admin('PUT', `/users/${ada.id}/roles/${role}`), { json: { changed: true, delivered: true } });
    }
    t.equal((await why()).json.allowed, true, 'all roles are held');
    t.match((await s.admin('GET', `/users/${ada.id}/roles`)).json.items, [
      { kind: 'system', role: 'staff' },
      { kind: 'global', role: 'a' },
      { kind: 'global', role: 'b' },
      { kind: 'plugin', plugin_id: 'desk', role: 'teacher' },
    ]);
    t.match(await put('policy', { expression: 'has_role("x") && check("admin", "faculty", "f")' }), { status: 200 });
    t.match((await why()).json, { allowed: false, status: 403, policy: { verdict: 'denied', graph_rounds: 0 } });
    await s.admin('PUT', `/users/${ada.id}/roles/database/x`);
    t.match((await why()).json, {
      allowed: false,
      policy: { graph_checks: [{ check: `faculty:f#admin@user:${ada.externalId}`, allowed: false }] },
    });
    t.match(await put('policy', { expression: '' }), { json: { policy_expression: '' } });
    t.equal((await why()).json.allowed, true, 'an empty expression removes the policy');
    await s.admin('DELETE', `/users/${ada.id}/roles/global/b`);
    t.equal((await why()).json.allowed, false, 'all global roles must be held');
    await put('roles', { global_roles: ['a'] });
    t.match((await why()).json, { allowed: true });
    t.match(await put('roles', { system_role: null, global_roles: [], plugin_role: null }), {
      json: { open_to_everyone: true },
    });

    const revisions = await s.admin('GET', '/plugins/desk/commands/grade/policy/revisions');
    const items = revisions.json.items as Json[];
    t.match(items, [
      { expression: '', author: 'setup mode' },
      { expression: 'has_role("x") && check("admin", "faculty", "f")', author: 'setup mode' },
    ]);
    const restored = await s.admin('POST', `/plugins/desk/commands/grade/policy/revisions/${items[1]?.id}/restore`);
    t.match(restored, { status: 200, json: { policy_expression: items[1]?.expression } });
    t.equal(((await s.admin('GET', '/plugins/desk/commands/grade/policy/revisions')).json.items as Json[]).length, 3);
    await put('policy', { expression: '' });

    const wrong: Array<[string, Json, number, string]> = [
      ['enabled', { enabled: 'yes' }, 422, '/enabled'],
      ['policy', {}, 422, '/expression'],
      ['policy', { expression: 'user.id' }, 422, '/expression'],
      ['roles', { system_role: '' }, 422, '/system_role'],
      ['roles', { global_roles: ['a b'] }, 422, '/global_roles/0'],
      ['roles', { role: 'x' }, 422, '/role'],
    ];
    for (const [what, body, status, pointer] of wrong)
      t.match(await put(what, body), { status, json: { errors: [{ pointer }] } }, `${what} ${JSON.stringify(body)}`);
    t.equal((await s.admin('PUT', '/plugins/desk/commands/none/enabled', { enabled: true })).status, 404);
    t.equal((await s.admin('PUT', '/plugins/none/commands/grade/enabled', { enabled: true })).status, 404);
    t.equal((await s.admin('POST', '/plugins/desk/commands/grade/policy/revisions/0/restore')).status, 404);
  },
);

t.test('roles that exist nowhere are warned about, with what was probably meant', async t => {
  const [ada, ivan] = [await person(), await person()];
  await s.admin('PUT', `/users/${ada.id}/roles/database/dean`);
  const no = (role: string, more: string) => `no user has the role "${role}"${more}`;
  const odd = { pointer: '/policy_expression', message: no('dekan', '; did you mean "dean"?') };
  const policy = 'has_role("dekan") || has_any_role("dean", "student", "zzzzz") || "editr" in user.roles';
  const kept = await setPolicy(policy);
  t.equal(kept.status, 200, 'it is saved all the same');
  t.match(kept.json.warnings, [
    { ...odd, position: { line: 1, column: 10 } },
    { message: no('zzzzz', ''), position: { start: policy.indexOf('"zzzzz"') } },
    { message: no('editr', '; did you mean "editor"?') },
  ]);
  t.equal((kept.json.warnings as Json[]).length, 3, 'a role of imports is known before any user has it');
  t.match((await s.admin('POST', '/policies/check', { expression: policy })).json.warnings, [
    { message: odd.message },
    {},
    {},
  ]);
  t.same((await setPolicy('has_role("dean")')).json.warnings, []);
  const put = (what: string, body: Json) => s.admin('PUT', `/plugins/desk/commands/grade/${what}`, body);
  t.match((await put('policy', { expression: 'has_role("dekan")' })).json.warnings, [
    { pointer: '/expression', message: odd.message },
  ]);

  const grant = async (user: number, role: string) =>
    (await s.admin('PUT', `/users/${user}/roles/${role}`)).json.warnings;
  t.same(await grant(ivan.id, 'database/dekan'), [], 'a policy asks for it');
  await put('policy', { expression: '' });
  t.match(await grant(ivan.id, 'database/dekanat'), [
    { message: /^no policy asks for the role "dekanat" and no other user has it; did you mean "de(an|kan)"\?$/ },
  ]);
  t.same(await grant(ivan.id, 'database/dean'), [], 'another user has it');

  const roles = { system_role: 'wardens', global_roles: ['nowhere'], plugin_role: 'techer' };
  await s.admin('PUT', `/users/${ada.id}/roles/plugin/desk/teacher`);
  const held = (await s.admin('GET', `/users/${ada.id}/roles`)).json.items as Array<{ kind: string }>;
  t.match(
    held.filter(r => r.kind === 'plugin'),
    [{ plugin_id: 'desk', role: 'teacher', origin: 'manual', granted_at: String }],
  );
  t.same((await s.admin('GET', '/roles?kind=plugin')).json.items, [
    { role: 'teacher', holders: 2, imported: false, plugin_id: 'desk' },
  ]);
  const teachers = await s.admin('GET', '/roles/teacher/users?kind=plugin&plugin=desk');
  const [newest] = teachers.json.items as unknown[];
  t.match(newest, { user: ada.id, display_name: String, role: 'teacher', origin: 'manual', granted_by: null });
  for (const query of ['kind=plugin', 'kind=global&plugin=desk', 'plugin=desk'])
    t.match(
      (await s.admin('GET', `/roles/teacher/users?${query}`)).json,
      { errors: [{ pointer: 'query:plugin' }] },
      query,
    );
  t.match((await put('roles', roles)).json.warnings, [
    { pointer: '/system_role', message: 'no user has the system role "wardens"' },
    { pointer: '/global_roles', message: 'no user has the global role "nowhere"' },
    { pointer: '/plugin_role', message: 'no user has the plugin role "techer" of "desk"; did you mean "teacher"?' },
  ]);
  t.same(await grant(ada.id, 'system/wardens'), [], 'a command asks for it');
  t.match(await grant(ada.id, 'system/warden'), [
    { message: 'no command asks for the system role "warden" and no other user has it; did you mean "wardens"?' },
  ]);
  t.match(await grant(ada.id, 'plugin/desk/other'), [
    { message: /no command asks for the plugin role "other" of "desk"/ },
  ]);
  await put('roles', { system_role: null, global_roles: [], plugin_role: null });
  await setPolicy('');
});

t.test('a stored policy that does not compile any more admits no caller, and the record says why', async t => {
  const ada = await person();
  await setPolicy('user.locale == "ru"');
  t.equal((await ada.call()).status, 200);
  // As an older release may have left it.
  const broken = 'user.locale == "ru" || 1u == 1u';
  await db.query("UPDATE plugin_trigger_settings SET policy_expression = $1 WHERE plugin_id = 'desk'", [broken]);
  await db.query(
    "INSERT INTO plugin_command_settings (plugin_id, command, policy_expression) VALUES ('desk', 'menu', $1)",
    [broken],
  );
  await s.service.registry.reload('desk');
  t.equal((await ada.call()).status, 403);
  t.equal((await ada.call()).status, 403, 'and when it is remembered that it does not');
  const problem = { message: /unsigned numbers are not supported/, position: { start: broken.indexOf('1u') } };
  t.match((await s.admin('GET', '/plugins/desk/triggers/run/settings')).json.policy_problems, [problem, {}]);
  t.match((await s.admin('GET', '/plugins/desk/commands/settings')).json, {
    items: [{ command: 'menu', policy_problems: [problem, {}] }, { policy_problems: [] }],
  });
  t.match((await explain({ user: ada.id, command: 'menu' })).json, { allowed: false, policy: { verdict: 'failed' } });
  const record = async () =>
    ((await s.admin('GET', '/plugins/desk/executions?outcome=refused&limit=1')).json.items as Json[])[0];
  await until(async () => (await record())?.failure !== '');
  t.match(await record(), {
    status: 403,
    failure: /the stored policy does not compile: unsigned numbers are not supported/,
  });
  const told: string[] = [];
  await findBrokenPolicies(db, (of, reason) => told.push(`${of.kind} ${of.pluginId}/${of.name}: ${reason}`));
  t.match(
    told.sort(),
    [/^command desk\/menu: unsigned/, /^trigger desk\/run: unsigned/],
    'the log names each at start',
  );
  await db.query("DELETE FROM plugin_command_settings WHERE command = 'menu'");
  await setPolicy('');
});

t.test('access/explain names for a trigger, step by step, what would have to change', async t => {
  const ada = await person();
  const why = () => explain({ user: ada.id, trigger: 'run' });
  await settings({ enabled: false });
  t.match(await why(), { json: { allowed: false, status: 404, to_change: [/"enabled": true/] } });
  await settings({ enabled: true, allow_user_session: false, allow_service_key: true, policy_expression: '' });
  t.match(await why(), { json: { allowed: false, status: 403, to_change: [/"allow_user_session": true/] } });
  await settings({ allow_user_session: true });
  t.match(await why(), { json: { allowed: true, status: 200, to_change: [] } });
  await setPolicy('has_role("r1")');
  const refused = await why();
  t.match(refused.json, { allowed: false, status: 403, policy: { verdict: 'denied' } });
  t.equal(steps(refused).at(-1), 'policy: no');
  const last = (refused.json.steps as Json[]).at(-1);
  t.match(last, { code: 'policy', role: null, holds: false });
  await s.admin('POST', '/plugins/desk/disable');
  t.match(await why(), { json: { allowed: false, status: 404, to_change: [/enable/] } });
  await s.admin('POST', '/plugins/desk/enable');
  t.match(await explain({ user: ada.id, trigger: 'none' }), { json: { allowed: false, status: 404 } });
  t.match(await explain({ user: ada.id, plugin: 'none', trigger: 'run' }), { json: { allowed: false, status: 404 } });
  t.match(await explain({ user: 999999, trigger: 'run' }), { status: 404 });
  t.match(await explain({ user: ada.id }), { status: 422, json: { errors: [{ pointer: '/trigger' }] } });
});

t.test('a decision is kept with the execution, and a refusal leaves a record that says why', async t => {
  const ada = await person();
  await setPolicy('has_role("r2") || check("admin", "faculty", "f9")');
  t.equal((await ada.call()).status, 403);
  await s.admin('PUT', `/users/${ada.id}/roles/database/r2`);
  await sleep(1000);
  t.equal((await ada.call()).status, 200);
  const list = await s.admin('GET', '/plugins/desk/executions?limit=2');
  const items = list.json.items as Json[];
  t.match(items, [
    { outcome: 'ok', principal: `user:${ada.id}` },
    { outcome: 'refused', status: 403, principal: `user:${ada.id}` },
  ]);
  t.match((await s.admin('GET', `/plugins/desk/executions/${items[0]?.id}`)).json.decision, {
    reason: 'allowed',
    policy: { verdict: 'allowed', graph_rounds: 0 },
  });
  t.match((await s.admin('GET', `/plugins/desk/executions/${items[1]?.id}`)).json.decision, {
    ...{ reason: 'policy', detail: null, roles: [] },
    policy: {
      verdict: 'denied',
      graph_checks: [{ check: `faculty:f9#admin@user:${ada.externalId}`, allowed: false }],
    },
  });
  t.match(await s.admin('GET', '/plugins/desk/executions?outcome=refused&limit=1'), { status: 200 });
});

t.test('policies can be checked and tried before they are saved', async t => {
  const ada = await person({ locale: 'en' });
  const check = (expression: string) => s.admin('POST', '/policies/check', { expression });
  t.match(await check('user.locale == "ru"'), { status: 200, json: { valid: true, type: 'bool' } });
  t.match((await check('user.locale == "ru" &&\n user.x')).json, {
    valid: false,
    errors: [{ position: { line: 2, column: 7 } }],
  });
  const source = 'user.locale == "en" && (has_role("a") || check("admin", "faculty", "f"))';
  const tried = await s.admin('POST', '/policies/try', { expression: source, user: ada.id });
  t.match(tried.json, {
    result: false,
    graph_rounds: 1,
    graph_checks: [{ check: `faculty:f#admin@user:${ada.externalId}`, allowed: false }],
  });
  t.ok(Number((tried.json.graph_checks as Json[])[0]?.ms) > 0);
  t.match(
    (tried.json.parts as Json[]).map(p => [p.expression, p.value]),
    [
      [/^user.locale == "en" &&/, false],
      ['user.locale == "en"', true],
      ['user.locale', 'en'],
      [/^has_role\("a"\) \|\|/, false],
      ['has_role("a")', false],
      ['check("admin", "faculty", "f")', false],
    ],
  );
  const overridden = await s.admin('POST', '/policies/try', {
    expression: source,
    user: ada.id,
    attributes: { roles: ['a'] },
  });
  t.match(overridden.json, { result: true, graph_rounds: 0, user: { roles: ['a'], locale: 'en' } });
  t.ok((overridden.json.parts as Json[]).some(p => p.not_needed === true));
  t.match(await s.admin('POST', '/policies/try', { expression: 'user.id', user: ada.id }), {
    status: 422,
    json: { errors: [{ pointer: '/expression' }] },
  });
  t.equal((await s.admin('POST', '/policies/try', { expression: 'true', user: 999999 })).status, 404);
});

/** All parts of a comparison, put together. */
async function compareAll(before: string, after: string, limit = 1000) {
  const gains: Json[] = [];
  const loses: Json[] = [];
  let [examined, parts] = [0, 0];
  for (let cursor: Json[string] = null; parts === 0 || cursor !== null; parts++) {
    const part = await s.admin('POST', '/policies/compare', {
      ...{ before, after, limit },
      ...(cursor === null ? {} : { cursor }),
    });
    if (part.status !== 200) return part;
    t.equal(part.json.undecided, 0);
    gains.push(...(part.json.gains as Json[]));
    loses.push(...(part.json.loses as Json[]));
    examined += Number(part.json.examined);
    cursor = part.json.next_cursor ?? null;
    if (cursor === null) t.equal(part.json.users, examined, 'every user was looked at once');
  }
  return { status: 200, json: { gains, loses, examined, parts } };
}

t.test('a change of a policy is compared with the policy as it is, for all users in parts', async t => {
  const english = await person({ locale: 'en' });
  const editor = await person({ locale: 'ru' });
  await s.admin('PUT', `/users/${editor.id}/roles/database/compared`);
  const before = `user.locale == "en" && user.id == ${english.id}`;
  const changed = await compareAll(before, `has_role("compared") && is_member("study_group", "none") == false`);
  const gains = [{ id: editor.id, external_id: editor.externalId, groups: [] }];
  t.match(changed.json, { gains, loses: [{ id: english.id }] });
  t.match((await compareAll(before, before)).json, { gains: [], loses: [] });
  const open = (await compareAll(before, '')).json as { examined: number; gains: Json[]; parts: number };
  t.ok(open.examined > 2);
  t.equal(open.parts, 1);
  t.equal(open.gains.length, open.examined - 1, 'without a policy all may');
  t.match((await compareAll(before, '', 2)).json, {
    examined: open.examined,
    parts: Math.floor(open.examined / 2) + 1,
  });
  t.match((await compareAll('', 'user.locle')).json, { status: 422, errors: [{ pointer: '/after' }] });
  t.match((await compareAll('user.locle', '')).json, { status: 422, errors: [{ pointer: '/before' }] });
  t.match((await s.admin('POST', '/policies/compare', { before: '', after: '', cursor: 'x' })).json, {
    errors: [{ pointer: '/cursor', message: 'must be the next_cursor of the page before' }],
  });
});

t.test('groups of many users are those the graph knows, and are named', async t => {
  const member = await person({ locale: 'ru' });
  const other = await person({ locale: 'ru' });
  const group = 'группа 1';
  const tuple = {
    ...{ resource_type: 'study_group', resource_id: group, relation: 'member' },
    ...{ subject_type: 'user', subject_id: member.externalId },
  };
  t.match(await s.admin('POST', '/relationships', tuple), { status: 201 });
  for (const policy of [
    `user.groups.exists(g, g == "${group}")`,
    `check("view_own_data", "study_group", "${group}")`,
    `is_member("study_group", "${group}") && user.id != ${other.id}`,
  ]) {
    const found = await compareAll('false', policy);
    const gains = [{ id: member.id, groups: [{ id: group, name: group }] }];
    t.match(found.json, { gains, loses: [] }, policy);
    t.equal((found.json.gains as Json[]).length, 1);
    t.match(await s.admin('POST', '/policies/try', { expression: policy, user: member.id }), {
      json: { result: true },
    });
  }
});

t.test('recorded calls are decided again by another policy', async t => {
  const [teacher, student] = [await person({ locale: 'en' }), await person({ locale: 'ru' })];
  const record = (principal: string, outcome: string, decision: object | null, age = '1 hour', plugin = 'desk') =>
    db.query(
      `INSERT INTO execution_records (request_id, plugin_id, version, trigger_name, principal, outcome, status, started_at,
         queue_wait_ms, run_ms, host_calls, peak_pages, failure, log, decision)
       VALUES ('r', $1, '1', 'menu', $2, $3, 200, now() - $4::interval, 0, 1, 0, 1, '', '[]', $5)`,
      [plugin, principal, outcome, age, decision === null ? null : JSON.stringify(decision)],
    );
  await record(`user:${teacher.id}`, 'ok', null);
  await record(`user:${teacher.id}`, 'trapped', null);
  await record(`user:${student.id}`, 'refused', { reason: 'policy', roles: [] });
  await record(`user:${student.id}`, 'refused', { kind: 'denied', reason: '' });
  await record('service:7', 'ok', null);
  await record('public', 'ok', null);
  // Not decided by the policy, of another plugin, too old, or of a caller that is not there any more.
  await record(`user:${student.id}`, 'refused', { reason: 'roles', roles: [] });
  await record(`user:${student.id}`, 'refused', { kind: 'unavailable', reason: 'away' });
  await record(`user:${student.id}`, 'ok', null, '1 hour', 'other');
  await record(`user:${student.id}`, 'ok', null, '8 days');
  await record('erased', 'ok', null);
  await record('user:99999999', 'ok', null);
  const rehearse = (expression: string, more: Record<string, unknown> = {}) =>
    s.admin('POST', '/policies/rehearse', { plugin: 'desk', trigger: 'menu', expression, ...more });
  t.match((await rehearse('user.locale == "ru"')).json, {
    ...{ calls: 6, callers: 4, undecided: 1 },
    would_admit: {
      calls: 2,
      callers: 1,
      most: [{ principal: `user:${student.id}`, calls: 2, user: { id: student.id } }],
    },
    would_refuse: {
      ...{ calls: 4, callers: 3 },
      most: [{ principal: `user:${teacher.id}`, calls: 2, user: { id: teacher.id } }, { calls: 1 }, { calls: 1 }],
    },
  });
  t.match((await rehearse('principal.kind == "service" || user.locale == "en"')).json, {
    would_admit: { calls: 0, callers: 0, most: [] },
    would_refuse: { calls: 1, most: [{ principal: 'public' }] },
  });
  t.match((await rehearse('')).json, { would_admit: { calls: 2 }, would_refuse: { calls: 0 } });
  t.match((await rehearse('user.locale == "en"', { days: 9 })).json, { would_refuse: { calls: 3 } });
  t.match((await rehearse('user.locle')).json, { status: 422, errors: [{ pointer: '/expression' }] });
  t.match(await rehearse('', { trigger: 'none' }), {
    status: 404,
    json: { detail: 'plugin "desk" has no trigger or command "none"' },
  });
  await db.query("DELETE FROM execution_records WHERE request_id = 'r'");
});

t.test(
  'a role granted on one host allows a command on the other within a second, and a revoked one forbids it',
  async t => {
    const other = await startWorld(t, spicedb.endpoint, s);
    const ada = await person();
    await s.admin('PUT', '/plugins/desk/commands/menu/roles', { global_roles: ['both'] });
    const within = async (wanted: boolean): Promise<number> => {
      const start = performance.now();
      for (;;) {
        const answers = await Promise.all([s, other].map(at => explain({ user: ada.id, command: 'menu' }, at)));
        if (answers.every(a => a.json.allowed === wanted)) return performance.now() - start;
        if (performance.now() - start > 10_000) return Number.POSITIVE_INFINITY;
      }
    };
    await within(false);
    const times: number[] = [];
    for (let round = 0; round < 5; round++) {
      const granting = round % 2 === 0 ? s : other;
      t.match(await granting.admin('PUT', `/users/${ada.id}/roles/global/both`), { json: { delivered: true } });
      times.push(await within(true));
      await granting.admin('DELETE', `/users/${ada.id}/roles/global/both`);
      times.push(await within(false));
    }
    t.ok(times.every(Number.isFinite), `${times.map(Math.round)} ms`);
    t.comment(`until both hosts knew: ${times.map(Math.round).join(', ')} ms`);
    await s.admin('PUT', '/plugins/desk/commands/menu/policy', { expression: 'user.locale == "en"' });
    await within(false);
    await other.admin('PUT', '/plugins/desk/commands/menu/policy', { expression: '' });
    await other.admin('PUT', '/plugins/desk/commands/menu/roles', { global_roles: [] });
    t.ok(Number.isFinite(await within(true)), 'settings changed on the other host count here');
  },
);

t.test('the schema is read without the graph store too, and says so; what needs the store is refused', async t => {
  const needy = '/relationships/lookup?resource_type=faculty&permission=admin&user=x';
  const away = { status: 503, code: 'unavailable', detail: /^the graph store does not answer: / };
  // One that has none yet, and one whose store refuses connections.
  const without = await startTestService();
  const refused = await startTestService({
    BOT_SPICEDB_ENDPOINT: `127.0.0.1:${await takePort()}`,
    BOT_SPICEDB_TOKEN: 'any',
    BOT_SPICEDB_TLS: 'false',
  });
  const [there, released] = [await s.admin('GET', '/schema/definitions'), { source: 'release' }];
  t.match(there.json, { source: 'store' });
  for (const alone of [without, refused]) {
    t.teardown(() => alone.stop());
    const { json } = await alone.admin('GET', '/schema/definitions');
    t.match(json, { ...released, schema: /definition faculty/ });
    t.same(
      (json.definitions as Json[]).map(d => d.name).sort(),
      (there.json.definitions as Json[]).map(d => d.name).sort(),
    );
    for (const where of [needy, '/authz/drift']) {
      const answer = await alone.admin('GET', where);
      t.match(answer.json, away, where);
      t.ok(Number(answer.headers.get('retry-after')) > 0);
    }
  }
});

t.test('drift is found and repaired, in both directions', async t => {
  const stray = { resource_type: 'faculty', resource_id: 'drift', relation: 'dean', subject_id: 'x' };
  await relate('POST', stray);
  const { graph } = s.service.authz;
  const tupleOf = (subjectId: string) => ({
    resourceType: 'faculty',
    resourceId: 'drift',
    relation: 'dean',
    subjectType: 'user',
    subjectId,
    subjectRelation: '',
  });
  await graph.store.write([
    { operation: 'delete', tuple: tupleOf('x') },
    { operation: 'touch', tuple: tupleOf('intruder') },
  ]);
  t.match((await s.admin('GET', '/authz/drift')).json, {
    missing: ['faculty:drift#dean@user:x'],
    extra: ['faculty:drift#dean@user:intruder'],
    repaired: false,
  });
  const found = { missing_count: 1, extra_count: 1, repaired: false };
  t.match((await s.admin('GET', '/outbox')).json, { last_comparison: found }, 'the outbox remembers what was found');
  t.match((await s.admin('POST', '/authz/drift/repair')).json, { missing_count: 1, extra_count: 1, repaired: true });
  t.match((await s.admin('GET', '/outbox')).json, { last_comparison: { ...found, repaired: true } });
  t.match((await s.admin('GET', '/authz/drift')).json, { missing: [], extra: [] });
  await relate('DELETE', stray);
});

t.test(
  'kill -9 of the graph store under load: no wrong yes, 503 for callers that need it, and it comes back complete',
  async t => {
    const own = await startGraphStore(t);
    const alone = await startWorld(t, own.spicedb.endpoint);
    await alone.install(plugin());
    const made = await alone.admin('POST', '/users', { external_id: 'in' });
    const out = await alone.admin('POST', '/users', { external_id: 'out' });
    const ownDb = openDatabase(alone.databaseUrl, 1, () => {});
    t.teardown(() => ownDb.close());
    const tokenOf = async (a: Answer) =>
      (await addUserToken(ownDb, 'pht_', { userId: Number(a.json.id), name: 'n', expiresAt: null })).text;
    const [inside, outside] = [await tokenOf(made), await tokenOf(out)];
    const groups = Array.from({ length: 300 }, (_, k) => ({
      resource_type: 'study_group',
      resource_id: `g${k}`,
      relation: 'member',
      subject_id: 'in',
    }));
    t.equal((await alone.admin('POST', '/relationships', { relationships: groups })).status, 201);
    await alone.admin('PUT', '/plugins/desk/triggers/run/settings', {
      allow_user_session: true,
      policy_expression: 'is_member("study_group", "g299")',
    });
    const counts = new Map<string, number>();
    let ended = false;
    const load = async (who: string, token: string): Promise<void> => {
      while (!ended) {
        const { status } = await alone.trigger('desk/run', { headers: { authorization: `Bearer ${token}` } });
        counts.set(`${who} ${status}`, (counts.get(`${who} ${status}`) ?? 0) + 1);
      }
    };
    const work = [load('in', inside), load('in', inside), load('out', outside)];
    await sleep(300);
    const gone = new Promise(resolve => own.spicedb.process.once('exit', resolve));
    own.spicedb.process.kill('SIGKILL');
    await gone;
    // What is changed meanwhile waits in the outbox.
    const waiting = await alone.admin('POST', '/relationships', {
      resource_type: 'study_group',
      resource_id: 'late',
      relation: 'member',
      subject_id: 'in',
    });
    t.match(waiting, { status: 201, json: { delivered: false } });
    const state = await alone.admin('GET', '/outbox?state=pending');
    t.match(state.json, { pending: 1, items: [{ operation: 'TOUCH', state: 'pending' }] });
    t.equal(
      (await alone.admin('GET', '/relationships/lookup?resource_type=faculty&permission=admin&user=x')).status,
      503,
    );
    t.equal((await alone.admin('GET', '/authz/drift')).status, 503);
    await own.spicedb.stop();
    const again = await startEmbeddedSpicedb(`${own.directory}/run`, null, BARE_ENV);
    t.teardown(() => again.stop());
    const before = counts.get('in 200') ?? 0;
    await until(() => (counts.get('in 200') ?? 0) >= before + 50);
    ended = true;
    await Promise.all(work);
    t.equal(counts.get('out 200'), undefined, 'no user without access got in');
    t.equal(counts.get('in 403'), undefined, 'no user with access was refused with 403');
    t.ok((counts.get('in 503') ?? 0) > 0 && (counts.get('out 503') ?? 0) > 0, JSON.stringify([...counts]));
    await until(async () => (await alone.admin('GET', '/outbox?limit=1')).json.pending === 0);
    t.match((await alone.admin('GET', '/authz/drift')).json, { missing: [], extra: [], compared: 301 });
  },
);
