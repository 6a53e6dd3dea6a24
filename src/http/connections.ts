import type { HttpResponse, TemplatedApp } from 'uWebSockets.js';
import fs from 'node:fs';
import { performance } from 'node:perf_hooks';
import { callerKey } from '../base/caller-key.ts';
import { peerAddressOf } from './peer-address.ts';

export type ConnectionLimits = {
  /** Open at a time, and those of one address (`http.max_connections*`). */
  max: number;
  perAddressMax: number;
  /** Number of processes that listen on the port; `max` is of this one, `perAddressMax` of all. */
  processes: number;
  /** Whether an address is a proxy of ours, which speaks for many clients. */
  isProxy(address: string): boolean;
  /** Called with the first refusal in a while. */
  onRefused(limit: string, address: string): void;
  /** Told when several connections of an address have ended at once, each without a request that could be read. */
  onUnreadable(address: string, connections: number): void;
};

/** States of /proc/net/tcp: time wait belongs to no process any more, listening is no connection. */
const NOT_OPEN = '06|0A';
/** Counting may take a twentieth of the time, and is repeated after this while it matters. */
const COUNT_REST = 19;
const COUNT_MS = 1000;
const TELL_MS = 10_000;
/** A browser opens connections ahead and lets them lie; what is answered by the library ends at once. */
const AT_ONCE_MS = 1000;
const UNREADABLE_MIN = 5;
const UNREADABLE_MS = 60_000;
/** One hint an hour is enough for a health check that only connects. */
const HINT_MS = 3_600_000;

/** Bytes of an address as /proc shows them: words in the order of the machine. */
function textOf(hex: string): string {
  const bytes = Buffer.from(hex, 'hex');
  if (bytes.length === 4) return bytes.reverse().join('.');
  for (let k = 0; k < bytes.length; k += 4) bytes.subarray(k, k + 4).reverse();
  const groups = Array.from({ length: 8 }, (_, k) => bytes.readUInt16BE(k * 2).toString(16));
  const isMapped = groups.slice(0, 5).every(g => g === '0') && groups[5] === 'ffff';
  return isMapped ? bytes.subarray(12).join('.') : groups.join(':');
}

/**
 * Open connections to a port by the network they come from, as the kernel has them.
 *
 * @param tables texts of /proc/net/tcp and tcp6
 */
export function countConnections(tables: readonly string[], port: number): Map<string, number> {
  const local = port.toString(16).toUpperCase().padStart(4, '0');
  // Most lines of a busy host are no open connections to this port.
  const open = new RegExp(`: [0-9A-F]+:${local} ([0-9A-F]+):[0-9A-F]{4} (?!${NOT_OPEN})`, 'g');
  const byHex = new Map<string, number>();
  for (const table of tables)
    for (const [, remote = ''] of table.matchAll(open)) byHex.set(remote, (byHex.get(remote) ?? 0) + 1);
  const counted = new Map<string, number>();
  for (const [hex, n] of byHex) {
    const key = callerKey(null, textOf(hex));
    counted.set(key, (counted.get(key) ?? 0) + n);
  }
  return counted;
}

const readTable = (name: string): string => {
  try {
    return fs.readFileSync(`/proc/self/net/${name}`, 'utf8');
  } catch {
    // No Linux, or no IPv6: the bound of the host holds alone.
    return '';
  }
};

/**
 * Bounds the connections to this host, and those of one address. The library tells when a connection opens, with its address, and when
 * one has closed, but not which. So the open ones are counted here, and those of an address by the kernel, which is asked only while more
 * are open than one address may have.
 */
export class Connections {
  readonly #limits: ConnectionLimits;
  #port = 0;
  #open = 0;
  #taken = 0;
  #counted = new Map<string, number>();
  readonly #since = new Map<string, number>();
  #countAgainAt = Number.NEGATIVE_INFINITY;
  #toldAt = 0;
  readonly #unreadable = new Map<string, { connections: number; since: number; hintedAt: number }>();

  constructor(limits: ConnectionLimits) {
    this.#limits = limits;
  }

  get open(): number {
    return this.#open;
  }

  /** How many were opened so far. */
  get taken(): number {
    return this.#taken;
  }

  watch(app: TemplatedApp): void {
    const noted = (res: HttpResponse, change: number): void => {
      this.#open += change;
      if (change < 0) return;
      this.#taken++;
      this.#opened(res);
    };
    app.filter(noted);
  }

  listensOn(port: number): void {
    this.#port = port;
  }

  #opened(res: HttpResponse): void {
    const now = Date.now();
    const address = peerAddressOf(res);
    if (this.#open > this.#limits.max) return this.#refuse(res, 'http.max_connections', address, now);
    const { perAddressMax, processes } = this.#limits;
    if (this.#open * processes > perAddressMax && !this.#limits.isProxy(address) && this.#isTooMany(address))
      return this.#refuse(res, 'http.max_connections_per_address', address, now);
    // A request takes this place: it is called only for connections that end before one.
    res.onAborted(() => this.#endedUnread(address, now));
  }

  /**
   * Connections the kernel has made and the library has not taken yet are counted by the kernel and again here, so what was added never
   * refuses by itself: it only makes the kernel be asked.
   */
  #isTooMany(address: string): boolean {
    const { perAddressMax } = this.#limits;
    const key = callerKey(null, address);
    const since = (this.#since.get(key) ?? 0) + 1;
    this.#since.set(key, since);
    const now = performance.now();
    const known = this.#counted.get(key) ?? 0;
    // Each of several processes sees only its part of the new connections.
    const expected = known + since * this.#limits.processes;
    if (now >= this.#countAgainAt && (expected > perAddressMax || now >= this.#countAgainAt + COUNT_MS)) {
      this.#counted = countConnections([readTable('tcp'), readTable('tcp6')], this.#port);
      this.#since.clear();
      const done = performance.now();
      this.#countAgainAt = done + (done - now) * COUNT_REST;
    }
    return (this.#counted.get(key) ?? 0) > perAddressMax;
  }

  /** Closed before anything is read: an answer to every one would cost more than the connection. */
  #refuse(res: HttpResponse, limit: string, address: string, now: number): void {
    res.close();
    if (now - this.#toldAt < TELL_MS) return;
    this.#toldAt = now;
    this.#limits.onRefused(limit, address);
  }

  #endedUnread(address: string, openedAt: number): void {
    const now = Date.now();
    if (now - openedAt > AT_ONCE_MS) return;
    if (this.#unreadable.size > 1000) this.#unreadable.clear();
    const seen = this.#unreadable.get(address) ?? { connections: 0, since: now, hintedAt: 0 };
    if (now - seen.since > UNREADABLE_MS) {
      seen.connections = 0;
      seen.since = now;
    }
    seen.connections++;
    this.#unreadable.set(address, seen);
    if (seen.connections < UNREADABLE_MIN || now - seen.hintedAt < HINT_MS) return;
    seen.hintedAt = now;
    this.#limits.onUnreadable(address, seen.connections);
  }
}
