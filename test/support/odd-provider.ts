import { generateKeyPairSync, sign } from 'node:crypto';
import http from 'node:http';
import { listenFor } from './listen.ts';

type Claims = Record<string, unknown>;

export type OddProvider = {
  /** Its address; what it calls itself is its own affair. */
  base: string;
  /** What it answers next: claims of the identity next to those it needs, and those of its UserInfo endpoint; null: it fails there. */
  says: { issuer?: string; identity: Claims; userInfo: Claims | null };
  /** The nonce of the login in progress. */
  nonce: string;
};

/**
 * An OpenID provider on the wire that says what no library of providers would say: times of another clock, names only at the UserInfo
 * endpoint, another issuer than its address.
 */
export async function startOddProvider(t: { teardown(fn: () => unknown): void }): Promise<OddProvider> {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const encoded = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const self: OddProvider = { base: '', says: { identity: {}, userInfo: {} }, nonce: '' };
  const answers: Readonly<Record<string, () => unknown>> = {
    '/.well-known/openid-configuration': () => ({
      issuer: self.says.issuer ?? self.base,
      authorization_endpoint: `${self.base}/auth`,
      token_endpoint: `${self.base}/token`,
      jwks_uri: `${self.base}/jwks`,
      userinfo_endpoint: `${self.base}/userinfo`,
      response_types_supported: ['code'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['RS256'],
    }),
    '/jwks': () => ({ keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'k', alg: 'RS256', use: 'sig' }] }),
    '/userinfo': () => (self.says.userInfo === null ? null : { sub: 'ada', ...self.says.userInfo }),
    '/token': () => {
      const now = Math.floor(Date.now() / 1000);
      const usual = { iss: self.base, sub: 'ada', aud: 'plugin-host', iat: now, exp: now + 300, nonce: self.nonce };
      const signed = `${encoded({ alg: 'RS256', kid: 'k' })}.${encoded({ ...usual, ...self.says.identity })}`;
      const id_token = `${signed}.${sign('sha256', Buffer.from(signed), privateKey).toString('base64url')}`;
      return { access_token: 'of ada', token_type: 'Bearer', expires_in: 300, id_token };
    },
  };
  const server = http.createServer((request, response) => {
    const answer = answers[new URL(request.url ?? '', 'http://x').pathname]?.() ?? null;
    response.writeHead(answer === null ? 500 : 200, { 'content-type': 'application/json' }).end(encodedText(answer));
  });
  self.base = await listenFor(t, server);
  return self;
}

const encodedText = (value: unknown): string => JSON.stringify(value ?? {});
