import { LIMITS } from '../limits.ts';

/** Plugins that wait for one another, the first one first, and the one they wait for. */
type NestedCall = { callers: readonly string[]; to: string };

/**
 * Calls of plugins by plugins that are under way. Who called holds a slot and a thread while it waits, so it must be told when what it
 * waits for can never come (security.md "Nested plugin calls").
 */
export class NestedCalls {
  readonly #bySlot = new Map<number, NestedCall>();

  /** So many that the threads they hold leave too few to run those they wait for. */
  get isFull(): boolean {
    return this.#bySlot.size >= LIMITS.nestedCallsMax;
  }

  add(slot: number, callers: readonly string[], to: string): void {
    this.#bySlot.set(slot, { callers, to });
  }

  remove(slot: number): void {
    this.#bySlot.delete(slot);
  }

  /**
   * Whether a call would wait for ever: every slot of its target is held by an execution that itself waits for a slot, and so on round to
   * the one that calls. Whoever waits for a call that has begun waits for what that one waits for, so all callers of a waiting call count.
   * Calls are looked at when they are made, and the last one to close such a ring is refused, so none ever closes.
   *
   * @param isWaiting whether the execution in a slot has not begun
   */
  wouldStarve(callers: readonly string[], to: string, isWaiting: (slot: number) => boolean): boolean {
    const waits = new Map<string, string[]>();
    const note = (call: NestedCall): void => {
      for (const from of call.callers) {
        const targets = waits.get(from);
        if (targets === undefined) waits.set(from, [call.to]);
        else targets.push(call.to);
      }
    };
    note({ callers, to });
    for (const [slot, call] of this.#bySlot) if (isWaiting(slot)) note(call);
    const stuck = new Set(
      [...waits].filter(([, targets]) => targets.length >= LIMITS.slotsPerPlugin).map(([id]) => id),
    );
    // Whoever waits for one that goes on goes on itself, sooner or later.
    for (let before = -1; before !== stuck.size; ) {
      before = stuck.size;
      for (const id of stuck) if (waits.get(id)?.some(target => !stuck.has(target)) === true) stuck.delete(id);
    }
    return stuck.has(to);
  }
}
