import { LIMITS } from '../base/limits.ts';

/**
 * Headers of a plugin's answer (docs/SECURITY.md "Answers of triggers"): checked where the plugin runs, carried flat as
 * `name NUL value NUL`. The server library writes values raw, so what passes here reaches the wire.
 */
const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** Names that frame the message or belong to the connection: with one of them the answer is refused. */
const BREAKS_PROTOCOL = new Set([
  'content-length',
  'transfer-encoding',
  'connection',
  'keep-alive',
  'proxy-connection',
  'upgrade',
  'trailer',
  'te',
]);

/**
 * Headers that are dropped, because they act beyond the answer: on the whole origin, on the connection, on a proxy before the host, or
 * because the host sets them itself. All others pass. docs/plugins.md "Headers of answers" lists them for authors.
 */
const ACTS_BEYOND = new RegExp(
  `^(${[
    // The origin, and pages that are not the plugin's.
    'access-control-.*|clear-site-data|strict-transport-security|public-key-pins.*|service-worker-allowed|origin-agent-cluster',
    'nel|report-to|reporting-endpoints|alt-svc|refresh|speculation-rules|accept-ch|critical-ch|.*session-registration',
    'use-as-dictionary|set-login|activate-storage-access|permissions-policy|set-cookie2|cookie',
    // A proxy before the host.
    'proxy-.*|x-accel-.*|x-sendfile.*|x-lighttpd-.*|x-reproxy-.*|x-litespeed-.*|surrogate-.*|cdn-.*|x-original-url|x-rewrite-url',
    'x-middleware-.*|x-forwarded-.*|forwarded|status',
    // The host.
    'date|server|x-request-id|x-content-type-options|x-page-proof|traceparent|tracestate',
  ].join('|')})$`,
);

/** A cookie of the host: of a session, or of a login under way. */
export const HOST_COOKIE =
  /^\s*(?:__Host-|__Secure-)?(user_session|admin_session|known_browser|idp_login_[\w-]*|plugin_login)\s*=/i;
/** A cookie without a name is sent back as if its value were `name=value`. */
const NAMED_COOKIE = /^\s*[!#$%&'*+\-.^_`|~0-9A-Za-z]+\s*=/;
const COOKIES_MAX = 20;
const COOKIE_BYTES_MAX = 4096;
/** Counts what is sent, not what the plugin passed, because each value of a list repeats the name. */
const FLAT_CHARS_MAX = LIMITS.responseHeadersJsonBytesMax;
const LINES_MAX = 200;

/** Media types in which no browser runs script. A type that is absent, unknown or a list counts as one that may. */
const INERT =
  /^\s*(text\/(plain|csv|css|markdown|javascript|event-stream|calendar)|application\/(json|[\w.+-]+\+json|javascript|octet-stream|zip|gzip|wasm|x-ndjson)|image\/(png|jpe?g|gif|webp|avif|bmp|x-icon|vnd\.microsoft\.icon)|audio\/[\w.+-]+|video\/[\w.+-]+|font\/[\w.+-]+)\s*(;[^,]*)?$/i;

/** The policy of an answer that can run script: the page gets a separate origin, without cookies and storage. */
const SANDBOX =
  "sandbox allow-scripts allow-forms allow-popups allow-downloads; object-src 'none'; frame-ancestors 'self'";
/** The sandbox as the last line of the headers, so that the host can remove it where an administrator trusts the plugin's pages. */
export const SANDBOX_FLAT = `Content-Security-Policy\0${SANDBOX}\0`;

/** A page without the sandbox must not ask for passkeys, which are the service's. */
const NO_PASSKEYS_FLAT = 'Permissions-Policy\0publickey-credentials-get=(), publickey-credentials-create=()\0';

export type CheckedHeaders =
  | {
      ok: true;
      flat: string;
      /** Headers that were left out, each with the reason. */
      dropped: string[];
    }
  | { ok: false; reason: string };

/** Quotes a text for an error message: short, without control characters. */
function shown(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}...` : text);
}

/** Why an answer with this header is refused as a whole; null when it is not. */
function refusalOf(name: string, value: unknown): string | null {
  if (!NAME.test(name)) return `header name ${shown(name)} is not a token`;
  const lower = name.toLowerCase();
  if (BREAKS_PROTOCOL.has(lower)) return `header ${shown(name)} is set by the host alone`;
  if (typeof value !== 'string') return `header ${shown(name)} has a value that is not a string`;
  if (!VALUE.test(value)) return `header ${shown(name)} has a value with control or non-Latin-1 characters`;
  if (lower === 'set-cookie' && !NAMED_COOKIE.test(value)) return 'Set-Cookie has no cookie name';
  if (lower === 'set-cookie' && HOST_COOKIE.test(value)) return "Set-Cookie names one of the host's own cookies";
  return null;
}

/** The cookie, confined to the plugin's own triggers, or the reason why it is dropped. */
function confineCookie(value: string, pluginId: string): { value: string } | { dropped: string } {
  const [pair = '', ...attributes] = value.split(';').map(part => part.trim());
  if (/^__Host-/i.test(pair)) return { dropped: 'Set-Cookie (the prefix __Host- claims the whole origin)' };
  const base = `/api/triggers/http/${pluginId}`;
  let path = base;
  const kept: string[] = [];
  for (const attribute of attributes) {
    const [name = '', given = ''] = attribute.split(/\s*=\s*/, 2);
    if (/^domain$/i.test(name)) return { dropped: 'Set-Cookie (it has the attribute Domain)' };
    if (/^path$/i.test(name)) path = given.startsWith(`${base}/`) ? given : base;
    else if (attribute !== '') kept.push(attribute);
  }
  return { value: [pair, `Path=${path}`, ...kept].join('; ') };
}

/** One challenge (RFC 9110 section 11.6.1) with named parameters. */
const CHALLENGE =
  /^[ \t]*[!#$%&'*+\-.^_`|~0-9A-Za-z]+[ \t]+[\w-]+=(?:"[^"\\]*"|[\w.~+/-]+)(?:[ \t]*,[ \t]*[\w-]+=(?:"[^"\\]*"|[\w.~+/-]+))*[ \t]*$/;

/** Whether a challenge names the plugin as its realm, so that no plugin asks for passwords in the name of the host. */
function isOwnRealm(value: string, pluginId: string): boolean {
  if (!CHALLENGE.test(value)) return false;
  const outside = value.replace(/"[^"]*"/g, '""');
  const realm = /[ \t,]realm="([^"]*)"/i.exec(value)?.[1] ?? '';
  return (
    [...outside.matchAll(/realm=/gi)].length === 1 &&
    /realm=""/i.test(outside) &&
    realm.startsWith(pluginId) &&
    !/^[\w.-]/.test(realm.slice(pluginId.length))
  );
}

/** Collects the header lines of one answer. */
class HeaderLines {
  readonly dropped: string[] = [];
  flat = '';
  #cookies = 0;
  #cookieBytes = 0;
  #inert = true;
  #typed = false;
  #lines = 0;
  readonly #pluginId: string;

  constructor(pluginId: string) {
    this.#pluginId = pluginId;
  }

  /** Adds one line, or notes why it is dropped. @returns why the whole answer is refused, or null */
  add(name: string, value: string): string | null {
    if (++this.#lines > LINES_MAX) return `there are more than ${LINES_MAX} header lines`;
    const lower = name.toLowerCase();
    if (lower === 'set-cookie') return this.#addCookie(name, value);
    if (ACTS_BEYOND.test(lower)) {
      this.dropped.push(`${name.slice(0, 80)} (it acts beyond the answer)`);
      return null;
    }
    if (lower === 'www-authenticate' && !isOwnRealm(value, this.#pluginId)) {
      this.dropped.push(`${name} (its realm must begin with the plugin's id, like realm="${this.#pluginId}")`);
      return null;
    }
    if (lower === 'content-type') {
      this.#typed = true;
      this.#inert &&= INERT.test(value);
    }
    return this.#append(name, value);
  }

  #addCookie(name: string, given: string): string | null {
    const confined = confineCookie(given, this.#pluginId);
    if ('dropped' in confined) {
      this.dropped.push(confined.dropped);
      return null;
    }
    this.#cookieBytes += confined.value.length;
    if (++this.#cookies > COOKIES_MAX || this.#cookieBytes > COOKIE_BYTES_MAX) {
      this.dropped.push(
        `Set-Cookie (an answer sets at most ${COOKIES_MAX} cookies of ${COOKIE_BYTES_MAX} bytes in all)`,
      );
      return null;
    }
    return this.#append(name, confined.value);
  }

  #append(name: string, value: string): string | null {
    if (this.flat.length + name.length + value.length + 2 > FLAT_CHARS_MAX)
      return `the headers are larger than ${FLAT_CHARS_MAX} bytes`;
    this.flat += `${name}\0${value}\0`;
    return null;
  }

  /** The lines, with the sandbox when the answer can run script. */
  finish(): string {
    return this.#typed && this.#inert ? this.flat : this.flat + SANDBOX_FLAT;
  }
}

/**
 * Checks the headers object of `respond`. A value may be a list of strings, for several `Set-Cookie`.
 *
 * @param json the guest's text: an object of string to string, or empty for none
 * @returns the lines to send, or why the whole answer is refused
 */
export function checkResponseHeaders(json: string, pluginId: string): CheckedHeaders {
  if (json === '') return { ok: true, flat: SANDBOX_FLAT, dropped: [] };
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return { ok: false, reason: 'the headers are not JSON' };
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return { ok: false, reason: 'the headers are not a JSON object' };
  const lines = new HeaderLines(pluginId);
  for (const [name, given] of Object.entries(value)) {
    const values: unknown[] = Array.isArray(given) ? given : [given];
    for (const v of values) {
      const refused = refusalOf(name, v) ?? lines.add(name, String(v));
      if (refused !== null) return { ok: false, reason: refused };
    }
  }
  return { ok: true, flat: lines.finish(), dropped: lines.dropped };
}

/** Adds the sandbox line unless it is there. */
export const withSandbox = (flat: string): string => (flat.endsWith(SANDBOX_FLAT) ? flat : flat + SANDBOX_FLAT);

/** Removes the sandbox line: for plugins whose pages an administrator trusts, and on the plugin's own origin. */
export function withoutSandbox(flat: string): string {
  return flat.endsWith(SANDBOX_FLAT) ? flat.slice(0, -SANDBOX_FLAT.length) + NO_PASSKEYS_FLAT : flat;
}
