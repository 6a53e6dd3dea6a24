import crypto from 'node:crypto';

/** What an authenticator and its browser are made to say; without a member they say what is right. */
export type Deviation = {
  /** The page that asks; the browser writes it into what is signed. */
  origin?: string;
  /** The site the authenticator signs for. */
  rpId?: string;
  challenge?: string;
  /** Whether the authenticator knows its user (PIN, finger, face). */
  isVerified?: boolean;
  /** The sign counter; without it the next one. */
  counter?: number;
  /** What the browser was asked for. */
  type?: 'webauthn.create' | 'webauthn.get';
};

const PRESENT = 0x01;
const VERIFIED = 0x04;
const WITH_CREDENTIAL = 0x40;

const sha256 = (data: string | Buffer): Buffer => crypto.createHash('sha256').update(data).digest();
const uint32 = (n: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(n);
  return bytes;
};

/** The few forms of CBOR (RFC 8949) that an authenticator answers in. */
const cbor = {
  text: (text: string): Buffer => Buffer.concat([Buffer.from([0x60 | text.length]), Buffer.from(text)]),
  /** From 24 bytes on; the length in its shortest form, as an authenticator must write it. */
  bytes: (bytes: Buffer): Buffer => {
    const { length } = bytes;
    return Buffer.concat([Buffer.from(length < 256 ? [0x58, length] : [0x59, length >> 8, length & 255]), bytes]);
  },
  map: (...entries: Array<[Buffer, Buffer]>): Buffer =>
    Buffer.concat([Buffer.from([0xa0 | entries.length]), ...entries.flat()]),
  /** From -24 to 23. */
  int: (n: number): Buffer => Buffer.from([n >= 0 ? n : 0x20 | (-1 - n)]),
};

/**
 * An authenticator and its browser in software (https://www.w3.org/TR/webauthn-3/): makes and uses one passkey, with a P-256 key,
 * as the test wants it.
 */
export class Authenticator {
  readonly #id = crypto.randomBytes(16);
  readonly #keys = crypto.generateKeyPairSync('ec', { namedCurve: 'P-256' });
  readonly #origin: string;
  counter = 0;

  /** @param origin the page on which it is used */
  constructor(origin: string) {
    this.#origin = origin;
  }

  #clientData(challenge: string, type: string, { origin = this.#origin }: Deviation): Buffer {
    return Buffer.from(JSON.stringify({ type, challenge, origin, crossOrigin: false }));
  }

  /** Authenticator data (section 6.1), without a credential. */
  #data({ counter = ++this.counter, isVerified = true }: Deviation, rpId: string, more: number): Buffer {
    this.counter = counter;
    const flags = PRESENT | (isVerified ? VERIFIED : 0) | more;
    return Buffer.concat([sha256(rpId), Buffer.from([flags]), uint32(counter)]);
  }

  /** The public key as COSE (RFC 9053 section 7.1.1): EC2, ES256, P-256. */
  #publicKey(): Buffer {
    const { x = '', y = '' } = this.#keys.publicKey.export({ format: 'jwk' });
    return cbor.map(
      [cbor.int(1), cbor.int(2)],
      [cbor.int(3), cbor.int(-7)],
      [cbor.int(-1), cbor.int(1)],
      [cbor.int(-2), cbor.bytes(Buffer.from(x, 'base64url'))],
      [cbor.int(-3), cbor.bytes(Buffer.from(y, 'base64url'))],
    );
  }

  get #names() {
    const id = this.#id.toString('base64url');
    return { id, rawId: id, type: 'public-key' as const, clientExtensionResults: {} };
  }

  /** What `navigator.credentials.create` answers, as JSON. */
  make(options: unknown, as: Deviation = {}) {
    const { challenge, rp } = options as { challenge: string; rp: { id: string } };
    const data = Buffer.concat([
      this.#data(as, as.rpId ?? rp.id, WITH_CREDENTIAL),
      Buffer.alloc(16),
      Buffer.from([0, this.#id.length]),
      this.#id,
      this.#publicKey(),
    ]);
    const attestation = cbor.map(
      [cbor.text('fmt'), cbor.text('none')],
      [cbor.text('attStmt'), cbor.map()],
      [cbor.text('authData'), cbor.bytes(data)],
    );
    const client = this.#clientData(as.challenge ?? challenge, as.type ?? 'webauthn.create', as);
    return {
      ...this.#names,
      response: {
        clientDataJSON: client.toString('base64url'),
        attestationObject: attestation.toString('base64url'),
        transports: ['internal'],
      },
    };
  }

  /** What `navigator.credentials.get` answers, as JSON. */
  use(options: unknown, as: Deviation = {}) {
    const { challenge, rpId } = options as { challenge: string; rpId: string };
    const data = this.#data(as, as.rpId ?? rpId, 0);
    const client = this.#clientData(as.challenge ?? challenge, as.type ?? 'webauthn.get', as);
    const signature = crypto.sign('sha256', Buffer.concat([data, sha256(client)]), this.#keys.privateKey);
    return {
      ...this.#names,
      response: {
        clientDataJSON: client.toString('base64url'),
        authenticatorData: data.toString('base64url'),
        signature: signature.toString('base64url'),
      },
    };
  }
}
