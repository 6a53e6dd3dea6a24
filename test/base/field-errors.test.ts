import t from 'tap';
import { z } from 'zod';
import { fieldErrorsOf } from '../../src/base/field-errors.ts';

/** A mistake in the input has a place, words, and a code that clients can word themselves (docs/api.md "Errors"). */

const schema = z.strictObject({
  name: z.string().min(3).max(5),
  count: z.int().min(1).max(9),
  tags: z.array(z.string()).min(1).max(2),
  kind: z.enum(['a', 'b']),
  at: z.iso.datetime(),
});
const right = { name: 'abc', count: 1, tags: ['x'], kind: 'a', at: '2026-09-01T08:00:00Z' };

function codesOf(value: unknown): Array<[string, string | undefined, number | undefined]> {
  const parsed = schema.safeParse(value);
  return parsed.success ? [] : fieldErrorsOf(parsed.error).map(e => [e.pointer, e.code, e.limit]);
}

/** What would be right, where the schema does not say it. */
const BOUNDS = z.object({
  text: z.string().min(1),
  code: z.string().length(4),
  long: z.string().max(5),
  tags: z.array(z.int()).min(2),
  few: z.array(z.int()).max(1),
  least: z.int().min(1),
  most: z.int().max(9),
  share: z.number().gt(0),
  kind: z.enum(['a', 'b']),
  only: z.literal('x'),
  at: z.iso.datetime(),
  mail: z.email(),
  own: z.string().min(3, 'must be a name'),
});

t.test('what would be right is said in words', async t => {
  const wrong = {
    ...{ text: '', code: 'abc', long: 'abcdef', tags: [1], few: [1, 2], least: 0, most: 10, share: 0 },
    ...{ kind: 'c', only: 'y', at: 'today', mail: 'ada', own: 'a' },
  };
  const { error } = BOUNDS.safeParse(wrong);
  const words = error === undefined ? [] : fieldErrorsOf(error).map(e => [e.pointer.slice(1), e.message]);
  t.same(Object.fromEntries(words), {
    text: 'must not be empty',
    code: 'must have exactly 4 characters',
    long: 'must have at most 5 characters',
    tags: 'must have at least 2 entries',
    few: 'must have at most 1 entry',
    least: 'must be at least 1',
    most: 'must be at most 9',
    share: 'must be above 0',
    kind: 'must be one of "a", "b"',
    only: 'must be "x"',
    at: 'must be a time like 2026-01-31T12:00:00Z',
    mail: 'must be an email address',
    own: 'must be a name',
  });
});

for (const [what, change, expected] of [
  ['what is missing', { name: undefined }, ['/name', 'missing', undefined]],
  ['another type', { count: 'x' }, ['/count', 'wrong_type', undefined]],
  ['a text below its bound', { name: 'ab' }, ['/name', 'too_short', 3]],
  ['a text above its bound', { name: 'abcdef' }, ['/name', 'too_long', 5]],
  ['a number below its bound', { count: 0 }, ['/count', 'too_small', 1]],
  ['a number above its bound', { count: 10 }, ['/count', 'too_large', 9]],
  ['a list below its bound', { tags: [] }, ['/tags', 'list_too_short', 1]],
  ['a list above its bound', { tags: ['a', 'b', 'c'] }, ['/tags', 'list_too_long', 2]],
  ['none of the values', { kind: 'c' }, ['/kind', 'not_one_of', undefined]],
  ['another form', { at: 'today' }, ['/at', 'malformed', undefined]],
  ['a field that is not known', { extra: 1 }, ['/extra', 'unknown_field', undefined]],
] as const)
  t.test(`${what} has the code ${expected[1]}`, async t => {
    t.same(codesOf({ ...right, ...change }), [expected]);
  });
