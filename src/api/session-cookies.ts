import type { Queryable } from '../db/database.ts';
import { addSession, endSession, type SessionKind } from '../identity/sessions.ts';
import { LIMITS } from '../limits.ts';
import { cookieOf, type Request } from '../message.ts';

type Header = [string, string];

/** A user session moves its end along with use, so its row decides; browsers keep no cookie for longer than this. */
const COOKIE_MS_MAX = 400 * 24 * 3_600_000;
const COOKIE_MS: Readonly<Record<SessionKind, number>> = { user: COOKIE_MS_MAX, admin: LIMITS.adminSessionMs };
const KINDS: readonly SessionKind[] = ['admin', 'user'];

/** The cookies of sessions (decisions.md 3): HttpOnly, SameSite=Lax, Secure where users come by https. */
export class SessionCookies {
  readonly #secure: boolean;

  constructor(secure: boolean) {
    this.#secure = secure;
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
   * @param withPassword whether the password was given just now
   * @returns the headers that set the cookies, and take away those that are not set
   */
  async open(
    client: Queryable,
    request: Request,
    userId: number,
    kinds: readonly SessionKind[],
    withPassword: boolean,
  ): Promise<Header[]> {
    const common = { userId, address: request.remoteAddr, userAgent: request.headers['user-agent'] ?? '' };
    const headers: Header[] = [];
    for (const kind of KINDS) {
      const name = `${kind}_session`;
      const before = cookieOf(request.headers, name);
      if (before !== '') await endSession(client, kind, before);
      if (kinds.includes(kind)) {
        const { secret } = await addSession(client, {
          ...common,
          kind,
          withPassword: withPassword && kind === 'admin',
        });
        headers.push(this.header(name, secret, COOKIE_MS[kind]));
      } else if (before !== '') headers.push(this.header(name, '', 0));
    }
    return headers;
  }

  /** Ends the sessions a request carries; takes their cookies away. */
  async close(client: Queryable, request: Request): Promise<Header[]> {
    for (const kind of KINDS) await endSession(client, kind, cookieOf(request.headers, `${kind}_session`));
    return KINDS.map(kind => this.header(`${kind}_session`, '', 0));
  }
}
