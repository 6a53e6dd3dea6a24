import { LIMITS } from '../base/limits.ts';

/** Plugins that wait for one another, the first one first, the plugin they wait for, and by whom all of it is counted. */
type NestedCall = { callers: readonly string[]; to: string; caller: string };

/**
 * Calls of plugins by plugins that are under way. Who called holds a slot and a thread while it waits, so it must be told when what it
 * waits for can never come (docs/plugins.md "Executions").
 */
export class NestedCalls {
  readonly #bySlot = new Map<number, NestedCall>();

  /** So many that the threads they hold leave too few to run those they wait for. */
  get isFull(): boolean {
    return this.#bySlot.size >= LIMITS.nestedCallsMax;
  }

  add(slot: number, call: NestedCall): void {
    this.#bySlot.set(slot, call);
  }

  remove(slot: number): void {
    this.#bySlot.delete(slot);
  }

  /**
   * Whether a call would wait for ever: every slot it may have in its target is held by an execution that itself waits for a slot, and so
   * on round to the plugin that calls. An execution that waits for a call that has begun waits for what that one waits for, so all
   * plugins of a waiting call count. One caller may hold fewer slots than a plugin has, so its slots are counted apart.
   * Calls are looked at when they are made, and the last one to close such a ring is refused, so none ever closes.
   *
   * @param isWaiting whether the execution in a slot has not begun
   */
  wouldStarve(call: NestedCall, isWaiting: (slot: number) => boolean): boolean {
    /** What the executions of a plugin wait for, and those of one of its callers. */
    const waits = new Map<string, NestedCall[]>();
    const note = (call: NestedCall): void => {
      for (const from of call.callers)
        for (const key of [from, ofCaller(from, call.caller)]) {
          const targets = waits.get(key);
          if (targets === undefined) waits.set(key, [call]);
          else targets.push(call);
        }
    };
    note(call);
    for (const [slot, other] of this.#bySlot) if (isWaiting(slot)) note(other);
    const stuck = new Set<string>();
    for (const [key, calls] of waits)
      if (calls.length >= (key.includes(CALLER) ? LIMITS.slotsPerCaller : LIMITS.slotsPerPlugin)) stuck.add(key);
    const isStuck = ({ caller, to }: NestedCall): boolean => stuck.has(to) || stuck.has(ofCaller(to, caller));
    // What waits for a call that goes on goes on itself, sooner or later.
    for (let before = -1; before !== stuck.size; ) {
      before = stuck.size;
      for (const key of stuck) if (waits.get(key)?.some(other => !isStuck(other)) === true) stuck.delete(key);
    }
    return isStuck(call);
  }
}

/** Stands in no id of a plugin. */
const CALLER = '\0';

const ofCaller = (plugin: string, caller: string): string => plugin + CALLER + caller;
