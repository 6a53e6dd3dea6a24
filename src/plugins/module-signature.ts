import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  randomBytes,
  sign,
  verify,
} from 'node:crypto';
import { customSections, withCustomSection } from '../abi/custom-section.ts';
import { keyIdText as idText, type TrustedKey } from '../config/trusted-key.ts';

/**
 * Signatures of authors over modules, in the format of minisign (https://jedisct1.github.io/minisign/#signature-format): Ed25519 over the
 * BLAKE2b-512 of all bytes before the last section, which is a custom section with the signature as minisign writes it to a file.
 */

/** Name of the custom section; it is the last one of a module that is signed. */
export const SIGNATURE_SECTION = 'plugin.signature';

/** The signature of a module, and the hash of what it signs (BLAKE2b-512, base64): the module itself is not needed to verify it. */
export type ModuleSignature = { text: string; hash: string };

/** `trusted`: by a key of the configuration; `unknown`: by another one; `wrong`: the module or the signature was changed. */
export type SignatureState = {
  state: 'none' | 'trusted' | 'unknown' | 'wrong';
  keyId: string | null;
  signer: string | null;
  comment: string | null;
};

const NONE: SignatureState = { state: 'none', keyId: null, signer: null, comment: null };
const SECRET_BYTES = 158;
const COMMENT = 'trusted comment: ';
/** The four lines take a few hundred; a comment may be long. */
const SECTION_BYTES_MAX = 10_000;

const hashOf = (bytes: Uint8Array): Buffer => createHash('blake2b512').update(bytes).digest();

type Parsed = { keyId: Uint8Array; signature: Uint8Array; comment: string; commentSignature: Uint8Array };

/** What a comment that is signed may be; minisign separates its parts by tabs. */
export const SIGNED_COMMENT = /^(?:[^\p{Cc}]|\t){0,8000}$/u;

/** Four lines, as minisign writes them; the first is not signed and means nothing. */
const SIGNATURE =
  /^untrusted comment: [^\p{Cc}]{0,1000}\r?\n([A-Za-z0-9+/]{99}=)\r?\n(trusted comment: (?:[^\p{Cc}]|\t){0,8000})\r?\n([A-Za-z0-9+/]{86}==)\r?\n?$/u;

/** @returns undefined for what is no signature of minisign */
function parseSignature(text: string): Parsed | undefined {
  const [, line = '', comment = '', global = ''] = SIGNATURE.exec(text) ?? [];
  const bytes = Buffer.from(line, 'base64');
  // ED: over the hash of the content. The older Ed is over the content itself, and not taken.
  if (bytes.toString('latin1', 0, 2) !== 'ED') return undefined;
  return {
    keyId: bytes.subarray(2, 10),
    signature: bytes.subarray(10),
    comment: comment.slice(COMMENT.length),
    commentSignature: Buffer.from(global, 'base64'),
  };
}

/**
 * The signature of a module.
 *
 * @returns null without one; a text that says what is wrong with it
 */
export function readSignature(module: Uint8Array): ModuleSignature | string | null {
  const sections = [...customSections(module, SIGNATURE_SECTION)];
  const [only] = sections;
  if (only === undefined) return null;
  if (sections.length > 1 || !only.isLast)
    return `the signature is not the last section of the module; sign it again when it is built: plugin-host plugin sign`;
  const text = only.content.length > SECTION_BYTES_MAX ? '' : Buffer.from(only.content).toString();
  if (parseSignature(text) === undefined)
    return `the section ${SIGNATURE_SECTION} holds no signature of minisign (prehashed); sign the module with plugin-host plugin sign`;
  return { text, hash: hashOf(module.subarray(0, only.at)).toString('base64') };
}

const publicKeyOf = (key: Uint8Array) =>
  createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: Buffer.from(key).toString('base64url') }, format: 'jwk' });

/** Who signed a module, as the keys of the configuration tell. */
export function checkSignature(signature: ModuleSignature | null, trusted: readonly TrustedKey[]): SignatureState {
  const parsed = signature === null ? undefined : parseSignature(signature.text);
  if (signature === null || parsed === undefined) return NONE;
  const id = idText(parsed.keyId);
  // Ids are chosen by those who make the keys: two may have the same one.
  const known = trusted.filter(k => k.id === id);
  const { comment } = parsed;
  if (known.length === 0) return { state: 'unknown', keyId: id, signer: null, comment: null };
  const signer = known.find(({ key }) => {
    const publicKey = publicKeyOf(key);
    return (
      verify(null, Buffer.from(signature.hash, 'base64'), publicKey, parsed.signature) &&
      verify(null, Buffer.concat([parsed.signature, Buffer.from(comment)]), publicKey, parsed.commentSignature)
    );
  });
  return signer === undefined
    ? { state: 'wrong', keyId: id, signer: known[0]?.name ?? null, comment: null }
    : { state: 'trusted', keyId: id, signer: signer.name, comment };
}

/** What names the ZIP of a frontend in a comment that is signed. */
export const frontendNote = (sha256: string): string => `frontend:${sha256}`;

/** Whether a signature is over the ZIP of a frontend, too: its comment has the SHA-256. */
export const signsFrontend = ({ comment }: SignatureState, sha256: string): boolean =>
  comment?.split(/\s/).includes(frontendNote(sha256)) === true;

/** A new pair of keys, as files of the form minisign has; the secret one has no password, and no checksum. */
export function makeSigningKeys(): { secret: string; public: string; id: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const [seed, point] = [privateKey.export({ format: 'jwk' }).d ?? '', publicKey.export({ format: 'jwk' }).x ?? ''];
  const key = Buffer.from(point, 'base64url');
  const keyId = randomBytes(8);
  const id = idText(keyId);
  const secretKey = Buffer.concat([Buffer.from(seed, 'base64url'), key]);
  // Algorithm, no derivation of a key from a password, BLAKE2b; then salt and limits, which are 0; then the key.
  const head = Buffer.concat([Buffer.from('Ed'), Buffer.alloc(2), Buffer.from('B2'), Buffer.alloc(48)]);
  const body = Buffer.concat([head, keyId, secretKey, Buffer.alloc(32)]);
  return {
    id,
    secret: `untrusted comment: minisign secret key ${id}\n${body.toString('base64')}\n`,
    public: `untrusted comment: minisign public key ${id}\n${Buffer.concat([Buffer.from('Ed'), keyId, key]).toString('base64')}\n`,
  };
}

/** The module without signatures that it has; all other sections stay. */
function withoutSignature(module: Uint8Array): Uint8Array {
  const parts: Uint8Array[] = [];
  let from = 0;
  for (const { at, end } of customSections(module, SIGNATURE_SECTION)) {
    parts.push(module.subarray(from, at));
    from = end;
  }
  return Buffer.concat([...parts, module.subarray(from)]);
}

/**
 * A module with a signature as its last section; one that it had is replaced.
 *
 * @param secretFile content of a secret key file of minisign without a password
 * @param comment a line that is signed too
 * @returns undefined when the file is none
 */
export function signModule(module: Uint8Array, secretFile: string, comment: string): Uint8Array | undefined {
  const bytes = Buffer.from(secretFile.split(/\r?\n/)[1] ?? '', 'base64');
  if (bytes.length !== SECRET_BYTES || bytes.toString('latin1', 0, 2) !== 'Ed' || bytes.readUInt16LE(2) !== 0)
    return undefined;
  const [keyId, secret, point] = [bytes.subarray(54, 62), bytes.subarray(62, 94), bytes.subarray(94, 126)];
  const jwk = { kty: 'OKP', crv: 'Ed25519', d: secret.toString('base64url'), x: point.toString('base64url') };
  const key = createPrivateKey({ key: jwk, format: 'jwk' });
  const content = withoutSignature(module);
  const signature = sign(null, hashOf(content), key);
  const global = sign(null, Buffer.concat([signature, Buffer.from(comment)]), key);
  const text = [
    `untrusted comment: signature from minisign secret key ${idText(keyId)}`,
    Buffer.concat([Buffer.from('ED'), keyId, signature]).toString('base64'),
    `${COMMENT}${comment}`,
    global.toString('base64'),
  ].join('\n');
  return withCustomSection(content, SIGNATURE_SECTION, Buffer.from(`${text}\n`));
}
