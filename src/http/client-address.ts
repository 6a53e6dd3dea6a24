import net from 'node:net';

/** Tells which client a request came from, given the peer of its connection and its headers. */
export type ClientAddress = (peer: string, headers: Readonly<Record<string, string>>) => string;

const direct: ClientAddress = peer => peer;

const family = (address: string): 'ipv4' | 'ipv6' => (net.isIPv6(address) ? 'ipv6' : 'ipv4');

/**
 * `X-Forwarded-For` is believed only from the proxies of `http.trusted_proxies`: the client is the last address in it that
 * is not itself such a proxy (docs/api.md "Client addresses"). Anybody else may write what they like there.
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
  const trusted = new net.BlockList();
  for (const range of ranges) {
    const [address = '', bits] = range.split('/');
    const max = net.isIPv6(address) ? 128 : 32;
    const prefix = bits === undefined ? max : Number(bits);
    if (net.isIP(address) === 0 || !Number.isInteger(prefix) || prefix < 0 || prefix > max)
      throw new Error(`http.trusted_proxies: "${range}" is not a CIDR range like 10.0.0.0/8`);
    trusted.addSubnet(address, prefix, family(address));
  }
  return address => net.isIP(address) !== 0 && trusted.check(address, family(address));
}
