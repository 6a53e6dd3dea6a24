import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { messageOf } from '../base/errors.ts';
import { cutConnection, LISTENER_NAME, makeClient, type Queryable } from './database.ts';
import { assertOwnSession } from './own-session.ts';

/** Channel on which hosts of one database tell each other that a plugin changed; the payload is its id. */
export const PLUGIN_CHANGED = 'plugin_changed';

export type NotificationListenerLog = {
  info(fields: Record<string, unknown>, text: string): void;
  warn(fields: Record<string, unknown>, text: string): void;
};

export type NotificationListenerParts = {
  url: string;
  /** Names to LISTEN on. */
  channels: readonly string[];
  /**
   * Applies one notification. The promise it returns resolves when this host acts on the change; if it rejects,
   * everything is read again.
   */
  apply(channel: string, payload: string): void | Promise<void>;
  /** Reads again all cached state that notifications keep current. Called at the start and after every gap. */
  readAll(): Promise<void>;
  /** Called after a gap: other connections opened before it may also be dead without having been closed. */
  onGap(): void;
  log: NotificationListenerLog;
};

/** Whether this host knows the changes made on other hosts. */
export type ChangeStatus = Pick<NotificationListener, 'isCurrent' | 'becomesCurrent'>;

/** Interval of the heartbeats by which a host checks that notifications reach it. */
const BEAT_MS = 2000;
/** Without a heartbeat for this time the host is not current; one lost heartbeat is tolerated. */
export const CHANGES_STALE_MS = 5000;
/** Longest wait of `heard`. */
const HEARD_MS = 1000;
/** How often the age of the last heartbeat is checked. */
const LOOK_MS = 500;
/**
 * A check that runs this late shows that the process was paused. The echo may be unread in the socket, so the
 * connection gets one second more.
 */
const STALL_MS = 2 * LOOK_MS;
const GRACE_MS = 1000;
/** Delay before a lost connection is opened again, and before a failed reading is repeated. */
const AGAIN_MS = 500;

/** A heartbeat: it counts when its echo has come, and the session that sent it is known to be the one that listens. */
type Beat = { sentAt: number; echoed: boolean; own: boolean };

/** One listening connection, from LISTEN to its end. */
type Session = {
  client: pg.Client;
  /** The server process that listens. */
  pid: number;
  /** Heartbeats that are not complete, by number. */
  beats: Map<string, Beat>;
  nextBeatAt: number;
  /** Send time of the newest heartbeat that came back. */
  echoedAt: number;
  /** `reading`: the state is being read, and notifications wait in `held`. */
  state: 'reading' | 'ready';
  held: Array<() => void>;
  /** Notifications that are being applied. */
  applying: Set<Promise<void>>;
  /** Queries on this connection run one after another. */
  sent: Promise<unknown>;
};

/**
 * Receives the changes other hosts make to the database, and knows whether they still arrive.
 *
 * Every two seconds it sends itself a notification (a heartbeat) over the listening connection. Notifications arrive in
 * commit order, so a heartbeat that comes back proves that every change committed before it was sent has arrived. It
 * counts once those changes are applied. A connection that died without a close (a firewall that drops packets, a
 * stopped backend) returns no heartbeat. Then `isCurrent` turns false five seconds after the last returned heartbeat
 * was sent, the connection is replaced and the state is read again. All times are of the monotonic clock.
 */
export class NotificationListener {
  readonly #own = `heard_${randomUUID()}`;
  readonly #waiting = new Map<string, () => void>();
  #session: Session | null = null;
  /** All changes committed before this time have arrived and are applied. */
  #provenAt = Number.NEGATIVE_INFINITY;
  #gapSince: number | null = null;
  #timer: NodeJS.Timeout | null = null;
  #look: NodeJS.Timeout | null = null;
  #lookedAt = 0;
  #graceUntil = 0;
  /** Called when a heartbeat has counted or the connection was lost. */
  readonly #unsure = new Set<() => void>();
  /** Readings run one after another, so that an older one never overwrites a newer one. */
  #reading: Promise<unknown> = Promise.resolve();
  #calls = 0;
  /** Whether a pooler shared the session of the last connection: another is made only where it does not. */
  #isShared = false;
  #closed = false;

  /** Whether this host knows all changes that other hosts acknowledged more than five seconds ago. */
  isCurrent(): boolean {
    return performance.now() - this.#provenAt < CHANGES_STALE_MS;
  }

  /**
   * Like `isCurrent`, for a caller that can wait a moment: after this process was paused, waits for the heartbeat that
   * is still unread in the socket. False at once while the connection is lost or the state is being read.
   */
  async becomesCurrent(): Promise<boolean> {
    const session = this.#session;
    if (this.isCurrent() || session === null || session.state === 'reading') return this.isCurrent();
    let tell = (): void => {};
    const told = new Promise<void>(resolve => {
      tell = resolve;
    });
    const late = setTimeout(tell, GRACE_MS);
    this.#unsure.add(tell);
    if (this.#unsure.size === 1) this.#beat(session);
    await told;
    clearTimeout(late);
    this.#unsure.delete(tell);
    return this.isCurrent();
  }

  /** Starts listening. @throws Error when the database cannot be reached or read */
  async start(parts: NotificationListenerParts): Promise<void> {
    const session = await this.#connect(parts);
    await this.#read(parts, session);
    this.#lookedAt = performance.now();
    this.#look = setInterval(() => this.#watch(parts), LOOK_MS);
  }

  /** @throws Error when no listening connection is made within the time a heartbeat may take */
  async #connect(parts: NotificationListenerParts): Promise<Session> {
    const client = makeClient(parts.url);
    const session: Session = {
      client,
      pid: 0,
      beats: new Map(),
      nextBeatAt: 0,
      echoedAt: performance.now(),
      state: 'reading',
      held: [],
      applying: new Set(),
      sent: Promise.resolve(),
    };
    client.on('notification', n => this.#hear(parts, session, n.channel, n.payload ?? ''));
    client.on('error', () => this.#lost(parts, session));
    client.on('end', () => this.#lost(parts, session));
    const tooLong = setTimeout(() => cutConnection(client), CHANGES_STALE_MS);
    try {
      await client.connect();
      for (const channel of [this.#own, ...parts.channels])
        await client.query(`LISTEN ${client.escapeIdentifier(channel)}`);
      const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
      session.pid = rows[0]?.pid ?? 0;
    } catch (error) {
      cutConnection(client);
      throw error;
    } finally {
      clearTimeout(tooLong);
    }
    session.echoedAt = performance.now();
    this.#session = session;
    if (this.#closed) cutConnection(client);
    return session;
  }

  #hear(parts: NotificationListenerParts, session: Session, channel: string, payload: string): void {
    if (session !== this.#session) return;
    if (channel !== this.#own) {
      if (session.state === 'ready') this.#apply(parts, session, channel, payload);
      else session.held.push(() => this.#apply(parts, session, channel, payload));
      return;
    }
    this.#waiting.get(payload)?.();
    const beat = session.beats.get(payload);
    if (beat === undefined) return;
    beat.echoed = true;
    this.#counts(session, payload, beat);
  }

  #counts(session: Session, number: string, { echoed, own, sentAt }: Beat): void {
    if (!echoed || !own) return;
    session.beats.delete(number);
    session.echoedAt = Math.max(session.echoedAt, sentAt);
    // Notifications that arrived before this heartbeat must be applied before the heartbeat counts.
    if (session.applying.size === 0) this.#prove(session, sentAt);
    else void Promise.all(session.applying).then(() => this.#prove(session, sentAt));
  }

  #prove(session: Session, sentAt: number): void {
    if (session !== this.#session || session.state !== 'ready') return;
    this.#provenAt = Math.max(this.#provenAt, sentAt);
    for (const tell of this.#unsure) tell();
  }

  #apply(parts: NotificationListenerParts, session: Session, channel: string, payload: string): void {
    const work = parts.apply(channel, payload);
    if (!(work instanceof Promise)) return;
    const applied: Promise<void> = work
      .catch((error: unknown) => {
        parts.log.warn({ channel, error: messageOf(error) }, 'a change could not be applied; all state is read again');
        if (session === this.#session && session.state === 'ready') void this.#readUntilDone(parts, session);
      })
      .finally(() => session.applying.delete(applied));
    session.applying.add(applied);
  }

  /** @throws Error when a reading fails */
  async #read(parts: NotificationListenerParts, session: Session): Promise<void> {
    session.state = 'reading';
    const before = this.#reading.catch(() => {});
    const reading = before.then(async () => {
      const since = performance.now();
      await parts.readAll();
      return since;
    });
    this.#reading = reading;
    const since = await reading;
    if (session !== this.#session) return;
    session.state = 'ready';
    this.#prove(session, since);
    for (const apply of session.held.splice(0)) apply();
  }

  async #readUntilDone(parts: NotificationListenerParts, session: Session): Promise<void> {
    for (let failures = 0; session === this.#session && !this.#closed; failures++)
      try {
        await this.#read(parts, session);
        break;
      } catch (error) {
        if (failures === 0)
          parts.log.warn({ error: messageOf(error) }, 'the changes of other hosts could not be read; trying again');
        await new Promise(resolve => setTimeout(resolve, AGAIN_MS));
      }
    if (session !== this.#session || this.#gapSince === null) return;
    parts.log.info({ ms: Math.round(performance.now() - this.#gapSince) }, 'changes of other hosts are heard again');
    this.#gapSince = null;
  }

  #watch(parts: NotificationListenerParts): void {
    const session = this.#session;
    if (session === null) return;
    const now = performance.now();
    if (now - this.#lookedAt > STALL_MS) this.#graceUntil = now + GRACE_MS;
    this.#lookedAt = now;
    // A reading may take longer. A change that is not applied in time counts as one that did not arrive.
    const aliveAt = session.state === 'reading' ? session.echoedAt : Math.min(session.echoedAt, this.#provenAt);
    if (now - aliveAt >= CHANGES_STALE_MS && now >= this.#graceUntil) return this.#lost(parts, session);
    if (now >= session.nextBeatAt) this.#beat(session);
  }

  #beat(session: Session): void {
    const now = performance.now();
    session.nextBeatAt = now + BEAT_MS;
    const number = String(this.#calls++);
    const beat: Beat = { sentAt: now, echoed: false, own: false };
    session.beats.set(number, beat);
    this.#notifySelf(session, number).then(
      own => {
        beat.own = own;
        if (own) this.#counts(session, number, beat);
        else this.#foreign(session);
      },
      () => {},
    );
  }

  /** The connection was led to a session that does not listen: what was proven before says nothing. */
  #foreign(session: Session): void {
    if (session !== this.#session) return;
    this.#isShared = true;
    this.#provenAt = Number.NEGATIVE_INFINITY;
    cutConnection(session.client);
  }

  /**
   * Sends on the listening connection itself, so that no change waits for a connection of the pool.
   *
   * @returns whether the session is the one that listens; a pooler in transaction mode gives another one
   */
  #notifySelf(session: Session, payload: string): Promise<boolean> {
    const sent = session.sent.then(async () => {
      const { rows } = await session.client.query<{ pid: number; listens: boolean }>(
        `SELECT pg_notify($1, $2), pg_backend_pid() AS pid,
           EXISTS (SELECT FROM pg_listening_channels() AS channel WHERE channel = $1) AS listens`,
        [this.#own, payload],
      );
      return rows[0]?.pid === session.pid && rows[0].listens;
    });
    session.sent = sent.catch(() => {});
    return sent;
  }

  #lost(parts: NotificationListenerParts, session: Session): void {
    if (this.#closed || session !== this.#session) return;
    this.#session = null;
    this.#gapSince ??= performance.now();
    const silentMs = Math.round(performance.now() - session.echoedAt);
    parts.log.warn({ silentMs }, 'the connection that hears changes of other hosts was lost; it is made again');
    cutConnection(session.client);
    for (const tell of this.#unsure) tell();
    parts.onGap();
    this.#reconnect(parts, 0);
  }

  #reconnect(parts: NotificationListenerParts, failures: number): void {
    this.#timer = setTimeout(
      () => {
        const ready = this.#isShared ? assertOwnSession(parts.url) : Promise.resolve();
        ready
          .then(() => this.#connect(parts))
          .then(
            session => {
              this.#isShared = false;
              if (this.#closed) return;
              parts.onGap();
              void this.#readUntilDone(parts, session);
            },
            error => {
              if (failures === 0 && this.#isShared)
                parts.log.warn({ error: messageOf(error) }, 'changes of other hosts cannot be heard');
              if (!this.#closed) this.#reconnect(parts, failures + 1);
            },
          );
      },
      failures === 0 ? 0 : AGAIN_MS,
    );
  }

  /**
   * Resolves when this host has received every notification sent before the call: it sends one of its own and waits for it.
   *
   * @returns whether it came within a second; without it the heartbeat decides whether this host is current
   */
  async heard(): Promise<boolean> {
    const session = this.#session;
    if (session === null) return false;
    const mine = String(this.#calls++);
    let late: NodeJS.Timeout | undefined;
    const tooLate = new Promise<boolean>(resolve => {
      late = setTimeout(() => resolve(false), HEARD_MS);
    });
    const echo = new Promise<void>(resolve => this.#waiting.set(mine, resolve));
    const own = this.#notifySelf(session, mine).catch(() => false);
    const came = await Promise.race([tooLate, Promise.all([own, echo]).then(([isOwn]) => isOwn)]);
    clearTimeout(late);
    this.#waiting.delete(mine);
    return came;
  }

  async close(): Promise<void> {
    this.#closed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    if (this.#look !== null) clearInterval(this.#look);
    const session = this.#session;
    if (session === null) return;
    const late = setTimeout(() => cutConnection(session.client), HEARD_MS);
    await session.client.end().catch(() => {});
    clearTimeout(late);
  }
}

/** Whether any service is connected to this database, from any host. */
export async function isListenedTo(db: Queryable): Promise<boolean> {
  const { rows } = await db.query<{ n: string }>(
    'SELECT count(*) AS n FROM pg_stat_activity WHERE datname = current_database() AND application_name = $1',
    [LISTENER_NAME],
  );
  return Number(rows[0]?.n) > 0;
}
