import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';

/** Encrypts stored secrets: AES-256-GCM, layout `version 1 | nonce 12 | tag 16 | ciphertext`, bound to its owner. */
export type SecretBox = {
  /** `owner` is authenticated, not encrypted: a ciphertext moved to another row does not open. */
  seal(plain: string, owner: string): Buffer;
  open(sealed: Buffer, owner: string): string;
};

const VERSION = 1;

/**
 * The key of `secrets.key`, or of `<data.dir>/secrets.key`, which is made with mode 0600 at first start.
 *
 * @param configured base64 of 32 bytes, or empty
 * @param file path of the key file
 * @throws Error when a key does not have 32 bytes
 */
export function loadSecretKey(configured: string, file: string): Buffer {
  if (configured !== '') return check(Buffer.from(configured, 'base64'), 'secrets.key (BOT_SECRETS_KEY)');
  fs.mkdirSync(path.dirname(file), { recursive: true });
  try {
    fs.writeFileSync(file, `${randomBytes(32).toString('base64')}\n`, { mode: 0o600, flag: 'wx' });
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
  }
  return check(Buffer.from(fs.readFileSync(file, 'utf8').trim(), 'base64'), file);
}

function check(key: Buffer, where: string): Buffer {
  if (key.length !== 32) throw new Error(`${where} must be 32 bytes in base64; make one with: openssl rand -base64 32`);
  return key;
}

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
