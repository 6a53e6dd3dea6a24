import { effectiveAccess } from '../authz/trigger-access.ts';
import type { InstalledPlugin, InstalledTrigger } from '../plugins/registry.ts';

type Headers = ReadonlyArray<readonly [string, string]>;

const NONE: Headers = [];
const PREFLIGHT_SECONDS = '600';
/** Tokens with commas between them (RFC 9110 section 5.6.2). */
const TOKENS = /^[A-Za-z0-9!#$%&'*+.^_`|~, -]+$/;

/** The origin of a sandboxed page. Any site can make such a page. */
const SANDBOXED = 'null';
const FOR_SANDBOXED: Headers = [
  ['Access-Control-Allow-Origin', SANDBOXED],
  ['Access-Control-Expose-Headers', 'X-Request-Id'],
  ['Vary', 'Origin'],
];

/**
 * CORS headers of an answer. Origins match exactly and may send credentials. Pages of triggers are sandboxed and so
 * have the origin
 * `null`; they may read answers of public triggers, without credentials.
 */
export function corsHeaders(trigger: InstalledTrigger, origin: string | undefined): Headers {
  if (origin === SANDBOXED && effectiveAccess(trigger.settings) === 'public') return FOR_SANDBOXED;
  return listedHeaders(trigger.origins, origin);
}

/** The same where a plugin has no trigger that answers: its pages read why, instead of an error of the network. */
export const refusalHeaders = (plugin: InstalledPlugin, origin: string | undefined): Headers =>
  listedHeaders(plugin.allOrigins, origin);

function listedHeaders(origins: ReadonlySet<string>, origin: string | undefined): Headers {
  if (origins.size === 0) return NONE;
  if (origin === undefined || !origins.has(origin)) return [['Vary', 'Origin']];
  return [
    ['Access-Control-Allow-Origin', origin],
    ['Access-Control-Allow-Credentials', 'true'],
    ['Access-Control-Expose-Headers', 'X-Request-Id'],
    ['Vary', 'Origin'],
  ];
}

/** Whether a request is a preflight, which the host answers without running the plugin. */
export function isPreflight(method: string, headers: Readonly<Record<string, string>>): boolean {
  return method === 'OPTIONS' && headers.origin !== undefined && headers['access-control-request-method'] !== undefined;
}

/**
 * Headers of the answer to a preflight: the methods at this path that the origin may use, or none. Where no trigger is,
 * pages of the plugin may ask by any method, so that they read the refusal.
 */
export function preflightHeaders(
  plugin: InstalledPlugin,
  path: string,
  headers: Readonly<Record<string, string>>,
): Headers {
  const origin = headers.origin ?? '';
  const vary: Headers = [['Vary', 'Origin, Access-Control-Request-Method, Access-Control-Request-Headers']];
  const enabled = [...plugin.routes.methodsAt(path)].filter(([, t]) => t.settings.enabled);
  const allowed = enabled.filter(([, t]) =>
    origin === SANDBOXED ? effectiveAccess(t.settings) === 'public' : t.origins.has(origin),
  );
  const asked = headers['access-control-request-method'] ?? '';
  const isRefused = enabled.length === 0 && plugin.allOrigins.has(origin) && TOKENS.test(asked);
  const methods = isRefused ? [asked] : allowed.map(([m]) => m);
  if (methods.length === 0) return vary;
  const names = headers['access-control-request-headers'];
  return [
    ...vary,
    ['Access-Control-Allow-Origin', origin],
    ...(origin === SANDBOXED ? [] : ([['Access-Control-Allow-Credentials', 'true']] as const)),
    ['Access-Control-Allow-Methods', methods.sort().join(', ')],
    ['Access-Control-Max-Age', PREFLIGHT_SECONDS],
    ...(names !== undefined && TOKENS.test(names) ? ([['Access-Control-Allow-Headers', names]] as const) : []),
  ];
}
