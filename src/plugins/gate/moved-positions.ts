import type { Positions } from '../../abi/positions.ts';
import type { MovedBody } from './code-entries.ts';

/**
 * The positions of an upload for the module that runs, in which functions lie elsewhere.
 *
 * @param positions with addresses from the beginning of the code section of the upload, as DWARF counts them
 * @param codeAt where that section begins in the upload
 * @param bodies the functions of the upload, and where they are in the module that runs
 * @returns positions with addresses from the beginning of that module, as V8 counts them; rows outside of functions are
 *   left out, and the end of each function is a row without a place
 */
export function movedPositions(positions: Positions, codeAt: number, bodies: readonly MovedBody[]): Positions {
  const addresses: number[] = [];
  const placeOf: number[] = [];
  const add = (address: number, place: number): void => {
    addresses.push(address);
    placeOf.push(place);
  };
  let next = 0;
  for (const body of bodies) {
    const from = body.from - codeAt;
    const end = from + body.bytes;
    while ((positions.addresses[next] ?? end) < from) next++;
    const first = next;
    let [site, more] = [0, 0];
    for (; (positions.addresses[next] ?? end) < end; next++) {
      const address = positions.addresses[next] ?? end;
      for (; site < body.sites.length && (body.sites[site]?.at ?? 0) - codeAt < address; site++)
        more += body.sites[site]?.more ?? 0;
      add(body.to + (address - from) + more, positions.placeOf[next] ?? -1);
    }
    if (next > first) add(body.to + body.bytes + body.sites.reduce((sum, s) => sum + s.more, 0), -1);
  }
  return { places: positions.places, addresses, placeOf };
}
