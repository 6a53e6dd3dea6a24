import { z } from 'zod';

/** What browsers take to make and to use passkeys (https://www.w3.org/TR/webauthn-3/ sections 5.1.8 and 5.1.10). */

const descriptor = z.object({
  id: z.string(),
  type: z.string(),
  transports: z.array(z.string()).optional(),
});
const verification = z.enum(['discouraged', 'preferred', 'required']);

/** `PublicKeyCredentialCreationOptionsJSON` */
export const creationOptionsShape = z
  .looseObject({
    challenge: z.string(),
    rp: z.object({ id: z.string().optional(), name: z.string() }),
    user: z.object({ id: z.string(), name: z.string(), displayName: z.string() }),
    pubKeyCredParams: z.array(z.object({ type: z.literal('public-key'), alg: z.int() })),
    timeout: z.int().optional(),
    excludeCredentials: z.array(descriptor).optional(),
    authenticatorSelection: z
      .object({
        residentKey: verification.optional(),
        requireResidentKey: z.boolean().optional(),
        userVerification: verification.optional(),
      })
      .optional(),
  })
  .meta({ id: 'PasskeyCreationOptions' });

/** `PublicKeyCredentialRequestOptionsJSON` */
export const useOptionsShape = z
  .looseObject({
    challenge: z.string(),
    rpId: z.string().optional(),
    timeout: z.int().optional(),
    allowCredentials: z.array(descriptor).optional(),
    userVerification: verification.optional(),
  })
  .meta({ id: 'PasskeyUseOptions' });
