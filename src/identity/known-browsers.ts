import { z } from 'zod';
import { LIMITS } from '../base/limits.ts';
import { makeSecret } from './bearer-secret.ts';

/** Encrypts and authenticates; only hosts of this installation can make such a value. */
type Sealer = { seal(plain: string, owner: string): Buffer; open(sealed: Buffer, owner: string): string };

const OWNER = 'known browser';
const content = z.object({ id: z.string().min(1), user: z.int(), until: z.number() });

/**
 * Recognizes browsers in which an administrator has logged in before. Their failed logins are counted separately from
 * those of their address, so that guesses from the same network do not slow the administrator down. Such a browser also
 * stands next to a passkey in the place of the password. The cookie proves nothing else, and is valid for one account.
 */
export class KnownBrowsers {
  readonly #sealer: Sealer;

  constructor(sealer: Sealer) {
    this.#sealer = sealer;
  }

  /** Creates the cookie value for a browser in which a user has just logged in. */
  remember(userId: number, nowMs: number): string {
    const plain = { id: makeSecret().text, user: userId, until: nowMs + LIMITS.knownBrowserMs };
    return this.#sealer.seal(JSON.stringify(plain), OWNER).toString('base64url');
  }

  /** The id of a browser in which this user has logged in before; null for any other value. */
  find(cookie: string, userId: number, nowMs: number): string | null {
    const known = this.#read(cookie, nowMs);
    return known?.user === userId ? known.id : null;
  }

  /** Who has logged in last with a browser; null for any other value. */
  userOf(cookie: string, nowMs: number): number | null {
    return this.#read(cookie, nowMs)?.user ?? null;
  }

  #read(cookie: string, nowMs: number): z.output<typeof content> | null {
    if (cookie === '' || cookie.length > 500) return null;
    try {
      const known = content.parse(JSON.parse(this.#sealer.open(Buffer.from(cookie, 'base64url'), OWNER)));
      return known.until > nowMs ? known : null;
    } catch {
      // The cookie was changed, belongs to another service, or is encrypted with an old key.
      return null;
    }
  }
}
