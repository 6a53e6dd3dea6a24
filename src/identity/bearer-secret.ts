import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { ServiceError } from '../base/errors.ts';

/**
 * `<prefix><public>.<secret>`: 12 random bytes identify the credential, 32 prove it (docs/identity.md "Credentials").
 */
const PUBLIC_BYTES = 12;
const SECRET_BYTES = 32;
const PARTS = /^([A-Za-z0-9_-]{16})\.([A-Za-z0-9_-]{43})$/;

export type NewBearer = { text: string; public: string; sha256: Buffer };

export const sha256 = (text: string): Buffer => createHash('sha256').update(text).digest();

/** Creates a credential, which is shown once; only its hash is stored. */
export function makeBearer(prefix: string): NewBearer {
  const name = randomBytes(PUBLIC_BYTES).toString('base64url');
  const secret = makeSecret();
  return { text: `${prefix}${name}.${secret.text}`, public: name, sha256: secret.sha256 };
}

/** Creates 256 random bits, as text and as a hash. @param mark what the text begins with */
export function makeSecret(mark = ''): { text: string; sha256: Buffer } {
  const text = mark + randomBytes(SECRET_BYTES).toString('base64url');
  return { text, sha256: sha256(text) };
}

/** The parts of a credential with this prefix, or null if it has another format. */
export function parseBearer(text: string, prefix: string): { public: string; secret: string } | null {
  if (!text.startsWith(prefix)) return null;
  const parts = PARTS.exec(text.slice(prefix.length));
  return parts === null ? null : { public: parts[1] ?? '', secret: parts[2] ?? '' };
}

/** @throws ServiceError `conflict` for a credential that has expired: a new secret of it would be refused at once */
export function assertNotExpired({ expiresAt }: { expiresAt: Date | null }): void {
  if (expiresAt !== null && expiresAt.getTime() <= Date.now())
    throw new ServiceError('conflict', 'the key has expired; make a new one');
}

const ABSENT = sha256('absent');

/** Whether a secret has one of the hashes. Takes the same time without a hash (docs/identity.md "Credentials"). */
export function secretMatches(secret: string, ...hashes: Array<Buffer | null>): boolean {
  const given = sha256(secret);
  let matches = false;
  for (const hash of hashes.length === 0 ? [null] : hashes) {
    const equal = timingSafeEqual(given, hash ?? ABSENT);
    matches = (equal && hash !== null) || matches;
  }
  return matches;
}
