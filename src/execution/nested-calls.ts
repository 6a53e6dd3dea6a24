import { LIMITS } from '../base/limits.ts';

/**
 * A chain of plugins, each waiting for the next, outermost first; the plugin they wait for; and the caller all are
 * counted for.
 */
type NestedCall = { callers: readonly string[]; to: string; caller: string };

type Queues = {
  /** Whether the execution in a cell has not begun. */
  isWaiting(cell: number): boolean;
  /** How many executions of a plugin may run here at once, and how many of one caller. */
  slotsOf(pluginId: string): { all: number; ofOne: number };
};

/**
 * The nested calls under way. A calling execution holds a slot and a thread while it waits, so a call that could never
 * be answered must be refused (docs/plugins.md "Executions").
 */
export class NestedCalls {
  readonly #byCell = new Map<number, NestedCall>();

  /** Whether the threads of waiting callers leave too few threads to run the plugins they called. */
  get isFull(): boolean {
    return this.#byCell.size >= LIMITS.nestedCallsMax;
  }

  add(cell: number, call: NestedCall): void {
    this.#byCell.set(cell, call);
  }

  remove(cell: number): void {
    this.#byCell.delete(cell);
  }

  /**
   * Whether a call would wait for ever (a deadlock): every slot it could use in its target is held by an execution that
   * itself waits for a slot, and so on in a cycle back to the calling plugin. An execution whose call has begun waits
   * for whatever that call waits for, so all plugins of a waiting chain count. One caller may hold fewer slots than a
   * plugin has, so its slots are counted separately. Each call is checked when it is made and the call that would close
   * a cycle is refused, so no cycle arises.
   *
   * Slots of this process count; another process may give more of them, so a call may be refused that would have got one.
   */
  wouldStarve(call: NestedCall, queues: Queues): boolean {
    /** The plugins that executions of a plugin wait for, and those that executions of one of its callers wait for. */
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
    for (const [cell, other] of this.#byCell) if (queues.isWaiting(cell)) note(other);
    const stuck = new Set<string>();
    for (const [key, calls] of waits) {
      const [plugin = '', caller] = key.split(CALLER);
      const { all, ofOne } = queues.slotsOf(plugin);
      if (calls.length >= (caller === undefined ? all : ofOne)) stuck.add(key);
    }
    const isStuck = ({ caller, to }: NestedCall): boolean => stuck.has(to) || stuck.has(ofCaller(to, caller));
    // An execution that waits for a call that makes progress makes progress itself.
    for (let before = -1; before !== stuck.size; ) {
      before = stuck.size;
      for (const key of stuck) if (waits.get(key)?.some(other => !isStuck(other)) === true) stuck.delete(key);
    }
    return isStuck(call);
  }
}

/** A character that no plugin id contains. */
const CALLER = '\0';

const ofCaller = (plugin: string, caller: string): string => plugin + CALLER + caller;
