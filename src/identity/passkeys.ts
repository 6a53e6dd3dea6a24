import type {
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
} from '@simplewebauthn/server';
import { z } from 'zod';
import type { Queryable } from '../db/database.ts';
import { findRow, findRows } from '../db/rows.ts';
import { SECOND_FACTOR_LIMITS } from './second-factor-limits.ts';

/**
 * Passkeys of administrators (https://www.w3.org/TR/webauthn-3/). The authenticator must verify its user (PIN, finger,
 * face), so that a passkey alone is as good as a password. What kind of authenticator it is, is not asked.
 */

/** The site a passkey is for: a host name, and the origins of its pages. */
export type RelyingParty = { id: string; origins: string[] };

export type Passkey = {
  id: number;
  userId: number;
  name: string;
  /** The host name it was made for, the only one it works on. */
  rpId: string;
  credentialId: string;
  publicKey: Uint8Array<ArrayBuffer>;
  signCount: number;
  transports: string[];
  createdAt: Date;
  lastUsedAt: Date | null;
};

const base64url = z
  .string()
  .min(1)
  .max(4096)
  .regex(/^[A-Za-z0-9_-]+$/, 'must be base64url');
const extensions = z.record(z.string(), z.unknown()).default({});
const attachment = z.enum(['platform', 'cross-platform']).optional();

/** What a browser answers when a passkey was made: `RegistrationResponseJSON`. */
export const creationResponse = z.object({
  id: base64url,
  rawId: base64url,
  type: z.literal('public-key'),
  response: z.object({
    clientDataJSON: base64url,
    attestationObject: base64url,
    transports: z.array(z.string().max(40)).max(10).optional(),
  }),
  authenticatorAttachment: attachment,
  clientExtensionResults: extensions,
});
export type CreationResponse = z.output<typeof creationResponse>;

/** What a browser answers when a passkey was used: `AuthenticationResponseJSON`. */
export const useResponse = z.object({
  id: base64url,
  rawId: base64url,
  type: z.literal('public-key'),
  response: z.object({
    clientDataJSON: base64url,
    authenticatorData: base64url,
    signature: base64url,
    userHandle: base64url.optional(),
  }),
  authenticatorAttachment: attachment,
  clientExtensionResults: extensions,
});
export type UseResponse = z.output<typeof useResponse>;

/** Loaded when it is first needed: it takes a tenth of a second, and a start has no use for it. */
const library = () => import('@simplewebauthn/server');

const COLUMNS =
  'id, global_user_id AS user_id, name, rp_id, credential_id, public_key, sign_count, transports, created_at, last_used_at';

/** Lists the passkeys of an administrator, oldest first. */
export async function listPasskeys(db: Queryable, userId: number): Promise<Passkey[]> {
  return await findRows<Passkey>(db, `SELECT ${COLUMNS} FROM admin_passkeys WHERE global_user_id = $1 ORDER BY id`, [
    userId,
  ]);
}

/** What a browser needs to make a passkey (`PublicKeyCredentialCreationOptionsJSON`). */
export async function creationOptions(
  rp: RelyingParty,
  user: { id: number; email: string; displayName: string },
  there: readonly Passkey[],
): Promise<{ challenge: string; options: PublicKeyCredentialCreationOptionsJSON }> {
  const { generateRegistrationOptions } = await library();
  const options = await generateRegistrationOptions({
    rpName: `Plugin host at ${rp.id}`,
    rpID: rp.id,
    userID: new TextEncoder().encode(String(user.id)),
    userName: user.email,
    userDisplayName: user.displayName,
    timeout: SECOND_FACTOR_LIMITS.challengeSeconds * 1000,
    attestationType: 'none',
    excludeCredentials: there
      .filter(p => p.rpId === rp.id)
      .map(p => ({ id: p.credentialId, transports: p.transports })),
    authenticatorSelection: { residentKey: 'preferred', userVerification: 'required' },
  });
  return { challenge: options.challenge, options };
}

/**
 * Stores a passkey that a browser has made. Part of a transaction.
 *
 * @param challenge the one of `creationOptions`
 * @returns the passkey, or null if the answer does not fit: another challenge, another site, an unverified user
 */
export async function addPasskey(
  client: Queryable,
  rp: RelyingParty,
  of: { userId: number; name: string },
  challenge: string,
  response: CreationResponse,
): Promise<Passkey | null> {
  const { verifyRegistrationResponse } = await library();
  const verified = await verifyRegistrationResponse({
    response: response as Parameters<typeof verifyRegistrationResponse>[0]['response'],
    expectedChallenge: challenge,
    expectedOrigin: rp.origins,
    expectedRPID: rp.id,
    requireUserVerification: true,
  }).catch(() => ({ verified: false as const, registrationInfo: undefined }));
  if (!verified.verified) return null;
  const { credential } = verified.registrationInfo;
  const added = await findRow<Passkey>(
    client,
    `INSERT INTO admin_passkeys (global_user_id, name, rp_id, credential_id, public_key, sign_count, transports)
     VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (credential_id) DO NOTHING RETURNING ${COLUMNS}`,
    [
      ...[of.userId, of.name, rp.id, credential.id, Buffer.from(credential.publicKey), credential.counter],
      response.response.transports ?? [],
    ],
  );
  return added ?? null;
}

/** What a browser needs to use one of these passkeys (`PublicKeyCredentialRequestOptionsJSON`). */
export async function useOptions(
  rp: RelyingParty,
  passkeys: readonly Passkey[],
): Promise<{ challenge: string; options: PublicKeyCredentialRequestOptionsJSON }> {
  const { generateAuthenticationOptions } = await library();
  const options = await generateAuthenticationOptions({
    rpID: rp.id,
    allowCredentials: passkeys.map(p => ({ id: p.credentialId, transports: p.transports })),
    timeout: SECOND_FACTOR_LIMITS.challengeSeconds * 1000,
    userVerification: 'required',
  });
  return { challenge: options.challenge, options };
}

/**
 * Checks that a passkey of the administrator signed the challenge, and counts its use. Part of a transaction.
 *
 * @returns the passkey, or undefined if the answer does not fit
 */
export async function usePasskey(
  client: Queryable,
  rp: RelyingParty,
  userId: number,
  challenge: string,
  response: UseResponse,
): Promise<Passkey | undefined> {
  const { verifyAuthenticationResponse } = await library();
  const passkey = (await listPasskeys(client, userId)).find(p => p.credentialId === response.id && p.rpId === rp.id);
  if (passkey === undefined) return undefined;
  const result = await verifyAuthenticationResponse({
    response: response as Parameters<typeof verifyAuthenticationResponse>[0]['response'],
    expectedChallenge: challenge,
    expectedOrigin: rp.origins,
    expectedRPID: rp.id,
    credential: { id: passkey.credentialId, publicKey: passkey.publicKey, counter: passkey.signCount },
    requireUserVerification: true,
  }).catch(() => null);
  if (result?.verified !== true) return undefined;
  await client.query('UPDATE admin_passkeys SET sign_count = $2, last_used_at = now() WHERE id = $1', [
    passkey.id,
    result.authenticationInfo.newCounter,
  ]);
  return passkey;
}

/** @returns the removed passkey, or undefined if the administrator has none with this id. Part of a transaction. */
export async function removePasskey(client: Queryable, userId: number, id: number): Promise<Passkey | undefined> {
  return await findRow<Passkey>(
    client,
    `DELETE FROM admin_passkeys WHERE id = $1 AND global_user_id = $2 RETURNING ${COLUMNS}`,
    [id, userId],
  );
}

/** Removes all passkeys of an administrator. Part of a transaction. */
export async function removeAllPasskeys(client: Queryable, userId: number): Promise<void> {
  await client.query('DELETE FROM admin_passkeys WHERE global_user_id = $1', [userId]);
}

/** How many passkeys were made for another host name than this one. */
export async function countPasskeysElsewhere(db: Queryable, rpId: string): Promise<number> {
  const { rows } = await db.query<{ count: number }>(
    'SELECT count(*)::int AS count FROM admin_passkeys WHERE rp_id <> $1',
    [rpId],
  );
  return rows[0]?.count ?? 0;
}
