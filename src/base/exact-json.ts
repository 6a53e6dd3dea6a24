/**
 * JSON whose numbers keep their digits: 1546130668394913822, 1.10 and 1e400 come out as they went in, where a double holds another
 * number or writes it in another way. Such a number is what `JSON.rawJSON` makes; every other one is a plain number.
 */

/** A number that a double would change, with its text. */
export type ExactNumber = { readonly rawJSON: string };

/**
 * Whether a text may hold a number that a double changes: sixteen digits, a fraction that ends with 0, an exponent, -0. Most texts hold
 * none, and reading them takes a fifth of the time then.
 */
const MAY_BE_CHANGED = /\d[\d.]{15}|\.\d*0(?!\d)|\d[eE]|-0/;

/** Parses JSON. @throws SyntaxError when the text is not JSON */
export function parseExactJson(text: string): unknown {
  if (!MAY_BE_CHANGED.test(text)) return JSON.parse(text);
  return JSON.parse(text, (_, value: unknown, context) =>
    typeof value === 'number' && context?.source !== undefined && String(value) !== context.source
      ? JSON.rawJSON(context.source)
      : value,
  );
}

/** Reads JSON as kits do: integers with more digits than a `number` holds are a `bigint`. @throws SyntaxError when it is none */
export const parseWithBigints = (text: string): unknown =>
  JSON.parse(text, (_, value: unknown, context) =>
    typeof value === 'number' && !Number.isSafeInteger(value) && /^-?\d+$/.test(context?.source ?? '')
      ? BigInt(context?.source ?? '')
      : value,
  );

/** JSON of a value; integers that are a `bigint` are written with all digits. */
export const textWithBigints = (value: unknown): string =>
  JSON.stringify(value, (_, v: unknown) => (typeof v === 'bigint' ? JSON.rawJSON(String(v)) : v));

export const isExactNumber = (value: unknown): value is ExactNumber => JSON.isRawJSON(value);

/** A number as a program reckons with it; everything else as it is. */
export const toDouble = (value: unknown): unknown => (isExactNumber(value) ? Number(value.rawJSON) : value);

/** Whether a number is larger or smaller than any double; a database would fill pages with its digits. */
export function isBeyondDoubles(value: unknown): boolean {
  if (!isExactNumber(value)) return false;
  const double = Number(value.rawJSON);
  return !Number.isFinite(double) || (double === 0 && /[1-9]/.test(value.rawJSON.replace(/[eE].*/, '')));
}
