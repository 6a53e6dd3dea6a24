import { z } from 'zod';
import { ServiceError } from '../../base/errors.ts';
import { NO_STORE, type Request } from '../../http/message.ts';
import { findAdmin, markOfCredentials } from '../../identity/admin-accounts.ts';
import { ADMIN_CHALLENGE, completeLogin } from '../../identity/admin-login.ts';
import { addChallenge, findChallenge } from '../../identity/challenges.ts';
import { listPasskeys, type Passkey, useOptions, usePasskey, useResponse } from '../../identity/passkeys.ts';
import { countRecoveryCodes, takeRecoveryCode } from '../../identity/recovery-codes.ts';
import type { PasswordlessMethod } from '../../identity/second-factor.ts';
import { resource } from '../contract/contract.ts';
import { type Handle, serve } from '../contract/endpoint.ts';
import type { Route } from '../contract/route.ts';
import { refuseUntrustedOrigin } from '../contract/untrusted-origin.ts';
import { type AdminSessionParts, currentAdmin, noteLogin, openPasswordless } from './open-admin-session.ts';
import { useOptionsShape } from './passkey-options.ts';
import { attemptOf, continuation, failed, recoveryCode } from './second-login-api.ts';
import { siteOf } from './site.ts';

const begun = z.object({
  continuation: z.string().describe('Names this login in the answer; valid for five minutes'),
  methods: z.array(z.enum(['passkey', 'recovery_code'])).describe('What is taken instead of the password'),
  passkey_options: useOptionsShape
    .nullable()
    .describe('What navigator.credentials.get takes as publicKey, as JSON; null without a passkey'),
});

const answer = z
  .strictObject({
    continuation,
    passkey: useResponse.optional().describe('What navigator.credentials.get answered, as JSON'),
    recovery_code: recoveryCode.optional(),
  })
  .refine(b => (b.passkey === undefined) !== (b.recovery_code === undefined), {
    message: 'must have either passkey or recovery_code',
  });

const path = '/api/admin/auth/login/passwordless';

/** A login in a browser that knows its administrator (docs/identity.md "Second factor"). */
export const passwordlessLogin = resource(
  'Passwordless login',
  'A passkey or a recovery code instead of the password, in a browser in which its administrator has logged in before.',
  {
    begin: {
      method: 'POST',
      path: `${path}/begin`,
      guard: 'none',
      summary: 'Begin a login without a password',
      description: `For the administrator whom the cookie known_browser names. The answer goes to POST ${path}.`,
      replies: { 200: begun.meta({ id: 'PasswordlessLogin' }) },
      refusals: ['conflict'],
    },
    complete: {
      method: 'POST',
      path,
      guard: 'none',
      summary: 'Log in without a password',
      description:
        'Begins a session of the administrator and one of the user, which the answer sets as cookies, in the browser that has begun it. The page proof does not come with them; /admin/ holds it when it is opened next.',
      body: answer,
      replies: { 200: z.object({ admin: currentAdmin }).meta({ id: 'PasswordlessAdmin' }) },
      refusals: ['unauthorized', 'too_many_attempts'],
      example: { body: { continuation: '2Ef1...', recovery_code: 'k3v9x-7mnp2' } },
    },
  },
);

/** The administrator whom a browser may log in without a password. */
type KnownAdmin = {
  userId: number;
  /** What its account said of it then. */
  after: Date;
  /** Void when the password changes. */
  boundTo: Buffer;
  passkeys: Passkey[];
  /** At least one. */
  methods: PasswordlessMethod[];
};

/**
 * The administrator whom the browser of a request may log in without a password, and with what; null for none. A passkey signs for
 * every page of this origin that asks, those of plugins too, and a sheet of codes can be found: either counts only together with the
 * cookie of a browser in which its owner has logged in with the password there is now, since factors were last added and sessions
 * ended.
 */
export async function findPasswordless(
  { cookies, db, publicUrl }: Pick<AdminSessionParts, 'cookies' | 'db' | 'publicUrl'>,
  request: Request,
): Promise<KnownAdmin | null> {
  const { rp } = siteOf(publicUrl, request);
  const last = cookies.lastAdminLogin(request);
  if (last === null || last.credentials === '') return null;
  const { userId } = last;
  const account = await findAdmin(db, userId);
  if (account === undefined || account.mustChangePassword || last.at <= account.passwordlessAfter) return null;
  if ((await markOfCredentials(db, userId)) !== last.credentials) return null;
  const all = rp === null ? [] : await listPasskeys(db, userId);
  const passkeys = all.filter(p => p.rpId === rp?.id);
  const methods: PasswordlessMethod[] = [
    ...(passkeys.length > 0 ? (['passkey'] as const) : []),
    ...((await countRecoveryCodes(db, userId)) > 0 ? (['recovery_code'] as const) : []),
  ];
  if (methods.length === 0) return null;
  return {
    userId,
    after: account.passwordlessAfter,
    boundTo: Buffer.from(last.credentials, 'base64url'),
    passkeys,
    methods,
  };
}

const begin: Handle<typeof passwordlessLogin.begin, AdminSessionParts> = async (parts, { request }) => {
  parts.fromHere(request);
  refuseUntrustedOrigin(request);
  const known = await findPasswordless(parts, request);
  if (known === null)
    throw new ServiceError(
      'conflict',
      'a passkey or a recovery code alone opens only a browser in which its administrator has logged in since factors were added and sessions ended; log in with the password',
    );
  const { boundTo, methods, passkeys, userId } = known;
  const { rp } = siteOf(parts.publicUrl, request);
  const asked = rp === null || passkeys.length === 0 ? null : await useOptions(rp, passkeys);
  const of = { userId, purpose: 'passwordless', text: asked?.challenge ?? '', boundTo } as const;
  const json = {
    continuation: await addChallenge(parts.db, of),
    methods,
    passkey_options: asked === null ? null : { ...asked.options },
  };
  return { status: 200, json, headers: [NO_STORE] };
};

const elsewhere = (): ServiceError =>
  new ServiceError(
    'unauthorized',
    'a passkey or a recovery code alone opens the browser in which the login was begun; log in with the password here',
    { headers: [['WWW-Authenticate', ADMIN_CHALLENGE]] },
  );

const complete: Handle<typeof passwordlessLogin.complete, AdminSessionParts> = async (parts, { body, request }) => {
  parts.fromHere(request);
  refuseUntrustedOrigin(request);
  const { continuation, passkey, recovery_code = '' } = await body();
  const { rp } = siteOf(parts.publicUrl, request);
  const known = await findPasswordless(parts, request);
  const asked = await findChallenge(parts.db, continuation, 'passwordless');
  // A request of another browser is no attempt of the administrator's, and counts as none.
  if (asked !== undefined && asked.userId !== known?.userId) throw elsewhere();
  const method = passkey === undefined ? 'recovery_code' : 'passkey';
  return await completeLogin(
    parts.db,
    { ...attemptOf(parts, request), continuation, purpose: 'passwordless' },
    async (client, { text, userId }) => {
      if (known === null) return false;
      if (passkey === undefined) return await takeRecoveryCode(client, userId, recovery_code);
      // Without a passkey to ask for, nothing was asked.
      if (rp === null || text === '' || !known.passkeys.some(p => p.credentialId === passkey.id)) return false;
      return (await usePasskey(client, rp, userId, text, passkey)) !== undefined;
    },
    async (client, account) => {
      // Sessions may have been ended since the question.
      if (account.passwordlessAfter.getTime() !== known?.after.getTime()) throw elsewhere();
      await noteLogin(client, account, request, { instead_of_password: method });
      return await openPasswordless(parts, client, request, account, method);
    },
  ).catch(failed(parts, request));
};

/** The endpoints of a login without a password. */
export const passwordlessRoutes = (parts: AdminSessionParts): Route[] =>
  serve(passwordlessLogin, parts, { begin, complete });
