/**
 * Reads JSON that others wrote. Whole numbers with more digits than a `number` holds become a `bigint`.
 *
 * @throws SyntaxError when it is none
 */
export function exactJSON<T>(text: string): T {
  // A function for each value is slow, and hardly any text has such a number.
  if (!/\d{16}/.test(text)) return JSON.parse(text);
  return JSON.parse(text, (_key, value, { source = '' }) =>
    typeof value === 'number' && !Number.isSafeInteger(value) && /^-?\d+$/.test(source) ? BigInt(source) : value,
  ) as T;
}
