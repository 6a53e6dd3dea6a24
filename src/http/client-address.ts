import net from 'node:net';
import { AddressRanges } from '../base/address-ranges.ts';
import { messageOf } from '../base/errors.ts';

/** Tells which client a request came from, given the peer of its connection and its headers. */
export type ClientAddress = (peer: string, headers: Readonly<Record<string, string>>) => string;

const direct: ClientAddress = peer => peer;

/**
 * `X-Forwarded-For` is believed only from the proxies of `http.trusted_proxies`: the client is the last address in it that
 * is not itself such a proxy (docs/api.md "Client addresses"). Other clients may write there what they like.
 *
 * @param ranges CIDR ranges or single addresses
 * @throws Error naming the range that cannot be read
 */
export function makeClientAddress(ranges: readonly string[]): ClientAddress {
  if (ranges.length === 0) return direct;
  const isTrusted = makeIsProxy(ranges);
  return (peer, headers) => {
    const forwarded = headers['x-forwarded-for'];
    if (forwarded === undefined || !isTrusted(peer)) return peer;
    const chain = forwarded.split(',').map(a => a.trim());
    let client = peer;
    // From the nearest proxy outwards; what is no address ends the part that can be believed.
    for (let k = chain.length - 1; k >= 0 && isTrusted(client); k--) {
      const next = chain[k] ?? '';
      if (net.isIP(next) === 0) break;
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
