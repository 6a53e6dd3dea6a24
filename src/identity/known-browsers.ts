import { z } from 'zod';
import { LIMITS } from '../base/limits.ts';
import { makeSecret } from './bearer-secret.ts';

/** Encrypts and authenticates; only hosts of this installation can make such a value. */
type Sealer = { seal(plain: string, owner: string): Buffer; open(sealed: Buffer, owner: string): string };

const OWNER = 'known browser';
const content = z.object({
  id: z.string().min(1),
  user: z.int(),
  until: z.number(),
  credentials: z.string().optional(),
  host: z.string().optional(),
});

/** An administrator's last login with a browser. */
export type LastLogin = {
  userId: number;
  at: Date;
  /** The mark of the credentials of then, which a change of the password changes; empty for none. */
  credentials: string;
  /** The host, with its port, that the browser named; browsers send cookies to every port of a host. */
  host: string;
};

/**
 * Recognizes browsers in which an administrator has logged in before. Their failed logins are counted separately from
 * those of their address, so that guesses from the same network do not slow the administrator down. Such a browser also
 * stands next to a passkey or a recovery code in the place of the password. The cookie proves nothing else, and is valid for one account.
 */
export class KnownBrowsers {
  readonly #sealer: Sealer;

  constructor(sealer: Sealer) {
    this.#sealer = sealer;
  }

  /** Creates the cookie value for a browser in which a user has just logged in. */
  remember({ at, credentials, host, userId }: LastLogin): string {
    const until = at.getTime() + LIMITS.knownBrowserMs;
    const plain = { id: makeSecret().text, user: userId, until, credentials, host };
    return this.#sealer.seal(JSON.stringify(plain), OWNER).toString('base64url');
  }

  /** The id of a browser in which this user has logged in before; null for any other value. */
  find(cookie: string, userId: number, nowMs: number): string | null {
    const known = this.#read(cookie, nowMs);
    return known?.user === userId ? known.id : null;
  }

  /** The user who has logged in last with a browser; null for any other value. */
  lastLogin(cookie: string, nowMs: number): LastLogin | null {
    const known = this.#read(cookie, nowMs);
    if (known === null) return null;
    const { credentials = '', host = '', until, user } = known;
    return { userId: user, at: new Date(until - LIMITS.knownBrowserMs), credentials, host };
  }

  #read(cookie: string, nowMs: number): z.output<typeof content> | null {
    if (cookie === '' || cookie.length > 1000) return null;
    try {
      const known = content.parse(JSON.parse(this.#sealer.open(Buffer.from(cookie, 'base64url'), OWNER)));
      return known.until > nowMs ? known : null;
    } catch {
      // The cookie was changed, belongs to another service, or is encrypted with an old key.
      return null;
    }
  }
}
