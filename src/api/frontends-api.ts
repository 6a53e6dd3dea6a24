import { ServiceError } from '../base/errors.ts';
import type { PluginOrigins } from '../config/plugin-origins.ts';
import type { Coding, FrontendFile, Frontends } from '../frontends/frontends.ts';
import { NO_STORE, type Reply, type Request } from '../http/message.ts';
import { LOGIN_PATH, noLoginReply, PLUGIN_LOGIN_PATH } from '../identity/no-login.ts';
import type { InstalledPlugin, PluginRegistry } from '../plugins/registry.ts';
import type { Route } from './route.ts';

export type FrontendsApiParts = {
  registry: PluginRegistry;
  frontends: Frontends;
  /** Where the frontend of a version is stored. */
  pathOf(wasmKey: string, sha256: string): string;
  /** Origins of plugins; null when all share the service's. */
  pluginOrigins: PluginOrigins | null;
  /** Whether a request carries the session of a user or an administrator (docs/identity.md "Sessions"). */
  hasSession(request: Request): Promise<boolean>;
  /** Whether users may log in with an identity provider. */
  hasLogin: boolean;
  /** Other origins pages may talk to and show things from: the file store's, and this host's public one. */
  origins(): readonly string[];
};

const INDEX = 'index.html';
/** A year: what is called by a name that changes with its content never changes. */
const FOR_EVER = 'max-age=31536000, immutable';

/** What the browser takes, of what we give. */
function codingsOf(request: Request): Set<Coding> {
  const taken = new Set<Coding>();
  for (const part of (request.headers['accept-encoding'] ?? '').split(',')) {
    const [name = '', ...parameters] = part.split(';').map(p => p.trim());
    if (parameters.some(p => /^q=0(\.0*)?$/.test(p))) continue;
    if (name === 'br' || name === 'gzip') taken.add(name);
  }
  return taken;
}

/** A page that is opened, rather than a part of one. */
function isPage(request: Request): boolean {
  const mode = request.headers['sec-fetch-mode'];
  return mode === undefined ? /\btext\/html\b/i.test(request.headers.accept ?? '') : mode === 'navigate';
}

/** The path inside the bundle. @throws ServiceError `malformed_request` */
function pathOf(request: Request): string {
  try {
    return decodeURIComponent(request.params['*'] ?? '');
  } catch {
    throw new ServiceError('malformed_request', `"${request.path}" is not valid percent-encoding`);
  }
}

/** Frontends delivered with plugins, at `/plugins/<id>/app/` (docs/plugins.md "Upload and installation", docs/identity.md "Sessions"). */
export function frontendRoutes(parts: FrontendsApiParts): Route[] {
  const { frontends, hasSession, registry } = parts;

  const load = (request: Request): InstalledPlugin & { frontend: NonNullable<InstalledPlugin['frontend']> } => {
    const id = request.params.id ?? '';
    const plugin = registry.find(id);
    if (plugin === undefined || !plugin.enabled) throw new ServiceError('not_found', `there is no plugin "${id}" here`);
    const { frontend } = plugin;
    if (frontend === null) throw new ServiceError('not_found', `plugin "${id}" has no frontend`);
    return { ...plugin, frontend };
  };
  /** Null: may go on. */
  const refuse = async (plugin: InstalledPlugin, request: Request): Promise<Reply | null> => {
    if (plugin.frontendAccess === 'public' || (await hasSession(request))) return null;
    if (!isPage(request))
      throw new ServiceError('unauthorized', 'log in first: this frontend is for users and administrators');
    const place = parts.pluginOrigins?.pluginAt(request.headers.host) ?? null;
    if (!parts.hasLogin && place === null) return noLoginReply(request.requestId);
    const back = encodeURIComponent(request.query === '' ? request.path : `${request.path}?${request.query}`);
    return {
      status: 302,
      headers: [['Location', `${place === null ? LOGIN_PATH : PLUGIN_LOGIN_PATH}?return_to=${back}`], NO_STORE],
      body: '',
    };
  };
  const policy = (): string => {
    const others = parts.origins().join(' ');
    return [
      "default-src 'self'",
      // Modules of WebAssembly are code of the bundle as well; text is never.
      "script-src 'self' 'wasm-unsafe-eval'",
      "style-src 'self' 'unsafe-inline'",
      `img-src 'self' data: blob: ${others}`,
      `media-src 'self' data: blob: ${others}`,
      "font-src 'self' data:",
      `connect-src 'self' ${others}`,
      "worker-src 'self' blob:",
      "object-src 'none'",
      "base-uri 'self'",
      "form-action 'self'",
      "frame-ancestors 'self'",
    ]
      .map(d => d.trim())
      .join('; ');
  };
  const reply = (file: FrontendFile, plugin: InstalledPlugin, request: Request): Reply => {
    const scope = plugin.frontendAccess === 'public' ? 'public' : 'private';
    const etag = `"${file.tag}${file.coding === 'identity' ? '' : `-${file.coding}`}"`;
    const headers: Array<[string, string]> = [
      ['Content-Type', file.type],
      ['Cache-Control', file.hashed ? `${scope}, ${FOR_EVER}` : `${scope}, no-cache`],
      ['ETag', etag],
      ['Vary', 'Accept-Encoding'],
      ['Content-Security-Policy', policy()],
      ['Referrer-Policy', 'same-origin'],
      // Passkeys are the service's: a page of a plugin must not ask for them.
      ['Permissions-Policy', 'publickey-credentials-get=()'],
      ...(file.coding === 'identity' ? [] : ([['Content-Encoding', file.coding]] as Array<[string, string]>)),
    ];
    const known = (request.headers['if-none-match'] ?? '').split(',').map(t => t.trim().replace(/^W\//, ''));
    if (known.includes(etag)) return { status: 304, headers, body: '' };
    const { body, length } = file;
    return { status: 200, headers, body: typeof body === 'function' ? { length, open: body } : body };
  };

  const route = (path: string, handle: Route['handle']): Route => ({ method: 'GET', path, guard: 'none', handle });
  return [
    route('/plugins/:id/app', ({ request }) => {
      const { id } = load(request);
      const query = request.query === '' ? '' : `?${request.query}`;
      return { status: 308, headers: [['Location', `/plugins/${encodeURIComponent(id)}/app/${query}`]], body: '' };
    }),
    route('/plugins/:id/app/*', async ({ request }) => {
      const plugin = load(request);
      const { pluginOrigins } = parts;
      if (pluginOrigins !== null && pluginOrigins.pluginAt(request.headers.host) === null) {
        const query = request.query === '' ? '' : `?${request.query}`;
        const location = `${pluginOrigins.originOf(plugin.id)}${request.path}${query}`;
        return {
          status: 307,
          headers: [['Location', location], NO_STORE],
          body: '',
        };
      }
      const refused = await refuse(plugin, request);
      if (refused !== null) return refused;
      const { sha256, wasmKey } = plugin.frontend;
      const stored = { path: parts.pathOf(wasmKey, sha256), sha256 };
      const codings = codingsOf(request);
      const path = pathOf(request);
      const asked = path === '' || path.endsWith('/') ? `${path}${INDEX}` : path;
      const found = await frontends.find(stored, asked, codings);
      if (found !== undefined) return reply(found, plugin, request);
      // A route of the page's own, which its script will know; a missing picture or script is missing.
      const isFile = /\.[A-Za-z0-9]{1,8}$/.test(path) && !/\.html?$/.test(path);
      const index = isFile && !isPage(request) ? undefined : await frontends.find(stored, INDEX, codings);
      if (index === undefined)
        throw new ServiceError(
          'not_found',
          `the frontend of plugin "${plugin.id}" has no file ${JSON.stringify(path)}`,
        );
      return reply({ ...index, hashed: false }, plugin, request);
    }),
  ];
}
