import { networkOf } from './ip-address.ts';
import { type Principal, principalText } from './principal.ts';

const KNOWN_MAX = 4096;
const known = new Map<string, string>();

/**
 * The key under which slots, waiting requests and strikes of a caller are counted: the user, the service key, or for a
 * caller without a credential the network of its address.
 *
 * @param address of the client, or another text that distinguishes callers without a credential
 */
export function callerKey(principal: Principal | null, address: string): string {
  if (principal !== null) return principalText(principal);
  if (!address.includes(':')) return address;
  let network = known.get(address);
  if (network === undefined) {
    network = networkOf(address);
    if (known.size >= KNOWN_MAX) known.clear();
    known.set(address, network);
  }
  return network;
}
