import type { HttpResponse } from 'uWebSockets.js';
import { Buffer } from 'node:buffer';
import { SocketAddress } from 'node:net';

const ADDRESSES_MAX = 4096;
const addresses = new Map<number, string>();

/**
 * Address as text (RFC 5952); an IPv4 address mapped into IPv6 is shown as IPv4. The library's own text is made by `printf` and takes
 * longer than the bytes and a look into a map.
 */
export function peerAddressOf(res: HttpResponse): string {
  const b = new Uint8Array(res.getRemoteAddress());
  if (b.length === 4) return ipv4(b, 0);
  if (b.length !== 16) return '';
  if (b[10] === 0xff && b[11] === 0xff && b.subarray(0, 10).every(x => x === 0)) return ipv4(b, 12);
  const address = Buffer.from(res.getRemoteAddressAsText()).latin1Slice();
  return new SocketAddress({ family: 'ipv6', address }).address;
}

function ipv4(b: Uint8Array, at: number): string {
  const bits = (b[at]! << 24) | (b[at + 1]! << 16) | (b[at + 2]! << 8) | b[at + 3]!;
  let text = addresses.get(bits);
  if (text === undefined) {
    text = b.subarray(at, at + 4).join('.');
    if (addresses.size >= ADDRESSES_MAX) addresses.clear();
    addresses.set(bits, text);
  }
  return text;
}
