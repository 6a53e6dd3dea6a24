import { LIMITS } from '../../base/limits.ts';
import type { Queryable } from '../../db/database.ts';
import {
  cookieOf,
  HOST_ONLY_MARK,
  isBrowser,
  type Request,
  sessionCookieName,
  sessionCookieOf,
} from '../../http/message.ts';
import { markOfCredentials } from '../../identity/admin-accounts.ts';
import type { KnownBrowsers, LastLogin } from '../../identity/known-browsers.ts';
import type { PasswordlessMethod } from '../../identity/second-factor.ts';
import { addSession, endSession, type Session, type SessionKind } from '../../identity/sessions.ts';

type Header = [string, string];

/** Sessions that were begun: the headers of the answer, and the secret of each kind. */
export type OpenedSessions = { headers: Header[]; secrets: Partial<Record<SessionKind, string>> };

/** A user session moves its end along with use, so its row decides; browsers keep no cookie for longer than this. */
const COOKIE_MS_MAX = 400 * 24 * 3_600_000;
const COOKIE_MS: Readonly<Record<SessionKind, number>> = { user: COOKIE_MS_MAX, admin: LIMITS.adminSessionMs };
const KINDS: readonly SessionKind[] = ['admin', 'user'];

const KNOWN_BROWSER = 'known_browser';
/** The only path that browsers send the cookie to: the login, and no plugin. */
const KNOWN_BROWSER_PATH = '/api/admin/auth';

/**
 * How a user proved who they are: with the password just now, with a passkey or a recovery code instead, or at the identity provider
 * at a time it tells or does not.
 */
export type Proof = { via: 'password' | PasswordlessMethod } | { via: 'idp'; at: Date | null };

/** The cookies of sessions (docs/identity.md "Sessions"): HttpOnly, SameSite=Lax, Secure where users come by https. */
export class SessionCookies {
  readonly #secure: boolean;
  /** Prefixes of secrets. */
  readonly #mark: string;
  readonly #browsers: KnownBrowsers;

  constructor(secure: boolean, browsers: KnownBrowsers) {
    this.#secure = secure;
    this.#mark = secure ? HOST_ONLY_MARK : '';
    this.#browsers = browsers;
  }

  /** Whether the cookies of sessions have the prefix `__Host-`. */
  get hostOnly(): boolean {
    return this.#secure;
  }

  /** The name of a cookie that is no session: with the prefix that no page without https can set. */
  nameOf(name: string): string {
    return this.#secure ? `__Secure-${name}` : name;
  }

  /** The id of the browser a request comes from, when this administrator has logged in with it before. */
  knownBrowser(request: Request, userId: number): string | null {
    return this.#browsers.find(cookieOf(request.headers, this.nameOf(KNOWN_BROWSER)), userId, Date.now());
  }

  /** The last login of an administrator with the browser of a request, at the host it names now; null for none. */
  lastAdminLogin({ headers }: Request): LastLogin | null {
    const last = this.#browsers.lastLogin(cookieOf(headers, this.nameOf(KNOWN_BROWSER)), Date.now());
    return last !== null && last.host === (headers.host ?? '') ? last : null;
  }

  /** A `Set-Cookie` header; `ms` 0 takes the cookie away. */
  header(name: string, value: string, ms: number, path = '/'): Header {
    return [
      'Set-Cookie',
      `${name}=${value}; Path=${path}; Max-Age=${Math.floor(ms / 1000)}; HttpOnly; SameSite=Lax${this.#secure ? '; Secure' : ''}`,
    ];
  }

  /**
   * Begins sessions of a user, as part of a transaction. The sessions the browser had before end: it is one person's.
   *
   * @param proof how the user has just logged in
   * @returns the headers that set the cookies, and take away those that are not set
   */
  async open(
    client: Queryable,
    request: Request,
    userId: number,
    kinds: readonly SessionKind[],
    proof: Proof,
  ): Promise<OpenedSessions> {
    const common = {
      ...{ userId, address: request.remoteAddr, userAgent: request.headers['user-agent'] ?? '' },
      ...(proof.via === 'idp' ? { idpAt: proof.at } : {}),
      browser: proof.via !== 'password' || isBrowser(request.headers),
      hostOnly: this.#secure,
    };
    const headers: Header[] = [];
    const secrets: OpenedSessions['secrets'] = {};
    for (const kind of KINDS) {
      const before = sessionCookieOf(request.headers, kind);
      if (before !== '') await endSession(client, kind, before, Date.now());
      if (kinds.includes(kind)) {
        const { secret } = await addSession(client, {
          ...common,
          kind,
          // A recovery code is something kept, and shows no person: what asks for a recent password asks for it.
          withPassword: (proof.via === 'password' || proof.via === 'passkey') && kind === 'admin',
        });
        secrets[kind] = secret;
        headers.push(this.header(sessionCookieName(kind, secret), secret, COOKIE_MS[kind]));
      } else if (before !== '') headers.push(this.header(sessionCookieName(kind, before), '', 0));
    }
    if (kinds.includes('admin')) {
      const value = this.#browsers.remember({
        ...{ userId, at: new Date(), host: request.headers.host ?? '' },
        credentials: (await markOfCredentials(client, userId)) ?? '',
      });
      headers.push(this.header(this.nameOf(KNOWN_BROWSER), value, LIMITS.knownBrowserMs, KNOWN_BROWSER_PATH));
    }
    return { headers, secrets };
  }

  /** Ends the sessions a request carries; takes their cookies away. */
  async close(client: Queryable, request: Request): Promise<{ headers: Header[]; ended: Session[] }> {
    const ended: Session[] = [];
    const headers: Header[] = [];
    for (const kind of KINDS) {
      const secret = sessionCookieOf(request.headers, kind);
      headers.push(this.header(sessionCookieName(kind, secret === '' ? this.#mark : secret), '', 0));
      const session = await endSession(client, kind, secret, Date.now());
      if (session !== undefined) ended.push(session);
    }
    return { headers, ended };
  }
}
