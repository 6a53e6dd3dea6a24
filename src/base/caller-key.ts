import { networkOf } from './ip-address.ts';

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
