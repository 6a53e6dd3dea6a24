/**
 * The address in a `Location` header. Some servers write UTF-8 there, which Node reads as one character a byte: each byte outside ASCII is
 * asked for as it is, percent-encoded, as browsers do.
 */
export const readLocation = (value: string): string =>
  value.replaceAll(/[\x80-\xff]/g, byte => `%${byte.charCodeAt(0).toString(16).toUpperCase()}`);
