import type { Caller, Guard } from '../api/route.ts';
import type { Database } from '../db/database.ts';
import { ServiceError } from '../errors.ts';
import { adminsExist, findAdmin } from '../identity/admin-accounts.ts';
import { ADMIN_CHALLENGE } from '../identity/admin-login.ts';
import { secretMatches, sha256 } from '../identity/bearer-secret.ts';
import { LastUsed } from '../identity/last-used.ts';
import { findSession, touchSessions } from '../identity/sessions.ts';
import { LIMITS } from '../limits.ts';
import { bearerOf, cookieOf, isOwnOrigin, type Request } from '../message.ts';

export type SetupAccess = { mode: 'token' | 'loopback' | 'open'; token: string };

export function isLoopback(address: string): boolean {
  return /^127\./.test(address) || address === '::1';
}

const FLUSH_MS = 5000;

/** Nobody who may import; what was sent is named, and what would be right. */
function noKey(request: Request): ServiceError {
  const given = bearerOf(request.headers) === null ? '' : 'this is not the key: ';
  return new ServiceError(
    'unauthorized',
    `${given}send admin.api_key as "Authorization: Bearer <key>", or log in as an administrator`,
    { headers: [['WWW-Authenticate', 'Bearer realm="plugin-host import"']] },
  );
}

/** Asks who calls the API, and lets in whom the row names. */
export class Guards {
  readonly #db: Database;
  readonly #setup: SetupAccess;
  /** Hash of `admin.api_key`; null when there is none. */
  readonly #apiKey: Buffer | null;
  readonly #used: LastUsed;
  readonly #timer: NodeJS.Timeout;
  /** Stays true: the last administrator is never removed. */
  #adminsExist = false;

  constructor(db: Database, setup: SetupAccess, apiKey: string, onError: (error: unknown) => void) {
    this.#db = db;
    this.#apiKey = apiKey === '' ? null : sha256(apiKey);
    this.#setup = setup;
    this.#used = new LastUsed(entries => touchSessions(db, entries), onError);
    this.#timer = setInterval(() => void this.#used.flush(), FLUSH_MS);
  }

  /** Setup mode lasts until there is an administrator (service.md 3.3). */
  async inSetupMode(): Promise<boolean> {
    this.#adminsExist ||= await adminsExist(this.#db);
    return !this.#adminsExist;
  }

  /** @throws ServiceError when the guard does not let the request in */
  async check(guard: Guard, request: Request): Promise<Caller> {
    if (guard === 'none') return { kind: 'anyone' };
    if (guard === 'user') return await this.#user(request);
    const isImport = guard === 'import' || guard === 'import_log';
    if (isImport && this.#hasApiKey(request)) return { kind: 'api_key' };
    if (guard !== 'admin_session' && (await this.inSetupMode())) {
      try {
        checkSetup(request, this.#setup);
      } catch (error) {
        throw isImport && error instanceof ServiceError && error.code === 'unauthorized' ? noKey(request) : error;
      }
      return { kind: 'setup' };
    }
    const caller = await this.admin(request);
    if (caller === null)
      throw isImport
        ? noKey(request)
        : new ServiceError('unauthorized', 'log in as an administrator: POST /api/admin/auth/login', {
            headers: [['WWW-Authenticate', ADMIN_CHALLENGE]],
          });
    fromHere(request);
    if (guard === 'admin_session') return caller;
    if (caller.account.mustChangePassword)
      throw new ServiceError(
        'password_change_required',
        'change the temporary password first: PUT /api/admin/auth/password',
      );
    const passwordAt = caller.session.passwordAt?.getTime() ?? 0;
    if ((guard === 'admin_recent' || guard === 'import') && Date.now() - passwordAt > LIMITS.recentPasswordMs)
      throw new ServiceError(
        'password_confirmation_required',
        'this action wants the password again: POST /api/admin/auth/confirm, then repeat it within ten minutes',
      );
    return caller;
  }

  /** Hashes have one length, so the comparison takes the same time whatever was sent (service.md 5.4). */
  #hasApiKey(request: Request): boolean {
    const given = bearerOf(request.headers);
    return this.#apiKey !== null && given !== null && secretMatches(given, this.#apiKey);
  }

  /** The administrator whose session a request carries, or null. */
  async admin(request: Request): Promise<Extract<Caller, { kind: 'admin' }> | null> {
    const session = await findSession(this.#db, 'admin', cookieOf(request.headers, 'admin_session'), Date.now());
    if (session === undefined) return null;
    const account = await findAdmin(this.#db, session.userId);
    if (account === undefined) return null;
    this.#used.note(session.id, Date.now());
    return { kind: 'admin', session, account };
  }

  async #user(request: Request): Promise<Caller> {
    const session = await findSession(this.#db, 'user', cookieOf(request.headers, 'user_session'), Date.now());
    if (session === undefined)
      throw new ServiceError('unauthorized', 'log in first: the cookie user_session is needed', {
        headers: [['WWW-Authenticate', 'Cookie realm="plugin-host", cookie-name="user_session"']],
      });
    fromHere(request);
    this.#used.note(session.id, Date.now());
    return { kind: 'user', session };
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#used.flush();
  }
}

/** CSRF rule of decisions.md 3: what changes something must come from our own pages. */
export function fromHere(request: Request): void {
  if (request.method === 'GET' || request.method === 'HEAD' || isOwnOrigin(request.headers)) return;
  throw new ServiceError('forbidden', 'a request with a session cookie must come from a page of this site');
}

const LOOPBACK_HOST = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:\d+)?$/i;

/** A local address alone says little: a proxy on this machine has one, and so has a page whose name was pointed here. */
function isFromThisMachine({ headers, remoteAddr }: Request): boolean {
  const forwarded = headers.forwarded !== undefined || headers['x-forwarded-for'] !== undefined;
  return isLoopback(remoteAddr) && !forwarded && LOOPBACK_HOST.test(headers.host ?? '');
}

/** @throws ServiceError `unauthorized` when the request may not use the admin API in setup mode */
export function checkSetup(request: Request, setup: SetupAccess): void {
  // Without a token a page in somebody's browser could ask as well as its owner.
  if (setup.mode !== 'token') fromHere(request);
  if (setup.mode === 'open') return;
  if (setup.mode === 'loopback') {
    if (isFromThisMachine(request)) return;
    throw new ServiceError('unauthorized', 'the admin API is open to loopback addresses only (admin.setup: loopback)');
  }
  const given = bearerOf(request.headers);
  // Hashes have one length, so the comparison takes the same time whatever was sent.
  if (given !== null && secretMatches(given, sha256(setup.token))) return;
  throw new ServiceError(
    'unauthorized',
    given === null
      ? 'send the setup token as "Authorization: Bearer <token>"; it is printed when the service starts'
      : 'this is not the setup token',
    {
      headers: [['WWW-Authenticate', 'Bearer realm="plugin-host admin"']],
    },
  );
}
