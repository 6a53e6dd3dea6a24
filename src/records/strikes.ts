import { z } from 'zod';
import { LIMITS } from '../base/limits.ts';
import { SUSPENSION_REASONS } from './suspension.ts';

const of = { pluginId: z.string(), trigger: z.string(), caller: z.string() };

/** What the serving processes of a host tell each other, so that executions on all of them count together. */
export const strikeMessage = z.discriminatedUnion('kind', [
  /** An execution trapped or timed out. `atMs`: time of day. */
  z.object({
    kind: z.literal('strike'),
    ...of,
    cause: z.string(),
    /** A release without reasons sends neither; both are in `cause` as a sentence. */
    reason: z.enum(SUSPENSION_REASONS).nullable().default(null),
    failure: z.string().nullable().default(null),
    atMs: z.number(),
  }),
  /** An execution succeeded where there were strikes. */
  z.object({ kind: z.literal('strikes_forgotten'), ...of }),
  /** An administrator resumed the trigger. */
  z.object({ kind: z.literal('trigger_resumed'), pluginId: z.string(), trigger: z.string() }),
]);
export type StrikeMessage = z.infer<typeof strikeMessage>;
type StrikeTold = Extract<StrikeMessage, { kind: 'strike' }>;

const STRIKES_KEPT = 1000;

/** What the serving processes told each other and what may still count, for a process that starts. */
export class ToldStrikes {
  #told: StrikeTold[] = [];

  add(message: StrikeMessage): void {
    const isOther = (s: StrikeTold): boolean => s.pluginId !== message.pluginId || s.trigger !== message.trigger;
    if (message.kind === 'strike') this.#told = [...this.#told, message].slice(-STRIKES_KEPT);
    else if (message.kind === 'trigger_resumed') this.#told = this.#told.filter(isOther);
    else this.#told = this.#told.filter(s => isOther(s) || s.caller !== message.caller);
  }

  /** @param nowMs time of day */
  list(nowMs: number): StrikeMessage[] {
    this.#told = this.#told.filter(s => s.atMs > nowMs - LIMITS.quarantineMs);
    return this.#told;
  }
}

/** The result of a strike: nothing, a suspension of the trigger for one caller, or for all callers. */
export type Verdict = { kind: 'none' } | { kind: 'caller' } | { kind: 'all'; callers: number };

type Strike = { caller: string; atMs: number };

const keyOf = (pluginId: string, trigger: string): string => `${pluginId}\0${trigger}`;

/**
 * Counts executions that trapped or timed out. Three in a row within a minute lead to a suspension. Three in a row of
 * one caller's executions suspend for that caller; three in a row of all executions suspend for all callers, if at
 * least two callers are involved.
 */
export class Strikes {
  /** Strikes since the last success, by trigger, oldest first. */
  readonly #ofTrigger = new Map<string, Strike[]>();
  /** Strikes by trigger and caller, the most recent at the end. */
  readonly #ofCaller = new Map<string, number[]>();

  /** Resets the strikes of the trigger and of the caller after a success. @returns whether there were any */
  forget(pluginId: string, trigger: string, caller: string): boolean {
    if (this.#ofTrigger.size === 0 && this.#ofCaller.size === 0) return false;
    const key = keyOf(pluginId, trigger);
    const ofTrigger = this.#ofTrigger.delete(key);
    return this.#ofCaller.delete(keyOf(key, caller)) || ofTrigger;
  }

  /** Counts one strike. The counts that led to a suspension begin at zero again. */
  add(pluginId: string, trigger: string, caller: string, nowMs: number): Verdict {
    const key = keyOf(pluginId, trigger);
    const since = nowMs - LIMITS.quarantineWindowMs;
    const all = [...(this.#ofTrigger.get(key) ?? []).filter(s => s.atMs > since), { caller, atMs: nowMs }];
    const callers = new Set(all.map(s => s.caller)).size;
    if (all.length >= LIMITS.quarantineStrikes && callers > 1) {
      this.clear(pluginId, trigger);
      return { kind: 'all', callers };
    }
    // A single caller is suspended at its third strike, so one caller never has more.
    this.#ofTrigger.set(key, all.slice(-LIMITS.quarantineStrikes));
    return this.#addOfCaller(keyOf(key, caller), since, nowMs);
  }

  #addOfCaller(key: string, since: number, nowMs: number): Verdict {
    const own = [...(this.#ofCaller.get(key) ?? []).filter(atMs => atMs > since), nowMs];
    this.#ofCaller.delete(key);
    if (own.length >= LIMITS.quarantineStrikes) return { kind: 'caller' };
    this.#ofCaller.set(key, own);
    if (this.#ofCaller.size > LIMITS.callersCountedMax) {
      const oldest = this.#ofCaller.keys().next();
      if (!oldest.done) this.#ofCaller.delete(oldest.value);
    }
    return { kind: 'none' };
  }

  /** Removes all strikes of a trigger. */
  clear(pluginId: string, trigger: string): void {
    const key = keyOf(pluginId, trigger);
    this.#ofTrigger.delete(key);
    for (const of of this.#ofCaller.keys()) if (of.startsWith(`${key}\0`)) this.#ofCaller.delete(of);
  }

  /** Removes strikes that are too old to count. */
  sweep(nowMs: number): void {
    const since = nowMs - LIMITS.quarantineWindowMs;
    for (const [key, strikes] of this.#ofTrigger) if ((strikes.at(-1)?.atMs ?? 0) <= since) this.#ofTrigger.delete(key);
    for (const [key, times] of this.#ofCaller) if ((times.at(-1) ?? 0) <= since) this.#ofCaller.delete(key);
  }
}
