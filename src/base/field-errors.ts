import type { z } from 'zod';
import type { FieldError } from './errors.ts';

/** JSON pointer (RFC 6901) of a zod path. */
export function pointerOf(path: ReadonlyArray<PropertyKey>): string {
  return path.map(p => `/${String(p).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

const TYPE_WORDS: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object',
};

/** The issues zod found, each as a place in the input and what would be right. */
export function fieldErrorsOf(error: z.ZodError): FieldError[] {
  return error.issues.flatMap(issue => {
    if (issue.code === 'unrecognized_keys')
      return issue.keys.map(key => ({
        pointer: pointerOf([...issue.path, key]),
        message: 'is not a field known here',
      }));
    const pointer = pointerOf(issue.path);
    const words = issue.code === 'invalid_type' ? TYPE_WORDS[issue.expected] : undefined;
    if (words === undefined) return [{ pointer, message: issue.message }];
    // zod says what it received only in its text.
    const missing = issue.message.endsWith('received undefined');
    return [{ pointer, message: missing ? `is missing; it must be ${words}` : `must be ${words}` }];
  });
}
