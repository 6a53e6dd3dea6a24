import t from 'tap';
import { refusalOf, type TestCaller } from '../../src/authors/test-refusal.ts';
import type { HttpAuth } from '../../src/base/principal.ts';
import type { SuggestedAccess } from '../../src/plugins/manifest.ts';

/** Tests of authors with `access` decide as the service would (docs/access.md "The decision"). */

const USER: HttpAuth = { kind: 'user', user_id: 7 };
const KEY: HttpAuth = { kind: 'service', service_key_id: 1 };

const suggested = (more: Partial<SuggestedAccess>): SuggestedAccess => ({
  ...{ users: false, service_keys: false, public: false, policy: '', reason: 'a test', ...more },
});
const policy = (expression: string): SuggestedAccess => suggested({ users: true, policy: expression });

const CASES: Array<[what: string, SuggestedAccess | undefined, HttpAuth | null, TestCaller, status: number | null]> = [
  ['a trigger without a suggestion takes users', undefined, USER, {}, null],
  ['and no caller without a login', undefined, null, {}, 401],
  ['and no service keys', undefined, KEY, {}, 403],
  ['a public trigger takes all', suggested({ public: true }), null, {}, null],
  ['a trigger for service keys takes them', suggested({ service_keys: true }), KEY, {}, null],
  ['and no users', suggested({ service_keys: true }), USER, {}, 403],
  ['a role that the policy wants', policy('has_role("teacher")'), USER, { roles: ['teacher'] }, null],
  ['no role', policy('has_role("teacher")'), USER, {}, 403],
  ['another role', policy('has_role("teacher")'), USER, { roles: ['student'] }, 403],
  ['a study group', policy('is_member("study_group", "cs-101")'), USER, { groups: ['cs-101'] }, null],
  ['another study group', policy('is_member("study_group", "cs-101")'), USER, { groups: ['cs-102'] }, 403],
  ['groups of the user', policy('"cs-101" in user.groups'), USER, { groups: ['cs-101'] }, null],
  [
    'a permission of the graph',
    policy('check("admin", "faculty", "physics")'),
    USER,
    { permissions: ['admin faculty:physics'] },
    null,
  ],
  ['no permission of the graph', policy('check("admin", "faculty", "physics")'), USER, {}, 403],
  ['the id', policy('user.id == 7'), USER, {}, null],
  ['an attribute', policy('user.locale == "ru"'), USER, { locale: 'ru' }, null],
  ['an attribute that is another', policy('user.locale == "ru"'), USER, {}, 403],
  [
    'a policy about users, for a service key',
    suggested({ users: true, service_keys: true, policy: 'has_role("teacher")' }),
    KEY,
    {},
    403,
  ],
];

t.test('the access that a plugin suggests decides in a test as in the service', async t => {
  for (const [what, access, auth, caller, status] of CASES)
    t.equal(refusalOf(access, auth, caller)?.status ?? null, status, what);
});

t.test('a refusal says why', async t => {
  t.match(refusalOf(policy('has_role("teacher")'), USER, {})?.text, /policy has_role\("teacher"\) is not true/);
  t.match(refusalOf(undefined, KEY, {})?.text, 'the trigger is not for service keys');
});
