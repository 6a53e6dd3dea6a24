import { LIMITS } from '../limits.ts';

/**
 * Headers of a plugin's answer (abi.md `respond`): checked where the plugin runs, carried flat as `name NUL value NUL`.
 * The server library writes values raw, so what passes here reaches the wire (security.md "Response smuggling").
 */
const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** Names a plugin may not set: they belong to the connection, to the host, or clear what is not the plugin's. */
const REFUSED = new Set([
  'content-length',
  'transfer-encoding',
  'connection',
  'keep-alive',
  'proxy-connection',
  'upgrade',
  'trailer',
  'te',
  'date',
  'x-request-id',
  'clear-site-data',
]);

/** A cookie of the host's own: of its sessions, or of a login under way. */
export const HOST_COOKIE = /^\s*(user_session|admin_session|known_browser|idp_login_[\w-]*)\s*=/i;
/** A cookie without a name is sent back as if its value were `name=value`. */
const NAMED_COOKIE = /^\s*[!#$%&'*+\-.^_`|~0-9A-Za-z]+\s*=/;
/** A list of values repeats its name, so what goes out is counted, not what came in. */
const FLAT_CHARS_MAX = LIMITS.responseHeadersJsonBytesMax;
const LINES_MAX = 200;

export type CheckedHeaders = { ok: true; flat: string } | { ok: false; reason: string };

/** Text for a reason: short, without control characters. */
function shown(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}...` : text);
}

function checkOne(name: string, value: unknown): string | null {
  if (!NAME.test(name)) return `header name ${shown(name)} is not a token`;
  const lower = name.toLowerCase();
  if (REFUSED.has(lower) || lower.startsWith('access-control-'))
    return `header ${shown(name)} is set by the host alone`;
  if (typeof value !== 'string') return `header ${shown(name)} has a value that is not a string`;
  if (!VALUE.test(value)) return `header ${shown(name)} has a value with control or non-Latin-1 characters`;
  if (lower === 'set-cookie' && !NAMED_COOKIE.test(value)) return 'Set-Cookie has no cookie name';
  if (lower === 'set-cookie' && HOST_COOKIE.test(value)) return "Set-Cookie names one of the host's own cookies";
  return null;
}

/**
 * Checks the headers object of `respond`. A value may be a list of strings, for several `Set-Cookie`.
 *
 * @param json the guest's text: an object of string to string, or empty for none
 */
export function checkResponseHeaders(json: string): CheckedHeaders {
  if (json === '') return { ok: true, flat: '' };
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return { ok: false, reason: 'the headers are not JSON' };
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return { ok: false, reason: 'the headers are not a JSON object' };
  let flat = '';
  let lines = 0;
  for (const [name, given] of Object.entries(value)) {
    const values: unknown[] = Array.isArray(given) ? given : [given];
    for (const v of values) {
      const reason = checkOne(name, v);
      if (reason !== null) return { ok: false, reason };
      if (++lines > LINES_MAX) return { ok: false, reason: `there are more than ${LINES_MAX} header lines` };
      if (flat.length + name.length + String(v).length + 2 > FLAT_CHARS_MAX)
        return { ok: false, reason: `the headers are larger than ${FLAT_CHARS_MAX} bytes` };
      flat += `${name}\0${String(v)}\0`;
    }
  }
  return { ok: true, flat };
}
