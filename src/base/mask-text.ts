import { HiddenValues, MASKED, MASKED_MAIL, percentDecoded } from './hidden-values.ts';
import { isJson, type JsonMask, type JsonPlace, maskJson } from './mask-json.ts';

/** Names of what carries credentials: fields of forms, members of JSON, columns; and headers. */
const CREDENTIAL =
  '[\\w-]{0,40}(?:api[-_]?key|[-_]key|(?:access|private|secret|signing)key|token|secret(?!ar)|passw(?:or)?d|passphrase|credential|signature|session[-_]?id|x[-_]session)[\\w-]{0,40}|pwd|sid|otp|pin(?:[-_]?code)?';
/** Names of what is known of a person (docs/university.md "Fields"), in the spellings of JSON, columns and forms. */
const PERSONAL =
  '(?:first|last|middle|full)[-_]?name|fio|patronymic|surname|birth[-_]?(?:date|day)|(?:mobile[-_]?)?phone(?:[-_]?number)?|e[-_]?mail|citizenship|nationality(?:[-_]?type)?|record[-_]?book(?:[-_]?number)?|passport[\\w-]{0,40}|snils|idp[-_]?accounts?[-_]?id';
const FIELD = `${CREDENTIAL}|${PERSONAL}`;
const NAME = `(?:proxy-)?authorization|(?:set-)?cookie|${FIELD}`;
// Each pattern begins where nothing before belongs to it and does not look back, so that a text costs what it is long.
const MEMBERS = new RegExp(`"(${NAME})"\\s{0,8}:\\s{0,8}"([^"\\\\]*(?:\\\\.[^"\\\\]*)*)(?:"|$)`, 'gis');
const FIELDS = new RegExp(`(?<=^|[?&;\\s"'(])(${FIELD})=([^&\\s"\\\\]+)`, 'gi');
/** Parts of a form with files (RFC 7578). */
const PARTS = new RegExp(
  `(; ?name="(?:${FIELD})"[^\\n]{0,400}\\n(?:[^\\r\\n]{1,400}\\r?\\n){0,8}\\r?\\n)([^\\r\\n]+)`,
  'gi',
);
// A word of letters alone follows in sentences.
const SCHEMES = /(?<![\w-])(bearer|basic)(\s{1,8})(?=[\w.~+/=-]*[\d=])([\w.~+/=-]{8,})/gi;
const ADDRESSES = /(?<![a-z\d+.-])([a-z][a-z\d+.-]{0,31}:\/\/)([^\s/@"]{1,512})@/gi;
const MAIL = /(?<![\p{L}\p{N}_.+%-])[\p{L}\p{N}_.+%-]{1,64}@[\p{L}\p{N}_-]{1,63}(?:\.[\p{L}\p{N}_-]{1,63}){1,8}/gu;

const IS_HIDDEN = new RegExp(`^(?:${NAME})$`, 'i');
/** A number under such a name is hidden, too; under others it is an id, a count, a time. */
const IS_SECRET_NUMBER =
  /(?:^|[-_])(?:secret|passw(?:or)?d|pwd|otp|pin(?:[-_]?code)?)(?:$|[-_])|password|phone|passport|snils|record[-_]?book/i;

/** Whether what has this name is a credential or says something of a person. */
export const isHiddenName = (name: string): boolean => IS_HIDDEN.test(name);

export type Hiding = {
  /** What is known to be secret, and hidden wherever it stands. */
  known: HiddenValues;
  /** Gets each value that is hidden because of its name, as it stood there. */
  onHidden(value: string): void;
};

const NOTHING_KNOWN: Hiding = { known: new HiddenValues([]), onHidden() {} };

const isMail = (text: string): boolean => text.replace(MAIL, '') === '' && text !== '';

/** A JSON string without its quotes, which may not be whole, as it is meant. */
function jsonUnescaped(text: string): string {
  try {
    return String(JSON.parse(`"${text}"`));
  } catch {
    return text;
  }
}

function maskWords(text: string, onHidden: Hiding['onHidden']): string {
  const hide = (value: string, meant = value): string => {
    if (value === MASKED_MAIL || value === MASKED) return value;
    onHidden(meant);
    return isMail(meant) ? MASKED_MAIL : MASKED;
  };
  /** The password of an address, behind a colon, or what stands for both. */
  const inAddress = (scheme: string, user: string): string => {
    if (user !== MASKED) onHidden(percentDecoded(user.slice(user.indexOf(':') + 1)));
    return `${scheme}${MASKED}@`;
  };
  return text
    .replace(MEMBERS, (_, name: string, value: string) => `"${name}":"${hide(value, jsonUnescaped(value))}"`)
    .replace(FIELDS, (_, name: string, value: string) => {
      onHidden(percentDecoded(value.replaceAll('+', ' ')));
      return `${name}=${hide(value)}`;
    })
    .replace(PARTS, (_, head: string, value: string) => `${head}${hide(value)}`)
    .replace(SCHEMES, (_, scheme: string, space: string, value: string) => `${scheme}${space}${hide(value)}`)
    .replace(ADDRESSES, (_, scheme: string, user: string) => inAddress(scheme, user))
    .replace(MAIL, mail => hide(mail));
}

/**
 * How deep JSON in strings of JSON is read. What is deeper is hidden whole: each level doubles the escapes of those within
 * it, so a text of a few kilobytes could become gigabytes.
 */
const LEVELS_MAX = 3;

/** The name of a value: of the member it is, or of the list it is in. */
const memberName = (places: readonly JsonPlace[]): string => places.at(-1)?.name ?? '';

/**
 * How values of JSON are hidden: each keeps its type, so that a program reads them as before.
 *
 * @param nameOf the name of a value that decides whether it is hidden
 * @param level how many texts of JSON it is in
 */
export const jsonMask = (hiding: Hiding, nameOf: typeof memberName = memberName, level = 0): JsonMask => ({
  hiddenBy(places) {
    const name = nameOf(places);
    return isHiddenName(name) ? name : null;
  },
  hidden(json, name) {
    if (json[0] !== '"') {
      if (!IS_SECRET_NUMBER.test(name) || !/^[-\d]/.test(json)) return json;
      hiding.onHidden(json);
      return '0';
    }
    const value: string = JSON.parse(json);
    if (value !== '') hiding.onHidden(value);
    return JSON.stringify(isMail(value) ? MASKED_MAIL : MASKED);
  },
  text: value => maskLevel(value, hiding, level + 1),
  name: value => maskWords(hiding.known.hideInName(value), hiding.onHidden),
  number: json => (hiding.known.hide(json) === json ? json : '0'),
});

const BOM = '\ufeff';

/** Lines of JSON, each a value. */
const isJsonLines = (text: string): boolean =>
  text.includes('\n') && text.split('\n').every(line => line.trim() === '' || isJson(line));

/**
 * Takes credentials, what is known of persons, passwords of addresses and mail addresses out of a text that others have
 * worded: JSON of what came and went, a form, or words.
 */
export const maskText = (text: string, hiding: Hiding = NOTHING_KNOWN): string => maskLevel(text, hiding, 0);

function maskLevel(text: string, hiding: Hiding, level: number): string {
  if (text.startsWith(BOM)) return BOM + maskLevel(text.slice(1), hiding, level);
  const json = (line: string): string =>
    level > LEVELS_MAX ? JSON.stringify(MASKED) : maskJson(line, jsonMask(hiding, memberName, level));
  if (isJson(text)) return json(text);
  if (isJsonLines(text))
    return text
      .split('\n')
      .map(line => (line.trim() === '' ? line : json(line)))
      .join('\n');
  return maskWords(hiding.known.hide(text), hiding.onHidden);
}

/** Headers as `name NUL value NUL`, with credentials hidden. */
export function maskHeaders(flat: string, hiding: Hiding = NOTHING_KNOWN): string {
  const parts = flat.split('\0');
  return parts
    .map((part, k) => {
      if (k % 2 === 0 || !isHiddenName(parts[k - 1] ?? '')) return maskText(part, hiding);
      hiding.onHidden(part);
      return MASKED;
    })
    .join('\0');
}
