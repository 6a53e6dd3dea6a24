import net from 'node:net';

/** The principal a caller is counted by; null for a caller without a credential. */
type CountedPrincipal =
  | { readonly kind: 'user'; readonly userId: number }
  | { readonly kind: 'service'; readonly keyId: number }
  | null;

const KNOWN_MAX = 4096;
const known = new Map<string, string>();

/**
 * The key under which slots, waiting requests and strikes of a caller are counted: the user, the service key, or for a
 * caller without a credential the network of its address.
 *
 * @param address of the client, or another text that distinguishes callers without a credential
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
 * The network an address is counted as: the /64 of an IPv6 address, because a provider gives one customer at least a
 * /64; the IPv4 address of an IPv4-mapped IPv6 address; any other text unchanged.
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
