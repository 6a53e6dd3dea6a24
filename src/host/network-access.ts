import net from 'node:net';
import { parseRange } from '../config/values.ts';
import type { NetworkRules } from '../plugins/network-rules.ts';

/** Addresses that are not public: the special purposes of the IANA registries (RFC 6890 and its successors). */
const NOT_PUBLIC_4: ReadonlyArray<[string, number]> = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
];
/**
 * Within global unicast, 2000::/3: protocol assignments with Teredo, documentation, 6to4 (which carries IPv4
 * addresses).
 */
const NOT_PUBLIC_6: ReadonlyArray<[string, number]> = [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
];

const notPublic = new net.BlockList();
for (const [address, bits] of NOT_PUBLIC_4) notPublic.addSubnet(address, bits, 'ipv4');
for (const [address, bits] of NOT_PUBLIC_6) notPublic.addSubnet(address, bits, 'ipv6');
const globalUnicast = new net.BlockList();
globalUnicast.addSubnet('2000::', 3, 'ipv6');

/** Whether an address is one of the public internet. IPv4-mapped IPv6 addresses are not. */
export function isPublic(address: string): boolean {
  const version = net.isIP(address);
  if (version === 4) return !notPublic.check(address, 'ipv4');
  return version === 6 && globalUnicast.check(address, 'ipv6') && !notPublic.check(address, 'ipv6');
}

/** Decides where a plugin, or a part of the service, may send requests. */
export class NetworkAccess {
  readonly #hosts: ReadonlyArray<{ name: string; isSuffix: boolean; port: string | null }>;
  readonly #private = new net.BlockList();

  constructor(rules: NetworkRules) {
    this.#hosts = rules.hosts.map(text => {
      const [, name = text, port] = /^(.+?)(?::(\d+))?$/.exec(text) ?? [];
      const whole = /^\[.*\]$/.test(text) ? text : name;
      return {
        name: whole.replace(/^\*/, ''),
        isSuffix: whole.startsWith('*'),
        port: whole === text ? null : (port ?? null),
      };
    });
    for (const range of rules.private) {
      const parsed = parseRange(range);
      if (parsed !== null) this.#private.addSubnet(parsed.address, parsed.bits, parsed.family);
    }
  }

  /** Whether the administrator's list contains the host of a URL. */
  allowsHost(url: URL): boolean {
    if (this.#hosts.length === 0) return true;
    // A trailing dot names the same host.
    const host = url.hostname.replace(/\.$/, '');
    const port = url.port === '' ? (url.protocol === 'https:' ? '443' : '80') : url.port;
    return this.#hosts.some(
      h => (h.port === null || h.port === port) && (h.isSuffix ? host.endsWith(h.name) : host === h.name),
    );
  }

  allowsAddress(address: string): boolean {
    const version = net.isIP(address);
    if (version === 0) return false;
    return isPublic(address) || this.#private.check(address, version === 4 ? 'ipv4' : 'ipv6');
  }
}
