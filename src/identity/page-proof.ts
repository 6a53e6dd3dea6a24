import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';
import { ServiceError } from '../base/errors.ts';
import { isBrowser, type Request, sessionCookieOf } from '../http/message.ts';
import { sha256 } from './bearer-secret.ts';
import type { SessionKind } from './sessions.ts';

/** Header in which pages of the service send their proof. */
export const PAGE_PROOF_HEADER = 'x-page-proof';

/** What a proof is bound to: a kind of session, or setup mode, which has no session yet. */
export type ProofSubject = SessionKind | 'setup';

/**
 * Proofs that a request comes from a page of the service. Plugins may have pages on the same origin, and a browser
 * sends its cookies with their requests too. A proof is given out only where no script of a plugin can read it
 * (docs/SECURITY.md "The browser origin"). It is a MAC over the session, so that every host computes the same one and
 * none is stored.
 */
export class PageProofs {
  readonly #key: Buffer;

  /** @param secretKey the key of stored secrets, which all hosts share */
  constructor(secretKey: Buffer) {
    this.#key = Buffer.from(hkdfSync('sha256', secretKey, '', 'page proof', 32));
  }

  /** @param secret value of the session's cookie; empty for setup mode */
  make(subject: ProofSubject, secret: string): string {
    return createHmac('sha256', this.#key).update(`${subject}\0`).update(sha256(secret)).digest('base64url');
  }

  /** The proof for the session of a request, or empty without a session. */
  forRequest(kind: SessionKind, request: Request): string {
    const secret = sessionCookieOf(request.headers, kind);
    return secret === '' ? '' : this.make(kind, secret);
  }

  /** Whether a request has the right proof; compares in constant time. */
  isProven(subject: ProofSubject, secret: string, request: Request): boolean {
    const given = Buffer.from(request.headers[PAGE_PROOF_HEADER] ?? '');
    const right = Buffer.from(this.make(subject, secret));
    return given.length === right.length && timingSafeEqual(given, right);
  }

  /**
   * @param browserSession whether the session was begun in a browser
   * @throws ServiceError `page_proof_required` when a browser's request has no proof
   */
  check(subject: ProofSubject, secret: string, browserSession: boolean, request: Request): void {
    if (!browserSession && !isBrowser(request.headers)) return;
    if (this.isProven(subject, secret, request)) return;
    const page = subject === 'user' ? '/account/' : '/admin/';
    throw new ServiceError(
      'page_proof_required',
      `this browser request has no valid X-Page-Proof header, which the page ${page} sends: open or reload ${page} and try again`,
    );
  }
}
