import { appendAudit } from '../audit/audit-log.ts';
import { ServiceError, STATUS_OF } from '../base/errors.ts';
import { noticePage } from '../base/html.ts';
import { LIMITS } from '../base/limits.ts';
import type { Database } from '../db/database.ts';
import { cookieOf, NO_STORE, type Reply, type Request } from '../http/message.ts';
import { findAdmin } from '../identity/admin-accounts.ts';
import type { IdpLogin } from '../identity/idp-login.ts';
import { LOGIN_PATH, noLoginReply, PAGE_HEADERS } from '../identity/no-login.ts';
import { safeReturnTo } from '../identity/return-to.ts';
import { findOrAddIdpUser } from '../identity/users.ts';
import { actorOfAccount, actorOfUser, flagOf, queryOf, type Route } from './route.ts';
import type { SessionCookies } from './session-cookies.ts';
import { untrustedOrigin } from './untrusted-origin.ts';

export type IdpApiParts = {
  db: Database;
  idp: IdpLogin;
  cookies: SessionCookies;
  /** Whether browsers separate our windows from those of plugins: over https, and on loopback. */
  trusted(): boolean;
};

const PATH = LOGIN_PATH.slice(0, LOGIN_PATH.lastIndexOf('/'));

/** A refusal as a page: the user sees it in a browser. */
function refusalPage(error: ServiceError, request: Request): Reply {
  const headers: Array<[string, string]> = [...PAGE_HEADERS, ...error.headers];
  const body = noticePage('Login failed', [error.message], request.requestId, {
    href: `${PATH}/start`,
    text: 'Log in again',
  });
  return { status: STATUS_OF[error.code], headers, body };
}

/** The login with an identity provider (docs/identity.md "Login with an identity provider", docs/access.md "Browsers"). */
export function idpRoutes({ cookies, db, idp, trusted }: IdpApiParts): Route[] {
  const redirect = (location: string, headers: Array<[string, string]>): Reply => ({
    status: 302,
    headers: [['Location', location], NO_STORE, ...headers],
    body: '',
  });
  const forPeople =
    (handle: (request: Request) => Promise<Reply>): Route['handle'] =>
    async ({ request }) => {
      const wantsPage = /\btext\/html\b/.test(request.headers.accept ?? '');
      // There is nothing to try again.
      if (!idp.isConfigured && wantsPage) return noLoginReply(request.requestId);
      try {
        return await handle(request);
      } catch (error) {
        if (error instanceof ServiceError && wantsPage) return refusalPage(error, request);
        throw error;
      }
    };

  return [
    {
      method: 'GET',
      path: `${PATH}/start`,
      guard: 'none',
      handle: forPeople(async request => {
        const query = queryOf(request, ['return_to', 'fresh']);
        const fresh = flagOf(query, 'fresh');
        const login = await idp.begin(safeReturnTo(query.get('return_to')), fresh, Date.now());
        return redirect(login.location, [cookies.header(login.cookie, login.value, LIMITS.idpLoginMs, PATH)]);
      }),
    },
    {
      method: 'GET',
      path: `${PATH}/callback`,
      guard: 'none',
      handle: forPeople(async request => {
        // Done or refused, this login is over.
        const over = cookies.header(idp.cookieNameOf(request.query), '', 0, PATH);
        const login = await idp
          .finish(request.query, name => cookieOf(request.headers, name), Date.now())
          .catch((error: unknown) => {
            if (error instanceof ServiceError && error.code === 'forbidden') error.headers.push(over);
            throw error;
          });
        const sessions = await db.withTransaction(async client => {
          const user = await findOrAddIdpUser(client, login.account);
          const account = await findAdmin(client, user.id);
          const asAdmin = account !== undefined && trusted();
          if (account !== undefined && !asAdmin && login.returnTo.startsWith('/admin')) throw untrustedOrigin();
          const by =
            account === undefined ? await actorOfUser(client, user.id, request) : actorOfAccount(account, request);
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
        return redirect(login.returnTo, [over, ...sessions]);
      }),
    },
  ];
}
