import { TextFinder } from './text-finder.ts';

/** Values that must not be seen, found wherever they stand and however they are written (docs/plugins.md "Recordings"). */

/** Stands in the place of a secret. */
export const MASKED = '(hidden)';
/** Stands in the place of a mail address, and is one, for programs that check it. */
export const MASKED_MAIL = 'hidden@example.invalid';

/** Values of fewer characters are hidden where they stand as a word: inside others they may be there by chance. */
const WORD_CHARACTERS_MAX = 7;
/** A single letter or digit says nothing, nor does a number of three digits. */
const TELLS = /[\p{L}\p{N}].*[\p{L}\p{N}]/su;
const SHORT_NUMBER = /^\d{1,3}$/;
/** What a secret is set to that is none, and words of protocols. */
const TELLS_NOTHING =
  /^(?:yes|no|on|off|true|false|null|none|n\/a|unknown|ok|bearer|basic|https?|get|put|post|patch|delete|head|options|messenger)$/i;
const IS_WORD = /^[\p{L}\p{N}]+$/u;
const WORDS = /[\p{L}\p{N}]+/gu;
/** What may be base64 of a value. */
const BASE64 = /[\w+/-]{8,}={0,2}/g;
/** Longer ones are files; shorter ones may stand behind other letters. */
const SHIFTED_CHARACTERS_MAX = 4096;
const NOT_TEXT = /[\0-\x08\x0e-\x1f\ufffd]/;
const RUNS = /[^\s"<>]+/g;
const ENCODED = /(?:%[\da-f]{2})+/gi;
const NOT_ASCII = /[^\0-\x7f]/g;

const entities = (text: string, quote: string, apostrophe: string): string =>
  text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', quote)
    .replaceAll("'", apostrophe);

const asciiOnly = (text: string): string =>
  text.replace(NOT_ASCII, character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** How a word of other letters stands in JSON of ASCII alone: not as a word. */
const encodings = (word: string): string[] => [asciiOnly(word)].filter(text => text !== word);

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

/** A value as it is, without spaces around it, and an address as clients write it. */
const formsOf = (value: string): string[] => [
  value,
  value.trim(),
  ...(/^\s*https?:/i.test(value) && URL.canParse(value) ? [new URL(value).href] : []),
];

const unescaped = (found: string): string => Buffer.from(found.replaceAll('%', ''), 'hex').toString();

/** A text with its percent-encoding taken off. */
export const percentDecoded = (text: string): string => text.replace(ENCODED, unescaped);

/** Each part of it ends where the next one begins: a value costs what it is long. */
const IS_MAIL = /^[^\s@]+@[^\s@.]+(?:\.[^\s@.]+)+$/;
const maskOf = (value: string): string => (IS_MAIL.test(value) ? MASKED_MAIL : MASKED);

export class HiddenValues {
  readonly #words: ReadonlySet<string>;
  readonly #anywhere: TextFinder;
  readonly #masks: readonly string[];
  readonly #shortest: number;

  /**
   * @param secrets hidden also inside of words
   * @param values of these, short ones are hidden only where they stand as words
   */
  constructor(secrets: readonly string[], values: Iterable<string> = []) {
    const tells = (value: string): boolean =>
      TELLS.test(value) && !SHORT_NUMBER.test(value) && !TELLS_NOTHING.test(value);
    const others = [...new Set([...values].flatMap(formsOf))].filter(tells);
    const words = others.filter(value => value.length <= WORD_CHARACTERS_MAX && IS_WORD.test(value));
    this.#words = new Set(words);
    const long = [
      ...secrets.flatMap(formsOf),
      ...others.filter(value => !this.#words.has(value)),
      ...words.flatMap(encodings),
    ].filter(value => value !== '');
    const spelled = [...new Set(long)].flatMap(value => {
      const mask = maskOf(value);
      return spellings(value).map(text => ({ text, mask }));
    });
    this.#anywhere = new TextFinder(spelled.map(s => s.text));
    this.#masks = spelled.map(s => s.mask);
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
    if (text.length < this.#shortest) return text;
    let masked = this.#hidePlain(text);
    if (masked.includes('%')) masked = masked.replace(RUNS, run => this.#hideEncoded(run));
    return masked.replace(BASE64, part => (this.#isInBase64(part) ? MASKED : part));
  }

  #hidePlain(text: string): string {
    let masked = '';
    let at = 0;
    for (const { from, index, to } of this.#anywhere.find(text)) {
      masked += text.slice(at, from) + (this.#masks[index] ?? MASKED);
      at = to;
    }
    return at === 0 ? text : masked + text.slice(at);
  }

  #isIn(text: string): boolean {
    return (
      this.#anywhere.has(text) || (this.#words.size > 0 && text.match(WORDS)?.some(w => this.#words.has(w)) === true)
    );
  }

  /** Base64 may begin behind letters that belong to something else, such as a path. */
  #isInBase64(part: string): boolean {
    const shifts = part.length > SHIFTED_CHARACTERS_MAX ? [0] : [0, 1, 2, 3];
    return shifts.some(shift => {
      const plain = Buffer.from(part.slice(shift), 'base64').toString();
      return NOT_TEXT.test(plain) ? this.#anywhere.has(plain) : this.#isIn(plain);
    });
  }

  /** In addresses and forms, the parts that hold a value are hidden whole. */
  #hideEncoded(run: string): string {
    const isHidden = (part: string): boolean => {
      const plain = percentDecoded(part);
      return plain !== part && this.#isIn(plain);
    };
    if (!isHidden(run)) return run;
    const parts = run.split(/([?&=])/);
    const masked = parts.map(part => (isHidden(part) ? MASKED : part)).join('');
    return masked === run ? MASKED : masked;
  }
}
