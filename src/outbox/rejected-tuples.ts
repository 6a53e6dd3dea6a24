import type { Tuple } from '../graph/tuple.ts';

/** Refusals of one kind of tuple after which all of the kind are left out: the store does not know it. */
const KIND_REFUSED_MAX = 20;

/** Tuples a filling leaves out; of each kind a few are tried, so that a whole kind costs no more than those. */
export class RejectedTuples {
  readonly examples: Tuple[] = [];
  count = 0;
  readonly #refused = new Map<string, number>();

  add(tuple: Tuple): void {
    this.#refused.set(kindOf(tuple), (this.#refused.get(kindOf(tuple)) ?? 0) + 1);
    this.#note(tuple);
  }

  /** @returns whether so many of its kind were refused that this one is not tried; it is noted then */
  isHopeless(tuple: Tuple): boolean {
    if (this.#refused.size === 0 || (this.#refused.get(kindOf(tuple)) ?? 0) < KIND_REFUSED_MAX) return false;
    this.#note(tuple);
    return true;
  }

  #note(tuple: Tuple): void {
    this.count++;
    if (this.examples.length < KIND_REFUSED_MAX) this.examples.push(tuple);
  }
}

const kindOf = (t: Tuple): string => `${t.resourceType}#${t.relation}@${t.subjectType}`;
