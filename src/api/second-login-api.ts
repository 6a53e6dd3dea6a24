import { z } from 'zod';
import { appendAudit } from '../audit/audit-log.ts';
import { ServiceError } from '../base/errors.ts';
import type { Queryable } from '../db/database.ts';
import { NO_STORE, type Request, sessionCookieOf } from '../http/message.ts';
import { type AdminAccount, findAdmin, markOfCredentials } from '../identity/admin-accounts.ts';
import { ADMIN_CHALLENGE, completeLogin } from '../identity/admin-login.ts';
import { sha256 } from '../identity/bearer-secret.ts';
import { addChallenge, findChallenge, holdChallenge, removeChallenge } from '../identity/challenges.ts';
import {
  listPasskeys,
  type Passkey,
  type UseResponse,
  useOptions,
  usePasskey,
  useResponse,
} from '../identity/passkeys.ts';
import { acceptSecondFactor, readSecondFactor, type SecondMethod } from '../identity/second-factor.ts';
import { SECOND_FACTOR_LIMITS } from '../identity/second-factor-limits.ts';
import { actorOfAccount, actorOfStranger } from './caller.ts';
import { resource } from './contract.ts';
import { type Handle, serve } from './endpoint.ts';
import {
  type AdminCaller,
  type AdminSessionParts,
  adminOf,
  currentAdmin,
  loggedIn,
  noteLogin,
  openAdminSession,
  openByPasskey,
} from './open-admin-session.ts';
import { useOptionsShape } from './passkey-options.ts';
import type { Route } from './route.ts';
import { siteOf } from './site.ts';
import { refuseUntrustedOrigin } from './untrusted-origin.ts';

const continuation = z.string().min(1).max(200).describe('The value of the answer that asked for it');
const code = z.string().min(1).max(40);

const secondHalf = z
  .strictObject({
    continuation,
    code: code.optional().describe('Six digits of the authenticator app'),
    recovery_code: code.optional().describe('One of the codes to keep; it works once'),
    passkey: useResponse.optional().describe('What navigator.credentials.get answered, as JSON'),
  })
  .refine(b => [b.code, b.recovery_code, b.passkey].filter(x => x !== undefined).length === 1, {
    message: 'must have one of code, recovery_code and passkey',
  });

const asked = z.object({
  continuation: z.string().describe('Names this question in the answer; valid for five minutes'),
  options: useOptionsShape.describe('What navigator.credentials.get takes as publicKey, as JSON'),
});

const signed = z.strictObject({
  continuation,
  passkey: useResponse.describe('What navigator.credentials.get answered, as JSON'),
});

/** The second half of a login (docs/identity.md "Second factor"). */
export const secondLogin = resource(
  'Second factor at login',
  'The second half of a login, and a passkey instead of the password.',
  {
    complete: {
      method: 'POST',
      path: '/api/admin/auth/login/second-factor',
      guard: 'none',
      summary: 'Complete a login with a second factor',
      description:
        'A login with the right password of an account with a second factor is refused with second_factor_required, which holds continuation, methods and passkey_options. Begins a session of the administrator and one of the user, which the answer sets as cookies.',
      body: secondHalf,
      replies: { 200: loggedIn },
      refusals: ['unauthorized', 'too_many_attempts'],
      example: { body: { continuation: '2Ef1...', code: '492039' } },
    },
    beginAlone: {
      method: 'POST',
      path: '/api/admin/auth/login/passkey/begin',
      guard: 'none',
      summary: 'Begin a login with a passkey alone',
      description:
        'For a browser in which this administrator has logged in before, as its cookie known_browser says. The answer goes to POST /api/admin/auth/login/passkey.',
      replies: { 200: asked },
      refusals: ['conflict'],
    },
    completeAlone: {
      method: 'POST',
      path: '/api/admin/auth/login/passkey',
      guard: 'none',
      summary: 'Log in with a passkey alone',
      description:
        'Begins a session of the administrator and one of the user, which the answer sets as cookies, in the browser that has begun it. The page proof does not come with them; /admin/ holds it when it is opened next.',
      body: signed,
      replies: { 200: z.object({ admin: currentAdmin }).meta({ id: 'AdminPasskeyLogin' }) },
      refusals: ['unauthorized', 'too_many_attempts'],
      example: {
        body: {
          continuation: '2Ef1...',
          passkey: {
            ...{ id: 'tCk7', rawId: 'tCk7', type: 'public-key', clientExtensionResults: {} },
            response: { clientDataJSON: 'eyJ0', authenticatorData: 'SZYN', signature: 'MEUC' },
          },
        },
      },
    },
    askPasskey: {
      method: 'POST',
      path: '/api/admin/auth/confirm/passkey',
      guard: 'admin_session',
      key: 'own',
      summary: 'Ask for a passkey instead of the password',
      description: 'The answer goes to POST /api/admin/auth/confirm.',
      replies: { 200: asked },
      refusals: ['conflict'],
    },
  },
);

/**
 * Asks for the second factor of an account whose password was right.
 *
 * @param boundTo a hash over the password, so that a change of it ends the login
 * @returns the refusal that holds what the second half needs
 */
export async function askSecondFactor(
  { publicUrl }: AdminSessionParts,
  client: Queryable,
  request: Request,
  account: AdminAccount,
  boundTo: Buffer,
): Promise<ServiceError> {
  const factor = await readSecondFactor(client, account.userId);
  const { rp } = siteOf(publicUrl, request);
  const usable = rp === null ? [] : factor.passkeys.filter(p => p.rpId === rp.id);
  const asked = rp === null || usable.length === 0 ? null : await useOptions(rp, usable);
  const text = asked?.challenge ?? '';
  const token = await addChallenge(client, { userId: account.userId, purpose: 'login', text, boundTo });
  await appendAudit(client, actorOfAccount(account, request), {
    action: 'admin.second_factor_asked',
    objectType: 'user',
    objectId: String(account.userId),
  });
  const methods: SecondMethod[] = [
    ...(asked === null ? [] : (['passkey'] as const)),
    ...(factor.totpSince === null ? [] : (['totp'] as const)),
    ...(factor.recoveryCodes === 0 ? [] : (['recovery_code'] as const)),
  ];
  return new ServiceError(
    'second_factor_required',
    'the password is right; complete the login with a second factor: POST /api/admin/auth/login/second-factor',
    {
      headers: [['WWW-Authenticate', ADMIN_CHALLENGE], NO_STORE],
      extra: { continuation: token, methods, passkey_options: asked?.options ?? null },
    },
  );
}

/** Six digits can be guessed by a caller with many addresses and the right password; other proofs cannot. */
const codesRefused = (): ServiceError =>
  new ServiceError(
    'too_many_attempts',
    'too many wrong codes were given for this account; use a passkey or a recovery code, or wait fifteen minutes; if it was not you, change the password',
    { headers: [['Retry-After', '900']] },
  );

/** Who answers in the second half of a login. */
function attemptOf(parts: AdminSessionParts, request: Request) {
  return {
    address: request.remoteAddr,
    browserOf: (userId: number) => parts.cookies.knownBrowser(request, userId),
    stranger: actorOfStranger(request),
  };
}

/** Logs a wrong answer, and goes on with the refusal. */
const failed =
  (parts: AdminSessionParts, request: Request) =>
  (error: unknown): never => {
    if (error instanceof ServiceError && error.extra.attempts_left !== undefined)
      parts.loginFailed({ address: request.remoteAddr, request_id: request.requestId });
    throw error;
  };

const complete: Handle<typeof secondLogin.complete, AdminSessionParts> = async (parts, { body, request }) => {
  parts.fromHere(request);
  refuseUntrustedOrigin(request);
  const { continuation, ...answer } = await body();
  const given =
    answer.passkey !== undefined
      ? { passkey: answer.passkey }
      : answer.recovery_code !== undefined
        ? { recovery_code: answer.recovery_code }
        : { code: answer.code ?? '' };
  const how = { sealer: parts.sealer, rp: siteOf(parts.publicUrl, request).rp, nowMs: Date.now() };
  let method: SecondMethod | null = null;
  return await completeLogin(
    parts.db,
    { ...attemptOf(parts, request), continuation, purpose: 'login' },
    async (client, challenge, failures) => {
      if ('code' in given && failures >= SECOND_FACTOR_LIMITS.wrongCodesMax) throw codesRefused();
      method = await acceptSecondFactor(client, how, challenge.userId, challenge.text, given);
      return method !== null;
    },
    async (client, account) => {
      await noteLogin(client, account, request, { second_factor: method });
      return await openAdminSession(parts, client, request, account);
    },
  ).catch(failed(parts, request));
};

const beginAlone: Handle<typeof secondLogin.beginAlone, AdminSessionParts> = async (parts, { request }) => {
  parts.fromHere(request);
  refuseUntrustedOrigin(request);
  const site = siteOf(parts.publicUrl, request);
  if (site.rp === null) throw new ServiceError('conflict', site.problem);
  const known = await findAlone(parts, request);
  if (known === null)
    throw new ServiceError(
      'conflict',
      'a passkey alone opens only a browser in which its administrator has logged in since it was made; log in with the password',
    );
  const { challenge, options } = await useOptions(site.rp, known.passkeys);
  const { boundTo, userId } = known;
  const of = { userId, purpose: 'passkey_login', text: challenge, boundTo } as const;
  const json = { continuation: await addChallenge(parts.db, of), options: { ...options } };
  return { status: 200, json, headers: [NO_STORE] };
};

/**
 * The administrator whom the browser of a request may log in with a passkey alone, and the passkeys that do; null for none. A
 * passkey signs for every page of this origin that asks, those of plugins too, and what it signed can be carried elsewhere: it counts
 * only together with the cookie of a browser in which its owner has logged in since it was made, with the password there is now.
 */
export async function findAlone(
  { cookies, db, publicUrl }: Pick<AdminSessionParts, 'cookies' | 'db' | 'publicUrl'>,
  request: Request,
): Promise<{ userId: number; boundTo: Buffer; passkeys: Passkey[] } | null> {
  const { rp } = siteOf(publicUrl, request);
  const last = cookies.lastAdminLogin(request);
  if (rp === null || last === null || last.credentials === '') return null;
  const { userId } = last;
  const account = await findAdmin(db, userId);
  if (account === undefined || account.mustChangePassword) return null;
  if ((await markOfCredentials(db, userId)) !== last.credentials) return null;
  const passkeys = (await listPasskeys(db, userId)).filter(p => p.rpId === rp.id && p.createdAt < last.at);
  return passkeys.length === 0 ? null : { userId, boundTo: Buffer.from(last.credentials, 'base64url'), passkeys };
}

const completeAlone: Handle<typeof secondLogin.completeAlone, AdminSessionParts> = async (parts, { body, request }) => {
  parts.fromHere(request);
  refuseUntrustedOrigin(request);
  const { continuation, passkey } = await body();
  const { rp } = siteOf(parts.publicUrl, request);
  const known = await findAlone(parts, request);
  const asked = await findChallenge(parts.db, continuation, 'passkey_login');
  // What another browser sends is no attempt of the administrator's, and counts as none.
  if (asked !== undefined && asked.userId !== known?.userId)
    throw new ServiceError(
      'unauthorized',
      'a passkey alone opens the browser in which the login was begun; log in with the password here',
      { headers: [['WWW-Authenticate', ADMIN_CHALLENGE]] },
    );
  return await completeLogin(
    parts.db,
    { ...attemptOf(parts, request), continuation, purpose: 'passkey_login' },
    async (client, { text, userId }) =>
      rp !== null &&
      known?.passkeys.some(p => p.credentialId === passkey.id) === true &&
      (await usePasskey(client, rp, userId, text, passkey)) !== undefined,
    async (client, account) => {
      await noteLogin(client, account, request, { instead_of_password: 'passkey' });
      return await openByPasskey(parts, client, request, account);
    },
  ).catch(failed(parts, request));
};

const askPasskey: Handle<typeof secondLogin.askPasskey, AdminSessionParts> = async (parts, { caller, request }) => {
  const { account } = adminOf(caller);
  const site = siteOf(parts.publicUrl, request);
  if (site.rp === null) throw new ServiceError('conflict', site.problem);
  const { rp } = site;
  const usable = (await listPasskeys(parts.db, account.userId)).filter(p => p.rpId === rp.id);
  if (usable.length === 0) throw new ServiceError('conflict', `you have no passkey for ${rp.id}; give the password`);
  const { challenge, options } = await useOptions(rp, usable);
  const boundTo = sha256(sessionCookieOf(request.headers, 'admin'));
  const token = await addChallenge(parts.db, { userId: account.userId, purpose: 'confirm', text: challenge, boundTo });
  return { status: 200, json: { continuation: token, options: { ...options } }, headers: [NO_STORE] };
};

/**
 * Takes a passkey instead of the password given again. An answer uses the question up, whether it is right or wrong.
 *
 * @param act runs in the transaction that has counted the use of the passkey
 * @throws ServiceError `conflict` if the question has expired, `validation_failed` if the passkey does not fit
 */
export async function withPasskey<T extends object>(
  { db, publicUrl }: AdminSessionParts,
  { account }: AdminCaller,
  request: Request,
  { continuation, passkey }: { continuation: string; passkey: UseResponse },
  act: (client: Queryable) => Promise<T>,
): Promise<T> {
  const { rp } = siteOf(publicUrl, request);
  const done = await db.withTransaction(async client => {
    const challenge = await holdChallenge(client, continuation, 'confirm');
    const isOwn = challenge?.boundTo.equals(sha256(sessionCookieOf(request.headers, 'admin'))) === true;
    if (challenge?.userId !== account.userId || !isOwn || rp === null)
      throw new ServiceError('conflict', 'the passkey was asked for too long ago, or in another session; ask again');
    await removeChallenge(client, continuation);
    const used = await usePasskey(client, rp, account.userId, challenge.text, passkey);
    return used === undefined ? null : await act(client);
  });
  if (done !== null) return done;
  await appendAudit(db, actorOfAccount(account, request), {
    action: 'admin.confirm_failed',
    objectType: 'user',
    objectId: String(account.userId),
    after: { second_factor: 'passkey' },
  });
  throw new ServiceError('validation_failed', 'this is not a passkey of yours', {
    errors: [
      { pointer: '/passkey', message: `must be signed by a passkey of yours for ${rp?.id}`, code: 'wrong_secret' },
    ],
  });
}

export const secondLoginRoutes = (parts: AdminSessionParts): Route[] =>
  serve(secondLogin, parts, { complete, beginAlone, completeAlone, askPasskey });
