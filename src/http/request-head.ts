/**
 * What a request head must say only once and in one way, because a proxy in front of this service may read it in another: where the
 * body ends, and which host is asked (RFC 9112 sections 3.2, 6.1, 6.3). The library itself accepts all of this.
 */

/** Two of them are two messages in one. */
const ONCE = new Set(['content-length', 'host', 'transfer-encoding']);
const LENGTH = /^\d{1,15}$/;
/** A host name or an address, with a port or without (RFC 3986 section 3.2.2); empty is allowed by RFC 9112. */
const HOST = /^(?:[\w.~!$&'()*+;=%-]*|\[[\da-fA-F:.%\w]+\])(?::\d{0,5})?$/;

/** Nearly all requests name the same few hosts. */
let lastGoodHost = '';

/** Whether a header stands a second time that may stand once. */
export const mustStandOnce = (name: string): boolean => ONCE.has(name);

/** `unreadable`: the library answers it 400 too, as soon as the handler has returned. */
export type HeadProblem = { detail: string; unreadable: boolean };

const ambiguous = (detail: string): HeadProblem => ({ detail, unreadable: false });

/**
 * What is wrong with a request head, or null.
 *
 * @param repeated name of a header that stands twice and may not, or empty
 */
export function headProblem(headers: Readonly<Record<string, string>>, repeated: string): HeadProblem | null {
  if (repeated !== '') return ambiguous(`the header ${repeated} was sent twice; send it once`);
  const coding = headers['transfer-encoding'];
  if (coding !== undefined && coding.toLowerCase() !== 'chunked')
    return ambiguous(`the header transfer-encoding is ${shown(coding)}; only chunked is supported`);
  const length = headers['content-length'];
  if (length !== undefined) {
    if (!LENGTH.test(length)) {
      const detail = `the header content-length is ${shown(length)}; it must be a number of bytes`;
      return { detail, unreadable: length !== '' };
    }
    if (coding !== undefined) return ambiguous('the request has a content-length and a transfer-encoding');
  }
  const host = headers.host ?? '';
  if (host === lastGoodHost) return null;
  if (!HOST.test(host))
    return ambiguous(`the header host is ${shown(host)}; it must be a name or an address, and perhaps a port`);
  lastGoodHost = host;
  return null;
}

const shown = (value: string): string => JSON.stringify(value.slice(0, 100));
