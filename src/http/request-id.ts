import { randomBytes } from 'node:crypto';

const ID_PREFIX = randomBytes(8).toString('hex');
const BASE = 36;
const LAST_TWO = Array.from({ length: BASE * BASE }, (_, k) => k.toString(BASE).padStart(2, '0'));
let lastId = 0;
let idBlock = `${ID_PREFIX}-00000`;
/** A request id of this process: a random part and a counter, unique over hosts and cheap to make. */
function makeRequestId(): string {
  const low = ++lastId % LAST_TWO.length;
  if (low === 0)
    idBlock = `${ID_PREFIX}-${Math.floor(lastId / LAST_TWO.length)
      .toString(BASE)
      .padStart(5, '0')}`;
  return idBlock + LAST_TWO[low]!;
}

const GIVEN = /^[\w-]{8,64}$/;

/** The id of a request: the one it came with, when that is usable, or a new one. */
export function requestIdOf(headers: Readonly<Record<string, string>>): string {
  const given = headers['x-request-id'];
  return given !== undefined && GIVEN.test(given) ? given : makeRequestId();
}
