import * as oidc from 'openid-client';
import { z } from 'zod';
import { messageOf, ServiceError } from '../base/errors.ts';
import { LIMITS } from '../base/limits.ts';

export type IdpOptions = {
  /** Empty: there is no identity provider. */
  issuer: string;
  clientId: string;
  clientSecret: string;
  scopes: readonly string[];
  /** Callback address, as registered with the provider. */
  redirectUri(): string;
};

/** Encrypts and authenticates the state of a login in progress, which the browser keeps. */
type Sealer = { seal(plain: string, owner: string): Buffer; open(sealed: Buffer, owner: string): string };

/** An account of the provider. */
export type IdpAccount = {
  sub: string;
  name: string;
  locale: 'ru' | 'en' | null;
  /** When the user last entered their credentials at the provider (`auth_time`); null if it does not say. */
  authenticatedAt: Date | null;
};

/** A provider's clock may be this far ahead; a later time is not accepted. */
const CLOCK_SKEW_MS = 5 * 60_000;

/** Error text where a login is needed and no provider is configured. */
export const NO_PROVIDER =
  'no identity provider is configured: set idp.issuer, idp.client_id and idp.client_secret (BOT_IDP_ISSUER, BOT_IDP_CLIENT_ID, BOT_IDP_CLIENT_SECRET) and start the service again';

const PROVIDER_SECONDS = 10;
const OWNER = 'idp login';
const COOKIE = 'idp_login_';

const pendingLogin = z.object({
  nonce: z.string(),
  verifier: z.string(),
  returnTo: z.string(),
  until: z.number(),
  fresh: z.boolean().default(false),
});

/**
 * Login with an OpenID Connect provider: authorization code with PKCE, state and nonce
 * (docs/identity.md "Login with an identity provider"). The provider is asked for its configuration at the first login,
 * so that the service starts without it. The state of a login is in a separate encrypted cookie, so that several logins
 * may be under way, and any host can finish them.
 */
export class IdpLogin {
  readonly #options: IdpOptions;
  readonly #sealer: Sealer;
  #found: Promise<oidc.Configuration> | null = null;

  constructor(options: IdpOptions, sealer: Sealer) {
    this.#options = options;
    this.#sealer = sealer;
  }

  get isConfigured(): boolean {
    return this.#options.issuer !== '';
  }

  /** @throws ServiceError `not_found` when no provider is configured, `unavailable` when it does not answer */
  async #provider(): Promise<oidc.Configuration> {
    if (!this.isConfigured) throw new ServiceError('not_found', NO_PROVIDER);
    this.#found ??= discover(this.#options);
    try {
      return await this.#found;
    } catch (error) {
      this.#found = null;
      throw unreachable(this.#options.issuer, error);
    }
  }

  /**
   * Begins a login.
   *
   * @param returnTo checked path to return to
   * @param fresh whether the provider must ask for the credentials again, and report the time
   * @returns the address to send the browser to, and the cookie for the callback
   */
  async begin(
    returnTo: string,
    fresh: boolean,
    nowMs: number,
  ): Promise<{ location: string; cookie: string; value: string }> {
    const provider = await this.#provider();
    const [verifier, state, nonce] = [oidc.randomPKCECodeVerifier(), oidc.randomState(), oidc.randomNonce()];
    const location = oidc.buildAuthorizationUrl(provider, {
      redirect_uri: this.#options.redirectUri(),
      scope: this.#options.scopes.join(' '),
      state,
      nonce,
      code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
      // With max_age the provider must send auth_time (OpenID Connect Core 3.1.2.1).
      ...(fresh ? { prompt: 'login', max_age: String(LIMITS.recentPasswordMs / 1000) } : {}),
    });
    const pending = JSON.stringify({ nonce, verifier, returnTo, until: nowMs + LIMITS.idpLoginMs, fresh });
    return {
      location: location.href,
      cookie: cookieName(state),
      value: this.#sealer.seal(pending, `${OWNER} ${state}`).toString('base64url'),
    };
  }

  /** Name of the cookie for a callback. */
  cookieNameOf(query: string): string {
    return cookieName(new URLSearchParams(query).get('state') ?? '');
  }

  /**
   * Finishes a login with the parameters of the callback.
   *
   * @param query of the callback
   * @param cookieOf reads a cookie of the request; empty if there is none
   * @throws ServiceError `malformed_request` for a login that was not begun in this browser, `forbidden` if the
   * provider refused
   */
  async finish(
    query: string,
    cookieOf: (name: string) => string,
    nowMs: number,
  ): Promise<{ account: IdpAccount; returnTo: string }> {
    const state = new URLSearchParams(query).get('state') ?? '';
    const pending = this.#pending(state, cookieOf(cookieName(state)), nowMs);
    const provider = await this.#provider();
    const url = new URL(this.#options.redirectUri());
    url.search = query;
    try {
      const tokens = await oidc.authorizationCodeGrant(provider, url, {
        pkceCodeVerifier: pending.verifier,
        expectedState: state,
        expectedNonce: pending.nonce,
        idTokenExpected: true,
      });
      const claims = tokens.claims();
      if (claims === undefined) throw new Error('the provider sent no identity');
      const account = accountOf(claims, nowMs);
      if (pending.fresh && account.authenticatedAt === null)
        throw new Error('it does not say when you logged in there (auth_time)');
      return { account, returnTo: pending.returnTo };
    } catch (error) {
      throw refusalOf(error, this.#options.issuer);
    }
  }

  #pending(state: string, cookie: string, nowMs: number): z.infer<typeof pendingLogin> {
    const again = new ServiceError(
      'malformed_request',
      `this login was not begun in this browser, or more than ${LIMITS.idpLoginMs / 60_000} minutes ago; begin it again`,
    );
    if (cookie === '') throw again;
    try {
      const text = this.#sealer.open(Buffer.from(cookie, 'base64url'), `${OWNER} ${state}`);
      const pending = pendingLogin.parse(JSON.parse(text));
      if (pending.until > nowMs) return pending;
    } catch {
      // The cookie was changed, belongs to another login, or is encrypted with an old key.
    }
    throw again;
  }
}

/** Name of a login's cookie. A later login with the same name replaces it. */
const cookieName = (state: string): string => `${COOKIE}${state.charCodeAt(0) % LIMITS.idpLoginsPerBrowser || 0}`;

async function discover(o: IdpOptions): Promise<oidc.Configuration> {
  const issuer = new URL(o.issuer);
  // The configuration allows http only for loopback addresses.
  const execute = issuer.protocol === 'http:' ? [oidc.allowInsecureRequests] : [];
  return await oidc.discovery(issuer, o.clientId, undefined, clientAuth(o.clientSecret), {
    execute,
    timeout: PROVIDER_SECONDS,
  });
}

/** Uses basic authentication, the default of OpenID Connect, unless the provider requires another method. */
function clientAuth(secret: string): oidc.ClientAuth {
  if (secret === '') return oidc.None();
  const [basic, post] = [oidc.ClientSecretBasic(secret), oidc.ClientSecretPost(secret)];
  return (server, client, body, headers) => {
    const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
    (methods.includes('client_secret_basic') ? basic : post)(server, client, body, headers);
  };
}

function accountOf(claims: oidc.IDToken, nowMs: number): IdpAccount {
  const text = (name: string): string => {
    const value = claims[name];
    return typeof value === 'string' ? value.replaceAll('\0', '').slice(0, 300) : '';
  };
  const authMs = typeof claims.auth_time === 'number' ? claims.auth_time * 1000 : Number.NaN;
  const language = /^(ru|en)\b/.exec(text('locale'))?.[1];
  return {
    sub: claims.sub,
    name: text('name') || text('preferred_username') || text('email'),
    locale: language === 'ru' || language === 'en' ? language : null,
    authenticatedAt: authMs > 0 && authMs < nowMs + CLOCK_SKEW_MS ? new Date(authMs) : null,
  };
}

function reasonOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : null;
  const deeper = cause?.cause instanceof Error ? cause.cause : cause;
  const code = deeper !== null && 'code' in deeper ? ` (${String(deeper.code)})` : '';
  return `${messageOf(error)}${code}`;
}

function unreachable(issuer: string, error: unknown): ServiceError {
  return new ServiceError('unavailable', `the identity provider ${issuer} does not answer: ${reasonOf(error)}`, {
    cause: error,
    headers: [['Retry-After', '5']],
  });
}

function refusalOf(error: unknown, issuer: string): ServiceError {
  if (error instanceof oidc.AuthorizationResponseError)
    return new ServiceError(
      'forbidden',
      `the identity provider refused the login: ${error.error_description ?? error.error}`,
      { cause: error },
    );
  if (error instanceof oidc.ResponseBodyError)
    return new ServiceError(
      'forbidden',
      `the identity provider did not accept the login: ${error.error_description ?? error.error}`,
      { cause: error },
    );
  if (error instanceof oidc.ClientError && error.code === 'OAUTH_TIMEOUT') return unreachable(issuer, error);
  if (error instanceof TypeError) return unreachable(issuer, error);
  const cause = error instanceof Error ? error.cause : undefined;
  if (cause instanceof Response && cause.status >= 500) return unreachable(issuer, error);
  return new ServiceError('forbidden', `the answer of the identity provider is not valid: ${messageOf(error)}`, {
    cause: error,
  });
}
