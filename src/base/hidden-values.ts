/** Values that must not be seen, found wherever they stand and however they are written (docs/plugins.md "Recordings"). */

/** Stands in the place of a secret. */
export const MASKED = '(hidden)';
/** Stands in the place of a mail address, and is one, for programs that check it. */
export const MASKED_MAIL = 'hidden@example.invalid';

/** Values of fewer characters are hidden where they stand as a word: inside others they may be there by chance. */
const WORD_CHARACTERS_MAX = 7;
/** A single letter or digit says nothing. */
const CHARACTERS_MIN = 2;
const IS_WORD = /^[\p{L}\p{N}_]+$/u;
const WORDS = /[\p{L}\p{N}_]+/gu;
/** What may be base64 of a value. */
const BASE64 = /[\w+/-]{12,}={0,2}/g;
const RUNS = /[^\s"<>]+/g;
const ENCODED = /(?:%[\da-f]{2})+/gi;
const NOT_ASCII = /[^\0-\x7f]/g;
const SPECIAL = /[^\p{L}\p{N}]/gu;

const escaped = (character: string): string => `\\u{${character.codePointAt(0)?.toString(16)}}`;

const entities = (text: string, quote: string, apostrophe: string): string =>
  text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', quote)
    .replaceAll("'", apostrophe);

const asciiOnly = (text: string): string =>
  text.replace(NOT_ASCII, character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** How a word of other letters stands in addresses, and in JSON of ASCII alone: not as a word. */
const encodings = (word: string): string[] => [encodeURIComponent(word), asciiOnly(word)].filter(text => text !== word);

/** A value as it is, and as it stands in JSON, in HTML, and with its spaces as forms write them. */
const spellings = (value: string): string[] => [
  value,
  JSON.stringify(value).slice(1, -1),
  asciiOnly(value),
  value.replaceAll('/', '\\/'),
  entities(value, '&quot;', '&#39;'),
  entities(value, '&#34;', '&#x27;'),
  value.replaceAll(' ', '+'),
];

/** One pattern for all values; null for none. The longest comes first: one may be the beginning of another. */
function patternOf(values: readonly string[], flags: string): RegExp | null {
  if (values.length === 0) return null;
  const all = [...new Set(values.flatMap(spellings))].sort((a, b) => b.length - a.length);
  // Literal texts alone: then no text makes the search slow.
  return new RegExp(all.map(text => text.replace(SPECIAL, escaped)).join('|'), flags);
}

/** A value as it is, without spaces around it, and an address as clients write it. */
const formsOf = (value: string): string[] => [
  value,
  value.trim(),
  ...(/^\s*https?:/i.test(value) && URL.canParse(value) ? [new URL(value).href] : []),
];

const unescaped = (found: string): string => Buffer.from(found.replaceAll('%', ''), 'hex').toString();

export class HiddenValues {
  readonly #words: ReadonlySet<string>;
  readonly #anywhere: RegExp | null;
  readonly #all: RegExp | null;
  readonly #shortest: number;

  /**
   * @param secrets hidden also inside of words
   * @param values of these, short ones are hidden only where they stand as words
   */
  constructor(secrets: readonly string[], values: Iterable<string> = []) {
    const isKept = (value: string): boolean => value.length >= CHARACTERS_MIN;
    const others = [...new Set([...values].flatMap(formsOf))].filter(isKept);
    const words = others.filter(value => value.length <= WORD_CHARACTERS_MAX && IS_WORD.test(value));
    this.#words = new Set(words);
    const long = [
      ...secrets.flatMap(formsOf).filter(isKept),
      ...others.filter(value => !this.#words.has(value)),
      ...words.flatMap(encodings),
    ];
    this.#all = patternOf(long, 'gu');
    this.#anywhere = patternOf(long, 'u');
    this.#shortest = Math.min(...[...long, ...words].map(value => value.length));
  }

  /** Hides the values in a text. */
  hide(text: string): string {
    if (text.length < this.#shortest) return text;
    const masked = this.hideInName(text);
    return this.#words.size === 0 ? masked : masked.replace(WORDS, word => (this.#words.has(word) ? MASKED : word));
  }

  /** Hides the values in the name of a member. Short ones stay: they are hidden as what a member says, not as its name. */
  hideInName(text: string): string {
    if (this.#all === null || text.length < this.#shortest) return text;
    let masked = text.replace(this.#all, MASKED);
    if (masked.includes('%')) masked = masked.replace(RUNS, run => this.#hideEncoded(run));
    return masked.replace(BASE64, part => (this.#isIn(Buffer.from(part, 'base64').toString()) ? MASKED : part));
  }

  #isIn(text: string): boolean {
    return this.#anywhere?.test(text) === true;
  }

  /** In addresses and forms, the parts that hold a value are hidden whole. */
  #hideEncoded(run: string): string {
    const isHidden = (part: string): boolean => {
      const plain = part.replace(ENCODED, unescaped);
      return plain !== part && this.#isIn(plain);
    };
    if (!isHidden(run)) return run;
    const parts = run.split(/([?&=])/);
    const masked = parts.map(part => (isHidden(part) ? MASKED : part)).join('');
    return masked === run ? MASKED : masked;
  }
}
