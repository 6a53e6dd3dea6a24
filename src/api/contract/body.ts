import type { z } from 'zod';
import { ServiceError } from '../../base/errors.ts';
import { fieldErrorsOf } from '../../base/field-errors.ts';

/** A checked body, or a 422 that names every place. */
export function parseBody<T>(schema: z.ZodType<T>, value: unknown): T {
  // What JSON.stringify spells as an escape although it is a character of its own: NUL, and half a character.
  if (/(?:^|[^\\])(?:\\\\)*\\u(?:0000|d[89a-f][0-9a-f]{2})/.test(JSON.stringify(value)))
    throw new ServiceError(
      'validation_failed',
      'the body holds a NUL character or half a character, which no text here may',
      {
        errors: [
          { pointer: '', message: 'must not hold a NUL character or half of a surrogate pair', code: 'malformed' },
        ],
      },
    );
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const errors = fieldErrorsOf(parsed.error);
  throw new ServiceError(
    'validation_failed',
    `the body is not valid: ${errors.map(e => `${e.pointer || 'the body'} ${e.message}`).join('; ')}`,
    { errors },
  );
}
