import { LIMITS } from '../base/limits.ts';
import {
  ALL_SLOTS,
  type BrokerMessage,
  countSlots,
  FOR_ONE_CALLER,
  type LeaseMessage,
  ownSlots,
} from './slot-messages.ts';

/** A serving process. */
type Member = {
  id: number;
  /** The member whose own slots it takes when that one has answered; until then it has none. */
  place: number;
  /** It was asked which slots it keeps, so nothing is granted to it before it has answered. */
  retiring: boolean;
  send(message: BrokerMessage): void;
};

type Wish = { more: number; shared: boolean };

/** The slots of a plugin that some process asked for more of. */
type Table = {
  /** The member that has each slot; null while it is free. */
  holders: Array<Member | null>;
  wishes: Map<Member, Wish>;
  /** Slots that were asked back and not given yet. */
  recalled: number;
  /** Members that were told that others wait. */
  told: Set<Member>;
};

const SLOTS = Array.from({ length: LIMITS.slotsPerPlugin }, (_, slot) => slot);
const isForOne = (slot: number): boolean => (FOR_ONE_CALLER & (1 << slot)) !== 0;

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

  /** @param places number of serving processes, those aside that replace one or are being replaced */
  constructor(places: number) {
    this.#places = places;
    this.#owners = Array.from({ length: places }, () => null);
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
      table = { holders, wishes: new Map(), recalled: 0, told: new Set() };
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
      if (message.more === 0) table.wishes.delete(member);
      else table.wishes.set(member, { more: message.more, shared: message.shared });
    } else
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
  }

  /** A process has ended. */
  leave(id: number): void {
    const member = this.#members.get(id);
    if (member === undefined) return;
    this.#members.delete(id);
    for (const table of this.#tables.values()) {
      table.wishes.delete(member);
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
      member.send({ kind: 'slots_scarce', plugin, scarce });
    }
  }

  #grant(plugin: string, table: Table): void {
    const granted = new Map<Member, number>();
    for (const slot of SLOTS) {
      if (table.holders[slot] !== null) continue;
      let to: Member | undefined;
      for (const [member, wish] of table.wishes) {
        if (member.retiring || (!isForOne(slot) && !wish.shared)) continue;
        if (to === undefined || usableOf(table, member) < usableOf(table, to)) to = member;
      }
      if (to === undefined) continue;
      table.holders[slot] = to;
      granted.set(to, (granted.get(to) ?? 0) | (1 << slot));
      const wish = table.wishes.get(to);
      if (wish !== undefined && --wish.more === 0) table.wishes.delete(to);
    }
    for (const [member, mask] of granted) member.send({ kind: 'slots_granted', plugin, mask });
  }

  /** Every process may have its share of the slots whenever it wants them. */
  #recall(plugin: string, table: Table): void {
    const share = Math.ceil(LIMITS.slotsPerCaller / Math.max(1, this.#members.size));
    let lacking = -countSlots(table.recalled);
    for (const [member, wish] of table.wishes)
      lacking += Math.min(wish.more, Math.max(0, share - usableOf(table, member)));
    const recalled = new Map<Member, number>();
    for (; lacking > 0; lacking--) {
      let from: Member | undefined;
      for (const member of this.#members.values())
        if (from === undefined || leftOf(table, member) > leftOf(table, from)) from = member;
      if (from === undefined || leftOf(table, from) <= share) break;
      const slot = SLOTS.findLast(k => isForOne(k) && table.holders[k] === from && (table.recalled & (1 << k)) === 0);
      if (slot === undefined) break;
      table.recalled |= 1 << slot;
      recalled.set(from, (recalled.get(from) ?? 0) | (1 << slot));
    }
    for (const [member, mask] of recalled) member.send({ kind: 'slots_recalled', plugin, mask });
  }

  /** The slots of a plugin that a member has, for tests and for the log. */
  maskOf(plugin: string, id: number): number {
    const member = this.#members.get(id);
    if (member === undefined) return 0;
    const table = this.#tables.get(plugin);
    if (table !== undefined) return maskOf(table, member);
    return this.#owners[member.place] === member ? ownSlots(member.place, this.#places) : 0;
  }
}

function maskOf(table: Table, member: Member): number {
  let mask = 0;
  for (const slot of SLOTS) if (table.holders[slot] === member) mask |= 1 << slot;
  return mask & ALL_SLOTS;
}

/** How many slots of a member are of use for one caller. */
const usableOf = (table: Table, member: Member): number => countSlots(maskOf(table, member) & FOR_ONE_CALLER);

/** The same without those it was asked to give. */
const leftOf = (table: Table, member: Member): number =>
  countSlots(maskOf(table, member) & FOR_ONE_CALLER & ~table.recalled);
