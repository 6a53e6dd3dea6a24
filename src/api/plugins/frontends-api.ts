import { ServiceError } from '../../base/errors.ts';
import type { PluginOrigins } from '../../config/plugin-origins.ts';
import type { Coding, FrontendFile, Frontends } from '../../frontends/frontends.ts';
import { NO_STORE, type Request } from '../../http/message.ts';
import { LOGIN_PATH, noLoginReply, PLUGIN_LOGIN_PATH } from '../../identity/no-login.ts';
import type { InstalledPlugin, PluginRegistry } from '../../plugins/registry.ts';
import { type RawReply, resource } from '../contract/contract.ts';
import { type Handle, serve } from '../contract/endpoint.ts';
import type { Route } from '../contract/route.ts';

export type FrontendsApiParts = {
  registry: PluginRegistry;
  frontends: Frontends;
  /** Where the frontend of a version is stored. */
  pathOf(wasmKey: string, sha256: string): Promise<string>;
  /** Origins of plugins; null when all share the service's. */
  pluginOrigins: PluginOrigins | null;
  /** Whether a request carries the session of a user or an administrator (docs/identity.md "Sessions"). */
  hasSession(request: Request): Promise<boolean>;
  /** Whether users may log in with an identity provider. */
  hasLogin: boolean;
  /** Other origins pages may talk to and show things from: the file store's, and this host's public one. */
  origins(): readonly string[];
};

const noLogin: RawReply = { media: 'text/html', description: 'No login is set up here' };

/** Frontends delivered with plugins (docs/plugins.md "Upload and installation", docs/identity.md "Sessions"). */
export const frontends = resource('Frontends of plugins', 'The pages that are delivered with plugins.', {
  open: {
    method: 'GET',
    path: '/plugins/:id/app',
    guard: 'none',
    summary: 'Go to the frontend of a plugin',
    replies: { 308: null },
  },
  read: {
    method: 'GET',
    path: '/plugins/:id/app/*',
    guard: 'none',
    callers: {
      words: 'For every caller when the frontend is public, and otherwise for users and administrators.',
      schemes: ['user_session', 'user_token', 'admin_session'],
    },
    summary: 'Read a file of the frontend of a plugin',
    description:
      'A path without such a file is answered with index.html, unless it looks like one of another file. Browsers are sent to the login, and to the origin of the plugin.',
    replies: {
      200: { media: '*/*', description: 'The file' },
      302: null,
      304: null,
      307: null,
      503: noLogin,
    },
    refusals: ['unauthorized'],
  },
});

const INDEX = 'index.html';
/** A year: what is called by a name that changes with its content never changes. */
const FOR_EVER = 'max-age=31536000, immutable';

/** The encoding that the browser takes, of those that are stored. */
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
function pathOf(rest: string, request: Request): string {
  try {
    return decodeURIComponent(rest);
  } catch {
    throw new ServiceError('malformed_request', `"${request.path}" is not valid percent-encoding`);
  }
}

const open: Handle<typeof frontends.open, FrontendsApiParts> = ({ registry }, { params, request }) => {
  const { id } = load(registry, params.id);
  return { status: 308, headers: [['Location', `/plugins/${encodeURIComponent(id)}/app/${queryText(request)}`]] };
};

const read: Handle<typeof frontends.read, FrontendsApiParts> = async (parts, { params, request }) => {
  const plugin = load(parts.registry, params.id);
  const { pluginOrigins } = parts;
  if (pluginOrigins !== null && pluginOrigins.pluginAt(request.headers.host) === null) {
    const location = `${pluginOrigins.originOf(plugin.id)}${request.path}${queryText(request)}`;
    return { status: 307, headers: [['Location', location], NO_STORE] };
  }
  const refused = await refuse(parts, plugin, request);
  if (refused !== null) return refused;
  const { sha256, wasmKey } = plugin.frontend;
  const stored = { path: await parts.pathOf(wasmKey, sha256), sha256 };
  const codings = codingsOf(request);
  const path = pathOf(params['*'], request);
  const asked = path === '' || path.endsWith('/') ? `${path}${INDEX}` : path;
  const found = await parts.frontends.find(stored, asked, codings);
  if (found !== undefined) return fileReply(parts, found, plugin);
  // A route of the page's own, which its script will know; a missing picture or script is missing.
  const isFile = /\.[A-Za-z0-9]{1,8}$/.test(path) && !/\.html?$/.test(path);
  const index = isFile && !isPage(request) ? undefined : await parts.frontends.find(stored, INDEX, codings);
  if (index === undefined)
    throw new ServiceError('not_found', `the frontend of plugin "${plugin.id}" has no file ${JSON.stringify(path)}`);
  return fileReply(parts, { ...index, hashed: false }, plugin);
};

export const frontendRoutes = (parts: FrontendsApiParts): Route[] => serve(frontends, parts, { open, read });

const queryText = ({ query }: Request): string => (query === '' ? '' : `?${query}`);

/** @throws ServiceError `not_found` */
function load(
  registry: PluginRegistry,
  id: string,
): InstalledPlugin & { frontend: NonNullable<InstalledPlugin['frontend']> } {
  const plugin = registry.find(id);
  if (plugin === undefined || !plugin.enabled) throw new ServiceError('not_found', `there is no plugin "${id}" here`);
  const { frontend } = plugin;
  if (frontend === null) throw new ServiceError('not_found', `plugin "${id}" has no frontend`);
  return { ...plugin, frontend };
}

/** Null: may go on. */
async function refuse(parts: FrontendsApiParts, plugin: InstalledPlugin, request: Request) {
  if (plugin.frontendAccess === 'public' || (await parts.hasSession(request))) return null;
  if (!isPage(request))
    throw new ServiceError('unauthorized', 'log in first: this frontend is for users and administrators');
  const place = parts.pluginOrigins?.pluginAt(request.headers.host) ?? null;
  if (!parts.hasLogin && place === null) return noLoginReply(request.requestId);
  const back = encodeURIComponent(`${request.path}${queryText(request)}`);
  const location = `${place === null ? LOGIN_PATH : PLUGIN_LOGIN_PATH}?return_to=${back}`;
  const headers: Array<[string, string]> = [['Location', location], NO_STORE];
  return { status: 302 as const, headers };
}

/** The Content-Security-Policy of pages. @param origins other ones they may talk to and show things from */
function policyOf(origins: readonly string[]): string {
  const others = origins.join(' ');
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
}

function fileReply({ origins }: FrontendsApiParts, file: FrontendFile, plugin: InstalledPlugin) {
  const scope = plugin.frontendAccess === 'public' ? 'public' : 'private';
  const etag = `"${file.tag}${file.coding === 'identity' ? '' : `-${file.coding}`}"`;
  const headers: Array<[string, string]> = [
    ['Content-Type', file.type],
    ['Cache-Control', file.hashed ? `${scope}, ${FOR_EVER}` : `${scope}, no-cache`],
    ['ETag', etag],
    ['Vary', 'Accept-Encoding'],
    ['Content-Security-Policy', policyOf(origins())],
    ['Referrer-Policy', 'same-origin'],
    // Passkeys are the service's: a page of a plugin must not ask for them.
    ['Permissions-Policy', 'publickey-credentials-get=(), publickey-credentials-create=()'],
    ...(file.coding === 'identity' ? [] : ([['Content-Encoding', file.coding]] as Array<[string, string]>)),
  ];
  const { body, length } = file;
  return { status: 200 as const, headers, body: typeof body === 'function' ? { length, open: body } : body };
}
