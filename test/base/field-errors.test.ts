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
