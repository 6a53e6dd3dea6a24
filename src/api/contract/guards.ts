import { appendAudit } from '../../audit/audit-log.ts';
import { boundedCache } from '../../base/bounded-cache.ts';
import { ServiceError } from '../../base/errors.ts';
import { LIMITS } from '../../base/limits.ts';
import type { Database } from '../../db/database.ts';
import { bearerOf, isBrowser, isOwnOrigin, type Request, sessionCookieOf } from '../../http/message.ts';
import { adminsExist, findAdmin } from '../../identity/admin-accounts.ts';
import { adminKeys } from '../../identity/admin-keys.ts';
import { ADMIN_CHALLENGE } from '../../identity/admin-login.ts';
import { deployedPlugins, hasScope } from '../../identity/admin-roles.ts';
import { secretMatches, sha256 } from '../../identity/bearer-secret.ts';
import { LastUsed } from '../../identity/last-used.ts';
import type { PageProofs } from '../../identity/page-proof.ts';
import {
  findSession,
  type Session,
  type SessionKind,
  type SessionVia,
  touchSessions,
} from '../../identity/sessions.ts';
import { actorOf, type Caller, heldScopes, type Limited, missingRole, missingScope } from './caller.ts';
import type { KeyNeed, RowScope } from './contract.ts';
import type { Route } from './route.ts';

export type SetupAccess = { mode: 'token' | 'loopback' | 'open'; token: string; proofs: PageProofs };

export function isLoopback(address: string): boolean {
  return /^127\./.test(address) || address === '::1';
}

const FLUSH_MS = 5000;
/** How soon the same refusal stands in the audit log again, and how many are known. */
const REFUSED_AGAIN_MS = 60_000;
const REFUSALS_MAX = 10_000;

const CONFIRM_PATH = '/api/admin/auth/confirm';
const FRESH_LOGIN_PATH = '/api/auth/idp/start?fresh=1';

/** The refusal of an import without a valid key; says what was sent and what would be right. */
function noKey(request: Request): ServiceError {
  const given = bearerOf(request.headers) === null ? '' : 'this is not the key: ';
  return new ServiceError(
    'unauthorized',
    `${given}send admin.api_key as "Authorization: Bearer <key>", or an administration key with the scope university, or log in as an administrator`,
    { headers: [['WWW-Authenticate', 'Bearer realm="plugin-host import"']] },
  );
}

/** Credentials of the configuration. `apiKey` is empty when there is none; `keyPrefix` begins administration keys. */
export type GuardOptions = {
  setup: SetupAccess;
  apiKey: string;
  keyPrefix: string;
  /** Whether administrators with a password need a second factor. */
  isSecondFactorRequired: boolean;
};

/** Members of a route that decide whether a caller is let in. */
type Guarded = Pick<Route, 'guard' | 'key'> & { readonly path?: string };

/** Asks who calls the API, and lets in whom the row names. */
export class Guards {
  readonly #db: Database;
  readonly #setup: SetupAccess;
  /** Hash of `admin.api_key`; null when there is none. */
  readonly #apiKey: Buffer | null;
  readonly #keyPrefix: string;
  readonly #isSecondFactorRequired: boolean;
  readonly #used: LastUsed;
  readonly #usedKeys: LastUsed;
  readonly #timer: NodeJS.Timeout;
  /** Refusals that stand in the audit log since a while. */
  readonly #refused = boundedCache<string, { endpoint: string }>({ max: REFUSALS_MAX, ttlMs: REFUSED_AGAIN_MS });
  /** Stays true: the last administrator is never removed. */
  #adminsExist = false;

  constructor(db: Database, options: GuardOptions, onError: (error: unknown) => void) {
    this.#db = db;
    this.#apiKey = options.apiKey === '' ? null : sha256(options.apiKey);
    this.#setup = options.setup;
    this.#keyPrefix = options.keyPrefix;
    this.#isSecondFactorRequired = options.isSecondFactorRequired;
    this.#used = new LastUsed(entries => touchSessions(db, entries), onError);
    this.#usedKeys = new LastUsed(entries => adminKeys.touch(db, entries), onError);
    this.#timer = setInterval(() => void this.#flush(), FLUSH_MS);
  }

  /** Setup mode lasts until there is an administrator (docs/identity.md "Setup mode"). */
  async inSetupMode(): Promise<boolean> {
    this.#adminsExist ||= await adminsExist(this.#db);
    return !this.#adminsExist;
  }

  /**
   * Lets a request in, which is a use of its session.
   *
   * @throws ServiceError when the guard does not let it in
   */
  async check(route: Guarded, request: Request): Promise<Caller> {
    const caller = await this.look(route, request);
    if (caller.kind === 'admin' || caller.kind === 'user') this.#used.note(caller.session.id, Date.now());
    return caller;
  }

  /** As `check`, of a request that was let in and goes on: it is no further use of its session. @throws ServiceError */
  async look(route: Guarded, request: Request): Promise<Caller> {
    const { guard } = route;
    refuseNavigation(request);
    if (guard === 'none') return { kind: 'anyone' };
    if (guard === 'user') return await this.#user(request);
    const isImport = guard === 'import' || guard === 'import_log';
    if (isImport && this.#hasApiKey(request)) return { kind: 'api_key' };
    if (guard !== 'admin_session' && guard !== 'admin_confirm' && (await this.inSetupMode())) {
      try {
        checkSetup(request, this.#setup);
      } catch (error) {
        throw isImport && error instanceof ServiceError && error.code === 'unauthorized' ? noKey(request) : error;
      }
      if (route.key === 'own')
        throw new ServiceError('conflict', 'make the first administrator first: POST /api/admin/auth/setup');
      return { kind: 'setup' };
    }
    const bearer = bearerOf(request.headers);
    if (bearer?.startsWith(this.#keyPrefix)) return await this.#byKey(bearer, route, request);
    const caller = await this.#findAdmin(request);
    if (caller === null) throw isImport ? noKey(request) : this.#notLoggedIn(bearer);
    fromHere(request);
    // A request that brings the password needs no proof, and gets one.
    if (guard === 'admin_confirm') return caller;
    this.#checkProof('admin', caller.session, request);
    if (guard === 'admin_session') return caller;
    // An administrator who came through the identity provider needs no password of ours.
    if (caller.account.mustChangePassword && caller.session.via === 'password')
      throw new ServiceError(
        'password_change_required',
        'change the temporary password first: PUT /api/admin/auth/password',
      );
    // Their own account stays open, where one is added.
    const lacksFactor = this.#isSecondFactorRequired && !caller.account.hasSecondFactor;
    if (lacksFactor && caller.session.via === 'password' && route.key !== 'own')
      throw new ServiceError(
        'second_factor_setup_required',
        'administrators need a second factor (admin.second_factor): add a passkey (POST /api/admin/auth/passkeys/begin) or an authenticator app (POST /api/admin/auth/totp/begin) first',
      );
    await this.#assertOpens(caller, route, request);
    const passwordAt = caller.session.passwordAt?.getTime() ?? 0;
    if ((guard === 'admin_recent' || guard === 'import') && Date.now() - passwordAt > LIMITS.recentPasswordMs)
      throw confirmationNeeded(caller.session.via);
    return caller;
  }

  async #assertOpens(caller: Limited, route: Guarded, request: Request): Promise<void> {
    try {
      assertOpens(caller, route.key ?? 'never', request);
    } catch (error) {
      await this.noteRefused(caller, route, request, error);
      throw error;
    }
  }

  /**
   * Writes to the audit log that a caller asked for what its scopes or roles do not allow: once in a while for the same request, so that
   * a program that keeps asking does not fill it.
   */
  async noteRefused(caller: Caller, route: Guarded, request: Request, error: unknown): Promise<void> {
    if (!(error instanceof ServiceError) || error.code !== 'forbidden') return;
    if (caller.kind !== 'admin' && caller.kind !== 'admin_key') return;
    const by = actorOf(caller, request);
    const endpoint = `${request.method} ${route.path ?? request.path}`;
    const kind = `${by.kind} ${by.keyId ?? by.userId} ${endpoint}`;
    if (this.#refused.has(kind)) return;
    this.#refused.set(kind, { endpoint });
    await appendAudit(this.#db, by, {
      action: 'api.refused',
      objectType: 'endpoint',
      objectId: endpoint,
      after: { path: request.path.slice(0, 300), detail: error.message },
    });
  }

  /** A key is read for every request, so that a revocation counts on every host at once. */
  async #byKey(text: string, route: Guarded, request: Request): Promise<Caller> {
    const key = await adminKeys.verify(this.#db, this.#keyPrefix, text, Date.now());
    if (key === undefined)
      throw new ServiceError(
        'unauthorized',
        'the administration key is not valid: unknown, expired, revoked, or replaced by a rotation; an administrator makes keys at POST /api/admin/keys',
        { headers: [['WWW-Authenticate', 'Bearer realm="plugin-host admin", error="invalid_token"']] },
      );
    const caller = { kind: 'admin_key' as const, key };
    await this.#assertOpens(caller, route, request);
    this.#usedKeys.note(key.id, Date.now());
    return caller;
  }

  #notLoggedIn(bearer: string | null): ServiceError {
    const ways = `log in as an administrator (POST /api/admin/auth/login), or send an administration key (${this.#keyPrefix}..., made at POST /api/admin/keys)`;
    const headers: Array<[string, string]> = [['WWW-Authenticate', ADMIN_CHALLENGE]];
    if (bearer === null) return new ServiceError('unauthorized', ways, { headers });
    return new ServiceError(
      'unauthorized',
      secretMatches(bearer, sha256(this.#setup.token))
        ? `the setup token is no longer valid, because there is an administrator now; ${ways}`
        : `the bearer token is not an administration key; a setup token is valid only until the first administrator exists; ${ways}`,
      { headers },
    );
  }

  /** Hashes have one length, so the comparison takes the same time whatever was sent (docs/identity.md "Sessions"). */
  #hasApiKey(request: Request): boolean {
    const given = bearerOf(request.headers);
    return this.#apiKey !== null && given !== null && secretMatches(given, this.#apiKey);
  }

  /**
   * The administrator whose session a request carries, or null. It says nothing of the page a browser sent the request from:
   * `isProven` does.
   */
  async adminSession(request: Request): Promise<Extract<Caller, { kind: 'admin' }> | null> {
    const caller = await this.#findAdmin(request);
    if (caller !== null) this.#used.note(caller.session.id, Date.now());
    return caller;
  }

  async #findAdmin(request: Request): Promise<Extract<Caller, { kind: 'admin' }> | null> {
    const session = await findSession(this.#db, 'admin', sessionCookieOf(request.headers, 'admin'), Date.now());
    if (session === undefined) return null;
    const account = await findAdmin(this.#db, session.userId);
    if (account === undefined) return null;
    return { kind: 'admin', session, account };
  }

  async #user(request: Request): Promise<Caller> {
    const session = await findSession(this.#db, 'user', sessionCookieOf(request.headers, 'user'), Date.now());
    if (session === undefined || session.pluginId !== null)
      throw new ServiceError(
        'unauthorized',
        'log in first, at /api/auth/idp/start or as an administrator at /admin/: the cookie user_session is needed',
        {
          headers: [['WWW-Authenticate', 'Cookie realm="plugin-host", cookie-name="user_session"']],
        },
      );
    fromHere(request);
    this.#checkProof('user', session, request);
    return { kind: 'user', session };
  }

  /** Whether a request with this session may act for its user: a program's may, a browser's with the proof of our page. */
  isProven(session: Session, request: Request): boolean {
    const { proofs } = this.#setup;
    if (!session.browser && !isBrowser(request.headers)) return true;
    return proofs.isProven(session.kind, sessionCookieOf(request.headers, session.kind), request);
  }

  /** @throws ServiceError `page_proof_required` */
  #checkProof(kind: SessionKind, session: Session, request: Request): void {
    this.#setup.proofs.check(kind, sessionCookieOf(request.headers, kind), session.browser, request);
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#flush();
  }

  async #flush(): Promise<void> {
    await this.#used.flush();
    await this.#usedKeys.flush();
  }
}

/** @throws ServiceError `forbidden` that names the scopes or the role a caller lacks */
function assertOpens(caller: Limited, need: KeyNeed, request: Request): void {
  const what = `${request.method} ${request.path}`;
  if (need === 'own' && caller.kind === 'admin') return;
  if (need === 'never' || need === 'own') {
    if (caller.kind === 'admin_key')
      throw new ServiceError(
        'forbidden',
        `${what} needs a logged-in administrator; administration keys are not accepted here`,
      );
    if (caller.account.roles.includes('owner')) return;
    throw missingRole(caller.account, ['never'], what);
  }
  const plugin = request.params.id;
  const held = heldScopes(caller);
  const opens = (s: RowScope): boolean =>
    s === 'plugins:deploy:named' ? deployedPlugins(held).length > 0 : hasScope(held, s, plugin);
  if (need.some(opens)) return;
  const [first = 'admin', ...others] = need.flatMap(s =>
    s === 'plugins:deploy:named'
      ? []
      : s === 'plugins:deploy' && plugin !== undefined
        ? [s, `plugins:deploy:${plugin}`]
        : [s],
  );
  throw missingScope(caller, [first, ...others], what);
}

/** What a session that began this way can do about it; pages find it in `confirm`. */
function confirmationNeeded(via: SessionVia): ServiceError {
  const [detail, confirm] =
    via === 'password'
      ? ['this action needs the password again: POST /api/admin/auth/confirm', { method: 'POST', path: CONFIRM_PATH }]
      : [
          `this action needs a login at the identity provider again: GET ${FRESH_LOGIN_PATH}&return_to=<path>`,
          { method: 'GET', path: FRESH_LOGIN_PATH },
        ];
  return new ServiceError('password_confirmation_required', `${detail}, then repeat it within ten minutes`, {
    extra: { confirm },
  });
}

/** CSRF rule of docs/identity.md "Requests of browsers": what changes something must come from our own pages. */
export function fromHere(request: Request): void {
  if (request.method === 'GET' || request.method === 'HEAD' || isOwnOrigin(request.headers)) return;
  throw new ServiceError('forbidden', 'a request with a session cookie must come from a page of this site');
}

/**
 * A window or frame that shows an answer of the admin API is one a plugin's page of the same origin could read.
 *
 * @throws ServiceError `forbidden`
 */
function refuseNavigation({ headers, path }: Request): void {
  if (headers['sec-fetch-mode'] !== 'navigate' || !path.startsWith('/api/admin/')) return;
  throw new ServiceError('forbidden', 'browsers do not open the admin API as a page; open /admin/');
}

const LOOPBACK_HOST = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:\d+)?$/i;

/** A local address alone says little: a proxy on this machine has one, and so has a page whose name was pointed here. */
export function isFromThisMachine({ headers, remoteAddr }: Request): boolean {
  const forwarded = headers.forwarded !== undefined || headers['x-forwarded-for'] !== undefined;
  return isLoopback(remoteAddr) && !forwarded && LOOPBACK_HOST.test(headers.host ?? '');
}

/** @throws ServiceError `unauthorized` when the request may not use the admin API in setup mode */
export function checkSetup(request: Request, setup: SetupAccess): void {
  // Without a token any page of this origin, also a plugin's, could ask as well as our own.
  if (setup.mode !== 'token') {
    fromHere(request);
    setup.proofs.check('setup', '', false, request);
  }
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
      : 'the token that was sent is neither the setup token, which is printed when the service starts, nor a key of an administrator',
    {
      headers: [['WWW-Authenticate', 'Bearer realm="plugin-host admin"']],
    },
  );
}
