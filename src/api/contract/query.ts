import { z } from 'zod';
import { calendarTime } from '../../base/calendar-time.ts';
import { type FieldError, ServiceError } from '../../base/errors.ts';
import { fieldErrorsOf } from '../../base/field-errors.ts';
import { LIMITS } from '../../base/limits.ts';
import { describeAs, type JsonSchema } from './json-schema.ts';

/** Parameters of queries are text: each schema here reads one, and says in the document what it is. */
export function readAs<T>(
  as: JsonSchema,
  message: string,
  read: (text: string) => T | undefined,
): z.ZodType<T, string> {
  const schema = z.string().transform((text, ctx): T => {
    const value = read(text);
    if (value !== undefined) return value;
    ctx.addIssue({ code: 'custom', message });
    return z.NEVER;
  });
  return describeAs(schema, as);
}

const wholeNumber = (text: string, min: number, max: number): number | undefined => {
  const n = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  return n >= min && n <= max ? n : undefined;
};

/** How many items a page has. */
export const limit = readAs(
  {
    type: 'integer',
    minimum: 1,
    maximum: LIMITS.listLimitMax,
    default: 50,
    description: 'How many items a page has at most',
  },
  `must be a whole number from 1 to ${LIMITS.listLimitMax}`,
  text => wholeNumber(text, 1, LIMITS.listLimitMax),
).default(50);

export const CURSOR = 'must be the next_cursor of the page before';
const idCursor = readAs(
  { type: 'string', pattern: '^[0-9]{1,15}$', description: 'The next_cursor of the page before' },
  CURSOR,
  text => (/^\d{1,15}$/.test(text) ? Number(text) : undefined),
);

/** Parameters of every list in descending order of ids. */
export const paged = { limit, cursor: idCursor.optional() };

/** A list with these further parameters. */
export const list = <S extends z.ZodRawShape>(more: S) => z.strictObject({ ...paged, ...more });
/** A list that comes whole: it has no parameters. */
export const noParameters = z.strictObject({});

/** A list without further parameters. */
export const page = z.strictObject(paged);

/** 1 or 0; false when absent. */
export const flag = (description: string) =>
  readAs({ type: 'string', enum: ['1', '0', 'true', 'false'], description }, 'must be 1 or 0', text =>
    text === '1' || text === 'true' ? true : text === '0' || text === 'false' ? false : undefined,
  ).default(false);

const timeFilter = (description: string) =>
  readAs(
    {
      type: 'string',
      description: `${description}: a time like 2026-01-31T12:00:00Z, or a day; in UTC where no zone is named`,
    },
    'must be a time like 2026-01-31T12:00:00Z',
    calendarTime,
  ).optional();

/** The time from which on a list goes. */
export const since = timeFilter('Only what is not older');
/** The time up to which a list goes. */
export const until = timeFilter('Only what is older');

/** The id of something, as a filter. */
export const idFilter = (noun: string) =>
  readAs({ type: 'integer', minimum: 1, description: `Only of this ${noun}` }, `must be the id of a ${noun}`, text =>
    wholeNumber(text, 1, Number.MAX_SAFE_INTEGER),
  ).optional();

/** A filter that takes one of some words. */
export function oneOf<const W extends string>(words: readonly W[], description: string) {
  return readAs<W>({ type: 'string', enum: [...words], description }, `must be one of ${words.join(', ')}`, text =>
    words.find(w => w === text),
  ).optional();
}

/** A filter that takes any text. */
export const text = (description: string) => z.string().describe(description).optional();

/** Text that is needed: where it is missing the handler is given none, and can say what would be right. */
export const needed = (description: string) => z.preprocess(v => v ?? '', z.string()).describe(description);

/**
 * The parameters of a query.
 *
 * @throws ServiceError `validation_failed` that names every unknown or wrong one
 */
export function parseQuery(shape: z.ZodObject | undefined, query: string): Record<string, unknown> {
  const known = Object.keys(shape?.shape ?? {});
  const given: Record<string, string> = {};
  const errors: FieldError[] = [];
  for (const [name, value] of new URLSearchParams(query)) {
    const pointer = `query:${name}`;
    if (!known.includes(name))
      errors.push({
        pointer,
        message: `is not a parameter here; known are ${known.join(', ') || 'none'}`,
        code: 'unknown_field',
      });
    else if (value.includes('\0'))
      errors.push({ pointer, message: 'must not hold a NUL character', code: 'malformed' });
    else if (Object.hasOwn(given, name))
      errors.push({ pointer, message: 'was sent several times; send it once', code: 'malformed' });
    else given[name] = value;
  }
  const parsed = shape?.safeParse(given);
  if (parsed?.success === false)
    errors.push(...fieldErrorsOf(parsed.error).map(e => ({ ...e, pointer: `query:${e.pointer.slice(1)}` })));
  const [first] = errors;
  if (first !== undefined)
    throw new ServiceError('validation_failed', `query parameter ${first.pointer.slice(6)} ${first.message}`, {
      errors,
    });
  return parsed?.data ?? {};
}

/** The members that are there: a filter that was left out is left out again. */
export function present<T extends object>(o: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(o).filter(([, v]) => v !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}
