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
    reason: z.enum(SUSPENSION_REASONS),
    failure: z.string(),
    atMs: z.number(),
    /** How many callers of the trigger went well lately in the process that tells. */
    well: z.int().min(0),
  }),
  /** The answer to a strike by a process that knows of more callers for whom the trigger worked lately. */
  z.object({
    kind: z.literal('callers_well'),
    pluginId: z.string(),
    trigger: z.string(),
    well: z.int(),
    atMs: z.number(),
  }),
  /** An execution succeeded where there were strikes. */
  z.object({ kind: z.literal('strikes_forgotten'), ...of }),
  /** An administrator resumed the trigger. */
  z.object({ kind: z.literal('trigger_resumed'), pluginId: z.string(), trigger: z.string() }),
]);
export type StrikeMessage = z.infer<typeof strikeMessage>;
type StrikeTold = Exclude<StrikeMessage, { kind: 'trigger_resumed' | 'callers_well' }>;

const STRIKES_KEPT = 1000;

/** What the serving processes told each other and what may still count, for a process that starts. */
export class ToldStrikes {
  #told: StrikeTold[] = [];

  add(message: StrikeMessage): void {
    const isOther = (s: StrikeTold): boolean => s.pluginId !== message.pluginId || s.trigger !== message.trigger;
    if (message.kind === 'callers_well') {
      // A process that starts hears the strikes with the answer.
      const { well } = message;
      this.#told = this.#told.map(s =>
        isOther(s) || s.kind !== 'strike' ? s : { ...s, well: Math.max(s.well, well) },
      );
    } else if (message.kind === 'trigger_resumed') this.#told = this.#told.filter(isOther);
    else if (message.kind === 'strike') this.#keep(message);
    else {
      // A success also ends the row of all callers' strikes: it keeps its place between them.
      this.#told = this.#told.filter(s => isOther(s) || (s.kind === 'strike' && s.caller !== message.caller));
      if (!this.#told.every(isOther)) this.#keep(message);
    }
  }

  #keep(message: StrikeTold): void {
    this.#told = [...this.#told, message].slice(-STRIKES_KEPT);
  }

  /** @param nowMs time of day */
  list(nowMs: number): StrikeMessage[] {
    this.#told = this.#told.filter(s => s.kind !== 'strike' || s.atMs > nowMs - LIMITS.quarantineMs);
    return this.#told;
  }
}

/** The result of a strike: nothing, a suspension of the trigger for one caller, or for all callers. */
export type Verdict = { kind: 'none' } | { kind: 'caller' } | { kind: 'all'; callers: number };

type Strike = { caller: string; atMs: number };

const keyOf = (pluginId: string, trigger: string): string => `${pluginId}\0${trigger}`;

/** Callers of a trigger whose last outcome is remembered; further ones push out those that were heard of longest ago. */
const RECENT_CALLERS_MAX = 32;
/** How often the place of a caller in that order is brought up to date. */
const PLACE_MS = 1000;

/** How the last execution of each caller of a trigger ended lately. */
class RecentCallers {
  readonly #last = new Map<string, { failed: boolean; atMs: number; placedMs: number }>();

  #told = { well: 0, atMs: 0 };

  note(caller: string, failed: boolean, atMs: number): void {
    const known = this.#last.get(caller);
    if (known !== undefined && atMs - known.placedMs < PLACE_MS) {
      known.failed = failed;
      known.atMs = atMs;
      return;
    }
    if (this.#last.size >= RECENT_CALLERS_MAX && known === undefined) {
      const [oldest] = this.#last;
      if (oldest === undefined) return;
      // No entry is made for each success: where it works for many callers, those remembered stand for the others.
      if (!failed && oldest[1].placedMs > atMs - PLACE_MS) return;
      this.#last.delete(oldest[0]);
    }
    this.#last.delete(caller);
    this.#last.set(caller, { failed, atMs, placedMs: atMs });
  }

  /** Another serving process says how many callers went well there; the largest number of the last minute counts. */
  hear(well: number, atMs: number): void {
    const isOld = this.#told.atMs <= atMs - LIMITS.quarantineWindowMs;
    if (isOld || well >= this.#told.well) this.#told = { well, atMs };
  }

  /** How many callers failed last in this process, and how many did not. */
  here(ms: number): { failed: number; well: number } {
    const counts = { failed: 0, well: 0 };
    for (const { atMs, failed } of this.#last.values()) if (atMs > ms) counts[failed ? 'failed' : 'well']++;
    return counts;
  }

  /** How many callers failed last in this process, and how many did not in the process where they are most. */
  since(ms: number): { failed: number; well: number } {
    const { failed, well } = this.here(ms);
    return { failed, well: this.#told.atMs > ms ? Math.max(well, this.#told.well) : well };
  }
}

/**
 * Counts executions that trapped or timed out. Three in a row within a minute lead to a suspension. Three in a row of
 * one caller's executions suspend for that caller; three in a row of all executions suspend for all callers, if at
 * least two callers are involved, and of the callers of the last minute no more went well than failed: a few callers
 * that make a trigger fail do not take it from all others.
 */
export class Strikes {
  /** Strikes since the last success, by trigger, oldest first. */
  readonly #ofTrigger = new Map<string, Strike[]>();
  /** Strikes by trigger and caller, the most recent at the end. */
  readonly #ofCaller = new Map<string, number[]>();

  /** By plugin and trigger, without a key that is made for each success. */
  readonly #recent = new Map<string, Map<string, RecentCallers>>();

  #recentOf(pluginId: string, trigger: string): RecentCallers {
    const known = this.#recent.get(pluginId)?.get(trigger);
    if (known !== undefined) return known;
    const recent = new RecentCallers();
    const triggers = this.#recent.get(pluginId) ?? new Map<string, RecentCallers>();
    this.#recent.set(pluginId, triggers.set(trigger, recent));
    return recent;
  }

  /** Notes that an execution here went well. */
  noteSuccess(pluginId: string, trigger: string, caller: string, nowMs: number): void {
    this.#recentOf(pluginId, trigger).note(caller, false, nowMs);
  }

  /** Resets the strikes of the trigger and of the caller after a success. @returns whether there were any */
  forget(pluginId: string, trigger: string, caller: string): boolean {
    if (this.#ofTrigger.size === 0 && this.#ofCaller.size === 0) return false;
    const key = keyOf(pluginId, trigger);
    const ofTrigger = this.#ofTrigger.delete(key);
    return this.#ofCaller.delete(keyOf(key, caller)) || ofTrigger;
  }

  /** How many callers of a trigger went well within the last minute in this process: what others told is not told on. */
  countWell(pluginId: string, trigger: string, nowMs: number): number {
    return this.#recentOf(pluginId, trigger).here(nowMs - LIMITS.quarantineWindowMs).well;
  }

  /** Another serving process says how many callers of a trigger went well there. */
  hearWell(pluginId: string, trigger: string, well: number, atMs: number): void {
    this.#recentOf(pluginId, trigger).hear(well, atMs);
  }

  /**
   * Counts one strike. The counts that led to a suspension begin at zero again.
   *
   * @param toldWell callers that went well lately in the process that tells of the strike; null for a strike of this one
   */
  add(pluginId: string, trigger: string, caller: string, nowMs: number, toldWell: number | null = null): Verdict {
    const key = keyOf(pluginId, trigger);
    const since = nowMs - LIMITS.quarantineWindowMs;
    const all = [...(this.#ofTrigger.get(key) ?? []).filter(s => s.atMs > since), { caller, atMs: nowMs }];
    const callers = new Set(all.map(s => s.caller)).size;
    const recent = this.#recentOf(pluginId, trigger);
    recent.note(caller, true, nowMs);
    if (toldWell !== null) recent.hear(toldWell, nowMs);
    const { failed, well } = recent.since(since);
    if (all.length >= LIMITS.quarantineStrikes && callers > 1 && failed >= well) {
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

  /** Removes all strikes of a plugin. */
  clearPlugin(pluginId: string): void {
    for (const strikes of [this.#ofTrigger, this.#ofCaller])
      for (const key of strikes.keys()) if (key.startsWith(`${pluginId}\0`)) strikes.delete(key);
    this.#recent.delete(pluginId);
  }

  /** Removes strikes that are too old to count. */
  sweep(nowMs: number): void {
    const since = nowMs - LIMITS.quarantineWindowMs;
    for (const [pluginId, triggers] of this.#recent) {
      for (const [trigger, recent] of triggers) {
        const { failed, well } = recent.since(since);
        if (failed + well === 0) triggers.delete(trigger);
      }
      if (triggers.size === 0) this.#recent.delete(pluginId);
    }
    for (const [key, strikes] of this.#ofTrigger) if ((strikes.at(-1)?.atMs ?? 0) <= since) this.#ofTrigger.delete(key);
    for (const [key, times] of this.#ofCaller) if ((times.at(-1) ?? 0) <= since) this.#ofCaller.delete(key);
  }
}
