import { isJson, type JsonMask, maskJson } from './mask-json.ts';

/** Stands in the place of a secret. */
export const MASKED = '(hidden)';

/** Names of what carries credentials: fields of forms, members of JSON, columns; and headers. */
const CREDENTIAL = '[\\w-]{0,40}(?:api[-_]?key|[-_]key|token|secret|password)[\\w-]{0,40}';
/** Names of what is known of a person (docs/university.md "Fields"), in the spellings of JSON, columns and forms. */
const PERSONAL =
  '(?:first|last|middle)[-_]?name|patronymic|surname|birth[-_]?(?:date|day)|(?:mobile[-_]?)?phone(?:[-_]?number)?|e[-_]?mail|citizenship|passport[\\w-]{0,40}|snils';
const FIELD = `${CREDENTIAL}|${PERSONAL}`;
const NAME = `(?:proxy-)?authorization|(?:set-)?cookie|${FIELD}`;
// Each pattern begins where nothing before belongs to it and does not look back, so that a text costs what it is long.
const MEMBERS = new RegExp(`"(${NAME})"\\s{0,8}:\\s{0,8}"([^"\\\\]*(?:\\\\.[^"\\\\]*)*)(?:"|$)`, 'gis');
const FIELDS = new RegExp(`(?<=^|[?&;\\s"'(])(${FIELD})=([^&\\s"\\\\]+)`, 'gi');
// A word of letters alone follows in sentences.
const SCHEMES = /(?<![\w-])(bearer|basic)(\s{1,8})(?=[\w.~+/=-]*[\d=])([\w.~+/=-]{8,})/gi;
const ADDRESSES = /(?<![a-z\d+.-])([a-z][a-z\d+.-]{0,31}:\/\/)[^\s/@"]{1,512}@/gi;
const MAIL = /(?<![\w.+%-])[\w.+%-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}/g;

const IS_HIDDEN = new RegExp(`^(?:${NAME})$`, 'i');
/** A number under such a name is hidden, too; under others it is an id, a count, a time. */
const IS_SECRET_NUMBER = /secret|password|phone|passport|snils/i;

/** Whether what has this name is a credential or says something of a person. */
export const isHiddenName = (name: string): boolean => IS_HIDDEN.test(name);

export type Hiding = {
  /** Takes out what is known to be secret, wherever it stands. */
  known(text: string): string;
  /** Gets each value that is hidden because of its name, as it stood there. */
  onHidden(value: string): void;
};

const NOTHING_KNOWN: Hiding = { known: text => text, onHidden() {} };

function maskWords(text: string, { known, onHidden }: Hiding): string {
  const hide = (credential: string): string => {
    onHidden(credential);
    return MASKED;
  };
  return known(text)
    .replace(MEMBERS, (_, name: string, value: string) => `"${name}":"${hide(value)}"`)
    .replace(FIELDS, (_, name: string, value: string) => `${name}=${hide(value)}`)
    .replace(SCHEMES, (_, scheme: string, space: string, value: string) => `${scheme}${space}${hide(value)}`)
    .replace(ADDRESSES, `$1${MASKED}@`)
    .replace(MAIL, '(mail address)');
}

/** How values of JSON are hidden: each keeps its type, so that a program reads them as before. */
export const jsonMask = (hides: JsonMask['hides'], hiding: Hiding): JsonMask => ({
  hides,
  hidden(json, { name }) {
    if (json[0] !== '"') return IS_SECRET_NUMBER.test(name) && /^[-\d]/.test(json) ? '0' : json;
    hiding.onHidden(JSON.parse(json));
    return `"${MASKED}"`;
  },
  text: value => maskText(value, hiding),
  number: json => (hiding.known(json) === json ? json : '0'),
});

/**
 * Takes credentials, what is known of persons, passwords of addresses and mail addresses out of a text that others have
 * worded: JSON of what came and went, a form, or words.
 */
export function maskText(text: string, hiding: Hiding = NOTHING_KNOWN): string {
  if (!isJson(text)) return maskWords(text, hiding);
  return maskJson(
    text,
    jsonMask(places => isHiddenName(places.at(-1)?.name ?? ''), hiding),
  );
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
