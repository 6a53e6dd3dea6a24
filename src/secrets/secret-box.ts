import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

/** A stored secret cannot be decrypted: it was changed, moved to another row, or encrypted with another key. */
export class SecretUnreadable extends Error {
  override readonly name = 'SecretUnreadable';
}

/** Encrypts stored secrets: AES-256-GCM, layout `version 1 | nonce 12 | tag 16 | ciphertext`, bound to its owner. */
export type SecretBox = {
  /** `owner` is authenticated but not encrypted: a ciphertext moved to another row cannot be decrypted. */
  seal(plain: string, owner: string): Buffer;
  /** @throws SecretUnreadable */
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
      if (sealed[0] !== VERSION) throw new SecretUnreadable('the stored secret has an unknown format');
      try {
        const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(1, 13)).setAAD(Buffer.from(owner));
        decipher.setAuthTag(sealed.subarray(13, 29));
        return Buffer.concat([decipher.update(sealed.subarray(29)), decipher.final()]).toString('utf8');
      } catch (cause) {
        throw new SecretUnreadable(
          'the stored secret cannot be decrypted: it was changed, copied from another row, or encrypted with another secrets.key',
          { cause },
        );
      }
    },
  };
}
