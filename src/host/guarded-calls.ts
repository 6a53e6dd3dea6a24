import { isIP } from 'node:net';
import { LIMITS } from '../base/limits.ts';
import {
  AddressRefused,
  bodyOf,
  type GuardedAgent,
  guardedAgent,
  locationOf,
  type Resolve,
  type Sent,
  send,
} from './guarded-agent.ts';
import { NetworkAccess } from './network-access.ts';

/**
 * Requests of the service to hosts that others choose: event webhooks, messengers
 * (docs/SECURITY.md "Outgoing connections").
 */

export type GuardedCall = {
  method: 'GET' | 'POST';
  headers: Record<string, string>;
  body: Uint8Array | null;
  signal: AbortSignal;
  /** A larger answer fails the call; 0: the answer is discarded. */
  bytesMax: number;
};
export type GuardedAnswer = {
  status: number;
  header(name: string): string | null;
  bytes: Uint8Array<ArrayBuffer>;
};

export type GuardedCalls = {
  /** Sends one request; does not follow redirects. */
  call(address: string, of: GuardedCall): Promise<GuardedAnswer>;
  /** Downloads from an address that a third party named, over TLS. Follows redirects and checks each target. */
  download(address: string, bytesMax: number, signal: AbortSignal): Promise<Uint8Array<ArrayBuffer>>;
  close(): Promise<void>;
};

export type GuardedCallsOptions = {
  /** Ranges that are not public but allowed. */
  privateRanges: readonly string[];
  /** The configuration key that holds them, for the error. */
  rangesKey: string;
  /**
   * Servers the operator has configured. A literal address among them may be private, and downloads from them may be
   * unencrypted.
   */
  configured: readonly string[];
  resolve: Resolve;
  callMs: number;
};

const DOWNLOAD_REDIRECTS_MAX = 3;

const literalOf = (url: URL): string => url.hostname.replace(/^\[|\]$/g, '');

/** @returns one value of a header; null when there is none */
function headerOf({ headers }: Sent, name: string): string | null {
  const value = headers[name];
  return value === undefined ? null : Array.isArray(value) ? (value[0] ?? null) : value;
}

export function guardedCalls({
  callMs,
  configured,
  privateRanges,
  rangesKey,
  resolve,
}: GuardedCallsOptions): GuardedCalls {
  const own = configured.map(address => new URL(address));
  const isOwn = (url: URL): boolean => own.some(o => o.origin === url.origin);
  const literals = own.map(literalOf).filter(host => isIP(host) !== 0);
  // The sender and the deliverer bound how much they send at once. With a second bound here, a few requests to a slow
  // server would use up the time of all requests that wait behind them.
  const agentOf = (ranges: readonly string[]): GuardedAgent =>
    guardedAgent(new NetworkAccess({ hosts: [], private: [...ranges] }), resolve, { callMs, connections: null });
  const agent = agentOf(privateRanges);
  // Only for the configured servers themselves: an address that a third party names never uses this agent.
  const ownAgent = agentOf([...privateRanges, ...literals]);

  /** @throws Error without the address, which may hold a secret */
  const sendTo = async (url: URL, of: Omit<GuardedCall, 'bytesMax'>): Promise<Sent> => {
    try {
      return await send(isOwn(url) ? ownAgent : agent, url, of);
    } catch (error) {
      const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
      throw cause instanceof AddressRefused
        ? new AddressRefused(`${cause.message}; an operator may allow its range (${rangesKey})`)
        : cause;
    }
  };
  const tooLarge = (bytesMax: number) => (): Error => new Error(`the answer is larger than ${bytesMax} bytes`);

  return {
    async call(address, { bytesMax, ...of }) {
      const sent = await sendTo(new URL(address), of);
      const answer = { status: sent.statusCode, header: (name: string) => headerOf(sent, name) };
      if (bytesMax > 0) return { ...answer, bytes: await bodyOf(sent, bytesMax, tooLarge(bytesMax)) };
      // Reads a little of the body, so that the connection can be kept.
      await sent.body.dump({ limit: LIMITS.hostCallTextBytesMax, signal: of.signal }).catch(() => {});
      return { ...answer, bytes: new Uint8Array(0) };
    },
    async download(address, bytesMax, signal) {
      let url = new URL(address);
      for (let redirects = 0; redirects <= DOWNLOAD_REDIRECTS_MAX; redirects++) {
        if (url.protocol !== 'https:' && !isOwn(url)) throw new Error('the address is not encrypted');
        const sent = await sendTo(url, { method: 'GET', headers: {}, body: null, signal });
        if (sent.statusCode === 200) return await bodyOf(sent, bytesMax, tooLarge(bytesMax));
        sent.body.destroy();
        const to = locationOf(sent);
        if (to === null) throw new Error(`the address answers ${sent.statusCode}`);
        if (!URL.canParse(to, url.href)) throw new Error('the address redirects to a text that is not a URL');
        url = new URL(to, url);
      }
      throw new Error(`more than ${DOWNLOAD_REDIRECTS_MAX} redirects`);
    },
    async close() {
      await Promise.all([agent.destroy(), ownAgent.destroy()]);
    },
  };
}

/** Whether an address is literal and neither public nor in one of the ranges: no request to it can succeed. */
export function isRefusedLiteral(address: string, privateRanges: readonly string[]): boolean {
  const literal = literalOf(new URL(address));
  return isIP(literal) !== 0 && !new NetworkAccess({ hosts: [], private: [...privateRanges] }).allowsAddress(literal);
}
