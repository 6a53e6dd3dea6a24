import { effectiveAccess } from '../authz/trigger-access.ts';
import type { InstalledPlugin, InstalledTrigger } from '../plugins/registry.ts';

type Headers = ReadonlyArray<readonly [string, string]>;

const NONE: Headers = [];
const PREFLIGHT_SECONDS = '600';

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
  if (trigger.origins.size === 0) return NONE;
  if (origin === undefined || !trigger.origins.has(origin)) return [['Vary', 'Origin']];
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

/** Headers of the answer to a preflight: the methods at this path that the origin may use, or none. */
export function preflightHeaders(
  plugin: InstalledPlugin,
  path: string,
  headers: Readonly<Record<string, string>>,
): Headers {
  const origin = headers.origin ?? '';
  const vary: Headers = [['Vary', 'Origin, Access-Control-Request-Method, Access-Control-Request-Headers']];
  const methods = [...plugin.routes.methodsAt(path)]
    .filter(
      ([, t]) =>
        t.settings.enabled && (origin === SANDBOXED ? effectiveAccess(t.settings) === 'public' : t.origins.has(origin)),
    )
    .map(([m]) => m);
  if (methods.length === 0) return vary;
  const asked = headers['access-control-request-headers'];
  return [
    ...vary,
    ['Access-Control-Allow-Origin', origin],
    ...(origin === SANDBOXED ? [] : ([['Access-Control-Allow-Credentials', 'true']] as const)),
    ['Access-Control-Allow-Methods', methods.sort().join(', ')],
    ['Access-Control-Max-Age', PREFLIGHT_SECONDS],
    ...(asked !== undefined && /^[A-Za-z0-9!#$%&'*+.^_`|~, -]+$/.test(asked)
      ? ([['Access-Control-Allow-Headers', asked]] as const)
      : []),
  ];
}
