import type { Database } from '../db/database.ts';
import { ADMIN_SESSION_MS, addSession, type SessionKind, USER_SESSION_MS } from '../identity/sessions.ts';
import type { Request } from '../message.ts';

type Header = [string, string];

const LIFETIME_MS: Readonly<Record<SessionKind, number>> = { user: USER_SESSION_MS, admin: ADMIN_SESSION_MS };

/** The cookies of sessions (decisions.md 3): HttpOnly, SameSite=Lax, Secure where users come by https. */
export class SessionCookies {
  readonly #db: Database;
  readonly #secure: boolean;

  constructor(db: Database, secure: boolean) {
    this.#db = db;
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
   * Begins sessions of a user.
   *
   * @param withPassword whether the password was given just now
   * @returns the headers that set their cookies
   */
  async open(
    request: Request,
    userId: number,
    kinds: readonly SessionKind[],
    withPassword: boolean,
  ): Promise<Header[]> {
    const common = { userId, address: request.remoteAddr, userAgent: request.headers['user-agent'] ?? '' };
    return await this.#db.withTransaction(async client => {
      const headers: Header[] = [];
      for (const kind of kinds) {
        const { secret } = await addSession(client, {
          ...common,
          kind,
          withPassword: withPassword && kind === 'admin',
        });
        headers.push(this.header(`${kind}_session`, secret, LIFETIME_MS[kind]));
      }
      return headers;
    });
  }

  /** Headers that take both session cookies away. */
  cleared(): Header[] {
    return [this.header('admin_session', '', 0), this.header('user_session', '', 0)];
  }
}
