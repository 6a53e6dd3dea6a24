import { REQUEST_LIMITS } from './request-limits.ts';

const [QUOTE, BACKSLASH, COMMA, COLON] = [0x22, 0x5c, 0x2c, 0x3a];
const [OPEN, CLOSE, BRACE, UNBRACE] = [0x5b, 0x5d, 0x7b, 0x7d];

/** JSON that is nested too deeply, or has too many keys or elements; its byte size does not show that. */
export class JsonBoundError extends Error {
  override readonly name = 'JsonBoundError';
}

/** The position after the string that begins at `at`, or the end of the text. */
function endOfString(text: string, at: number): number {
  for (let k = at + 1; k < text.length; k++) {
    const c = text.charCodeAt(k);
    if (c === BACKSLASH) k++;
    else if (c === QUOTE) return k;
  }
  return text.length;
}

/**
 * Counts levels, keys and elements of a JSON text without parsing it. Parsing would allocate memory for every key, and
 * functions that walk the parsed value recurse once for every level.
 *
 * @throws JsonBoundError naming the limit that is exceeded
 */
export function assertJsonBounds(text: string): void {
  let [depth, keys, elements] = [0, 0, 0];
  for (let k = 0; k < text.length; k++) {
    const c = text.charCodeAt(k);
    if (c === QUOTE) k = endOfString(text, k);
    else if (c === OPEN || c === BRACE) {
      if (++depth > REQUEST_LIMITS.jsonDepthMax)
        throw new JsonBoundError(`it is nested more than ${REQUEST_LIMITS.jsonDepthMax} levels deep (jsonDepthMax)`);
    } else if (c === CLOSE || c === UNBRACE) depth--;
    else if (c === COLON) {
      if (++keys > REQUEST_LIMITS.jsonKeysMax)
        throw new JsonBoundError(`it has more than ${REQUEST_LIMITS.jsonKeysMax} keys (jsonKeysMax)`);
    } else if (c === COMMA && ++elements > REQUEST_LIMITS.jsonElementsMax)
      throw new JsonBoundError(`it has more than ${REQUEST_LIMITS.jsonElementsMax} elements (jsonElementsMax)`);
  }
}

/**
 * `JSON.parse` for input from outside.
 *
 * @throws JsonBoundError before anything is parsed; SyntaxError when the text is not JSON
 */
export function parseBoundedJson(text: string): unknown {
  assertJsonBounds(text);
  return JSON.parse(text);
}
