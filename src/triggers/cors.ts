import type { InstalledPlugin, InstalledTrigger } from '../plugins/registry.ts';

type Headers = ReadonlyArray<readonly [string, string]>;

const NONE: Headers = [];
const PREFLIGHT_SECONDS = '600';

/** CORS headers of an answer: exact match only, credentials allowed, never `*` or `null` (decisions.md 4). */
export function corsHeaders(trigger: InstalledTrigger, origin: string | undefined): Headers {
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

/** Headers that answer a preflight: the methods at this path that the origin may use, or none. */
export function preflightHeaders(
  plugin: InstalledPlugin,
  path: string,
  headers: Readonly<Record<string, string>>,
): Headers {
  const origin = headers.origin ?? '';
  const vary: Headers = [['Vary', 'Origin, Access-Control-Request-Method, Access-Control-Request-Headers']];
  const methods = [...plugin.routes.methodsAt(path)]
    .filter(([, t]) => t.settings.enabled && t.origins.has(origin))
    .map(([m]) => m);
  if (methods.length === 0) return vary;
  const asked = headers['access-control-request-headers'];
  return [
    ...vary,
    ['Access-Control-Allow-Origin', origin],
    ['Access-Control-Allow-Credentials', 'true'],
    ['Access-Control-Allow-Methods', methods.sort().join(', ')],
    ['Access-Control-Max-Age', PREFLIGHT_SECONDS],
    ...(asked !== undefined && /^[A-Za-z0-9!#$%&'*+.^_`|~, -]+$/.test(asked)
      ? ([['Access-Control-Allow-Headers', asked]] as const)
      : []),
  ];
}
