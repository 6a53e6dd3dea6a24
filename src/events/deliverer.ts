import { createHmac, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { DrainLoop } from '../base/drain-loop.ts';
import { messageOf } from '../base/errors.ts';
import { LIMITS } from '../base/limits.ts';
import { retryAfterMs } from '../base/retry-after.ts';
import type { Span, Tracing } from '../base/tracing.ts';
import type { Database } from '../db/database.ts';
import { type HeldLock, tryLock } from '../db/held-lock.ts';
import { LOCKS } from '../db/locks.ts';
import { type SecretBox, SecretUnreadable } from '../secrets/secret-box.ts';
import { type Line, listLines, listWaiting, setDelivered, setFailed, setOldDead } from './deliveries.ts';
import { cloudEvent, type StoredEvent, testEvent } from './event.ts';
import { findTarget, switchOff } from './subscriptions.ts';

const LINES_AT_ONCE = 32;
/** Lines that one subscriber may keep, however slow it is. */
const LINES_OF_A_SUBSCRIBER = 4;
/** Events of a line that are read together, because they stand in memory. */
const EVENTS_OF_A_LINE = 10;
/** How long a line is delivered before other lines have their turn. */
const LINE_MS = 2000;

/**
 * Signature of a message (https://www.standardwebhooks.com, "Signature scheme"): HMAC-SHA256 of id, time and body.
 *
 * @param secret `whsec_` and base64
 * @param seconds since the epoch
 */
export function signatureOf(secret: string, id: string, seconds: number, body: string): string {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  return `v1,${createHmac('sha256', key).update(`${id}.${seconds}.${body}`).digest('base64')}`;
}

type Target = { url: string; secret: string };
type Answered = { status: number | null; why: string; retryAfterMs: number };

/** Sends a request to an address an administrator has given; a redirect is not followed. @throws Error that says why it was not reached */
export type PostEvent = (
  url: string,
  headers: Record<string, string>,
  body: string,
  signal: AbortSignal,
) => Promise<{ status: number; retryAfter: string | null }>;

const isTaken = (status: number | null): boolean => status !== null && status >= 200 && status < 300;
const NEVER = new AbortController().signal;

export type DelivererParts = {
  db: Database;
  databaseUrl: string;
  secrets: SecretBox;
  /** Null without tracing. */
  tracing: Tracing | null;
  post: PostEvent;
  onError(error: unknown, what: string): void;
};

type Turn = {
  lock: HeldLock;
  /** Lines under way, each at its own pace: a subscriber that is slow holds up no other. */
  underWay: Map<string, { line: Line; done: Promise<void> }>;
};

/** Tells subscribers of events, on one host at a time: what one plugin publishes in order, and again until it is taken (docs/events.md). */
export class EventDeliverer {
  readonly #parts: DelivererParts;
  readonly #loop: DrainLoop<Turn>;

  constructor(parts: DelivererParts) {
    this.#parts = parts;
    this.#loop = new DrainLoop({
      begin: async lost => {
        const lock = await tryLock(parts.databaseUrl, LOCKS.eventDelivery, lost);
        return lock === null ? null : { lock, underWay: new Map() };
      },
      pass: (turn, ended) => this.#pass(turn, ended),
      async end({ lock, underWay }) {
        await Promise.all([...underWay.values()].map(u => u.done));
        await lock.close();
      },
      isLeft: async () => (await listLines(parts.db)).length > 0,
      onError: error => parts.onError(error, 'delivering events'),
    });
  }

  /** Whether this host is the one that delivers. */
  get isAtWork(): boolean {
    return this.#loop.isAtWork;
  }

  /** There may be something to deliver. */
  kick(): void {
    this.#loop.wake();
  }

  /** @returns when to look at the lines again, ms; null when nothing waits and nothing is under way */
  async #pass({ underWay }: Turn, ended: AbortSignal): Promise<number | null> {
    const lines = await listLines(this.#parts.db);
    for (const line of lines) {
      const key = `${line.subscriptionId} ${line.pluginId}`;
      if (line.dueMs > 0 || underWay.has(key)) continue;
      const ofSubscriber = [...underWay.values()].filter(u => u.line.subscriptionId === line.subscriptionId);
      if (ofSubscriber.length >= LINES_OF_A_SUBSCRIBER || underWay.size >= LINES_AT_ONCE) continue;
      const done = this.#deliverLine(line, ended)
        .catch((error: unknown) => this.#giveUp(line, error, ended))
        .finally(() => {
          underWay.delete(key);
          this.kick();
        });
      underWay.set(key, { line, done });
    }
    if (lines.length === 0 && underWay.size === 0) return null;
    const idle = lines.find(l => l.dueMs > 0)?.dueMs ?? LIMITS.eventIdleMs;
    return Math.min(Math.max(idle, 50), LIMITS.eventIdleMs);
  }

  /** As many events of a line as are taken, in order, for a while: then it is the turn of other lines. */
  async #deliverLine(line: Line, ended: AbortSignal): Promise<void> {
    const { db, secrets } = this.#parts;
    const until = performance.now() + LINE_MS;
    for (const { attempts, event } of await listWaiting(db, line, EVENTS_OF_A_LINE)) {
      // An administrator may have changed or removed the subscription meanwhile.
      const target = await findTarget(db, secrets, line.subscriptionId);
      if (target === undefined || ended.aborted || performance.now() > until) return;
      const { retryAfterMs, status, why } = await this.#post(target, event, ended);
      // A request that our own end cuts off is no failure of the subscriber's.
      if (status === null && ended.aborted) return;
      if (isTaken(status) && status !== null) {
        await setDelivered(db, line.subscriptionId, event.id, status);
        continue;
      }
      // The specification of Standard Webhooks: the subscriber wants no more of it.
      if (status === 410) await switchOff(db, line.subscriptionId, 'the subscriber answered 410 Gone', target.url);
      const isLast = attempts + 1 >= LIMITS.eventAttemptsMax;
      const backoffMs = Math.min(LIMITS.eventRetryMs * 2 ** Math.min(attempts, 20), LIMITS.eventRetryMsMax);
      const afterMs = isLast ? null : Math.max(backoffMs, Math.min(retryAfterMs, LIMITS.eventRetryMsMax));
      await setFailed(db, line.subscriptionId, event.id, { status, why, afterMs });
      // Those behind it wait, unless it is given up, and all that have waited as long with it.
      if (!isLast) return;
      await setOldDead(db, line, LIMITS.eventTriedMs);
    }
  }

  /** After an error that is not the subscriber's; at once again it would only fail again. */
  async #giveUp(line: Line, error: unknown, ended: AbortSignal): Promise<void> {
    const { db, onError } = this.#parts;
    onError(error, `delivering events to subscription ${line.subscriptionId}`);
    try {
      if (error instanceof SecretUnreadable)
        return await switchOff(db, line.subscriptionId, `${error.message}; give the subscription a new secret`);
    } catch (again) {
      onError(again, `switching subscription ${line.subscriptionId} off`);
    }
    await sleep(LIMITS.eventRetryMs, undefined, { signal: ended }).catch(() => {});
  }

  /**
   * Sends a test event at once, past the line, whose outcome changes nothing.
   *
   * @returns what the subscriber answered; undefined when the subscription is gone or switched off
   */
  async test(subscriptionId: number): Promise<{ status: number | null; problem: string | null } | undefined> {
    const target = await findTarget(this.#parts.db, this.#parts.secrets, subscriptionId).catch((error: unknown) => {
      if (error instanceof SecretUnreadable) return error;
      throw error;
    });
    if (target === undefined) return undefined;
    if (target instanceof SecretUnreadable)
      return { status: null, problem: `${target.message}; give the subscription a new secret` };
    const id = randomUUID();
    const { status, why } = await this.#send(target, id, testEvent(id, new Date()), {}, null, NEVER);
    return { status, problem: isTaken(status) ? null : why };
  }

  async #post(target: Target, event: StoredEvent, ended: AbortSignal): Promise<Answered> {
    const span = this.#spanOf(event);
    const more = span?.headers ?? (event.traceparent === '' ? {} : { traceparent: event.traceparent });
    return await this.#send(target, event.eventId, cloudEvent(event), more, span, ended);
  }

  async #send(
    target: Target,
    id: string,
    body: string,
    more: Record<string, string>,
    span: Span | null,
    ended: AbortSignal,
  ): Promise<Answered> {
    const seconds = Math.floor(Date.now() / 1000);
    try {
      const headers = {
        'content-type': 'application/cloudevents+json; charset=utf-8',
        'user-agent': 'plugin-host',
        'webhook-id': id,
        'webhook-timestamp': String(seconds),
        'webhook-signature': signatureOf(target.secret, id, seconds, body),
        ...more,
      };
      const signal = AbortSignal.any([ended, AbortSignal.timeout(LIMITS.eventCallMs)]);
      const { retryAfter, status } = await this.#parts.post(target.url, headers, body, signal);
      span?.end({ 'http.response.status_code': status }, ...(status < 300 ? [] : [`answered ${status}`]));
      return {
        status,
        why: `the subscriber answered ${status}`,
        retryAfterMs: retryAfterMs(retryAfter, Date.now()) ?? 0,
      };
    } catch (error) {
      const reason =
        error instanceof Error && typeof Reflect.get(error, 'code') === 'string'
          ? Reflect.get(error, 'code')
          : messageOf(error);
      span?.end({}, `not reached (${reason})`);
      return { status: null, why: `the subscriber was not reached (${reason})`, retryAfterMs: 0 };
    }
  }

  /** Below the host call that published it. */
  #spanOf({ eventId, pluginId, traceparent }: StoredEvent): Span | null {
    const attributes = { 'plugin_host.plugin': pluginId, 'plugin_host.event_id': eventId };
    const { tracing } = this.#parts;
    return (
      tracing?.start('event delivery', 'producer', traceparent === '' ? null : { traceparent }, attributes) ?? null
    );
  }

  async close(): Promise<void> {
    await this.#loop.close();
  }
}
