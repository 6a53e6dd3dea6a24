import { lookup, Resolver } from 'node:dns/promises';
import type { LookupFunction } from 'node:net';
import { isIP } from 'node:net';
import { Agent, buildConnector, type Dispatcher, request } from 'undici';
import { LIMITS } from '../base/limits.ts';
import { readBounded } from '../base/read-bounded.ts';
import type { NetworkAccess } from './network-access.ts';

/** Finds the addresses of a name. */
export type Resolve = (name: string) => Promise<string[]>;

/** One attempt at one name server. */
const RESOLVE_MS = 1500;

/**
 * Asks name servers without using the thread pool of the process, so that slow answers delay no other work.
 *
 * @param servers like `192.0.2.53` or `192.0.2.53:5353`; if empty, those of the system
 * @param hostsFile whether a name that no name server knows is also looked up the way the system does (`/etc/hosts`)
 */
export function nameResolver(servers: readonly string[], hostsFile = false): Resolve {
  const resolver = new Resolver({ timeout: RESOLVE_MS, tries: 2 });
  if (servers.length > 0) resolver.setServers(servers);
  return async name => {
    const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
    const found = answers.flatMap(a => (a.status === 'fulfilled' ? a.value : []));
    if (found.length > 0 || !hostsFile) return found;
    const isUnknown = answers.every(
      a => a.status === 'rejected' && /^(ENOTFOUND|ENODATA)$/.test(String(a.reason?.code)),
    );
    return isUnknown ? (await lookup(name, { all: true })).map(a => a.address) : [];
  };
}

/** The host resolves to an address that is not allowed; no connection was made. */
export class AddressRefused extends Error {
  override readonly name = 'AddressRefused';
}

/** The name does not resolve to an address. */
export class NameUnknown extends Error {
  override readonly name = 'NameUnknown';
}

export type GuardedAgent = Agent;

/**
 * An agent that keeps connections open between requests. The lookup that a connection uses also checks the addresses,
 * so a name that changes its answer afterwards (DNS rebinding) gains nothing. A name is refused if any of its addresses
 * is refused. Literal addresses, which need no lookup, are checked directly.
 *
 * @param callMs time to connect, and between two parts of an answer
 * @param connections most connections to one server; further requests wait. null: one for each request under way
 */
export function guardedAgent(
  access: NetworkAccess,
  resolve: Resolve,
  { callMs, connections }: { callMs: number; connections: number | null },
): GuardedAgent {
  const lookupAllowed: LookupFunction = (name, options, done) => {
    resolve(name).then(
      found => {
        if (found.some(a => !access.allowsAddress(a)))
          return done(new AddressRefused(`${name} resolves to an address that is not public`), '', 0);
        const wanted = found.filter(
          a => options.family === 0 || options.family === undefined || `IPv${isIP(a)}` === `IPv${options.family}`,
        );
        const [first] = wanted;
        if (first === undefined) return done(new NameUnknown(`${name} has no address`), '', 0);
        if (options.all === true)
          return done(
            null,
            wanted.map(address => ({ address, family: isIP(address) })),
          );
        done(null, first, isIP(first));
      },
      () => done(new NameUnknown(`${name} is not known`), '', 0),
    );
  };
  const connect = buildConnector({ lookup: lookupAllowed, timeout: callMs, autoSelectFamily: true, allowH2: false });
  return new Agent({
    allowH2: false,
    connections,
    keepAliveTimeout: LIMITS.httpKeepAliveMs,
    keepAliveMaxTimeout: LIMITS.httpKeepAliveMs,
    headersTimeout: callMs,
    bodyTimeout: callMs,
    maxHeaderSize: LIMITS.requestHeadBytesMax,
    connect(options, done) {
      const literal = options.hostname.replace(/^\[|\]$/g, '');
      if (isIP(literal) !== 0 && !access.allowsAddress(literal))
        return done(new AddressRefused(`${options.hostname} is not a public address`), null);
      connect(options, done);
    },
  });
}

export type Sent = Pick<Dispatcher.ResponseData, 'statusCode' | 'headers' | 'body'>;

const REDIRECTS = [301, 302, 303, 307, 308];

/**
 * The target of a redirect (RFC 9110 section 15.4), as its `Location` names it; null for any other answer. Some servers write UTF-8 there,
 * which Node reads as one character a byte: each byte outside ASCII is percent-encoded, as browsers do.
 */
export function locationOf({ headers: { location }, statusCode }: Sent): string | null {
  if (!REDIRECTS.includes(statusCode) || typeof location !== 'string') return null;
  return location.replaceAll(/[\x80-\xff]/g, byte => `%${byte.charCodeAt(0).toString(16).toUpperCase()}`);
}

/** Sends one request and follows no redirect. The body is not decompressed. */
export async function send(
  agent: GuardedAgent,
  url: URL,
  options: { method: string; headers: Record<string, string>; body: Uint8Array | null; signal: AbortSignal },
): Promise<Sent> {
  const { body, headers, method, signal } = options;
  signal.throwIfAborted();
  const sending = request(url, {
    dispatcher: agent,
    method: method as Dispatcher.HttpMethod,
    headers,
    body,
    signal,
  }).then(sent => {
    // A reader gets the errors of the body; without a reader they must not end the process.
    sent.body.on('error', () => {});
    if (signal.aborted) sent.body.destroy();
    return sent;
  });
  // The library handles the signal only once the request is on a connection.
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const abort = (): void => reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await Promise.race([sending, aborted]);
  } finally {
    signal.removeEventListener('abort', abort);
    sending.catch(() => {});
  }
}

/** Reads the whole body of an answer. @param tooLarge makes the error for a larger body */
export async function bodyOf(sent: Sent, bytesMax: number, tooLarge: () => Error): Promise<Uint8Array<ArrayBuffer>> {
  try {
    return await readBounded(sent.body, bytesMax, tooLarge);
  } finally {
    sent.body.destroy();
  }
}
