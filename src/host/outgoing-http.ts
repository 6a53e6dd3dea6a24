import { Buffer } from 'node:buffer';
import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate, inflateRaw, zstdDecompress } from 'node:zlib';
import { HOST_ERROR } from '../abi/host-functions.ts';
import { type HostResult, hostError } from '../abi/host-result.ts';
import { LIMITS } from '../base/limits.ts';
import type { NetworkRules } from '../plugins/network-rules.ts';
import {
  AddressRefused,
  bodyOf,
  type GuardedAgent,
  guardedAgent,
  locationOf,
  NameUnknown,
  type Resolve,
  type Sent,
  send,
} from './guarded-agent.ts';
import type { HostHandler, PermittedCall } from './host-functions.ts';
import { addressOf, assertNoBody, type Order, parseOrder } from './http-order.ts';
import { NetworkAccess } from './network-access.ts';
import { Refusal } from './refusal.ts';

/**
 * Outgoing HTTP requests of plugins (permission `network`, docs/abi.md `http_request`,
 * docs/SECURITY.md "Outgoing connections").
 */

/** Headers that are not sent to another host after a redirect (RFC 9110 section 15.4). */
const CREDENTIALS = new Set(['authorization', 'cookie']);
type Unpack = (packed: Uint8Array, options: { maxOutputLength: number }) => Promise<Buffer>;

const [withHeader, withoutHeader] = [promisify(inflate), promisify(inflateRaw)];

/** `deflate` is the zlib format (RFC 9110 section 8.4.1.2); some servers send the bare one. */
const unpackDeflate: Unpack = (packed, options) => {
  const isZlib = (packed[0] ?? 0) % 16 === 8 && ((packed[0] ?? 0) * 256 + (packed[1] ?? 0)) % 31 === 0;
  return (isZlib ? withHeader : withoutHeader)(packed, options);
};

const UNPACK = new Map<string, Unpack>([
  ['gzip', promisify(gunzip)],
  ['x-gzip', promisify(gunzip)],
  ['deflate', unpackDeflate],
  ['br', promisify(brotliDecompress)],
  ['zstd', promisify(zstdDecompress)],
  ['identity', packed => Promise.resolve(Buffer.from(packed))],
]);
/** How long the rest of a redirect is waited for: the connection is given up then, and not the request. */
const REDIRECT_BODY_MS = 200;
/** More codings than this are no answer of a server. */
const CODINGS_MAX = 3;

/** Undoes all codings, the last one first; undefined when there is none, or one that is not known. */
function unpackOf({ headers }: Sent): Unpack | undefined {
  const names = String(headers['content-encoding'] ?? '')
    .toLowerCase()
    .split(',')
    .map(name => name.trim())
    .filter(name => name !== '');
  const steps = names.reverse().map(name => UNPACK.get(name));
  if (steps.length === 0 || steps.length > CODINGS_MAX || steps.includes(undefined)) return undefined;
  return async (packed, options) => {
    let bytes: Uint8Array = packed;
    for (const step of steps) bytes = (await step?.(bytes, options)) ?? bytes;
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  };
}

const tooLarge = (): Refusal =>
  new Refusal(
    HOST_ERROR.tooLarge,
    `the answer is larger than ${LIMITS.responseBodyBytesMax} bytes (responseBodyBytesMax)`,
  );

/** Decompresses a body. Answers to HEAD requests and answers without content may name a coding but have no body. */
async function unpacked(packed: Uint8Array, unpack: Unpack): Promise<Uint8Array> {
  if (packed.length === 0) return packed;
  try {
    return await unpack(packed, { maxOutputLength: LIMITS.responseBodyBytesMax });
  } catch (error) {
    throw error instanceof RangeError ? tooLarge() : error;
  }
}

/** Header values by name; several values of one name as one list, cookies one per line. */
function headersOf(sent: Sent, wasUnpacked: boolean): Record<string, string> {
  const out: Record<string, string> = {};
  for (const [name, value] of Object.entries(sent.headers)) {
    if (value === undefined || (wasUnpacked && (name === 'content-encoding' || name === 'content-length'))) continue;
    out[name] = Array.isArray(value) ? value.join(name === 'set-cookie' ? '\n' : ', ') : value;
  }
  return out;
}

/** The result for a failed request, without internal addresses. */
function refusalOf(error: unknown, signal: AbortSignal): HostResult {
  if (error instanceof Refusal) return hostError(error.code, error.message);
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  for (const e of [error, cause]) {
    if (e instanceof AddressRefused)
      return hostError(HOST_ERROR.invalid, `${e.message}; an administrator may allow its range (network.private)`);
    if (e instanceof NameUnknown) return hostError(HOST_ERROR.notFound, e.message);
  }
  if (signal.aborted) return hostError(HOST_ERROR.deadline, 'the answer did not come in time');
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  if (/TIMEOUT|ETIMEDOUT/.test(code))
    return hostError(HOST_ERROR.deadline, `the answer did not come in time (${code})`);
  return hostError(HOST_ERROR.unavailable, `the request failed${code === '' ? '' : ` (${code})`}`);
}

type Outgoing = {
  rules: NetworkRules;
  access: NetworkAccess;
  agent: GuardedAgent;
  /** Origins its connections go to. */
  origins: Set<string>;
  usedAt: number;
};

/** Outgoing HTTP of all plugins: the connections and allow lists of each. */
export class OutgoingHttp {
  readonly #resolve: Resolve;
  readonly #plugins = new Map<string, Outgoing>();
  readonly #timer: NodeJS.Timeout;

  constructor(resolve: Resolve) {
    this.#resolve = resolve;
    this.#timer = setInterval(() => this.#forgetUnused(), LIMITS.httpKeepAliveMs).unref();
  }

  #of(pluginId: string, rules: NetworkRules, { origin }: URL): Outgoing {
    const known = this.#plugins.get(pluginId);
    if (known !== undefined) {
      known.usedAt = performance.now();
      // Compares rules by value, because every reload of the plugin makes new objects.
      const isCurrent = known.rules === rules || JSON.stringify(known.rules) === JSON.stringify(rules);
      if (isCurrent && (known.origins.has(origin) || known.origins.size < LIMITS.httpOriginsMax)) {
        known.origins.add(origin);
        return known;
      }
      void known.agent.close();
    }
    const access = new NetworkAccess(rules);
    const agent = guardedAgent(access, this.#resolve, {
      callMs: LIMITS.executionMsMax,
      connections: LIMITS.slotsPerPlugin,
    });
    const made = { rules, access, agent, origins: new Set([origin]), usedAt: performance.now() };
    this.#plugins.set(pluginId, made);
    return made;
  }

  #forgetUnused(): void {
    const before = performance.now() - 2 * LIMITS.httpKeepAliveMs;
    for (const [id, { agent, usedAt }] of this.#plugins) {
      if (usedAt > before) continue;
      this.#plugins.delete(id);
      void agent.close();
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all([...this.#plugins.values()].map(p => p.agent.destroy()));
  }

  async #follow(call: PermittedCall, given: Order, body: Uint8Array | null, signal: AbortSignal): Promise<HostResult> {
    const headers: Record<string, string> = { 'user-agent': 'plugin-host', ...call.span?.headers, ...given.headers };
    const asksForCoding = headers['accept-encoding'] !== undefined;
    if (!asksForCoding) headers['accept-encoding'] = 'gzip, deflate, br, zstd';
    let { method, url } = given;
    let payload = body;
    for (let redirects = 0; ; redirects++) {
      const { access, agent } = this.#of(call.plugin.id, call.plugin.network, url);
      if (!access.allowsHost(url))
        throw new Refusal(
          HOST_ERROR.invalid,
          `${url.host} is not among the hosts this plugin may reach (network.hosts of its configuration)`,
        );
      const sent = await send(agent, url, { method, headers, body: payload, signal });
      let next: URL | null;
      try {
        const to = locationOf(sent);
        next = to === null ? null : addressOf(to, url);
      } catch (error) {
        sent.body.destroy();
        throw error;
      }
      if (next === null) {
        const packed = await bodyOf(sent, LIMITS.responseBodyBytesMax, tooLarge);
        // A plugin that asks for a coding decompresses the answer itself.
        const unpack = asksForCoding ? undefined : unpackOf(sent);
        const bytes = unpack === undefined ? packed : await unpacked(packed, unpack);
        const told = headersOf(sent, unpack !== undefined);
        const data = JSON.stringify({ status: sent.statusCode, headers: told, url: url.href });
        return { code: Buffer.byteLength(data), data, body: bytes };
      }
      // The body of a redirect is not needed; reading a little of it, for a moment, keeps the connection usable.
      const soon = AbortSignal.timeout(REDIRECT_BODY_MS);
      await sent.body.dump({ limit: LIMITS.hostCallTextBytesMax, signal: soon }).catch(() => {});
      if (redirects === LIMITS.httpRedirectsMax)
        throw new Refusal(HOST_ERROR.invalid, `more than ${LIMITS.httpRedirectsMax} redirects`);
      if (next.origin !== url.origin) for (const name of CREDENTIALS) delete headers[name];
      // Changes the method as browsers do (RFC 9110 sections 15.4.2 to 15.4.4).
      if (sent.statusCode === 303 ? method !== 'HEAD' : sent.statusCode < 303 && method === 'POST') {
        method = 'GET';
        payload = null;
        for (const name of ['content-type', 'content-encoding', 'content-language', 'content-location'])
          delete headers[name];
      }
      url = next;
    }
  }

  handlers(): Record<'http_request', HostHandler> {
    return {
      http_request: async (call, args) => {
        const ending = new AbortController();
        const end = (): void => ending.abort();
        let late: NodeJS.Timeout | undefined;
        try {
          const given = parseOrder(args.text(0));
          const bytes = args.bytes(1);
          assertNoBody(given, bytes);
          const left = call.deadline - performance.now() - LIMITS.answerMarginMs;
          late = setTimeout(end, Math.max(0, Math.min(given.timeoutMs, left)));
          call.atEnd(end);
          return await this.#follow(call, given, bytes.length === 0 ? null : bytes, ending.signal);
        } catch (error) {
          return refusalOf(error, ending.signal);
        } finally {
          clearTimeout(late);
          call.notAtEnd(end);
        }
      },
    };
  }
}
