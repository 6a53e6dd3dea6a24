import { JsonBoundError, parseBoundedJson } from '../base/bounded-json.ts';
import { messageOf, ServiceError } from '../base/errors.ts';
import { parseExactJson } from '../base/exact-json.ts';
import { LIMITS } from '../base/limits.ts';

const [QUOTE, BACKSLASH, OPEN, CLOSE, BRACE, UNBRACE, COMMA] = [0x22, 0x5c, 0x5b, 0x5d, 0x7b, 0x7d, 0x2c];

/** Programs of Windows write it before UTF-8. */
const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf];

/** Stands in the place of an element with more objects and lists within each other than `universityNestingMax`. */
export const TOO_DEEP = 'an element that is nested too deeply';

const isSpace = (byte: number): boolean => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (typeof value === 'boolean') return String(value);
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

/**
 * What is wrong with a body that does not begin like an array.
 *
 * @param text the body, or null when it is too long to be read at once
 * @param at the byte it begins at
 */
function otherThanArray(text: string | null, at: number): ServiceError {
  let what = 'something else';
  if (text !== null)
    try {
      what = kindOf(parseBoundedJson(text));
    } catch (error) {
      if (!(error instanceof JsonBoundError))
        // The parser's own words quote what it has read, which may be about a person.
        return new ServiceError(
          'malformed_request',
          `the body is not JSON; it must be an array of records, at byte ${at}`,
        );
    }
  return new ServiceError('validation_failed', `the body must be a JSON array of records, not ${what}`, {
    errors: [{ pointer: '', message: `must be an array, not ${what}`, code: 'wrong_type' }],
  });
}

/** The bytes up to the end, or null when there are more than that. */
async function textOf(first: Uint8Array, rest: AsyncIterator<Uint8Array>, bytesMax: number): Promise<string | null> {
  const parts = [Buffer.from(first)];
  let size = first.length;
  for (let next = await rest.next(); next.done !== true; next = await rest.next()) {
    size += next.value.length;
    if (size > bytesMax) return null;
    parts.push(Buffer.from(next.value));
  }
  return Buffer.concat(parts).toString();
}

/**
 * The elements of a JSON array (RFC 8259), one at a time, whatever its size: finds where each ends and hands it to the platform's own
 * parser, which judges it. Nothing but one element is held. Numbers keep their digits. A byte order mark is skipped (RFC 8259 section 8.1).
 *
 * @param chunks the array as UTF-8, cut anywhere
 * @param elementBytesMax largest element
 * @throws ServiceError `malformed_request` with the place, when it is no array or broken off; `body_too_large` for an element
 */
export async function* jsonElements(
  chunks: AsyncIterable<Uint8Array>,
  elementBytesMax: number,
): AsyncGenerator<unknown> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  /** The part of the element in earlier chunks. */
  let held: Uint8Array[] = [];
  let heldBytes = 0;
  let [depth, deepest, index, offset] = [0, 0, 0, 0];
  let [inString, escaped] = [false, false];
  /** Bytes of a byte order mark so far. */
  let marked = 0;
  /** Before the array, at the place of an element, inside one, behind the array. */
  const place: { at: 'start' | 'element' | 'inside' | 'end' } = { at: 'start' };
  const broken = (why: string): ServiceError =>
    new ServiceError('malformed_request', `the body is not a JSON array: ${why}`);

  const take = (last: Uint8Array): unknown => {
    const bytes = held.length === 0 ? last : Buffer.concat([...held, last]);
    [held, heldBytes] = [[], 0];
    if (bytes.length > elementBytesMax)
      throw new ServiceError(
        'body_too_large',
        `element ${index} has ${bytes.length} bytes; one may have ${elementBytesMax}`,
      );
    const isTooDeep = deepest > LIMITS.universityNestingMax;
    deepest = 0;
    try {
      const value = parseExactJson(decoder.decode(bytes));
      return isTooDeep ? TOO_DEEP : value;
    } catch (error) {
      // The parser's own words quote what it has read, which may be about a person.
      const at = /at position (\d+)/.exec(messageOf(error))?.[1];
      throw broken(`element ${index} is not JSON${at === undefined ? '' : `, at its byte ${at}`}`);
    }
  };

  const source = chunks[Symbol.asyncIterator]();
  for await (const chunk of { [Symbol.asyncIterator]: () => source }) {
    let from = 0;
    for (let k = 0; k < chunk.length; k++) {
      const byte = chunk[k]!;
      if (inString) {
        if (escaped) escaped = false;
        else if (byte === BACKSLASH) escaped = true;
        else if (byte === QUOTE) inString = false;
        continue;
      }
      if (place.at === 'inside') {
        if (byte === QUOTE) inString = true;
        else if (byte === OPEN || byte === BRACE) deepest = Math.max(deepest, ++depth);
        else if (depth > 0) {
          if (byte === CLOSE || byte === UNBRACE) depth--;
        } else if (byte === COMMA || byte === CLOSE) {
          yield take(chunk.subarray(from, k));
          index++;
          place.at = byte === COMMA ? 'element' : 'end';
        }
        continue;
      }
      if (isSpace(byte)) continue;
      if (place.at === 'end') throw broken(`something follows it at byte ${offset + k}`);
      if (place.at === 'start') {
        if (byte === BYTE_ORDER_MARK[marked] && offset + k === marked) {
          marked++;
          continue;
        }
        if (byte !== OPEN || marked % BYTE_ORDER_MARK.length !== 0)
          throw otherThanArray(await textOf(chunk.subarray(k), source, elementBytesMax), offset + k);
        place.at = 'element';
        continue;
      }
      if (byte === CLOSE && index === 0) {
        place.at = 'end';
        continue;
      }
      if (byte === COMMA || byte === CLOSE) throw broken(`an element is missing at byte ${offset + k}`);
      // An element begins, and this byte may open a string or a depth.
      place.at = 'inside';
      from = k;
      if (byte === QUOTE) inString = true;
      else if (byte === OPEN || byte === BRACE) deepest = Math.max(deepest, ++depth);
    }
    if (place.at === 'inside') {
      held.push(Buffer.from(chunk.subarray(from)));
      heldBytes += chunk.length - from;
      if (heldBytes > elementBytesMax)
        throw new ServiceError('body_too_large', `element ${index} has more than ${elementBytesMax} bytes`);
    }
    offset += chunk.length;
  }
  if (place.at === 'start') throw broken('it is empty');
  if (place.at !== 'end') throw broken(`it breaks off in element ${index}, at byte ${offset}`);
}
