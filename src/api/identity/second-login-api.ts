import { z } from 'zod';
import { appendAudit } from '../../audit/audit-log.ts';
import { ServiceError } from '../../base/errors.ts';
import type { Queryable } from '../../db/database.ts';
import { NO_STORE, type Request, sessionCookieOf } from '../../http/message.ts';
import type { AdminAccount } from '../../identity/admin-accounts.ts';
import { ADMIN_CHALLENGE, completeLogin } from '../../identity/admin-login.ts';
import { sha256 } from '../../identity/bearer-secret.ts';
import { addChallenge, holdChallenge, removeChallenge } from '../../identity/challenges.ts';
import { listPasskeys, type UseResponse, useOptions, usePasskey, useResponse } from '../../identity/passkeys.ts';
import { acceptSecondFactor, readSecondFactor, type SecondMethod } from '../../identity/second-factor.ts';
import { SECOND_FACTOR_LIMITS } from '../../identity/second-factor-limits.ts';
import { actorOfAccount, actorOfStranger } from '../contract/caller.ts';
import { resource } from '../contract/contract.ts';
import { type Handle, serve } from '../contract/endpoint.ts';
import type { Route } from '../contract/route.ts';
import { refuseUntrustedOrigin } from '../contract/untrusted-origin.ts';
import {
  type AdminCaller,
  type AdminSessionParts,
  adminOf,
  loggedIn,
  noteLogin,
  openAdminSession,
} from './open-admin-session.ts';
import { useOptionsShape } from './passkey-options.ts';
import { siteOf } from './site.ts';

/** Names the question that an answer belongs to. */
export const continuation = z.string().min(1).max(200).describe('The value of the answer that asked for it');
const code = z.string().min(1).max(40);
/** A recovery code in a body. */
export const recoveryCode = code.describe('One of the codes to keep; it works once');

const secondHalf = z
  .strictObject({
    continuation,
    code: code.optional().describe('Six digits of the authenticator app'),
    recovery_code: recoveryCode.optional(),
    passkey: useResponse.optional().describe('What navigator.credentials.get answered, as JSON'),
  })
  .refine(b => [b.code, b.recovery_code, b.passkey].filter(x => x !== undefined).length === 1, {
    message: 'must have one of code, recovery_code and passkey',
  });

const asked = z.object({
  continuation: z.string().describe('Names this question in the answer; valid for five minutes'),
  options: useOptionsShape.describe('What navigator.credentials.get takes as publicKey, as JSON'),
});

/** The second half of a login (docs/identity.md "Second factor"). */
export const secondLogin = resource(
  'Second factor at login',
  'The second half of a login, and a passkey given again.',
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

/** Who answers a question of a login. */
export function attemptOf(parts: AdminSessionParts, request: Request) {
  return {
    address: request.remoteAddr,
    browserOf: (userId: number) => parts.cookies.knownBrowser(request, userId),
    stranger: actorOfStranger(request),
  };
}

/** Logs a wrong answer, and goes on with the refusal. */
export const failed =
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
  serve(secondLogin, parts, { complete, askPasskey });
