import t from 'tap';
import { falsePartsOf, type PolicyPart } from '../../admin/src/policy/false-parts.ts';
import { startWithRoot } from '../support/root-admin.ts';

/** What the page "Why?" names of a policy that is false for a person. */

const ROWS: ReadonlyArray<[policy: string, named: string[]]> = [
  ['has_role("dean")', ['has_role("dean")']],
  ['has_role("dean") || user.locale == "en"', ['has_role("dean")', 'user.locale == "en"']],
  ['user.locale == "ru" && has_role("dean")', ['has_role("dean")']],
  ['(has_role("dean") || user.locale == "ru") && has_role("teacher")', ['has_role("teacher")']],
  ['!(user.locale == "ru")', ['!(user.locale == "ru")']],
  ['user.locale == "ru" ? has_role("dean") : true', ['has_role("dean")']],
];

t.test('of a policy that is false the innermost parts are named that make it so', async t => {
  const { call, root } = await startWithRoot(t);
  const made = await call(root, 'POST', '/users', { display_name: 'Grace', locale: 'ru' });
  for (const [expression, named] of ROWS) {
    const tried = await call(root, 'POST', '/policies/try', { expression, user: made.json.id });
    t.equal(tried.json.verdict, 'denied', expression);
    const parts = tried.json.parts as PolicyPart[];
    t.same(
      falsePartsOf(parts).map(p => p.expression),
      named,
      expression,
    );
  }
});
