import { z } from 'zod';
import { LIMITS } from '../base/limits.ts';
import { type BrokerMessage, countSlots, forOne, type LeaseMessage, ownSlots, RESERVED } from './slot-messages.ts';

/** A serving process. */
type Member = {
  id: number;
  /** Which of the serving processes of the host it is; two members have the same place while one replaces the other. */
  place: number;
  /** It was asked which slots it keeps, so nothing is granted to it before it has answered. */
  retiring: boolean;
  send(message: BrokerMessage): void;
};

type Wish = { more: number; callers: readonly string[] };

/** The slots of a plugin that some process asked for more of. */
type Table = {
  /** The member that has each slot; null while it is free. */
  holders: Array<Member | null>;
  wishes: Map<Member, Wish>;
  /** The callers that each member named which wishes for slots, or was told that others do. */
  callers: Map<Member, readonly string[]>;
  /** Slots that were asked back and not given yet. */
  recalled: number;
  /** Members that were told that others wait. */
  told: Set<Member>;
};

const id = z.number();
const callers = z.array(z.string());

/** What a broker knows, for one that takes its place. Members are named by their ids. */
export const brokerState = z.object({
  members: z.array(z.object({ id, place: z.number().int(), retiring: z.boolean() })),
  owners: z.array(id.nullable()),
  tables: z.record(
    z.string(),
    z.object({
      holders: z.array(id.nullable()),
      wishes: z.array(z.object({ id, more: z.number().int(), callers })),
      callers: z.array(z.object({ id, callers })),
      recalled: z.number().int(),
      told: z.array(id),
    }),
  ),
});
export type BrokerState = z.infer<typeof brokerState>;

const SLOTS = Array.from({ length: LIMITS.slotsPerPlugin }, (_, slot) => slot);

/**
 * Shares the eight slots of every plugin among the serving processes of a host. It is in the supervisor, and knows of a
 * plugin only when a process lacked slots: until then each process has its own (`ownSlots`). A slot changes hands only
 * when the process that had it says that nothing runs on it, or has ended, so no more than eight executions run.
 */
export class SlotBroker {
  readonly #places: number;
  readonly #members = new Map<number, Member>();
  /** The member that has the own slots of each place. */
  readonly #owners: Array<Member | null>;
  readonly #tables = new Map<string, Table>();

  /** @param places number of serving processes that are to run at the same time */
  constructor(places: number) {
    this.#places = places;
    this.#owners = Array.from({ length: places }, () => null);
  }

  /** What another broker needs to take the place of this one. */
  state(): BrokerState {
    const idOf = (member: Member | null): number | null => member?.id ?? null;
    const tables = [...this.#tables].map(([plugin, table]) => [
      plugin,
      {
        holders: table.holders.map(idOf),
        wishes: [...table.wishes].map(([member, wish]) => ({
          id: member.id,
          more: wish.more,
          callers: [...wish.callers],
        })),
        callers: [...table.callers].map(([member, named]) => ({ id: member.id, callers: [...named] })),
        recalled: table.recalled,
        told: [...table.told].map(member => member.id),
      },
    ]);
    const members = [...this.#members.values()].map(m => ({ id: m.id, place: m.place, retiring: m.retiring }));
    return { members, owners: this.#owners.map(idOf), tables: Object.fromEntries(tables) };
  }

  /** Takes the place of a broker that had the same number of places. @param sendTo sends to a member, by its id */
  resume(state: BrokerState, sendTo: (id: number, message: BrokerMessage) => void): void {
    for (const member of state.members)
      this.#members.set(member.id, { ...member, send: message => sendTo(member.id, message) });
    const memberOf = (id: number | null): Member | null => (id === null ? null : (this.#members.get(id) ?? null));
    for (const place of this.#owners.keys()) this.#owners[place] = memberOf(state.owners[place] ?? null);
    const known = <T extends { id: number }>(of: T): Array<[Member, T]> => {
      const member = memberOf(of.id);
      return member === null ? [] : [[member, of]];
    };
    for (const [plugin, table] of Object.entries(state.tables))
      this.#tables.set(plugin, {
        holders: SLOTS.map(slot => memberOf(table.holders[slot] ?? null)),
        wishes: new Map(table.wishes.flatMap(known)),
        callers: new Map(table.callers.flatMap(known).map(([member, named]) => [member, named.callers])),
        recalled: table.recalled,
        told: new Set(table.told.flatMap(id => memberOf(id) ?? [])),
      });
  }

  /**
   * A process starts at a place: with the place's own slots if no process has them, otherwise with none until `replace`.
   *
   * @returns the slots it begins with, and of which plugins it has others
   */
  join(
    id: number,
    place: number,
    send: (message: BrokerMessage) => void,
  ): { own: number; except: Record<string, number> } {
    const member: Member = { id, place, retiring: false, send };
    this.#members.set(id, member);
    if (this.#owners[place] != null) return { own: 0, except: {} };
    return this.#own(member, null, () => 0);
  }

  /** Gives a member the own slots of its place, of which `before` keeps some. */
  #own(member: Member, before: Member | null, keptOf: (plugin: string) => number) {
    const own = ownSlots(member.place, this.#places);
    this.#owners[member.place] = member;
    const except: Record<string, number> = {};
    for (const [plugin, table] of this.#tables) {
      const kept = keptOf(plugin);
      except[plugin] = 0;
      for (const slot of SLOTS) {
        const bit = 1 << slot;
        const isFree = table.holders[slot] === null && (own & bit) !== 0;
        const isLeft = before !== null && table.holders[slot] === before && (kept & bit) === 0;
        if (!isFree && !isLeft) continue;
        table.holders[slot] = member;
        table.recalled &= ~bit;
        except[plugin] |= bit;
      }
    }
    return { own, except };
  }

  /** The newest member of a place takes the own slots of the one that has them, which goes on without. */
  replace(id: number): void {
    const next = this.#members.get(id);
    if (next === undefined) return;
    const before = this.#owners[next.place] ?? null;
    // One that was asked already hands its slots to the newest when it answers.
    if (before === next || before?.retiring === true) return;
    if (before === null) return this.#hand(next, null, {});
    before.retiring = true;
    before.send({ kind: 'slots_retire' });
  }

  #hand(next: Member, before: Member | null, kept: Record<string, number>): void {
    // Tables for what the member keeps must exist before it is no longer the owner.
    for (const plugin of Object.keys(kept)) this.#tableOf(plugin);
    const { own, except } = this.#own(next, before, plugin => kept[plugin] ?? 0);
    next.send({ kind: 'slots_owned', own, except });
    for (const [plugin, table] of this.#tables) this.#settle(plugin, table);
  }

  #tableOf(plugin: string): Table {
    let table = this.#tables.get(plugin);
    if (table === undefined) {
      const holders = SLOTS.map(
        slot => this.#owners.find((_, place) => (ownSlots(place, this.#places) & (1 << slot)) !== 0) ?? null,
      );
      table = { holders, wishes: new Map(), callers: new Map(), recalled: 0, told: new Set() };
      this.#tables.set(plugin, table);
    }
    return table;
  }

  /** A message of a member. */
  hear(id: number, message: LeaseMessage): void {
    const member = this.#members.get(id);
    if (member === undefined) return;
    if (message.kind === 'slots_kept') return this.#retired(member, message.kept);
    const table = this.#tableOf(message.plugin);
    if (message.kind === 'slots_wanted') {
      const { callers, more } = message;
      if (more === 0) table.wishes.delete(member);
      else table.wishes.set(member, { more, callers });
      if (more > 0) table.callers.set(member, callers);
    } else if (message.kind === 'slots_callers') table.callers.set(member, message.callers);
    else
      for (const slot of SLOTS) {
        if ((message.mask & (1 << slot)) === 0 || table.holders[slot] !== member) continue;
        table.holders[slot] = null;
        table.recalled &= ~(1 << slot);
      }
    this.#settle(message.plugin, table);
  }

  #retired(member: Member, kept: Record<string, number>): void {
    if (!member.retiring) return;
    member.retiring = false;
    const next = [...this.#members.values()].findLast(m => m.place === member.place && m !== member);
    if (next !== undefined) return this.#hand(next, member, kept);
    // The process that was to take the place has ended: the next one to join does.
    this.#free(member, kept);
    this.#owners[member.place] = null;
    for (const [plugin, table] of this.#tables) this.#settle(plugin, table);
  }

  /** A process has ended. */
  leave(id: number): void {
    const member = this.#members.get(id);
    if (member === undefined) return;
    this.#members.delete(id);
    for (const table of this.#tables.values()) {
      table.wishes.delete(member);
      table.callers.delete(member);
      table.told.delete(member);
    }
    this.#free(member, {});
    if (this.#owners[member.place] === member) {
      this.#owners[member.place] = null;
      // It was to be replaced, and has ended before it said what it keeps.
      const next = member.retiring ? [...this.#members.values()].findLast(m => m.place === member.place) : undefined;
      if (next !== undefined) return this.#hand(next, null, {});
    }
    for (const [plugin, table] of this.#tables) this.#settle(plugin, table);
  }

  #free(member: Member, kept: Record<string, number>): void {
    for (const plugin of Object.keys(kept)) this.#tableOf(plugin);
    for (const [plugin, table] of this.#tables)
      for (const slot of SLOTS) {
        const bit = 1 << slot;
        if (table.holders[slot] !== member || ((kept[plugin] ?? 0) & bit) !== 0) continue;
        table.holders[slot] = null;
        table.recalled &= ~bit;
      }
  }

  /** Grants what is free, asks back from those that have more than their share, and tells the others what is scarce. */
  #settle(plugin: string, table: Table): void {
    this.#grant(plugin, table);
    this.#recall(plugin, table);
    const isScarce = table.wishes.size > 0;
    for (const member of this.#members.values()) {
      const scarce = isScarce && !table.wishes.has(member) && maskOf(table, member) !== 0;
      if (scarce === table.told.has(member)) continue;
      if (scarce) table.told.add(member);
      else table.told.delete(member);
      if (!scarce && !table.wishes.has(member)) table.callers.delete(member);
      member.send({ kind: 'slots_scarce', plugin, scarce });
    }
  }

  #grant(plugin: string, table: Table): void {
    const granted = new Map<Member, number>();
    const shares = this.#shares(table);
    const deficit = (m: Member): number => (shares.get(m) ?? 0) - usableOf(table, m);
    for (const slot of SLOTS) {
      if (table.holders[slot] !== null) continue;
      let to: Member | undefined;
      for (const [member, wish] of table.wishes) {
        if (member.retiring) continue;
        if (slot === RESERVED && wish.callers.length < 2) continue;
        if (to === undefined || deficit(member) > deficit(to)) to = member;
      }
      if (to === undefined) continue;
      table.holders[slot] = to;
      granted.set(to, (granted.get(to) ?? 0) | (1 << slot));
      const wish = table.wishes.get(to);
      if (wish !== undefined && --wish.more === 0) table.wishes.delete(to);
    }
    for (const [member, mask] of granted) member.send({ kind: 'slots_granted', plugin, mask });
  }

  /**
   * The part of the slots that each member may have whenever it wants it. Callers have equal parts, and the part of a
   * caller is divided among the processes it uses.
   */
  #shares(table: Table): Map<Member, number> {
    const claims = [...this.#members.values()].filter(m => table.wishes.has(m) || usableOf(table, m) > 0);
    const callersOf = (m: Member): readonly string[] => {
      const named = table.callers.get(m) ?? [];
      // Not known: it counts as a caller of its own.
      return named.length > 0 ? named : [`process ${m.id}`];
    };
    const presence = new Map<string, number>();
    for (const m of claims) for (const c of callersOf(m)) presence.set(c, (presence.get(c) ?? 0) + 1);
    const part = LIMITS.slotsPerCaller / Math.max(1, presence.size);
    const shareOf = (m: Member): number => callersOf(m).reduce((sum, c) => sum + part / (presence.get(c) ?? 1), 0);
    // A process without any would leave its connections waiting for as long as the others are busy.
    return new Map(claims.map(m => [m, Math.max(1, Math.round(shareOf(m)))]));
  }

  #recall(plugin: string, table: Table): void {
    if (table.wishes.size === 0) return;
    const shares = this.#shares(table);
    const surplus = (m: Member): number => leftOf(table, m) - (shares.get(m) ?? 0);
    let lacking = -countSlots(table.recalled);
    for (const [member, wish] of table.wishes)
      lacking += Math.min(wish.more, Math.max(0, (shares.get(member) ?? 0) - usableOf(table, member)));
    const recalled = new Map<Member, number>();
    for (; lacking > 0; lacking--) {
      let from: Member | undefined;
      for (const member of this.#members.values())
        if (from === undefined || surplus(member) > surplus(from)) from = member;
      if (from === undefined || surplus(from) <= 0) break;
      const slot = SLOTS.findLast(
        k => k !== RESERVED && table.holders[k] === from && (table.recalled & (1 << k)) === 0,
      );
      if (slot === undefined) break;
      table.recalled |= 1 << slot;
      recalled.set(from, (recalled.get(from) ?? 0) | (1 << slot));
    }
    const reserve = 1 << RESERVED;
    const idle = this.#idleReserve(table);
    if (idle !== undefined) {
      table.recalled |= reserve;
      recalled.set(idle, (recalled.get(idle) ?? 0) | reserve);
    }
    for (const [member, mask] of recalled) member.send({ kind: 'slots_recalled', plugin, mask });
  }

  /** The member that has the reserved slot and serves one caller, while another could use it. */
  #idleReserve(table: Table): Member | undefined {
    const holder = table.holders[RESERVED];
    if (holder == null || (table.recalled & (1 << RESERVED)) !== 0 || table.callers.get(holder)?.length !== 1) return;
    for (const [member, wish] of table.wishes) if (member !== holder && wish.callers.length > 1) return holder;
    return;
  }
}

function maskOf(table: Table, member: Member): number {
  let mask = 0;
  for (const slot of SLOTS) if (table.holders[slot] === member) mask |= 1 << slot;
  return mask;
}

/** How many slots of a member are of use for one caller. */
const usableOf = (table: Table, member: Member): number => countSlots(forOne(maskOf(table, member)));

/** The slots of a process without those it was asked to give. */
const leftOf = (table: Table, member: Member): number => countSlots(forOne(maskOf(table, member)) & ~table.recalled);
