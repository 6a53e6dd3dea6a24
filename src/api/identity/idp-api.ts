import { z } from 'zod';
import { appendAudit } from '../../audit/audit-log.ts';
import { ServiceError, STATUS_OF } from '../../base/errors.ts';
import { noticePage } from '../../base/html.ts';
import { LIMITS } from '../../base/limits.ts';
import type { Database } from '../../db/database.ts';
import { cookieOf, NO_STORE, type Reply, type Request } from '../../http/message.ts';
import { findAdmin } from '../../identity/admin-accounts.ts';
import type { IdpAccount, IdpLogin } from '../../identity/idp-login.ts';
import { LOGIN_PATH, noLoginReply, PAGE_HEADERS } from '../../identity/no-login.ts';
import { safeReturnTo } from '../../identity/return-to.ts';
import { findOrAddIdpUser } from '../../identity/users.ts';
import { actorOfAccount, actorOfUser } from '../contract/caller.ts';
import { type RawReply, resource } from '../contract/contract.ts';
import { type Handle, serve } from '../contract/endpoint.ts';
import { flag, text } from '../contract/query.ts';
import type { Route } from '../contract/route.ts';
import type { SessionCookies } from '../contract/session-cookies.ts';
import { untrustedOrigin } from '../contract/untrusted-origin.ts';

export type IdpApiParts = {
  db: Database;
  idp: IdpLogin;
  cookies: SessionCookies;
  /** Whether browsers separate our windows from those of plugins: over https, and on loopback. */
  trusted(): boolean;
};

const PATH = LOGIN_PATH.slice(0, LOGIN_PATH.lastIndexOf('/'));

const page: RawReply = { media: 'text/html', description: 'The refusal as a page, for browsers' };

/** The login with an identity provider (docs/identity.md "Login with an identity provider", docs/access.md "Browsers"). */
export const idpLogin = resource('Login with an identity provider', 'The login of users in a browser.', {
  start: {
    method: 'GET',
    path: LOGIN_PATH,
    guard: 'none',
    summary: 'Begin a login with the identity provider',
    description: 'Sends the browser to the provider.',
    query: z.strictObject({
      return_to: text('Path of this service to go back to; the home page for everything else'),
      fresh: flag('Whether the provider must ask for the credentials again'),
    }),
    replies: { 302: null, 404: page, 422: page, 503: page },
    refusals: ['not_found'],
  },
  callback: {
    method: 'GET',
    path: `${PATH}/callback`,
    guard: 'none',
    summary: 'End a login with the identity provider',
    description: 'Where the provider sends the browser, with parameters of its own. Begins sessions and goes back.',
    replies: { 302: null, 400: page, 403: page, 404: page, 503: page },
    refusals: ['forbidden', 'not_found'],
  },
});

const start: Handle<typeof idpLogin.start, IdpApiParts> = async ({ cookies, idp }, { query }) => {
  const login = await idp.begin(safeReturnTo(query.return_to), query.fresh, Date.now());
  return redirect(login.location, [cookies.header(cookies.nameOf(login.cookie), login.value, LIMITS.idpLoginMs, PATH)]);
};

const callback: Handle<typeof idpLogin.callback, IdpApiParts> = async (parts, { request }) => {
  const { cookies, idp } = parts;
  // Done or refused, this login is over.
  const over = cookies.header(cookies.nameOf(idp.cookieNameOf(request.query)), '', 0, PATH);
  const login = await idp
    .finish(request.query, name => cookieOf(request.headers, cookies.nameOf(name)), Date.now())
    .catch((error: unknown) => {
      if (error instanceof ServiceError && error.code === 'forbidden') error.headers.push(over);
      throw error;
    });
  return redirect(login.returnTo, [over, ...(await open(parts, request, login))]);
};

export const idpRoutes = (parts: IdpApiParts): Route[] =>
  serve(idpLogin, parts, { start, callback }).map(route => forPeople(parts.idp, route));

/** Sessions of the user of an account, also as an administrator when the user is one. @returns their cookies */
async function open(
  { cookies, db, trusted }: IdpApiParts,
  request: Request,
  login: { account: IdpAccount; returnTo: string },
): Promise<Array<[string, string]>> {
  return await db.withTransaction(async client => {
    const user = await findOrAddIdpUser(client, login.account);
    const account = await findAdmin(client, user.id);
    const asAdmin = account !== undefined && trusted();
    if (account !== undefined && !asAdmin && login.returnTo.startsWith('/admin')) throw untrustedOrigin();
    const by = account === undefined ? await actorOfUser(client, user.id, request) : actorOfAccount(account, request);
    await appendAudit(client, by, {
      action: asAdmin ? 'admin.login' : 'user.login',
      objectType: 'user',
      objectId: String(user.id),
      after: { with: 'identity provider' },
    });
    const kinds = asAdmin ? (['admin', 'user'] as const) : (['user'] as const);
    const proof = { via: 'idp', at: login.account.authenticatedAt } as const;
    return (await cookies.open(client, request, user.id, kinds, proof)).headers;
  });
}

const redirect = (location: string, headers: Array<[string, string]>) => ({
  status: 302 as const,
  headers: [['Location', location], NO_STORE, ...headers] satisfies Array<[string, string]>,
});

/** A row whose refusals are pages for browsers. */
function forPeople(idp: IdpLogin, route: Route): Route {
  return {
    ...route,
    async handle(input) {
      const { request } = input;
      const wantsPage = /\btext\/html\b/.test(request.headers.accept ?? '');
      // There is nothing to try again.
      if (!idp.isConfigured && wantsPage) return { ...noLoginReply(request.requestId), status: STATUS_OF.not_found };
      try {
        return await route.handle(input);
      } catch (error) {
        if (error instanceof ServiceError && wantsPage) return refusalPage(error, request);
        throw error;
      }
    },
  };
}

/** A refusal as a page: the user sees it in a browser. */
function refusalPage(error: ServiceError, request: Request): Reply {
  const headers: Array<[string, string]> = [...PAGE_HEADERS, ...error.headers];
  const body = noticePage('Login failed', [error.message], request.requestId, {
    href: LOGIN_PATH,
    text: 'Log in again',
  });
  return { status: STATUS_OF[error.code], headers, body };
}
