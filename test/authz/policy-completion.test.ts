import t from 'tap';
import { askedAt } from '../../admin/src/policy/asked-at.ts';

/** What the policy editor offers where the cursor stands, which is `^` here. */

const asked = (policy: string) => askedAt(policy.replace('^', ''), policy.indexOf('^'));

const ROWS: ReadonlyArray<[policy: string, offered: object | null]> = [
  ['has_ro^', { kind: 'name', from: 0 }],
  ['^', { kind: 'name', from: 0, to: 0 }],
  ['user.^', { kind: 'attribute', from: 5 }],
  ['user.loc^', { kind: 'attribute', from: 5, to: 8 }],
  ['user.locale == "^', { kind: 'value', attribute: 'locale', from: 16 }],
  ['user.locale == "ru" ? user.funding_type == "^', { kind: 'value', attribute: 'funding_type' }],
  ['user.locale in ["ru", "^"]', { kind: 'value', attribute: 'locale' }],
  ['has_role("^', { kind: 'role' }],
  ['has_any_role("dean", "te^', { kind: 'role', from: 22 }],
  ['"^" in user.roles', { kind: 'role' }],
  ['user.external_id != "" ? has_role("^', { kind: 'role' }],
  ['check("^', { kind: 'permission' }],
  ['user.external_id in ["a"] ? check("^', { kind: 'permission' }],
  ['check("view_all", "^', { kind: 'type', permission: 'view_all' }],
  ['is_member("^', { kind: 'type', permission: 'member' }],
  ['check("view_all", "faculty", "ma^', { kind: 'id', type: 'faculty', search: 'ma' }],
  ['check("view_all",\n  "faculty",\n  "^")', { kind: 'id', type: 'faculty', search: '' }],
  ['is_member("study_group", "^', { kind: 'id', type: 'study_group' }],
  ['user.external_id == "gr^ace-1"', { kind: 'id', type: 'user', search: 'gr', from: 21, to: 28 }],
  ['user.external_id in [\n  "s-1",\n  "^"\n]', { kind: 'id', type: 'user' }],
  ['"^" in user.groups', { kind: 'id', type: 'study_group' }],
  ['user.groups.exists(g, g == "^', { kind: 'id', type: 'study_group' }],
  ['user.groups.exists(g, g == "a") && user.locale == "^', { kind: 'value', attribute: 'locale' }],
  ['"O\'Brien" == user.external_id || user.^', { kind: 'attribute' }],
  ['user.external_id == "O\\"Bri^', { kind: 'id', type: 'user' }],
  ['true // user.^', null],
  ['true // no\n&& user.^', { kind: 'attribute' }],
];

t.test('completions fit the innermost call, or the attribute that is compared', async t => {
  for (const [policy, offered] of ROWS) {
    const found = asked(policy);
    if (offered === null) t.equal(found, null, policy);
    else t.match(found, offered, policy);
  }
});
