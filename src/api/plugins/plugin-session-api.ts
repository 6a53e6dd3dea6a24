import { z } from 'zod';
import { ServiceError } from '../../base/errors.ts';
import { LIMITS } from '../../base/limits.ts';
import type { PluginOrigins } from '../../config/plugin-origins.ts';
import type { Database } from '../../db/database.ts';
import { cookieOf, NO_STORE, type Request, sessionCookieName, sessionCookieOf } from '../../http/message.ts';
import { makeSecret } from '../../identity/bearer-secret.ts';
import { LOGIN_PATH, noLoginReply } from '../../identity/no-login.ts';
import { addPluginLogin, usePluginLogin } from '../../identity/plugin-sessions.ts';
import { safeReturnTo } from '../../identity/return-to.ts';
import { findSession } from '../../identity/sessions.ts';
import type { PluginRegistry } from '../../plugins/registry.ts';
import { resource } from '../contract/contract.ts';
import { type Handle, serve } from '../contract/endpoint.ts';
import { text } from '../contract/query.ts';
import type { Route } from '../contract/route.ts';
import type { SessionCookies } from '../contract/session-cookies.ts';

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

const returnTo = text('Path to go back to; the home page for everything else');

/**
 * The way of a user's session to the origin of a plugin, in three navigations (docs/SECURITY.md "An origin for each plugin"):
 * `start` there keeps a secret, this service's own origin makes a code for it, `finish` there turns both into a session.
 */
export const pluginSessions = resource(
  'Sessions at origins of plugins',
  'The way of a session to the origin of a plugin, where plugins have origins of their own.',
  {
    start: {
      method: 'GET',
      path: `${PATH}/start`,
      guard: 'none',
      skipChangeBarrier: true,
      summary: 'Begin a session at the origin of a plugin',
      description: 'Opened at the origin of the plugin. Only where plugins have origins of their own.',
      query: z.strictObject({ return_to: returnTo }),
      replies: { 302: null },
      refusals: ['not_found'],
    },
    makeCode: {
      method: 'GET',
      path: PATH,
      guard: 'none',
      skipChangeBarrier: true,
      summary: 'Make a code for a session at the origin of a plugin',
      description: 'Where `start` sends the browser, at the origin of this service. Sends users to the login first.',
      query: z.strictObject({
        plugin: text('Id of the plugin'),
        state: text('Hash of the secret the browser keeps, 64 hexadecimal digits'),
        return_to: returnTo,
      }),
      replies: { 302: null, 503: { media: 'text/html', description: 'No login is set up here' } },
      refusals: ['forbidden', 'not_found'],
    },
    finish: {
      method: 'GET',
      path: `${PATH}/finish`,
      guard: 'none',
      skipChangeBarrier: true,
      summary: 'Turn a code into a session at the origin of a plugin',
      description: 'Where the browser is sent with the code. Opened at the origin of the plugin.',
      query: z.strictObject({ code: text('The code'), return_to: returnTo }),
      replies: { 302: null },
      refusals: ['not_found'],
    },
  },
);

const start: Handle<typeof pluginSessions.start, PluginSessionParts> = (parts, input) => {
  const plugin = pluginAt(parts, input.request);
  const returnTo = safeReturnTo(input.query.return_to);
  const kept = makeSecret();
  const query = new URLSearchParams({ plugin, state: kept.sha256.toString('hex'), return_to: returnTo });
  return redirect(
    `${parts.publicBase()}${PATH}?${query}`,
    parts.cookies.header(parts.cookies.nameOf(COOKIE), kept.text, LIMITS.pluginLoginMs, PATH),
  );
};

const makeCode: Handle<typeof pluginSessions.makeCode, PluginSessionParts> = async (parts, input) => {
  const { db, origins, registry } = parts;
  const { request } = input;
  if (origins.pluginAt(request.headers.host) !== null)
    throw new ServiceError('not_found', 'the origin of a plugin makes no codes');
  const { plugin: id = '', return_to, state = '' } = input.query;
  const plugin = registry.find(id);
  if (plugin?.enabled !== true || !/^[0-9a-f]{64}$/.test(state))
    throw new ServiceError('malformed_request', 'plugin must name a plugin and state must be 64 hexadecimal digits');
  const mode = request.headers['sec-fetch-mode'];
  if (mode !== undefined && mode !== 'navigate')
    throw new ServiceError('forbidden', 'this address is opened by a browser, not fetched by a page');
  const session = await findSession(db, 'user', sessionCookieOf(request.headers, 'user'), Date.now());
  if (session === undefined || session.pluginId !== null) {
    if (!parts.hasLogin) return noLoginReply(request.requestId);
    return redirect(`${LOGIN_PATH}?return_to=${encodeURIComponent(`${request.path}?${request.query}`)}`);
  }
  const code = await addPluginLogin(db, session, plugin.id, state);
  const back = new URLSearchParams({ code, return_to: safeReturnTo(return_to) });
  return redirect(`${origins.originOf(plugin.id)}${PATH}/finish?${back}`);
};

const finish: Handle<typeof pluginSessions.finish, PluginSessionParts> = async (parts, { query, request }) => {
  const { cookies, db } = parts;
  const pluginId = pluginAt(parts, request);
  const { code = '', return_to } = query;
  const secret = await db.withTransaction(client =>
    usePluginLogin(client, {
      code,
      secret: cookieOf(request.headers, cookies.nameOf(COOKIE)),
      pluginId,
      address: request.remoteAddr,
      userAgent: request.headers['user-agent'] ?? '',
      hostOnly: cookies.hostOnly,
      nowMs: Date.now(),
    }),
  );
  if (secret === null)
    throw new ServiceError(
      'malformed_request',
      'this login was not begun in this browser, was used already, or is older than a minute; open the page again',
    );
  return redirect(
    safeReturnTo(return_to),
    cookies.header(sessionCookieName('user', secret), secret, LIMITS.userSessionMs),
    cookies.header(cookies.nameOf(COOKIE), '', 0, PATH),
  );
};

export const pluginSessionRoutes = (parts: PluginSessionParts): Route[] =>
  serve(pluginSessions, parts, { start, makeCode, finish });

/** The plugin whose origin a request came to. @throws ServiceError `not_found` */
function pluginAt({ origins, registry }: PluginSessionParts, request: Request): string {
  const id = origins.pluginAt(request.headers.host);
  if (id === null || registry.find(id)?.enabled !== true)
    throw new ServiceError('not_found', `${request.headers.host} is not the origin of an enabled plugin`);
  return id;
}

const redirect = (location: string, ...more: Array<[string, string]>) => {
  const headers: Array<[string, string]> = [
    ['Location', location],
    NO_STORE,
    ['Referrer-Policy', 'no-referrer'],
    ...more,
  ];
  return { status: 302 as const, headers };
};
