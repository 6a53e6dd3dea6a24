import t from 'tap';
import { type Answer, type Json, startTestService } from '../support/service.ts';
import { watPlugin } from '../support/wat.ts';

/** A trigger is never public by accident (docs/RATIONALE.md "Access to a new trigger"). */
const s = await startTestService();
t.teardown(() => s.stop());

type Trigger = { name: string; path?: string; methods?: string[]; access?: Json; type?: string };

const plugin = (id: string, version: string, triggers: Trigger[]): Uint8Array =>
  watPlugin({
    id,
    version,
    triggers: triggers.map(tr =>
      tr.type === 'messenger' ? tr : { type: 'http', path: `/${tr.name}`, methods: ['GET'], ...tr },
    ),
    handle: '(i32.const 0)',
  });

async function upload(id: string, version: string, triggers: Trigger[]): Promise<Json> {
  const { json, status, text } = await s.upload(plugin(id, version, triggers));
  if (status !== 201) throw new Error(text);
  return json;
}

const installed = (id: string, body: Json): Promise<Answer> => s.admin('POST', `/plugins/${id}/install`, body);
const accessOf = async (id: string): Promise<Record<string, unknown>> => {
  const { items } = (await s.admin('GET', `/plugins/${id}/triggers`)).json as { items: Json[] };
  return Object.fromEntries(items.map(i => [String(i.trigger), i.effective_access]));
};
const named = (a: Answer): unknown[] => (a.json.becomes_public as Json[]).map(p => [p.trigger, p.methods, p.url]);
const OPEN = { allow_user_session: false };

t.test('a new trigger is for logged-in users, and the upload and the installation say so', async t => {
  const up = await upload('fresh', '1', [{ name: 'a' }, { name: 'word', type: 'messenger' }]);
  t.match(up.access, [
    { trigger: 'a', new: true, effective_access: 'user', suggested: null, url: '/api/triggers/http/fresh/a' },
  ]);
  const answer = await installed('fresh', { wasm_key: up.wasm_key ?? '' });
  t.match(answer.json, {
    added_triggers: [{ name: 'a', effective_access: 'user' }, { name: 'word' }],
    removed_triggers: [],
  });
  t.equal((await s.trigger('fresh/a')).status, 401);
  const { json } = await s.admin('GET', '/plugins/fresh/triggers/a/settings');
  t.match(json, {
    allow_user_session: true,
    allow_service_key: false,
    policy_expression: '',
    effective_access: 'user',
  });
});

t.test('an upgrade names what it adds; new triggers are for users, old ones keep their settings', async t => {
  await s.install(plugin('grow', '1', [{ name: 'old' }, { name: 'gone' }]));
  const up = await upload('grow', '2', [{ name: 'old' }, { name: 'more' }]);
  t.match(up.access, [
    { trigger: 'old', new: false, effective_access: 'public' },
    { trigger: 'more', new: true, effective_access: 'user' },
  ]);
  const answer = await installed('grow', { wasm_key: up.wasm_key ?? '' });
  t.match(answer, { status: 200, json: { added_triggers: [{ name: 'more' }], removed_triggers: ['gone'] } });
  t.equal((answer.json.added_triggers as Json[]).length, 1);
  t.same(await accessOf('grow'), { old: 'public', more: 'user' });
  t.equal((await s.trigger('grow/old')).status, 204, 'what was public goes on without a confirmation');
});

t.test('a trigger that comes back has the settings it had, and the review says so', async t => {
  await s.install(plugin('again', '1', [{ name: 'kept' }, { name: 'away' }]));
  const closed = { allow_user_session: true, policy_expression: "has_role('staff')" };
  await s.admin('PUT', '/plugins/again/triggers/away/settings', closed);
  await s.install(plugin('again', '2', [{ name: 'kept' }]));
  const up = await upload('again', '3', [{ name: 'kept' }, { name: 'away' }]);
  const [, away] = up.access as Json[];
  t.match(away, { trigger: 'away', new: false, effective_access: 'user', has_policy: true });
  await installed('again', { wasm_key: up.wasm_key ?? '', accept_suggested_access: true });
  t.match((await s.admin('GET', '/plugins/again/triggers/away/settings')).json, closed);
});

t.test('an upgrade that opens another address of a public trigger needs a confirmation', async t => {
  await s.install(plugin('move', '1', [{ name: 'x', path: '/x/:id' }]));
  const same = await upload('move', '2', [{ name: 'x', path: '/x/:other' }]);
  t.equal((await installed('move', { wasm_key: same.wasm_key ?? '' })).status, 200, 'the same addresses');
  const moved = await upload('move', '3', [{ name: 'x', path: '/y' }]);
  t.same(named(await installed('move', { wasm_key: moved.wasm_key ?? '' })), [
    ['x', ['GET'], '/api/triggers/http/move/y'],
  ]);
  const wider = await upload('move', '4', [{ name: 'x', path: '/x/:id', methods: ['GET', 'DELETE'] }]);
  const refused = await installed('move', { wasm_key: wider.wasm_key ?? '' });
  t.match(refused, { status: 409, json: { code: 'confirmation_required' } });
  t.same(named(refused), [['x', ['DELETE'], '/api/triggers/http/move/x/:id']]);
  t.equal(s.service.registry.find('move')?.version, '2', 'nothing is installed');
});

t.test('an upgrade without a protected trigger whose path a public one takes over needs a confirmation', async t => {
  const any = { name: 'any', path: '/:page' };
  await s.install(plugin('cover', '1', [any, { name: 'secret', methods: ['GET', 'PUT'] }]));
  await s.admin('PUT', '/plugins/cover/triggers/secret/settings', { allow_user_session: true });
  t.equal((await s.trigger('cover/secret')).status, 401);
  const up = await upload('cover', '2', [any]);
  const refused = await installed('cover', { wasm_key: up.wasm_key ?? '' });
  t.match(refused, { status: 409, json: { code: 'confirmation_required' } });
  t.same(named(refused), [['any', ['GET'], '/api/triggers/http/cover/secret']]);
  t.equal((await s.trigger('cover/secret')).status, 401, 'nothing is installed');
  t.equal((await installed('cover', { wasm_key: up.wasm_key ?? '', accept_public: ['any'] })).status, 200);
  t.equal((await s.trigger('cover/secret')).status, 204);
});

t.test('the same if both paths have a parameter: paths that match both need a confirmation', async t => {
  const pages = { name: 'pages', path: '/:section/list' };
  await s.install(plugin('common', '1', [pages, { name: 'staff', path: '/staff/:what' }]));
  await s.admin('PUT', '/plugins/common/triggers/staff/settings', { allow_user_session: true });
  t.equal((await s.trigger('common/staff/other')).status, 401);
  const up = await upload('common', '2', [pages]);
  t.same(named(await installed('common', { wasm_key: up.wasm_key ?? '' })), [
    ['pages', ['GET'], '/api/triggers/http/common/staff/:what'],
  ]);
  await s.install(plugin('apart', '1', [pages, { name: 'deep', path: '/staff/:what/more' }]));
  await s.admin('PUT', '/plugins/apart/triggers/deep/settings', { allow_user_session: true });
  const free = await upload('apart', '2', [pages]);
  t.equal((await installed('apart', { wasm_key: free.wasm_key ?? '' })).status, 200, 'they have no path in common');
});

t.test('a suggestion counts only when it is accepted, and a public one only when that is confirmed', async t => {
  const triggers: Trigger[] = [
    { name: 'all', access: { public: true, reason: 'it only shows the time' } },
    { name: 'keys', access: { service_keys: true, policy: 'principal.kind == "service"', reason: 'for the gateway' } },
    { name: 'plain' },
  ];
  const up = await upload('hint', '1', triggers);
  t.match(up.access, [
    { suggested: { public: true, reason: 'it only shows the time', effective_access: 'public', policy_problems: [] } },
    { suggested: { service_keys: true, effective_access: 'service', policy: 'principal.kind == "service"' } },
    { suggested: null },
  ]);
  const key = up.wasm_key ?? '';
  const both = { wasm_key: key, accept_suggested_access: true };
  t.same(named(await installed('hint', both)), [['all', ['GET'], '/api/triggers/http/hint/all']]);
  t.equal(
    (await installed('hint', { ...both, accept_public: ['plain'] })).status,
    409,
    'another name confirms nothing',
  );
  t.equal(s.service.registry.find('hint'), undefined, 'nothing is installed');
  t.equal((await installed('hint', { wasm_key: key })).status, 200);
  t.same(await accessOf('hint'), { all: 'user', keys: 'user', plain: 'user' }, 'not accepted: it does not count');
  t.equal((await installed('hint', { ...both, accept_public: true })).status, 200);
  t.same(await accessOf('hint'), { all: 'user', keys: 'user', plain: 'user' }, 'triggers that have settings keep them');
  await s.admin('DELETE', '/plugins/hint');
  const again = await upload('hint', '1', triggers);
  const accepted = { wasm_key: again.wasm_key ?? '', accept_suggested_access: true, accept_public: ['all'] };
  t.equal((await installed('hint', accepted)).status, 200);
  t.same(await accessOf('hint'), { all: 'public', keys: 'service', plain: 'user' });
  t.match((await s.admin('GET', '/plugins/hint/triggers/keys/policy/revisions')).json, {
    items: [{ expression: 'principal.kind == "service"' }],
  });
  t.match((await s.admin('GET', '/audit?action=plugin.install&object_id=hint&limit=1')).json, {
    items: [{ after: { triggers: { all: { allow_user_session: false }, keys: { allow_service_key: true } } } }],
  });
});

t.test(
  'an installation sets access in the same step; what is wrong in it is named and nothing is installed',
  async t => {
    const up = await upload('step', '1', [
      { name: 'list', access: { users: true, policy: 'user.locle == "ru"', reason: 'r' } },
      { name: 'other' },
    ]);
    t.match(up.access, [
      { suggested: { policy_problems: [{ message: /locle/, position: { line: 1, column: 6 } }] } },
      {},
    ]);
    const key = up.wasm_key ?? '';
    const rows: Array<[Json, string, RegExp]> = [
      [{ triggers: { lst: { enabled: true } } }, '/triggers/lst', /no HTTP trigger "lst"; did you mean "list"\?/],
      [{ triggers: { 'a/b': {} } }, '/triggers/a~1b', /it has list, other/],
      [{ triggers: { list: { enable: true } } }, '/triggers/list/enable', /./],
      [{ triggers: { other: { policy_expression: 'user.id' } } }, '/triggers/other/policy_expression', /this is int/],
      [{ accept_suggested_access: true }, '/accept_suggested_access', /locle/],
      [{ accept_public: 'yes' }, '/accept_public', /./],
    ];
    for (const [body, pointer, message] of rows)
      t.match(
        await installed('step', { wasm_key: key, ...body }),
        { status: 422, json: { errors: [{ pointer, message }] } },
        JSON.stringify(body),
      );
    t.equal(s.service.registry.find('step'), undefined);
    const settings = { list: { allow_service_key: true, policy_expression: 'true' }, other: { enabled: false } };
    const answer = await installed('step', { wasm_key: key, triggers: settings, accept_suggested_access: true });
    t.equal(answer.status, 200, 'settings that are said go before a suggestion');
    t.same(await accessOf('step'), { list: 'user_or_service', other: 'disabled' });
  },
);

t.test('a rollback and a restored policy that open a trigger need a confirmation', async t => {
  const one = await upload('back', '1', [{ name: 'x' }, { name: 'y' }]);
  const open = { wasm_key: one.wasm_key ?? '', triggers: { x: OPEN }, accept_public: true };
  t.equal((await installed('back', open)).status, 200);
  const two = await upload('back', '2', [{ name: 'y' }]);
  t.equal((await installed('back', { wasm_key: two.wasm_key ?? '' })).status, 200);
  const rollback = (body: Json) => s.admin('POST', '/plugins/back/rollback', { wasm_key: one.wasm_key ?? '', ...body });
  t.same(named(await rollback({})), [['x', ['GET'], '/api/triggers/http/back/x']]);
  t.equal(s.service.registry.find('back')?.version, '2', 'nothing is rolled back');
  t.match(await rollback({ accept_public: ['x'] }), { status: 200, json: { added_triggers: [{ name: 'x' }] } });
  const put = (body: Json) => s.admin('PUT', '/plugins/back/triggers/x/settings', body);
  t.equal((await put({ policy_expression: 'true' })).status, 200);
  t.equal((await put({ policy_expression: '', accept_public: true })).status, 200);
  t.equal((await put({ policy_expression: 'false' })).status, 200);
  const revisions = '/plugins/back/triggers/x/policy/revisions';
  const { items } = (await s.admin('GET', revisions)).json as { items: Json[] };
  const restore = (body?: Json) => s.admin('POST', `${revisions}/${items[1]?.id}/restore`, body);
  t.equal(items[1]?.expression, '');
  t.match(await restore(), { status: 409, json: { code: 'confirmation_required' } });
  t.equal((await s.trigger('back/x')).status, 401, 'the policy before it still holds');
  t.match(await restore({ accept_public: true }), { status: 200, json: { effective_access: 'public' } });
});

t.test('a manifest whose suggestion makes no sense is refused', async t => {
  const rows: Array<[Json, RegExp]> = [
    [{ users: true }, /reason/],
    [{ reason: 'r' }, /name who may call/],
    [{ public: true, users: true, reason: 'r' }, /public trigger/],
    [{ public: true, policy: 'true', reason: 'r' }, /public trigger/],
    [{ user: true, reason: 'r' }, /user/],
  ];
  for (const [access, message] of rows) {
    const answer = await s.upload(plugin('odd', '1', [{ name: 'x', access }]));
    t.equal(answer.status, 422);
    t.match(answer.text, message, JSON.stringify(access));
  }
});

t.test('a scope of a service key names its trigger; "*" is written out, and unknown names are refused', async t => {
  await s.install(plugin('gate', '1', [{ name: 'enter' }, { name: 'word', type: 'messenger' }]), {}, 'default');
  const make = (body: Json) => s.admin('POST', '/service-keys', { name: 'k', ...body });
  const rows: Array<[Json, string, RegExp]> = [
    [{ plugin_id: 'gate' }, '/scopes/0/trigger', /must name a trigger of the plugin, or be "\*"/],
    [{ plugin_id: 'gate', trigger: null }, '/scopes/0/trigger', /must name a trigger/],
    [{ plugin_id: 'gate', trigger: '' }, '/scopes/0/trigger', /must name a trigger/],
    [{ plugin_id: 'gate', trigger: 'entr' }, '/scopes/0/trigger', /no HTTP trigger "entr"; did you mean "enter"\?/],
    [{ plugin_id: 'gate', trigger: 'word' }, '/scopes/0/trigger', /no HTTP trigger "word"; it has enter/],
    [{ plugin_id: 'gata', trigger: '*' }, '/scopes/0/plugin_id', /"gata" is not installed; did you mean "gate"\?/],
  ];
  for (const [scope, pointer, message] of rows)
    t.match(
      await make({ scopes: [scope] }),
      { status: 422, json: { errors: [{ pointer, message }] } },
      JSON.stringify(scope),
    );
  t.match(await make({ scopes: [{ plugin_id: 'later', trigger: 'x' }], allow_unknown: true }), {
    status: 201,
    json: { scopes: [{ plugin_id: 'later', trigger: 'x' }], warnings: [{ pointer: '/scopes/0/plugin_id' }] },
  });
  t.match(await make({ scopes: [{ plugin_id: 'gate', trigger: '*' }] }), {
    status: 201,
    json: { scopes: [{ plugin_id: 'gate', trigger: '*' }], warnings: [] },
  });
  t.match((await s.admin('GET', '/service-keys?limit=1')).json, {
    items: [{ scopes: [{ plugin_id: 'gate', trigger: '*' }] }],
  });
});
