import { z } from 'zod';
import { ServiceError } from '../../base/errors.ts';
import { LIMITS } from '../../base/limits.ts';
import type { Queryable } from '../../db/database.ts';
import { NO_STORE, type Request, sessionCookieOf } from '../../http/message.ts';
import { addFirstAdmin, changePassword } from '../../identity/admin-appointments.ts';
import { countAdminKeysOf } from '../../identity/admin-keys.ts';
import { logIn, withPassword } from '../../identity/admin-login.ts';
import { assertUncommonPassword } from '../../identity/frequent-passwords.ts';
import { useResponse } from '../../identity/passkeys.ts';
import { hashPassword, passwordProblem } from '../../identity/password.ts';
import { confirmPassword } from '../../identity/sessions.ts';
import { actorOf, actorOfAccount, actorOfStranger } from '../contract/caller.ts';
import { resource } from '../contract/contract.ts';
import { type Handle, serve } from '../contract/endpoint.ts';
import { email } from '../contract/fields.ts';
import type { Route } from '../contract/route.ts';
import { refuseUntrustedOrigin } from '../contract/untrusted-origin.ts';
import {
  type AdminCaller,
  type AdminSessionParts,
  adminJson,
  adminOf,
  currentAdmin,
  loggedIn,
  noteLogin,
  openAdminSession,
} from './open-admin-session.ts';
import { findPasswordless, passwordlessRoutes } from './passwordless-api.ts';
import { ownSecondFactorRoutes } from './second-factor-api.ts';
import { askSecondFactor, secondLoginRoutes, withPasskey } from './second-login-api.ts';
import { logOut, type SessionsParts, sessionRoutes } from './sessions-api.ts';
import { type UserTokensParts, userTokenRoutes } from './user-tokens-api.ts';

export type AuthApiParts = UserTokensParts &
  SessionsParts &
  AdminSessionParts & {
    inSetupMode(): Promise<boolean>;
    /** The administrator whose session a request carries, whatever page it comes from. */
    adminSession(request: Request): Promise<AdminCaller | null>;
    checkSetup(request: Request): void;
  };

const password = z.string().max(1000);
const newPassword = password
  .superRefine((text, ctx) => {
    const problem = passwordProblem(text);
    if (problem === null) return;
    const { message, ...params } = problem;
    ctx.addIssue({ code: 'custom', message, params });
  })
  .describe(`${LIMITS.passwordBytesMin} to ${LIMITS.passwordBytesMax} bytes, and none of the most common passwords`);

const firstAdmin = z.strictObject({
  email,
  password: newPassword,
  name: z.string().max(200).optional(),
  locale: z
    .enum(['ru', 'en'])
    .optional()
    .describe('Language in which plugins address the administrator; left out: `ru`'),
});
const credentials = z.strictObject({ email: z.string().max(254), password });
const passwordChange = z.strictObject({ current_password: password, new_password: newPassword });
const confirmation = z
  .strictObject({
    password: password.optional(),
    continuation: z.string().max(200).optional().describe('The value of POST /api/admin/auth/confirm/passkey'),
    passkey: useResponse.optional().describe('What navigator.credentials.get answered, as JSON'),
  })
  .refine(b => (b.password === undefined) === (b.passkey !== undefined && b.continuation !== undefined), {
    message: 'must have either password, or continuation and passkey',
  });

const path = '/api/admin/auth';
const COOKIES = 'Begins a session of the administrator and one of the user, which the answer sets as cookies.';

/** Login of administrators (docs/identity.md "Sessions"). */
export const adminLogin = resource(
  'Administration login',
  'The first administrator, login by email and password, passwords.',
  {
    setUp: {
      method: 'POST',
      path: `${path}/setup`,
      guard: 'none',
      callers: {
        words: 'For callers that admin.setup admits, until there is an administrator.',
        schemes: ['setup_token'],
      },
      summary: 'Make the first administrator',
      description: COOKIES,
      body: firstAdmin,
      replies: { 200: loggedIn },
      refusals: ['conflict', 'unauthorized', 'page_proof_required'],
      example: { body: { email: 'ada@example.edu', password: 'seven brown owls at noon', name: 'Ada' } },
    },
    logIn: {
      method: 'POST',
      path: `${path}/login`,
      guard: 'none',
      summary: 'Log in as an administrator',
      description: COOKIES,
      body: credentials,
      replies: { 200: loggedIn },
      refusals: ['unauthorized', 'second_factor_required', 'too_many_attempts'],
      example: { body: { email: 'ada@example.edu', password: 'seven brown owls at noon' } },
    },
    check: {
      method: 'GET',
      path: `${path}/check`,
      guard: 'none',
      summary: 'Tell whether the caller is logged in as an administrator',
      replies: {
        200: z
          .object({
            authenticated: z.boolean().describe('Also true while there is no administrator'),
            setup_mode: z.boolean().describe('Whether the first administrator has to be made'),
            idp: z.boolean().describe('Whether users may log in with an identity provider'),
            passwordless: z
              .array(z.enum(['passkey', 'recovery_code']))
              .describe(
                'What the administrator who has logged in last with this browser may log in with instead of the password',
              ),
            page_proof_required: z
              .boolean()
              .optional()
              .describe('For a session: whether this request lacks the header X-Page-Proof'),
            admin: currentAdmin.optional().describe('Whose session it is, unless the request lacks the header'),
          })
          .meta({ id: 'AdminLoginCheck' }),
      },
    },
    changePassword: {
      method: 'PUT',
      path: `${path}/password`,
      guard: 'admin_session',
      key: 'own',
      summary: 'Change your password',
      description: `Ends every session and revokes every token of the account. ${COOKIES}`,
      body: passwordChange,
      replies: { 200: loggedIn.extend({ admin_keys: z.int().min(0).describe('How many administration keys go on') }) },
      refusals: ['too_many_attempts'],
      example: { body: { current_password: 'seven brown owls at noon', new_password: 'nine grey geese at dusk' } },
    },
    confirm: {
      method: 'POST',
      path: `${path}/confirm`,
      guard: 'admin_confirm',
      key: 'own',
      summary: 'Give the password again, or a passkey',
      description:
        'Endpoints that ask for a recent password are open for ten minutes afterwards. A passkey also needs the header X-Page-Proof in a session of a browser.',
      body: confirmation,
      replies: { 200: loggedIn },
      refusals: ['conflict', 'page_proof_required', 'too_many_attempts'],
      example: { body: { password: 'seven brown owls at noon' } },
    },
    logOut: {
      method: 'POST',
      path: `${path}/logout`,
      guard: 'none',
      summary: 'Log out',
      description: 'Ends the sessions whose cookies the request carries, and takes the cookies away.',
      replies: { 204: null },
    },
  },
);

const setUp: Handle<typeof adminLogin.setUp, AuthApiParts> = async (parts, { body, request }) => {
  if (!(await parts.inSetupMode())) throw new ServiceError('conflict', 'there is an administrator already; log in');
  parts.checkSetup(request);
  refuseUntrustedOrigin(request);
  const { email, locale, name, password } = await body();
  await assertUncommonPassword(password, '/password');
  const first = { email, password, displayName: name ?? email, locale };
  const account = await addFirstAdmin(parts.db, first, actorOf({ kind: 'setup' }, request));
  return await parts.db.withTransaction(client => openAdminSession(parts, client, request, account));
};

const logInWithPassword: Handle<typeof adminLogin.logIn, AuthApiParts> = async (parts, { body, request }) => {
  parts.fromHere(request);
  refuseUntrustedOrigin(request);
  const attempt = {
    ...(await body()),
    address: request.remoteAddr,
    browserOf: (userId: number) => parts.cookies.knownBrowser(request, userId),
    stranger: actorOfStranger(request),
  };
  const step = await logIn(
    parts.db,
    attempt,
    async (client, account) => {
      await noteLogin(client, account, request);
      return await openAdminSession(parts, client, request, account);
    },
    (client, account, boundTo) => askSecondFactor(parts, client, request, account, boundTo),
  ).catch((error: unknown) => {
    // An attempt that has to wait after a failure is no further failure: a flood of attempts does not flood the log.
    if (error instanceof ServiceError && error.code === 'unauthorized')
      parts.loginFailed({ address: request.remoteAddr, request_id: request.requestId });
    throw error;
  });
  if ('asked' in step) throw step.asked;
  return step.opened;
};

const check: Handle<typeof adminLogin.check, AuthApiParts> = async (parts, { request }) => {
  const setupMode = await parts.inSetupMode();
  const caller = setupMode ? null : await parts.adminSession(request);
  const proven = caller !== null && parts.isProven(caller.session, request);
  const json = {
    authenticated: setupMode || caller !== null,
    setup_mode: setupMode,
    idp: parts.idp,
    passwordless: (await findPasswordless(parts, request))?.methods ?? [],
    ...(caller === null ? {} : { page_proof_required: !proven }),
    ...(caller !== null && proven ? { admin: adminJson(parts, caller.account, caller.session) } : {}),
  };
  return { status: 200, json, headers: [NO_STORE] };
};

const replacePassword: Handle<typeof adminLogin.changePassword, AuthApiParts> = async (
  parts,
  { body, caller, request },
) => {
  const who = adminOf(caller);
  const { current_password, new_password } = await body();
  if (new_password === current_password)
    throw new ServiceError('validation_failed', 'the new password is the current one', {
      errors: [{ pointer: '/new_password', message: 'must differ from the current password', code: 'unchanged' }],
    });
  await assertUncommonPassword(new_password, '/new_password');
  const prover = proverOf(parts, who, request);
  return await withPassword(parts.db, prover, current_password, '/current_password', async client => {
    // Not before the current one is known to be right: a client with a stolen session must not keep the service hashing.
    const hash = await hashPassword(new_password);
    await changePassword(client, who.account.userId, hash, actorOf(caller, request));
    const kept = await countAdminKeysOf(client, who.account.userId);
    const opened = await openAdminSession(parts, client, request, { ...who.account, mustChangePassword: false });
    return { ...opened, json: { ...opened.json, admin_keys: kept } };
  });
};

const confirm: Handle<typeof adminLogin.confirm, AuthApiParts> = async (parts, { body, caller, request }) => {
  const who = adminOf(caller);
  const { continuation = '', passkey, password = '' } = await body();
  const confirmed = async (client: Queryable) => {
    await confirmPassword(client, who.session.id);
    const proof = parts.proofs.make('admin', sessionCookieOf(request.headers, 'admin'));
    return {
      status: 200 as const,
      json: { admin: adminJson(parts, who.account, who.session), page_proof: proof },
      headers: [NO_STORE],
    };
  };
  if (passkey === undefined)
    return await withPassword(parts.db, proverOf(parts, who, request), password, '/password', confirmed);
  // A password is known to its owner alone; a passkey signs for every page of this origin that asks.
  parts.proofs.check('admin', sessionCookieOf(request.headers, 'admin'), who.session.browser, request);
  return await withPasskey(parts, who, request, { continuation, passkey }, confirmed);
};

/** Login, tokens, sessions. */
export const authRoutes = (parts: AuthApiParts): Route[] => [
  ...serve(adminLogin, parts, {
    setUp,
    logIn: logInWithPassword,
    check,
    changePassword: replacePassword,
    confirm,
    logOut,
  }),
  ...secondLoginRoutes(parts),
  ...passwordlessRoutes(parts),
  ...ownSecondFactorRoutes(parts),
  ...userTokenRoutes(parts),
  ...sessionRoutes(parts),
];

/** The caller that an attempt with a password is counted for. */
const proverOf = (parts: AuthApiParts, { account, session }: AdminCaller, request: Request) => ({
  account,
  // A page of a plugin that guesses must not make the administrator wait.
  counted: `session ${session.id}${parts.isProven(session, request) ? '' : ' unproven'}`,
  passwordGiven: session.via === 'password',
  by: actorOfAccount(account, request),
});
