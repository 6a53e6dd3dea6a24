import * as oidc from 'openid-client';
import { z } from 'zod';
import { messageOf, ServiceError } from '../base/errors.ts';
import { LIMITS } from '../base/limits.ts';

type Provider = {
  /** Empty: there is no identity provider. */
  issuer: string;
  clientId: string;
  clientSecret: string;
};

export type IdpOptions = Provider & {
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

/** A provider's clock may be this far from ours, in every time it tells (RFC 7519 section 4.1.5). */
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
      const account = accountOf(claims, await this.#moreClaims(provider, tokens, claims), nowMs);
      if (pending.fresh && account.authenticatedAt === null)
        throw new Error('it does not say when you logged in there (auth_time)');
      return { account, returnTo: pending.returnTo };
    } catch (error) {
      throw refusalOf(error, this.#options.issuer);
    }
  }

  /**
   * What the provider says of the user at its UserInfo endpoint: with a code, claims of the scope `profile` are there, and need not be in
   * the identity (OpenID Connect Core 5.4). A provider that does not answer there lets the user in without a name.
   */
  async #moreClaims(
    provider: oidc.Configuration,
    { access_token }: oidc.TokenEndpointResponse,
    claims: oidc.IDToken,
  ): Promise<Claims> {
    if (nameOf(claims) !== '' && languageOf(claims) !== null) return {};
    if (provider.serverMetadata().userinfo_endpoint === undefined) return {};
    return await oidc.fetchUserInfo(provider, access_token, claims.sub).catch(() => ({}));
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

/**
 * Asks the provider for its configuration, as the first login does.
 *
 * @throws ServiceError `unavailable` that says what is wrong
 */
export async function assertProvider(o: Provider): Promise<void> {
  await discover(o).catch((error: unknown) => {
    throw unreachable(o.issuer, error);
  });
}

async function discover(o: Provider): Promise<oidc.Configuration> {
  const issuer = new URL(o.issuer);
  // The configuration allows http only for loopback addresses.
  const execute = issuer.protocol === 'http:' ? [oidc.allowInsecureRequests] : [];
  const metadata = { [oidc.clockTolerance]: CLOCK_SKEW_MS / 1000 };
  return await oidc.discovery(issuer, o.clientId, metadata, clientAuth(o.clientSecret), {
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

type Claims = Readonly<Record<string, unknown>>;

/** A claim that is a text, in any language it is given in (OpenID Connect Core 5.2: `name#ru`); empty when there is none. */
function textOf(claims: Claims, name: string): string {
  const tagged = Object.keys(claims).filter(key => key.startsWith(`${name}#`));
  const values = [name, ...tagged].map(key => claims[key]);
  const value = values.find(v => typeof v === 'string' && v.trim() !== '');
  return typeof value === 'string' ? value.replaceAll('\0', '').trim().slice(0, 300) : '';
}

/** The name of a user, whole or from its parts. */
function nameOf(claims: Claims): string {
  const parts = ['given_name', 'middle_name', 'family_name'].map(part => textOf(claims, part));
  return textOf(claims, 'name') || parts.filter(part => part !== '').join(' ');
}

/** `ru`, `en-GB`, `ru_RU`, `EN`, `rus`, and the POSIX `ru_RU.UTF-8` (OpenID Connect Core 5.1 warns of underscores). */
function languageOf(claims: Claims): 'ru' | 'en' | null {
  const language = /^(ru|en)(?:s|g)?(?![a-z])/i.exec(textOf(claims, 'locale'))?.[1]?.toLowerCase();
  return language === 'ru' || language === 'en' ? language : null;
}

/** @param more claims of the UserInfo endpoint, which tell what the identity does not: never who, nor when */
function accountOf(claims: oidc.IDToken, more: Claims, nowMs: number): IdpAccount {
  const first = (read: (of: Claims) => string): string => read(claims) || read(more);
  const authMs = typeof claims.auth_time === 'number' ? claims.auth_time * 1000 : Number.NaN;
  return {
    sub: claims.sub,
    name: first(nameOf) || first(c => textOf(c, 'preferred_username')) || first(c => textOf(c, 'email')),
    locale: languageOf(claims) ?? languageOf(more),
    authenticatedAt: authMs > 0 && authMs < nowMs + CLOCK_SKEW_MS ? new Date(authMs) : null,
  };
}

function reasonOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : null;
  const deeper = cause?.cause instanceof Error ? cause.cause : cause;
  const code = deeper !== null && 'code' in deeper ? ` (${String(deeper.code)})` : '';
  return `${messageOf(error)}${code}`;
}

/** Two values that do not fit, as the library gives them with an error that names neither. */
function comparedOf(error: unknown): { expected: string; found: string } | null {
  const told = error instanceof Error && typeof error.cause === 'object' && error.cause !== null ? error.cause : {};
  // The library of the client wraps the error of the protocol.
  if (told instanceof Error) return comparedOf(told);
  if (!('expected' in told) || !('attribute' in told || 'claim' in told)) return null;
  const name = String('attribute' in told ? told.attribute : 'claim' in told ? told.claim : '');
  const of: unknown = 'body' in told ? told.body : 'claims' in told ? told.claims : null;
  const found: unknown = typeof of === 'object' && of !== null ? Reflect.get(of, name) : undefined;
  const shown = (value: unknown): string => (typeof value === 'string' ? value : (JSON.stringify(value) ?? 'nothing'));
  return { expected: shown(told.expected), found: shown(found) };
}

/** A claim with a time that is too far from our clock, as the library tells it; null when that is not what is wrong. */
function clockOf(error: unknown): string | null {
  const told = error instanceof Error && typeof error.cause === 'object' && error.cause !== null ? error.cause : {};
  if (told instanceof Error) return clockOf(told);
  if (!('now' in told && 'claim' in told && 'claims' in told)) return null;
  const at: unknown = Reflect.get(Object(told.claims), String(told.claim));
  const away = Math.round(Number(at) - Number(told.now));
  return `its claim "${told.claim}" lies ${Math.abs(away)} s ${away < 0 ? 'behind' : 'ahead of'} the clock of this host; at most ${CLOCK_SKEW_MS / 1000} s are allowed`;
}

function unreachable(issuer: string, error: unknown): ServiceError {
  const compared = comparedOf(error);
  if (compared !== null)
    return new ServiceError(
      'unavailable',
      `idp.issuer is ${issuer}, and the identity provider there says it is ${compared.found}: set idp.issuer to that, each character alike`,
      { cause: error },
    );
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
  const compared = comparedOf(error);
  const why =
    clockOf(error) ??
    (compared === null
      ? messageOf(error)
      : `${messageOf(error)}: it is ${compared.found} and must be ${compared.expected}`);
  return new ServiceError('forbidden', `the answer of the identity provider is not valid: ${why}`, { cause: error });
}
