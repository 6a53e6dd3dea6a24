/** What is written in the place of a secret. */
export const MASKED = '(hidden)';

/** Names of what carries credentials: headers, fields of forms, members of JSON. */
const NAME =
  '(?:proxy-)?authorization|(?:set-)?cookie|[\\w-]{0,40}(?:api[-_]?key|[-_]key|token|secret|password)[\\w-]{0,40}';
// Each pattern begins where nothing before belongs to it and is bounded, so that a text costs what it is long.
const MEMBERS = new RegExp(`"(${NAME})"\\s{0,8}:\\s{0,8}"(?:[^"\\\\]|\\\\.){0,8192}"`, 'gi');
const FIELDS = /(?<=^|&)([\w-]{0,40}(?:api[-_]?key|[-_]key|token|secret|password)[\w-]{0,40})=[^&\s]{1,8192}/gi;
const ADDRESSES = /(?<![a-z\d+.-])([a-z][a-z\d+.-]{0,31}:\/\/)[^\s/@"]{1,512}@/gi;
const MAIL = /(?<![\w.+%-])[\w.+%-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}/g;

/**
 * Takes credentials, passwords of addresses and mail addresses out of a text that others have worded: JSON of what came
 * and went, a form, or words.
 */
export const maskText = (text: string): string =>
  text
    .replace(MEMBERS, `"$1":"${MASKED}"`)
    .replace(FIELDS, `$1=${MASKED}`)
    .replace(ADDRESSES, `$1${MASKED}@`)
    .replace(MAIL, '(mail address)');

const IS_CREDENTIAL = new RegExp(`^(?:${NAME})$`, 'i');

/** Headers as `name NUL value NUL`, with credentials hidden. */
export function maskHeaders(flat: string): string {
  const parts = flat.split('\0');
  return parts
    .map((part, k) => (k % 2 === 1 && IS_CREDENTIAL.test(parts[k - 1] ?? '') ? MASKED : maskText(part)))
    .join('\0');
}
