import { answered, api } from '../api/client.ts';
import type { Person } from './changed-people.tsx';

const PART = 5000;

/** What is known so far of all people: `seen` of `users`. */
export type Compared = { users: number; seen: number; undecided: number; gains: Person[]; loses: Person[] };

export const NOTHING_COMPARED: Compared = { users: 0, seen: 0, undecided: 0, gains: [], loses: [] };

/** Asks for all people, part by part, who gains or loses access by a change of a policy. @param onPart told what is known after each part */
export async function compareAll(
  policies: { before: string; after: string },
  signal: AbortSignal,
  onPart: (known: Compared) => void,
): Promise<Compared> {
  let sum = NOTHING_COMPARED;
  for (let cursor: string | null = ''; cursor !== null; ) {
    const where: { cursor?: string } = cursor === '' ? {} : { cursor };
    const body = { ...policies, limit: PART, ...where };
    const part = answered(await api.POST('/api/admin/policies/compare', { body, signal }));
    sum = {
      users: part.users,
      seen: sum.seen + part.examined + part.undecided,
      undecided: sum.undecided + part.undecided,
      gains: [...sum.gains, ...part.gains],
      loses: [...sum.loses, ...part.loses],
    };
    onPart(sum);
    cursor = part.next_cursor;
  }
  return sum;
}
