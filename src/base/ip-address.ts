import net from 'node:net';
import ipaddr from 'ipaddr.js';

/** IPv6 of the public internet lies in here; the library calls everything it has no name for `unicast`. */
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR('2000::/3');

/**
 * The value of an address, without its zone; null when the text is none. Node decides what is one: the library also reads octal,
 * hexadecimal and short forms of IPv4, and takes `::192.0.2.1` for an IPv4-mapped address.
 */
function parseAddress(text: string): ipaddr.IPv4 | ipaddr.IPv6 | null {
  if (net.isIP(text) === 0) return null;
  const [bare = ''] = text.split('%');
  return ipaddr.parse(bare.replace(/^::(?=\d+\.)/, '::0:'));
}

/**
 * Whether an address is one of the public internet: not in a special-purpose range of the IANA registries (RFC 6890 and its
 * successors). IPv6 addresses that carry an IPv4 address (mapped, NAT64, 6to4, Teredo) are not, nor are those with a zone.
 */
export function isPublicAddress(text: string): boolean {
  const address = text.includes('%') ? null : parseAddress(text);
  if (address === null || address.range() !== 'unicast') return false;
  return address.kind() === 'ipv4' || address.match(GLOBAL_UNICAST);
}

/**
 * The network an address is counted as: the /64 of an IPv6 address, because one customer is given at least that much; the IPv4 address
 * of a mapped one; other text as it is.
 */
export function networkOf(text: string): string {
  const address = parseAddress(text);
  if (address === null || address instanceof ipaddr.IPv4) return text;
  if (address.isIPv4MappedAddress()) return address.toIPv4Address().toString();
  const network = address.parts.slice(0, 4).map(part => part.toString(16));
  return `${network.join(':')}::/64`;
}

/**
 * The networks an address lies in, from the widest to the narrowest: /48, /56 and /64 of an IPv6 address, as providers hand them out; /24
 * and the address itself of an IPv4 address.
 */
export function networksOf(text: string): string[] {
  const address = parseAddress(text);
  if (address === null) return [text];
  const v4 = address instanceof ipaddr.IPv4 ? address : address.isIPv4MappedAddress() ? address.toIPv4Address() : null;
  const cut = (bits: number): string =>
    `${ipaddr.IPv6.networkAddressFromCIDR(`${address.toString()}/${bits}`)}/${bits}`;
  if (v4 === null) return [cut(48), cut(56), cut(64)];
  return [`${ipaddr.IPv4.networkAddressFromCIDR(`${v4.toString()}/24`)}/24`, v4.toString()];
}
