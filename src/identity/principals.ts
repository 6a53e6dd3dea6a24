import { type BoundedCache, boundedCache } from '../base/bounded-cache.ts';
import { notCurrent } from '../base/errors.ts';
import { LIMITS } from '../base/limits.ts';
import type { ServicePrincipal, UserPrincipal } from '../base/principal.ts';
import type { Database } from '../db/database.ts';
import type { ChangeStatus } from '../db/notifications.ts';
import { bearerOf, sessionCookieOf } from '../http/message.ts';
import type { IdentityChange } from './identity-changes.ts';
import { LastUsed } from './last-used.ts';
import { type KeyScope, keyOpens, serviceKeys } from './service-keys.ts';
import { findSession, touchSessions } from './sessions.ts';
import { userTokens } from './user-tokens.ts';

/** A principal with the credential it came with. */
export type Authenticated =
  | (UserPrincipal & {
      via: 'session' | 'token';
      credentialId: number;
      /** The one plugin a session on its own origin counts for. */
      pluginId?: string;
    })
  | (ServicePrincipal & { scopes: readonly KeyScope[] });

export type TokenPrefixes = { userToken: string; serviceKey: string };

/** The credential of a request: at most one counts, the header before the cookie. */
export type Credential = { kind: 'bearer' | 'cookie'; text: string };

/** The credential of a request's headers, or null. */
export function credentialOf(headers: Readonly<Record<string, string>>): Credential | null {
  const bearer = bearerOf(headers);
  if (bearer !== null) return { kind: 'bearer', text: bearer };
  const cookie = sessionCookieOf(headers, 'user');
  return cookie === '' ? null : { kind: 'cookie', text: cookie };
}

/**
 * Whether a session is valid at an origin: a plugin's origin needs a session for that plugin, the service's (null) one
 * of the service.
 */
export function countsAt(p: Authenticated, place: string | null): boolean {
  return p.kind !== 'user' || p.via !== 'session' || (p.pluginId ?? null) === place;
}

/** Whether a service key may call a trigger; for users only the settings decide. */
export function mayCall(p: Authenticated, pluginId: string, trigger: string): boolean {
  return p.kind === 'user' || keyOpens(p, pluginId, trigger);
}

const FLUSH_MS = 5000;

type Cached = { principal: Authenticated; expiresAt: number };

/**
 * Finds the principal of a credential. Caches verified credentials for 10 s, so that most requests need no query. A
 * revocation on any host removes them at once (`changed`, called on NOTIFY).
 */
export class Principals {
  readonly #db: Database;
  readonly #prefixes: TokenPrefixes;
  /** One cache for each kind, because a secret is valid only for its kind. */
  readonly #cache: Readonly<Record<Credential['kind'], BoundedCache<string, Cached>>>;
  readonly #changes: ChangeStatus;
  readonly #placeOf: (host: string | undefined) => string | null;
  readonly #used: Record<'session' | 'token' | 'service', LastUsed>;
  readonly #timer: NodeJS.Timeout;
  /** Grows with every change; an answer read before a change is not cached. */
  #changeCount = 0;

  /**
   * @param clock monotonic clock in ms, by which verified credentials expire
   * @param placeOf the plugin whose origin a host name is, or null for the service's origin
   */
  constructor(
    db: Database,
    prefixes: TokenPrefixes,
    changes: ChangeStatus,
    onError: (error: unknown) => void,
    clock: () => number = () => performance.now(),
    placeOf: (host: string | undefined) => string | null = () => null,
  ) {
    const remembered = { max: LIMITS.verifiedCredentialsMax, ttlMs: LIMITS.verifiedCredentialMs, now: clock };
    this.#cache = { bearer: boundedCache(remembered), cookie: boundedCache(remembered) };
    this.#db = db;
    this.#prefixes = prefixes;
    this.#changes = changes;
    this.#placeOf = placeOf;
    this.#used = {
      session: new LastUsed(entries => touchSessions(db, entries), onError),
      token: new LastUsed(entries => userTokens.touch(db, entries), onError),
      service: new LastUsed(entries => serviceKeys.touch(db, entries), onError),
    };
    this.#timer = setInterval(() => void this.#flush(), FLUSH_MS);
  }

  /** The cached principal, if any. */
  peek(c: Credential, nowMs: number): Authenticated | undefined {
    const cached = this.#cache[c.kind].get(c.text);
    if (cached === undefined || cached.expiresAt <= nowMs) return undefined;
    this.#note(cached.principal, nowMs);
    return cached.principal;
  }

  /** Reads the principal from the database; null if the credential is not valid. */
  async verify(c: Credential, nowMs: number): Promise<Authenticated | null> {
    const changes = this.#changeCount;
    const found = c.kind === 'cookie' ? await this.#session(c.text, nowMs) : await this.#bearer(c.text, nowMs);
    if (found === null) return null;
    if (changes === this.#changeCount) this.#cache[c.kind].set(c.text, found);
    this.#note(found.principal, nowMs);
    return found.principal;
  }

  /**
   * The principal of a request; null if it has no valid credential.
   *
   * @throws ServiceError `unavailable` while this host may not know revocations made on other hosts
   */
  async find(headers: Readonly<Record<string, string>>, nowMs: number): Promise<Authenticated | null> {
    const credential = credentialOf(headers);
    if (credential !== null && !(await this.#changes.becomesCurrent())) throw notCurrent();
    const found = credential === null ? null : (this.peek(credential, nowMs) ?? (await this.verify(credential, nowMs)));
    return found !== null && countsAt(found, this.#placeOf(headers.host)) ? found : null;
  }

  async #session(text: string, nowMs: number): Promise<Cached | null> {
    const s = await findSession(this.#db, 'user', text, nowMs);
    if (s === undefined) return null;
    return {
      principal: {
        ...{ kind: 'user', userId: s.userId, via: 'session', credentialId: s.id },
        ...(s.pluginId === null ? {} : { pluginId: s.pluginId }),
      },
      expiresAt: s.expiresAt.getTime(),
    };
  }

  async #bearer(text: string, nowMs: number): Promise<Cached | null> {
    const { serviceKey, userToken } = this.#prefixes;
    if (text.startsWith(userToken)) {
      const t = await userTokens.verify(this.#db, userToken, text, nowMs);
      if (t === undefined) return null;
      return {
        principal: { kind: 'user', userId: t.userId, via: 'token', credentialId: t.id },
        expiresAt: t.expiresAt?.getTime() ?? Number.POSITIVE_INFINITY,
      };
    }
    const k = await serviceKeys.verify(this.#db, serviceKey, text, nowMs);
    if (k === undefined) return null;
    // During an overlap the old secret may expire before the cache entry does.
    const ends = [k.expiresAt, k.oldSecretUntil]
      .filter(d => d !== null && d.getTime() > nowMs)
      .map(d => d?.getTime() ?? 0);
    return { principal: { kind: 'service', keyId: k.id, scopes: k.scopes }, expiresAt: Math.min(...ends) };
  }

  #note(p: Authenticated, nowMs: number): void {
    if (p.kind === 'service') this.#used.service.note(p.keyId, nowMs);
    else this.#used[p.via].note(p.credentialId, nowMs);
  }

  /** Removes cached principals that a change affects; null: all of them, because changes may have been missed. */
  changed(change: IdentityChange | null): void {
    this.#changeCount++;
    for (const cache of Object.values(this.#cache)) forget(cache, change);
  }

  async #flush(): Promise<void> {
    for (const used of Object.values(this.#used)) await used.flush();
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#flush();
  }
}

function forget(cache: BoundedCache<string, Cached>, change: IdentityChange | null): void {
  if (change === null) return cache.clear();
  for (const [text, { principal: p }] of cache.entries()) {
    const touched =
      change.what === 'key'
        ? p.kind === 'service' && p.keyId === change.id
        : change.what === 'user'
          ? p.kind === 'user' && p.userId === change.id
          : p.kind === 'user' && p.via === change.what && p.credentialId === change.id;
    if (touched) cache.delete(text);
  }
}
