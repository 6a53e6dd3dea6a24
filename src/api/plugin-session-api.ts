import { ServiceError } from '../base/errors.ts';
import { LIMITS } from '../base/limits.ts';
import type { PluginOrigins } from '../config/plugin-origins.ts';
import type { Database } from '../db/database.ts';
import { cookieOf, NO_STORE, type Reply, type Request, sessionCookieOf } from '../http/message.ts';
import { makeSecret } from '../identity/bearer-secret.ts';
import { LOGIN_PATH, noLoginReply } from '../identity/no-login.ts';
import { addPluginLogin, usePluginLogin } from '../identity/plugin-sessions.ts';
import { safeReturnTo } from '../identity/return-to.ts';
import { findSession } from '../identity/sessions.ts';
import type { PluginRegistry } from '../plugins/registry.ts';
import { queryOf, type Route } from './route.ts';
import type { SessionCookies } from './session-cookies.ts';

export type PluginSessionParts = {
  db: Database;
  origins: PluginOrigins;
  registry: PluginRegistry;
  cookies: SessionCookies;
  /** Whether users may log in with an identity provider. */
  hasLogin: boolean;
  publicBase(): string;
};

const PATH = '/api/auth/plugin-session';
const COOKIE = 'plugin_login';

const redirect = (location: string, ...headers: Array<[string, string]>): Reply => ({
  status: 302,
  headers: [['Location', location], NO_STORE, ['Referrer-Policy', 'no-referrer'], ...headers],
  body: '',
});

/**
 * The way of a user's session to the origin of a plugin, in three navigations (docs/SECURITY.md "An origin for each plugin"):
 * `start` there keeps a secret, this service's own origin makes a code for it, `finish` there turns both into a session.
 */
export function pluginSessionRoutes(parts: PluginSessionParts): Route[] {
  const { cookies, db, origins, registry } = parts;
  const pluginAt = (request: Request): string => {
    const id = origins.pluginAt(request.headers.host);
    if (id === null || registry.find(id)?.enabled !== true)
      throw new ServiceError('not_found', `${request.headers.host} is not the origin of an enabled plugin`);
    return id;
  };
  const route = (path: string, handle: Route['handle']): Route => ({
    method: 'GET',
    path: `${PATH}${path}`,
    guard: 'none',
    skipChangeBarrier: true,
    handle,
  });
  return [
    route('/start', ({ request }) => {
      const plugin = pluginAt(request);
      const returnTo = safeReturnTo(queryOf(request, ['return_to']).get('return_to'));
      const kept = makeSecret();
      const query = new URLSearchParams({ plugin, state: kept.sha256.toString('hex'), return_to: returnTo });
      return redirect(
        `${parts.publicBase()}${PATH}?${query}`,
        cookies.header(COOKIE, kept.text, LIMITS.pluginLoginMs, PATH),
      );
    }),
    route('', async ({ request }) => {
      if (origins.pluginAt(request.headers.host) !== null)
        throw new ServiceError('not_found', 'the origin of a plugin makes no codes');
      const query = queryOf(request, ['plugin', 'state', 'return_to']);
      const plugin = registry.find(query.get('plugin') ?? '');
      const state = query.get('state') ?? '';
      if (plugin?.enabled !== true || !/^[0-9a-f]{64}$/.test(state))
        throw new ServiceError(
          'malformed_request',
          'plugin must name a plugin and state must be 64 hexadecimal digits',
        );
      const mode = request.headers['sec-fetch-mode'];
      if (mode !== undefined && mode !== 'navigate')
        throw new ServiceError('forbidden', 'this address is opened by a browser, not fetched by a page');
      const session = await findSession(db, 'user', sessionCookieOf(request.headers, 'user'), Date.now());
      if (session === undefined || session.pluginId !== null) {
        if (!parts.hasLogin) return noLoginReply(request.requestId);
        return redirect(`${LOGIN_PATH}?return_to=${encodeURIComponent(`${request.path}?${request.query}`)}`);
      }
      const code = await addPluginLogin(db, session, plugin.id, state);
      const back = new URLSearchParams({ code, return_to: safeReturnTo(query.get('return_to')) });
      return redirect(`${origins.originOf(plugin.id)}${PATH}/finish?${back}`);
    }),
    route('/finish', async ({ request }) => {
      const pluginId = pluginAt(request);
      const query = queryOf(request, ['code', 'return_to']);
      const secret = await db.withTransaction(client =>
        usePluginLogin(client, {
          code: query.get('code') ?? '',
          secret: cookieOf(request.headers, COOKIE),
          pluginId,
          address: request.remoteAddr,
          userAgent: request.headers['user-agent'] ?? '',
          nowMs: Date.now(),
        }),
      );
      if (secret === null)
        throw new ServiceError(
          'malformed_request',
          'this login was not begun in this browser, was used already, or is older than a minute; open the page again',
        );
      return redirect(
        safeReturnTo(query.get('return_to')),
        cookies.header('user_session', secret, LIMITS.userSessionMs),
        cookies.header(COOKIE, '', 0, PATH),
      );
    }),
  ];
}
