import { appendAudit } from '../audit/audit-log.ts';
import type { Database } from '../db/database.ts';
import { ServiceError, STATUS_OF, TITLE_OF } from '../errors.ts';
import { escapeHtml } from '../html.ts';
import { findAdmin } from '../identity/admin-accounts.ts';
import type { IdpLogin } from '../identity/idp-login.ts';
import { safeReturnTo } from '../identity/return-to.ts';
import { findOrAddIdpUser } from '../identity/users.ts';
import { LIMITS } from '../limits.ts';
import { cookieOf, type Reply, type Request } from '../message.ts';
import { actorOfAccount, queryOf, type Route } from './route.ts';
import type { SessionCookies } from './session-cookies.ts';

export type IdpApiParts = {
  db: Database;
  idp: IdpLogin;
  cookies: SessionCookies;
};

const PATH = '/api/auth/idp';
const NO_STORE: [string, string] = ['Cache-Control', 'no-store'];

/** A refusal for people: whoever logs in sees it in a browser. */
function refusalPage(error: ServiceError, request: Request): Reply {
  return {
    status: STATUS_OF[error.code],
    headers: [
      ['Content-Type', 'text/html; charset=utf-8'],
      ['Content-Security-Policy', "default-src 'none'"],
      NO_STORE,
      ...error.headers,
    ],
    body: `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${TITLE_OF[error.code]}</title>
<h1>Login failed</h1>
<p>${escapeHtml(error.message)}</p>
<p><a href="${PATH}/start">Log in again</a></p>
<p>Request ${escapeHtml(request.requestId)}</p>
</html>
`,
  };
}

/** The login with an identity provider (service.md 4.2, 5.3, 5.4.4). */
export function idpRoutes({ cookies, db, idp }: IdpApiParts): Route[] {
  const redirect = (location: string, headers: Array<[string, string]>): Reply => ({
    status: 302,
    headers: [['Location', location], NO_STORE, ...headers],
    body: '',
  });
  const forPeople =
    (handle: (request: Request) => Promise<Reply>): Route['handle'] =>
    async ({ request }) => {
      try {
        return await handle(request);
      } catch (error) {
        if (error instanceof ServiceError && /\btext\/html\b/.test(request.headers.accept ?? ''))
          return refusalPage(error, request);
        throw error;
      }
    };

  return [
    {
      method: 'GET',
      path: `${PATH}/start`,
      guard: 'none',
      handle: forPeople(async request => {
        const returnTo = safeReturnTo(queryOf(request, ['return_to']).get('return_to'));
        const login = await idp.begin(returnTo, Date.now());
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
          if (account !== undefined)
            await appendAudit(client, actorOfAccount(account, request), {
              action: 'admin.login',
              objectType: 'user',
              objectId: String(user.id),
              after: { with: 'identity provider' },
            });
          const kinds = account === undefined ? (['user'] as const) : (['admin', 'user'] as const);
          return await cookies.open(client, request, user.id, kinds, false);
        });
        return redirect(login.returnTo, [over, ...sessions]);
      }),
    },
  ];
}
