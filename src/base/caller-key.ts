import net from 'node:net';

/** For whom something is done, as far as callers are counted: null for a caller without a credential. */
type CountedPrincipal =
  | { readonly kind: 'user'; readonly userId: number }
  | { readonly kind: 'service'; readonly keyId: number }
  | null;

const KNOWN_MAX = 4096;
const known = new Map<string, string>();

/**
 * Names the caller by whom slots, waiting requests and strikes are counted: the user, the service key, or for a caller
 * without a credential the network of its address.
 *
 * @param address of the client, or whatever else tells callers without a credential apart
 */
export function callerKey(principal: CountedPrincipal, address: string): string {
  if (principal !== null) return principal.kind === 'user' ? `user:${principal.userId}` : `service:${principal.keyId}`;
  if (!address.includes(':')) return address;
  let network = known.get(address);
  if (network === undefined) {
    network = networkOf(address);
    if (known.size >= KNOWN_MAX) known.clear();
    known.set(address, network);
  }
  return network;
}

/**
 * The network an address is counted as: the /64 of an IPv6 address, because one customer is given at least that much; the IPv4 address
 * of a mapped one; other text as it is.
 */
export function networkOf(address: string): string {
  const [text = ''] = address.split('%');
  if (!net.isIPv6(text)) return address;
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(text);
  if (mapped?.[1] !== undefined) return mapped[1];
  const [before = '', after] = text.split('::');
  const head = before === '' ? [] : before.split(':');
  const tail = after === undefined || after === '' ? [] : after.split(':');
  // An IPv4 address at the end stands for two groups.
  const groups = head.length + tail.length + (text.includes('.') ? 1 : 0);
  const all = [...head, ...Array.from({ length: after === undefined ? 0 : 8 - groups }, () => '0'), ...tail];
  return `${all
    .slice(0, 4)
    .map(group => Number.parseInt(group, 16).toString(16))
    .join(':')}::/64`;
}
