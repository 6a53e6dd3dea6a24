import { z } from 'zod';
import { LIMITS } from '../base/limits.ts';

/**
 * The slots of a plugin, shared by the serving processes of a host. Slots are numbered from 0 and a set of them is a bit
 * mask. One of them is kept for a second caller, wherever it is: a process that serves one caller leaves it free.
 */
export const ALL_SLOTS = 2 ** LIMITS.slotsPerPlugin - 1;
/** The slot that is kept for a second caller. */
export const RESERVED = LIMITS.slotsPerPlugin - 1;

/** How many executions of a plugin may run at once in a process: of several callers, and of one. */
export type SlotCount = { all: number; ofOne: number };

/** Number of slots in a set. */
export function countSlots(mask: number): number {
  let n = 0;
  for (let rest = mask; rest !== 0; rest &= rest - 1) n++;
  return n;
}

/** The slots of a set that a single caller may use. */
export const forOne = (mask: number): number => mask & ~(1 << RESERVED);

/** The slots a process has of every plugin as long as no process asked for more; every process has at least one. */
export function ownSlots(place: number, places: number): number {
  let mask = 0;
  for (let slot = 0; slot < LIMITS.slotsPerCaller; slot++) if (slot % places === place) mask |= 1 << slot;
  return place === places - 1 ? mask | (1 << RESERVED) : mask;
}

/** Callers that a message names at most; further ones do not count. */
export const CALLERS_NAMED_MAX = 16;

const plugin = z.string().max(200);
const mask = z.number().int().min(0).max(ALL_SLOTS);

/** Messages of a serving process to the broker of slots (`slot-broker`), which is in the supervisor. */
export const leaseMessage = z.discriminatedUnion('kind', [
  /** Executions of these callers wait although all slots here are used. `more` 0: none wait any more. */
  z.object({
    kind: z.literal('slots_wanted'),
    plugin,
    more: z.number().int().min(0).max(LIMITS.slotsPerPlugin),
    callers: z.array(z.string()).max(CALLERS_NAMED_MAX),
  }),
  /** The callers with executions in flight here; the answer to `slots_scarce`, and told again when it changes. */
  z.object({ kind: z.literal('slots_callers'), plugin, callers: z.array(z.string()).max(CALLERS_NAMED_MAX) }),
  /** No execution of this process uses these slots any more. */
  z.object({ kind: z.literal('slots_given'), plugin, mask }),
  /** The answer to `slots_retire`: the slots this process still has; of all other plugins it has none. */
  z.object({ kind: z.literal('slots_kept'), kept: z.record(z.string(), mask) }),
]);
export type LeaseMessage = z.infer<typeof leaseMessage>;

/** Messages of the broker to a serving process. */
export type BrokerMessage =
  /** These slots are yours now. */
  | { kind: 'slots_granted'; plugin: string; mask: number }
  /** Give these slots as soon as their executions have ended. */
  | { kind: 'slots_recalled'; plugin: string; mask: number }
  /** Whether others wait for slots of this plugin: give those that are not used, and say who uses the others. */
  | { kind: 'slots_scarce'; plugin: string; scarce: boolean }
  /** Another process takes your place: say which slots you still use; the others are its own. */
  | { kind: 'slots_retire' }
  /** Slots you get of every plugin, and of the plugins named instead of those. */
  | { kind: 'slots_owned'; own: number; except: Record<string, number> };
