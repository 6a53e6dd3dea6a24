import { z } from 'zod';
import { appendAudit } from '../audit/audit-log.ts';
import { ServiceError } from '../base/errors.ts';
import type { Database, Queryable } from '../db/database.ts';
import { jsonReply, NO_STORE, type Reply, type Request, sessionCookieOf } from '../http/message.ts';
import { type AdminAccount, findAdmin } from '../identity/admin-accounts.ts';
import { addFirstAdmin, changePassword } from '../identity/admin-appointments.ts';
import { countAdminKeysOf } from '../identity/admin-keys.ts';
import { logIn, withPassword } from '../identity/admin-login.ts';
import { assertUncommonPassword } from '../identity/frequent-passwords.ts';
import type { PageProofs } from '../identity/page-proof.ts';
import { hashPassword, passwordProblem } from '../identity/password.ts';
import { confirmPassword, listSessions, revokeSession, type Session } from '../identity/sessions.ts';
import { addUserToken, listUserTokens, revokeUserToken, type UserToken } from '../identity/user-tokens.ts';
import { parseBody } from './body.ts';
import {
  actorOf,
  actorOfAccount,
  actorOfStranger,
  actorOfUser,
  type Caller,
  endTime,
  pageReply,
  pathIdOf,
  queryOf,
  type Route,
} from './route.ts';
import type { SessionCookies } from './session-cookies.ts';
import { refuseUntrustedOrigin } from './untrusted-origin.ts';

export type AuthApiParts = {
  db: Database;
  userTokenPrefix: string;
  cookies: SessionCookies;
  /** Whether users may log in with an identity provider. */
  idp: boolean;
  inSetupMode(): Promise<boolean>;
  /** The administrator whose session a request carries, whatever page it comes from. */
  adminSession(request: Request): Promise<Extract<Caller, { kind: 'admin' }> | null>;
  /** Whether a request with this session comes from a program, or from a page of ours. */
  isProven(session: Session, request: Request): boolean;
  proofs: PageProofs;
  /** A password was wrong. */
  loginFailed(of: { address: string; request_id: string }): void;
  checkSetup(request: Request): void;
  fromHere(request: Request): void;
};

export const email = z
  .string()
  .max(254)
  .regex(/^[^\s@]+@[^\s@]+$/, 'must be an email address');
const password = z.string().max(1000);
const newPassword = password.superRefine((text, ctx) => {
  const problem = passwordProblem(text);
  if (problem !== null) ctx.addIssue({ code: 'custom', message: problem });
});
const loginBody = z.strictObject({ email: z.string().max(254), password });
const setupBody = z.strictObject({ email, password: newPassword, name: z.string().max(200).optional() });
const passwordBody = z.strictObject({ current_password: password, new_password: newPassword });
const confirmBody = z.strictObject({ password });
const tokenBody = z.strictObject({
  name: z.string().min(1, 'must not be empty').max(200),
  expires_at: endTime,
});

const sessionJson = (s: Session, own: number) => ({
  id: s.id,
  kind: s.kind,
  created_at: s.createdAt,
  last_used_at: s.lastUsedAt,
  expires_at: s.expiresAt,
  address: s.address,
  user_agent: s.userAgent,
  current: s.id === own,
});
const tokenJson = (t: UserToken) => ({
  id: t.id,
  name: t.name,
  public: t.public,
  created_at: t.createdAt,
  expires_at: t.expiresAt,
  last_used_at: t.lastUsedAt,
});

/** Who came through the identity provider needs no password of ours, and so changes none. */
const adminJson = (a: AdminAccount, session?: Session) => ({
  global_user_id: a.userId,
  email: a.email,
  must_change_password: a.mustChangePassword && session?.via !== 'idp',
});

export function idOf(request: Request, name: string): number {
  const id = pathIdOf(request, name);
  if (id === undefined) throw new ServiceError('not_found', `there is no ${name} "${request.params[name]}"`);
  return id;
}

function userOf(caller: Caller): Session {
  if (caller.kind !== 'user') throw new Error('bug: this route needs a guard that admits only users');
  return caller.session;
}

function adminOf(caller: Caller): Extract<Caller, { kind: 'admin' }> {
  if (caller.kind !== 'admin') throw new Error('bug: this route needs the guard "admin"');
  return caller;
}

/** Login, tokens, sessions (docs/identity.md "Sessions"). */
export function authRoutes(parts: AuthApiParts): Route[] {
  const { db } = parts;

  /** Both sessions of an administrator: the second is for the frontends of plugins (docs/identity.md "Sessions"). */
  const open = async (client: Queryable, request: Request, account: AdminAccount, more = {}): Promise<Reply> => {
    const { headers, secrets } = await parts.cookies.open(client, request, account.userId, ['admin', 'user'], {
      via: 'password',
    });
    const proof = parts.proofs.make('admin', secrets.admin ?? '');
    return jsonReply(200, { admin: adminJson(account), page_proof: proof, ...more }, [...headers, NO_STORE]);
  };
  const logOut = async (request: Request): Promise<Reply> => {
    parts.fromHere(request);
    const headers = await db.withTransaction(async client => {
      const closed = await parts.cookies.close(client, request);
      for (const { kind, userId } of closed.ended)
        await appendAudit(client, await actorOfUser(client, userId, request), {
          action: `${kind}.logout`,
          objectType: 'user',
          objectId: String(userId),
        });
      return closed.headers;
    });
    return { status: 204, headers: [...headers, NO_STORE], body: '' };
  };
  const page = (request: Request): Map<string, string> => queryOf(request, ['limit', 'cursor']);
  const tokensOf = (request: Request, userId: number): Promise<Reply> =>
    pageReply(page(request), (before, limit) => listUserTokens(db, userId, before, limit), tokenJson);
  const sessionsOf = (request: Request, userId: number, own: number): Promise<Reply> =>
    pageReply(
      page(request),
      (before, limit) => listSessions(db, userId, before, limit),
      s => sessionJson(s, own),
    );
  const prover = ({ account, session }: Extract<Caller, { kind: 'admin' }>, request: Request) => ({
    account,
    // A page of a plugin that guesses must not make the administrator wait.
    counted: `session ${session.id}${parts.isProven(session, request) ? '' : ' unproven'}`,
    passwordGiven: session.via === 'password',
    by: actorOfAccount(account, request),
  });

  return [
    {
      method: 'POST',
      path: '/api/admin/auth/setup',
      guard: 'none',
      async handle({ json, request }) {
        if (!(await parts.inSetupMode()))
          throw new ServiceError('conflict', 'there is an administrator already; log in');
        parts.checkSetup(request);
        refuseUntrustedOrigin(request);
        const body = parseBody(setupBody, await json());
        await assertUncommonPassword(body.password, '/password');
        const first = { email: body.email, password: body.password, displayName: body.name ?? body.email };
        const account = await addFirstAdmin(db, first, actorOf({ kind: 'setup' }, request));
        return await db.withTransaction(client => open(client, request, account));
      },
    },
    {
      method: 'POST',
      path: '/api/admin/auth/login',
      guard: 'none',
      async handle({ json, request }) {
        parts.fromHere(request);
        refuseUntrustedOrigin(request);
        const body = parseBody(loginBody, await json());
        const attempt = {
          ...body,
          address: request.remoteAddr,
          browserOf: (userId: number) => parts.cookies.knownBrowser(request, userId),
          stranger: actorOfStranger(request),
        };
        return await logIn(db, attempt, async (client, account) => {
          await appendAudit(client, actorOfAccount(account, request), {
            action: 'admin.login',
            objectType: 'user',
            objectId: String(account.userId),
          });
          return await open(client, request, account);
        }).catch((error: unknown) => {
          // What waits after a failure is no further one: a flood of attempts does not flood the log.
          if (error instanceof ServiceError && error.code === 'unauthorized')
            parts.loginFailed({ address: request.remoteAddr, request_id: request.requestId });
          throw error;
        });
      },
    },
    {
      method: 'GET',
      path: '/api/admin/auth/check',
      guard: 'none',
      async handle({ request }) {
        const setupMode = await parts.inSetupMode();
        const caller = setupMode ? null : await parts.adminSession(request);
        const proven = caller !== null && parts.isProven(caller.session, request);
        return jsonReply(
          200,
          {
            authenticated: setupMode || caller !== null,
            setup_mode: setupMode,
            idp: parts.idp,
            ...(caller === null ? {} : { page_proof_required: !proven }),
            ...(caller !== null && proven ? { admin: adminJson(caller.account, caller.session) } : {}),
          },
          [NO_STORE],
        );
      },
    },
    {
      method: 'PUT',
      path: '/api/admin/auth/password',
      guard: 'admin_session',
      key: 'never',
      async handle({ caller, json, request }) {
        const who = adminOf(caller);
        const body = parseBody(passwordBody, await json());
        if (body.new_password === body.current_password)
          throw new ServiceError('validation_failed', 'the new password is the current one', {
            errors: [{ pointer: '/new_password', message: 'must differ from the current password' }],
          });
        await assertUncommonPassword(body.new_password, '/new_password');
        return await withPassword(
          db,
          prover(who, request),
          body.current_password,
          '/current_password',
          async client => {
            // Not before the current one is known to be right: a client with a stolen session must not keep the service hashing.
            const hash = await hashPassword(body.new_password);
            await changePassword(client, who.account.userId, hash, actorOf(caller, request));
            const kept = { admin_keys: await countAdminKeysOf(client, who.account.userId) };
            return await open(client, request, { ...who.account, mustChangePassword: false }, kept);
          },
        );
      },
    },
    {
      method: 'POST',
      path: '/api/admin/auth/confirm',
      guard: 'admin_confirm',
      key: 'never',
      async handle({ caller, json, request }) {
        const who = adminOf(caller);
        const body = parseBody(confirmBody, await json());
        return await withPassword(db, prover(who, request), body.password, '/password', async client => {
          await confirmPassword(client, who.session.id);
          const proof = parts.proofs.make('admin', sessionCookieOf(request.headers, 'admin'));
          return jsonReply(200, { admin: adminJson(who.account), page_proof: proof }, [NO_STORE]);
        });
      },
    },
    { method: 'POST', path: '/api/admin/auth/logout', guard: 'none', handle: ({ request }) => logOut(request) },
    { method: 'POST', path: '/api/auth/logout', guard: 'none', handle: ({ request }) => logOut(request) },
    {
      method: 'POST',
      path: '/api/auth/tokens',
      guard: 'user',
      async handle({ caller, json, request }) {
        const { userId, via } = userOf(caller);
        const body = parseBody(tokenBody, await json());
        if (via === 'password' && (await findAdmin(db, userId))?.mustChangePassword === true)
          throw new ServiceError(
            'password_change_required',
            'change the temporary password first: PUT /api/admin/auth/password',
          );
        const wanted = { userId, name: body.name, expiresAt: body.expires_at };
        const { text, token } = await db.withTransaction(async client => {
          const made = await addUserToken(client, parts.userTokenPrefix, wanted);
          const { expiresAt, id, name } = made.token;
          await appendAudit(client, await actorOfUser(client, userId, request), {
            action: 'token.create',
            objectType: 'user',
            objectId: String(userId),
            after: { token: id, name, expires_at: expiresAt },
          });
          return made;
        });
        return jsonReply(201, { ...tokenJson(token), token: text }, [NO_STORE]);
      },
    },
    {
      method: 'GET',
      path: '/api/auth/tokens',
      guard: 'user',
      handle: ({ caller, request }) => tokensOf(request, userOf(caller).userId),
    },
    {
      method: 'DELETE',
      path: '/api/auth/tokens/:token',
      guard: 'user',
      async handle({ caller, request }) {
        const { userId } = userOf(caller);
        const by = await actorOfUser(db, userId, request);
        if (!(await revokeUserToken(db, userId, idOf(request, 'token'), by)))
          throw new ServiceError('not_found', `you have no token ${request.params.token}`);
        return { status: 204, headers: [], body: '' };
      },
    },
    {
      method: 'GET',
      path: '/api/auth/sessions',
      guard: 'user',
      handle: ({ caller, request }) => sessionsOf(request, userOf(caller).userId, userOf(caller).id),
    },
    {
      method: 'DELETE',
      path: '/api/auth/sessions/:session',
      guard: 'user',
      async handle({ caller, request }) {
        const { userId } = userOf(caller);
        const by = await actorOfUser(db, userId, request);
        if (!(await revokeSession(db, userId, idOf(request, 'session'), by)))
          throw new ServiceError('not_found', `you have no session ${request.params.session}`);
        return { status: 204, headers: [], body: '' };
      },
    },
    {
      method: 'GET',
      path: '/api/admin/users/:user/tokens',
      guard: 'admin',
      key: ['read'],
      handle: ({ request }) => tokensOf(request, idOf(request, 'user')),
    },
    {
      method: 'DELETE',
      path: '/api/admin/users/:user/tokens/:token',
      guard: 'admin',
      key: ['admin'],
      async handle({ caller, request }) {
        const by = actorOf(caller, request);
        if (!(await revokeUserToken(db, idOf(request, 'user'), idOf(request, 'token'), by)))
          throw new ServiceError('not_found', `user ${request.params.user} has no token ${request.params.token}`);
        return { status: 204, headers: [], body: '' };
      },
    },
    {
      method: 'GET',
      path: '/api/admin/users/:user/sessions',
      guard: 'admin',
      key: ['read'],
      handle: ({ request }) => sessionsOf(request, idOf(request, 'user'), 0),
    },
    {
      method: 'DELETE',
      path: '/api/admin/users/:user/sessions/:session',
      guard: 'admin',
      key: ['admin'],
      async handle({ caller, request }) {
        const by = actorOf(caller, request);
        if (!(await revokeSession(db, idOf(request, 'user'), idOf(request, 'session'), by)))
          throw new ServiceError('not_found', `user ${request.params.user} has no session ${request.params.session}`);
        return { status: 204, headers: [], body: '' };
      },
    },
  ];
}
