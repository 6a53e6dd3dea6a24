import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

/** Encrypts stored secrets: AES-256-GCM, layout `version 1 | nonce 12 | tag 16 | ciphertext`, bound to its owner. */
export type SecretBox = {
  /** `owner` is authenticated, not encrypted: a ciphertext moved to another row does not open. */
  seal(plain: string, owner: string): Buffer;
  open(sealed: Buffer, owner: string): string;
};

const VERSION = 1;

export function makeSecretBox(key: Buffer): SecretBox {
  return {
    seal(plain, owner) {
      const nonce = randomBytes(12);
      const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(owner));
      const body = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final()]);
      return Buffer.concat([Buffer.from([VERSION]), nonce, cipher.getAuthTag(), body]);
    },
    open(sealed, owner) {
      if (sealed[0] !== VERSION) throw new Error('a stored secret has an unknown format');
      const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(1, 13)).setAAD(Buffer.from(owner));
      decipher.setAuthTag(sealed.subarray(13, 29));
      return Buffer.concat([decipher.update(sealed.subarray(29)), decipher.final()]).toString('utf8');
    },
  };
}
