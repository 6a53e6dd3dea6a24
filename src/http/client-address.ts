import net from 'node:net';
import { AddressRanges } from '../base/address-ranges.ts';
import { messageOf } from '../base/errors.ts';

/** Tells which client a request came from, given the peer of its connection and its headers. */
export type ClientAddress = (peer: string, headers: Readonly<Record<string, string>>) => string;

const direct: ClientAddress = peer => peer;

/** An address with or without a port, an IPv6 address in brackets if there is one (RFC 7239 section 6). */
const NODE = /^(?:\[([\da-fA-F:.]+)\]|([\d.]+))(?::(?:\d{1,5}|_[\w.-]+))?$/;
const MAPPED = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;

/** The address in an element of `X-Forwarded-For` or in `for=` of `Forwarded`; null when it names none (`unknown`, `_hidden`). */
function addressIn(element: string): string | null {
  const [, inBrackets, plain] = NODE.exec(element) ?? [];
  const address = inBrackets ?? plain ?? element;
  if (net.isIP(address) === 0) return null;
  return MAPPED.exec(address)?.[1] ?? address;
}

/** Where the quoted text ends that begins at a quote; -1 when it does not. */
function endOfQuoted(text: string, quote: number): number {
  for (let at = quote + 1; at < text.length; at++)
    if (text[at] === '"') return at;
    else if (text[at] === '\\') at++;
  return -1;
}

/** The parts of a header between separators that stand outside of quotes, in a time that grows with its length alone. */
function partsOf(text: string, separator: ',' | ';'): string[] {
  const parts: string[] = [];
  let from = 0;
  let isQuoting = true;
  for (let at = 0; at < text.length; at++)
    if (text[at] === separator) {
      parts.push(text.slice(from, at));
      from = at + 1;
    } else if (text[at] === '"' && isQuoting) {
      const end = endOfQuoted(text, at);
      // Without an end it is a character like others, and so are those behind it: what a proxy has added counts on.
      if (end === -1) isQuoting = false;
      else at = end;
    }
  return [...parts, text.slice(from)].filter(part => part !== '');
}

/** What a pair says of the client; undefined for a pair of another name. */
function forOf(pair: string): string | undefined {
  const at = pair.indexOf('=');
  return at !== -1 && pair.slice(0, at).trim().toLowerCase() === 'for' ? pair.slice(at + 1).trim() : undefined;
}

/** What `for=` says in each element of `Forwarded` (RFC 7239 section 4); empty where an element has none. */
const forwardedNodes = (value: string): string[] =>
  partsOf(value, ',').map(element => {
    const node = partsOf(element, ';')
      .map(forOf)
      .find(found => found !== undefined);
    return node?.startsWith('"') === true ? node.slice(1, -1).replaceAll(/\\(.)/g, '$1') : (node ?? '');
  });

/** The nodes that proxies have named, the nearest one last; empty elements say nothing (RFC 9110 section 5.6.1.2). */
function nodesOf(headers: Readonly<Record<string, string>>): string[] {
  const { forwarded, 'x-forwarded-for': list } = headers;
  if (list !== undefined)
    return list
      .split(',')
      .map(e => e.trim())
      .filter(e => e !== '');
  return forwarded === undefined ? [] : forwardedNodes(forwarded);
}

/**
 * `X-Forwarded-For`, or `Forwarded` where there is none, is believed only from the proxies of `http.trusted_proxies`: the client is the
 * last address in it that is not itself such a proxy (docs/api.md "Client addresses"). Other clients may write there what they like.
 *
 * @param ranges CIDR ranges or single addresses
 * @throws Error naming the range that cannot be read
 */
export function makeClientAddress(ranges: readonly string[]): ClientAddress {
  if (ranges.length === 0) return direct;
  const isTrusted = makeIsProxy(ranges);
  return (peer, headers) => {
    if (!isTrusted(peer)) return peer;
    const nodes = nodesOf(headers);
    let client = peer;
    // From the nearest proxy outwards; what is no address ends the part that can be believed.
    for (let k = nodes.length - 1; k >= 0 && isTrusted(client); k--) {
      const next = addressIn(nodes[k] ?? '');
      if (next === null) break;
      client = next;
    }
    return client;
  };
}

/**
 * Tells whether an address is one of `http.trusted_proxies`.
 *
 * @throws Error naming the range that cannot be read
 */
export function makeIsProxy(ranges: readonly string[]): (address: string) => boolean {
  try {
    const trusted = new AddressRanges(ranges);
    return address => trusted.includes(address);
  } catch (error) {
    throw new Error(`http.trusted_proxies: ${messageOf(error)}`);
  }
}
