import { STATUS_CODES } from 'node:http';

const statusLines = new Map<number, string>();
/** Status and reason, as the library writes them. */
export function statusLine(status: number): string {
  let line = statusLines.get(status);
  if (line === undefined) {
    line = `${status} ${STATUS_CODES[status] ?? 'Unknown'}`;
    statusLines.set(status, line);
  }
  return line;
}

/** The name of the first header, and everything from its value up to the request id, which comes last. */
export type HeaderBlock = { first: string; rest: string; ascii: boolean };

/** Stands in every answer: no browser guesses the type of any. */
const ONLY_ID: HeaderBlock = { first: 'X-Content-Type-Options', rest: 'nosniff\r\nX-Request-Id: ', ascii: true };
/** Most plugins send the same few headers. */
const blocks = new Map<string, HeaderBlock>();
let lastFlat = '';
let lastBlock = ONLY_ID;

/**
 * Several headers as one call to the library, each of which converts and copies its strings: it writes values as they
 * are, so the lines of the next headers may stand in the value of the first. They have been checked to hold no line ends.
 */
export function headerBlock(flat: string): HeaderBlock {
  if (flat === '') return ONLY_ID;
  if (flat === lastFlat) return lastBlock;
  let block = blocks.get(flat);
  if (block === undefined) {
    const parts = flat.split('\0');
    let rest = parts[1] ?? '';
    for (let i = 2; i + 1 < parts.length; i += 2) rest += `\r\n${parts[i]}: ${parts[i + 1]}`;
    // Characters above 127 stand for one byte each, as fetch and Node read and write them; a string would go out as UTF-8.
    const ascii = /^[\t -~\r\n]*$/.test(rest);
    block = { first: parts[0] ?? '', rest: `${rest}\r\nX-Content-Type-Options: nosniff\r\nX-Request-Id: `, ascii };
    if (blocks.size >= 512) blocks.clear();
    if (flat.length <= 1024) blocks.set(flat, block);
  }
  lastFlat = flat;
  lastBlock = block;
  return block;
}

const NO_STORE_FLAT = 'Cache-Control\0no-store\0';
const privates = new Map<string, string>();
let lastShared = '';
let lastPrivate = NO_STORE_FLAT;

/** The headers of an answer that one caller alone got: no cache keeps it, unless the headers say what caches do. */
export function asPrivate(flat: string): string {
  if (flat === lastShared) return lastPrivate;
  let value = privates.get(flat);
  if (value === undefined) {
    const names = flat.split('\0').filter((_, k) => k % 2 === 0);
    value = names.some(name => name.toLowerCase() === 'cache-control') ? flat : flat + NO_STORE_FLAT;
    if (privates.size >= 512) privates.clear();
    if (flat.length <= 1024) privates.set(flat, value);
  }
  lastShared = flat;
  lastPrivate = value;
  return value;
}
