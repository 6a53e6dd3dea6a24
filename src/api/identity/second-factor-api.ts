import { appendAudit } from '../../audit/audit-log.ts';
import { ServiceError } from '../../base/errors.ts';
import type { Queryable } from '../../db/database.ts';
import { NO_STORE, type Request, sessionCookieOf } from '../../http/message.ts';
import { endPasswordless, holdCredentials } from '../../identity/admin-accounts.ts';
import { sha256 } from '../../identity/bearer-secret.ts';
import { addChallenge, type ChallengePurpose, holdChallenge, removeChallenge } from '../../identity/challenges.ts';
import {
  addPasskey,
  creationOptions,
  listPasskeys,
  type Passkey,
  type RelyingParty,
  removePasskey,
} from '../../identity/passkeys.ts';
import { renewRecoveryCodes } from '../../identity/recovery-codes.ts';
import { assertFactorRemains, firstRecoveryCodes, isNone, readSecondFactor } from '../../identity/second-factor.ts';
import { SECOND_FACTOR_LIMITS } from '../../identity/second-factor-limits.ts';
import { holdSession, revokeOtherSessions } from '../../identity/sessions.ts';
import { makeTotp, removeTotp, stepOfCode, storeTotp, totpOwner } from '../../identity/totp.ts';
import { actorOf } from '../contract/caller.ts';
import { type Handle, serve } from '../contract/endpoint.ts';
import type { Route } from '../contract/route.ts';
import { type AdminCaller, type AdminSessionParts, adminOf } from './open-admin-session.ts';
import { ownSecondFactor } from './own-second-factor.ts';
import { siteOf } from './site.ts';

const expired = (): ServiceError =>
  new ServiceError('conflict', 'this was begun too long ago, or in another session; begin again');

/** What the two halves of an enrolment share: the session. */
const sessionHash = (request: Request): Buffer => sha256(sessionCookieOf(request.headers, 'admin'));

async function begin(
  { db }: AdminSessionParts,
  caller: AdminCaller,
  request: Request,
  purpose: ChallengePurpose,
  text: string,
): Promise<string> {
  return await addChallenge(db, { userId: caller.account.userId, purpose, text, boundTo: sessionHash(request) });
}

/** The first half of an enrolment, locked until the transaction ends. @throws ServiceError `conflict` */
async function takeBegun(
  client: Queryable,
  caller: AdminCaller,
  request: Request,
  purpose: ChallengePurpose,
  token: string,
): Promise<string> {
  const challenge = await holdChallenge(client, token, purpose);
  if (challenge?.userId !== caller.account.userId || !challenge.boundTo.equals(sessionHash(request))) throw expired();
  return challenge.text;
}

function rpOf({ publicUrl }: AdminSessionParts, request: Request): RelyingParty {
  const site = siteOf(publicUrl, request);
  if (site.rp === null) throw new ServiceError('conflict', site.problem);
  return site.rp;
}

const note = (client: Queryable, caller: AdminCaller, request: Request) => {
  const objectId = String(caller.account.userId);
  return async (
    action: `admin.${'add_passkey' | 'remove_passkey' | 'set_totp' | 'remove_totp' | 'renew_recovery_codes'}`,
    states: { before?: Record<string, unknown>; after?: Record<string, unknown> } = {},
  ): Promise<void> =>
    await appendAudit(client, actorOf(caller, request), { action, objectType: 'user', objectId, ...states });
};

const read: Handle<typeof ownSecondFactor.read, AdminSessionParts> = async (parts, { caller, request }) => {
  const { passkeys, recoveryCodes, totpSince } = await readSecondFactor(parts.db, adminOf(caller).account.userId);
  const site = siteOf(parts.publicUrl, request);
  const json = {
    required: parts.isSecondFactorRequired,
    passkeys: passkeys.map(p => passkeyJson(p, site.rp)),
    passkey_problem: site.problem,
    totp_since: totpSince,
    recovery_codes: recoveryCodes,
  };
  return { status: 200, json };
};

function assertRoom(there: readonly Passkey[]): void {
  if (there.length < SECOND_FACTOR_LIMITS.passkeysMax) return;
  const words = `you have ${there.length} passkeys, at most ${SECOND_FACTOR_LIMITS.passkeysMax}; remove one`;
  throw new ServiceError('conflict', words);
}

/** Other sessions have not proven the factor that is there from now on. Part of a transaction. */
async function firstFactor(client: Queryable, who: AdminCaller): Promise<string[] | null> {
  const codes = await firstRecoveryCodes(client, who.account.userId);
  if (!who.account.hasSecondFactor) await revokeOtherSessions(client, who.account.userId, who.session.id);
  return codes;
}

const beginPasskey: Handle<typeof ownSecondFactor.beginPasskey, AdminSessionParts> = async (
  parts,
  { caller, request },
) => {
  const who = adminOf(caller);
  const { email, userId } = who.account;
  const there = await listPasskeys(parts.db, userId);
  assertRoom(there);
  const user = { id: userId, email, displayName: email };
  const { challenge, options } = await creationOptions(rpOf(parts, request), user, there);
  const token = await begin(parts, who, request, 'passkey', challenge);
  return { status: 200, json: { continuation: token, options: { ...options } }, headers: [NO_STORE] };
};

const add: Handle<typeof ownSecondFactor.addPasskey, AdminSessionParts> = async (parts, { body, caller, request }) => {
  const who = adminOf(caller);
  const { continuation, name, response } = await body();
  const rp = rpOf(parts, request);
  return await parts.db.withTransaction(async client => {
    await holdCredentials(client, who.account.userId);
    await holdSession(client, who.session.id);
    const challenge = await takeBegun(client, who, request, 'passkey', continuation);
    await removeChallenge(client, continuation);
    assertRoom(await listPasskeys(client, who.account.userId));
    const added = await addPasskey(client, rp, { userId: who.account.userId, name }, challenge, response);
    if (added === null)
      throw new ServiceError('validation_failed', 'this passkey does not fit', {
        errors: [
          { pointer: '/response', message: `must be made for ${rp.id}, by an authenticator that knows its user` },
        ],
      });
    await endPasswordless(client, who.account.userId);
    await note(client, who, request)('admin.add_passkey', { after: { name, host: rp.id } });
    const recovery_codes = await firstFactor(client, who);
    return { status: 201, json: { passkey: passkeyJson(added, rp), recovery_codes }, headers: [NO_STORE] };
  });
};

const remove: Handle<typeof ownSecondFactor.removePasskey, AdminSessionParts> = async (
  { db, isSecondFactorRequired },
  { caller, params, request },
) => {
  const who = adminOf(caller);
  await db.withTransaction(async client => {
    await holdCredentials(client, who.account.userId);
    const removed = await removePasskey(client, who.account.userId, params.passkey);
    if (removed === undefined) throw new ServiceError('not_found', `you have no passkey ${params.passkey}`);
    await assertFactorRemains(client, who.account.userId, isSecondFactorRequired);
    await note(client, who, request)('admin.remove_passkey', { before: { name: removed.name, host: removed.rpId } });
  });
  return { status: 204 };
};

const beginTotp: Handle<typeof ownSecondFactor.beginTotp, AdminSessionParts> = async (parts, { caller, request }) => {
  const who = adminOf(caller);
  const { email, userId } = who.account;
  const host = request.headers.host ?? '';
  const { secret, uri } = makeTotp(`Plugin host ${siteOf(parts.publicUrl, request).rp?.id ?? host}`, email);
  const sealed = parts.sealer.seal(secret, totpOwner(userId)).toString('base64');
  const token = await begin(parts, who, request, 'totp', sealed);
  return { status: 200, json: { continuation: token, secret, uri }, headers: [NO_STORE] };
};

/** @throws ServiceError `conflict` when the secret is under a key that was replaced meanwhile */
function opened({ sealer }: AdminSessionParts, sealed: Buffer, userId: number): string {
  try {
    return sealer.open(sealed, totpOwner(userId));
  } catch {
    throw expired();
  }
}

const setTotp: Handle<typeof ownSecondFactor.setTotp, AdminSessionParts> = async (parts, { body, caller, request }) => {
  const who = adminOf(caller);
  const { userId } = who.account;
  const { code, continuation } = await body();
  return await parts.db.withTransaction(async client => {
    await holdCredentials(client, userId);
    await holdSession(client, who.session.id);
    const sealed = Buffer.from(await takeBegun(client, who, request, 'totp', continuation), 'base64');
    const step = stepOfCode(opened(parts, sealed, userId), code, Date.now());
    if (step === null)
      throw new ServiceError('validation_failed', 'this is not the code of the app now', {
        errors: [
          {
            pointer: '/code',
            message: 'must be the six digits the app shows now; is its clock right?',
            code: 'wrong_secret',
          },
        ],
      });
    await removeChallenge(client, continuation);
    await storeTotp(client, userId, sealed, step);
    await endPasswordless(client, userId);
    await note(client, who, request)('admin.set_totp');
    const recovery_codes = await firstFactor(client, who);
    return { status: 200, json: { totp_since: new Date(), recovery_codes }, headers: [NO_STORE] };
  });
};

const dropTotp: Handle<typeof ownSecondFactor.removeTotp, AdminSessionParts> = async (
  { db, isSecondFactorRequired },
  { caller, request },
) => {
  const who = adminOf(caller);
  await db.withTransaction(async client => {
    await holdCredentials(client, who.account.userId);
    if (!(await removeTotp(client, who.account.userId)))
      throw new ServiceError('not_found', 'you have no authenticator app here');
    await assertFactorRemains(client, who.account.userId, isSecondFactorRequired);
    await note(client, who, request)('admin.remove_totp');
  });
  return { status: 204 };
};

const renew: Handle<typeof ownSecondFactor.renewRecoveryCodes, AdminSessionParts> = async (
  { db },
  { caller, request },
) => {
  const who = adminOf(caller);
  const made = await db.withTransaction(async client => {
    if (isNone(await readSecondFactor(client, who.account.userId)))
      throw new ServiceError('conflict', 'recovery codes stand in for a second factor; add a passkey or an app first');
    await endPasswordless(client, who.account.userId);
    await note(client, who, request)('admin.renew_recovery_codes');
    return await renewRecoveryCodes(client, who.account.userId);
  });
  return { status: 200, json: { recovery_codes: made }, headers: [NO_STORE] };
};

export const ownSecondFactorRoutes = (parts: AdminSessionParts): Route[] =>
  serve(ownSecondFactor, parts, {
    read,
    beginPasskey,
    addPasskey: add,
    removePasskey: remove,
    beginTotp,
    setTotp,
    removeTotp: dropTotp,
    renewRecoveryCodes: renew,
  });

const passkeyJson = (p: Passkey, rp: RelyingParty | null) => ({
  id: p.id,
  name: p.name,
  host: p.rpId,
  is_usable: p.rpId === rp?.id,
  created_at: p.createdAt,
  last_used_at: p.lastUsedAt,
});
