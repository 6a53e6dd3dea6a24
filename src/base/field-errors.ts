import type { z } from 'zod';
import { FIELD_ERROR_CODES, type FieldError, type FieldErrorCode } from './errors.ts';

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

type Issue = z.core.$ZodIssue;

/** A bound counts characters, entries, or is the number itself. */
function boundCode(origin: string, isBelow: boolean): FieldErrorCode {
  if (origin === 'string') return isBelow ? 'too_short' : 'too_long';
  if (origin === 'array') return isBelow ? 'list_too_short' : 'list_too_long';
  return isBelow ? 'too_small' : 'too_large';
}

/** What a check of our own says of the kind of mistake; without it the kind is not said. */
function mistakeOf(params: Record<string, unknown>): Pick<FieldError, 'code' | 'limit'> {
  const code = FIELD_ERROR_CODES.find(c => c === params.code);
  return {
    ...(code === undefined ? {} : { code }),
    ...(typeof params.limit === 'number' ? { limit: params.limit } : {}),
  };
}

/** What kind of mistake an issue is, and the bound that was passed. */
function kindOf(issue: Issue): Pick<FieldError, 'code' | 'limit'> {
  switch (issue.code) {
    case 'invalid_type':
      return { code: 'wrong_type' };
    case 'too_small':
      return { code: boundCode(issue.origin, true), limit: Number(issue.minimum) };
    case 'too_big':
      return { code: boundCode(issue.origin, false), limit: Number(issue.maximum) };
    case 'invalid_value':
      return { code: 'not_one_of' };
    case 'invalid_union':
      // The member that tells the kinds apart names none of them.
      return issue.discriminator === undefined ? {} : { code: 'not_one_of' };
    case 'invalid_format':
      return { code: 'malformed' };
    case 'custom':
      return mistakeOf(issue.params ?? {});
    default:
      return {};
  }
}

const UNITS: Readonly<Record<string, readonly [one: string, other: string]>> = {
  string: ['character', 'characters'],
  array: ['entry', 'entries'],
};

/** What a bound asks for. */
function boundWords(issue: z.core.$ZodIssueTooSmall | z.core.$ZodIssueTooBig): string {
  const isBelow = issue.code === 'too_small';
  const bound = Number(isBelow ? issue.minimum : issue.maximum);
  const unit = UNITS[issue.origin]?.[bound === 1 ? 0 : 1];
  if (unit === undefined && issue.inclusive !== true) return `must be ${isBelow ? 'above' : 'below'} ${bound}`;
  if (unit === undefined) return `must be at ${isBelow ? 'least' : 'most'} ${bound}`;
  if (isBelow && bound === 1) return 'must not be empty';
  return `must have ${issue.exact === true ? 'exactly' : isBelow ? 'at least' : 'at most'} ${bound} ${unit}`;
}

const FORMATS: Readonly<Record<string, string>> = {
  datetime: 'must be a time like 2026-01-31T12:00:00Z',
  email: 'must be an email address',
  url: 'must be a URL',
};

/** What would be right. Where the schema does not say it, zod has a text of its own, which is for programmers. */
function wordsOf(issue: Issue): string {
  if (!/^(Too|Invalid) /.test(issue.message)) return issue.message;
  switch (issue.code) {
    case 'too_small':
    case 'too_big':
      return boundWords(issue);
    case 'invalid_value':
      return issue.values.length === 1
        ? `must be ${JSON.stringify(issue.values[0])}`
        : `must be one of ${issue.values.map(v => JSON.stringify(v)).join(', ')}`;
    case 'invalid_format':
      return FORMATS[issue.format] ?? issue.message;
    default:
      return issue.message;
  }
}

/** The issues zod found, each as a place in the input and what would be right. */
export function fieldErrorsOf(error: z.ZodError): FieldError[] {
  return error.issues.flatMap((issue): FieldError[] => {
    if (issue.code === 'unrecognized_keys')
      return issue.keys.map(key => ({
        pointer: pointerOf([...issue.path, key]),
        message: 'is not a field known here',
        code: 'unknown_field',
      }));
    const pointer = pointerOf(issue.path);
    const words = issue.code === 'invalid_type' ? TYPE_WORDS[issue.expected] : undefined;
    // zod says what it received only in its text.
    const missing = issue.message.endsWith('received undefined');
    if (words === undefined) return [{ pointer, message: wordsOf(issue), ...kindOf(issue) }];
    if (missing) return [{ pointer, message: `is missing; it must be ${words}`, code: 'missing' }];
    return [{ pointer, message: `must be ${words}`, ...kindOf(issue) }];
  });
}
