import { setTimeout as sleep } from 'node:timers/promises';
import { DrainLoop } from '../base/drain-loop.ts';
import { messageOf } from '../base/errors.ts';
import { LIMITS } from '../base/limits.ts';
import { makeSemaphore, type Semaphore } from '../base/semaphore.ts';
import type { Database } from '../db/database.ts';
import { type HeldLock, tryLock } from '../db/held-lock.ts';
import { LOCKS } from '../db/locks.ts';
import type { FileRecord } from '../files/file-records.ts';
import type { Channel, ChannelName, OutgoingPart, Sent } from './channel.ts';
import {
  listDue,
  nextDueMs,
  type OutgoingMessage,
  setEnded,
  setPartSent,
  setSending,
  settleLeft,
  setWaiting,
} from './outgoing.ts';
import { TokenBucket } from './token-bucket.ts';

export type SenderParts = {
  db: Database;
  databaseUrl: string;
  channels: ReadonlyMap<ChannelName, Channel>;
  /** The file, when it is there still. */
  findFile(id: string): Promise<FileRecord | undefined>;
  readFile(file: FileRecord): Promise<Uint8Array<ArrayBuffer>>;
  onError(error: unknown, what: string): void;
};

/** A part before its file is read. */
type Part = { kind: 'text'; text: string } | { kind: 'file'; id: string; caption: string };

/** Files that stand in memory at a time. */
const FILES_AT_ONCE = 4;
const CHARS_MAX = 4096;
/** Attempts that take about an hour. */
const ATTEMPTS_MIN = 20;
const CAPTION_CHARS_MAX = 1024;
/** A chat's bucket that is full again tells nothing. */
const BUCKETS_MAX = 5000;

/** What the host that sends on a channel holds, and what is under way. */
type Turn = {
  lock: HeldLock;
  channel: Channel;
  pace: Pace;
  underWay: Map<number, { chatId: string; done: Promise<void> }>;
  files: Semaphore;
  /** Whether a message was being sent and its outcome was not stored. */
  isUnsettled: boolean;
};

/** Cuts at a line or a word, and never through a character. */
function piecesOf(text: string): string[] {
  const pieces: string[] = [];
  let rest = text;
  while (rest.length > CHARS_MAX) {
    const window = rest.slice(0, CHARS_MAX);
    const at = Math.max(window.lastIndexOf('\n'), window.lastIndexOf(' '));
    let end = at > CHARS_MAX / 2 ? at + 1 : CHARS_MAX;
    if (/[\ud800-\udbff]/.test(rest[end - 1] ?? '')) end--;
    pieces.push(rest.slice(0, end));
    rest = rest.slice(end);
  }
  pieces.push(rest);
  return pieces.filter(piece => VISIBLE.test(piece));
}

/** Messengers refuse a text of which nothing can be seen, and the whole message with it. */
const VISIBLE = /[^\s\p{Cc}\p{Cf}\p{Z}]/u;

/** What a message is sent as, piece by piece: the same for every attempt. */
export function partsOf({ files, text }: OutgoingMessage['message']): Part[] {
  const parts: Part[] = piecesOf(text).map(piece => ({ kind: 'text', text: piece }));
  for (const { caption, id } of files) {
    const fits = caption.length <= CAPTION_CHARS_MAX;
    parts.push({ kind: 'file', id, caption: fits ? caption : '' });
    if (!fits) parts.push(...piecesOf(caption).map((piece): Part => ({ kind: 'text', text: piece })));
  }
  return parts;
}

/**
 * Sends what is queued, at the pace each messenger allows (docs/messengers.md "Outgoing messages"). Of all hosts one sends on a channel at a time, so that its
 * buckets count everything; who ends leaves its place to the next at once.
 */
export class MessageSender {
  readonly #parts: SenderParts;
  readonly #loops = new Map<ChannelName, DrainLoop<Turn>>();

  constructor(parts: SenderParts) {
    this.#parts = parts;
    for (const channel of parts.channels.values())
      this.#loops.set(
        channel.name,
        new DrainLoop({
          begin: lost => this.#beginTurn(channel, lost),
          pass: (turn, ended) => this.#pass(turn, ended),
          async end(turn) {
            await Promise.all([...turn.underWay.values()].map(u => u.done));
            await turn.lock.close();
          },
          isLeft: async () => (await nextDueMs(parts.db, channel.name)) !== null,
          onError: error => parts.onError(error, `sending on ${channel.name}`),
        }),
      );
  }

  /** The channels this host sends on now. */
  get channelsAtWork(): ChannelName[] {
    return [...this.#loops].flatMap(([name, loop]) => (loop.isAtWork ? [name] : []));
  }

  /** There may be something to send on a channel. */
  kick(name: ChannelName): void {
    this.#loops.get(name)?.wake();
  }

  async #beginTurn(channel: Channel, lost: () => void): Promise<Turn | null> {
    const lock = await tryLock(this.#parts.databaseUrl, LOCKS.messageSending[channel.name], lost);
    if (lock === null) return null;
    return {
      lock,
      channel,
      pace: new Pace(channel),
      underWay: new Map(),
      files: makeSemaphore(FILES_AT_ONCE),
      isUnsettled: true,
    };
  }

  /** @returns when something is due again, ms; null when nothing waits and nothing is under way */
  async #pass(turn: Turn, ended: AbortSignal): Promise<number | null> {
    const { channel, pace, underWay } = turn;
    const { db } = this.#parts;
    if (turn.isUnsettled) {
      await settleLeft(db, channel.name, channel.sendsOnce, [...underWay.keys()]);
      turn.isUnsettled = false;
    }
    if ((await this.#begin(turn, ended)) > 0) return 0;
    const dueMs = await nextDueMs(db, channel.name);
    if (dueMs === null && underWay.size === 0) return null;
    return Math.min(Math.max(dueMs ?? 0, pace.waitMs(), 50), LIMITS.messengerIdleMs);
  }

  /** Begins to send what is due, as many as may be under way. @returns how many */
  async #begin(turn: Turn, ended: AbortSignal): Promise<number> {
    const { channel, pace, underWay } = turn;
    const room = LIMITS.messagesSentAtOnce - underWay.size;
    if (room <= 0 || pace.waitMs() > LIMITS.messengerIdleMs) return 0;
    const busy = [...underWay.values()].map(u => paceKeyOf(u.chatId));
    const due = await listDue(this.#parts.db, channel.name, [...busy, ...pace.waitingChats()], room);
    let begun = 0;
    for (const message of due) {
      const waitMs = pace.waitMs();
      // A more urgent message that has come by then is listed first.
      if (waitMs > LIMITS.messengerIdleMs || ended.aborted) break;
      if (waitMs > 0) await sleep(waitMs);
      // One to another topic of its group may just have gone.
      if (pace.isWaiting(message.chatId)) continue;
      pace.take(message.chatId);
      const done = this.#sendOne(turn, message).finally(() => {
        underWay.delete(message.id);
        this.kick(channel.name);
      });
      underWay.set(message.id, { chatId: message.chatId, done });
      begun++;
    }
    return begun;
  }

  /** Sends a message; its first part has its place in the pace already. */
  async #sendOne(turn: Turn, m: OutgoingMessage): Promise<void> {
    const { channel, files, pace } = turn;
    const { db, onError } = this.#parts;
    try {
      const parts = partsOf(m.message);
      for (let k = m.partsSent; k < parts.length; k++) {
        const part = parts[k];
        if (part === undefined) break;
        if (k > m.partsSent) {
          const waitMs = pace.chatWaitMs(m.chatId);
          if (waitMs > 0) return await setWaiting(db, m.id, { afterMs: waitMs, why: '', counts: false });
          pace.take(m.chatId);
        }
        const send = (): Promise<Sent> => this.#sendPart(channel, m, part, k);
        // Files stand in memory while they are sent: few at a time.
        const sent = part.kind === 'file' ? await files(send) : await send();
        if (sent.kind !== 'sent') return await this.#notSent(pace, m, sent);
        await setPartSent(db, m.id, k === parts.length - 1);
      }
      if (parts.length === 0) await setEnded(db, m.id, 'sent', 'there was nothing in it');
    } catch (error) {
      // Sends that were not noted are settled before anything else is sent.
      turn.isUnsettled = true;
      onError(error, 'sending a message');
    }
  }

  async #sendPart(channel: Channel, m: OutgoingMessage, part: Part, k: number): Promise<Sent> {
    const ready = await this.#ready(part);
    if ('why' in ready) return ready;
    await setSending(this.#parts.db, m.id);
    return await this.#call(channel, m.chatId, ready, partNumber(m.id, k));
  }

  async #notSent(pace: Pace, m: OutgoingMessage, sent: Exclude<Sent, { kind: 'sent' }>): Promise<void> {
    const { db } = this.#parts;
    if (sent.kind === 'refused') return await setEnded(db, m.id, 'failed', sent.why);
    // Attempts are counted as well: a clock that was set forward by a day gives up nothing.
    const isOld = Date.now() - m.createdAt.getTime() > LIMITS.messageTriedMs;
    const busyMs = sent.kind === 'busy' ? Math.min(Math.max(sent.afterMs, 100), LIMITS.messengerBusyMsMax) : null;
    if (sent.kind === 'busy' && busyMs !== null) pace.hold(m.chatId, busyMs, sent.all);
    if (isOld && m.attempts >= ATTEMPTS_MIN) return await setEnded(db, m.id, 'failed', sent.why);
    // A messenger that is busy is asked again without a bound on the attempts, as long as the message is not old.
    if (busyMs !== null) return await setWaiting(db, m.id, { afterMs: busyMs, why: sent.why, counts: isOld });
    const afterMs = Math.min(LIMITS.messageRetryMs * 2 ** Math.min(m.attempts, 20), LIMITS.messageRetryMsMax);
    await setWaiting(db, m.id, { afterMs, why: sent.why, counts: true });
  }

  /** The part with its bytes, or why it cannot be sent. */
  async #ready(part: Part): Promise<OutgoingPart | Extract<Sent, { kind: 'failed' | 'refused' }>> {
    if (part.kind === 'text') return part;
    const { findFile, readFile } = this.#parts;
    const file = await findFile(part.id);
    if (file === undefined || file.state !== 'ready')
      return { kind: 'refused', why: `the file ${part.id} is not there any more` };
    const { fileType, mimeType, name } = file;
    try {
      return { kind: 'file', name, mimeType, fileType, bytes: await readFile(file), caption: part.caption };
    } catch (error) {
      return { kind: 'failed', why: `the file ${part.id} cannot be read: ${messageOf(error)}` };
    }
  }

  async #call(channel: Channel, chatId: string, part: OutgoingPart, number: number): Promise<Sent> {
    try {
      return await channel.send(chatId, part, number, AbortSignal.timeout(LIMITS.messengerCallMs));
    } catch (error) {
      return { kind: 'failed', why: `${channel.name}: ${messageOf(error)}` };
    }
  }

  /** Sends under way end; the rest stays queued. */
  async close(): Promise<void> {
    await Promise.all([...this.#loops.values()].map(loop => loop.close()));
  }
}

/** The number by which VK tells repeated parts: 31 bits, never 0. */
const partNumber = (messageId: number, part: number): number => ((messageId * 64 + part) % 2_147_483_647) + 1;

/** Topics of a group, as in `-100:77`, are sent to at the pace of the group. */
const paceKeyOf = (chatId: string): string => chatId.split(':')[0] ?? chatId;

/** How long all chats wait when a second one must. */
const ALL_HELD_MS = 5000;

/** How fast a channel may be used: all of it, and each chat. */
class Pace {
  readonly #channel: Channel;
  readonly #all: TokenBucket;
  readonly #chats = new Map<string, TokenBucket>();
  /** The chat that was told to wait last, and until when. */
  #held: { chatId: string; until: number } | null = null;

  constructor(channel: Channel) {
    this.#channel = channel;
    this.#all = new TokenBucket(channel.perSecond, channel.perSecond, performance.now());
  }

  waitMs(): number {
    return this.#all.waitMs(performance.now());
  }

  chatWaitMs(chatId: string): number {
    return Math.max(this.waitMs(), this.#chats.get(paceKeyOf(chatId))?.waitMs(performance.now()) ?? 0);
  }

  isWaiting(chatId: string): boolean {
    return (this.#chats.get(paceKeyOf(chatId))?.waitMs(performance.now()) ?? 0) > 0;
  }

  waitingChats(): string[] {
    const now = performance.now();
    for (const [id, bucket] of this.#chats) if (bucket.isFull(now)) this.#chats.delete(id);
    return [...this.#chats].filter(([, bucket]) => bucket.waitMs(now) > 0).map(([id]) => id);
  }

  #bucketOf(chatId: string, now: number): TokenBucket {
    const key = paceKeyOf(chatId);
    let bucket = this.#chats.get(key);
    if (bucket === undefined) {
      const { burst, perSecond } = this.#channel.rateOf(chatId);
      bucket = new TokenBucket(perSecond, burst, now);
      if (this.#chats.size < BUCKETS_MAX) this.#chats.set(key, bucket);
    }
    return bucket;
  }

  take(chatId: string): void {
    const now = performance.now();
    this.#all.take(now);
    this.#bucketOf(chatId, now).take(now);
  }

  /** The messenger wants to hear nothing for a while: from a chat, and when it says so of a second chat, from all. */
  hold(chatId: string, ms: number, all: boolean): void {
    const now = performance.now();
    const key = paceKeyOf(chatId);
    this.#bucketOf(chatId, now).holdUntil(now + ms);
    const other = this.#held !== null && this.#held.chatId !== key && this.#held.until > now ? this.#held : null;
    if (all) this.#all.holdUntil(now + ms);
    // It may mean these two chats alone: after a moment the next message asks.
    else if (other !== null) this.#all.holdUntil(Math.min(now + ms, other.until, now + ALL_HELD_MS));
    this.#held = { chatId: key, until: now + ms };
  }
}
