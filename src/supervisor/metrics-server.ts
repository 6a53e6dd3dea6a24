import { createHash, timingSafeEqual } from 'node:crypto';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { AggregatorRegistry } from 'prom-client';
import { messageOf, OperatorError } from '../base/errors.ts';
import type { Metric } from '../base/metric.ts';

/** Longest time for a request, which has no body. */
const REQUEST_MS = 5000;
/** Scrapes at a time; each asks every serving process. */
const CONNECTIONS_MAX = 16;

/** Compares hashes, so that the time it takes says nothing of the token. */
function carries({ headers }: http.IncomingMessage, token: string): boolean {
  const given = /^Bearer +(\S+) *$/i.exec(headers.authorization ?? '')?.[1] ?? '';
  const [one, other] = [given, token].map(text => createHash('sha256').update(text).digest());
  return one !== undefined && other !== undefined && timingSafeEqual(one, other);
}

export type MetricsServer = { readonly port: number; close(): void };

/**
 * Serves the metrics of all serving processes together, as text of Prometheus: `GET /metrics`. It has a port of its own,
 * because what it tells is for operators alone.
 *
 * @param tokenOfNow what a request must carry as bearer token (RFC 6750), which a reload may change; empty: nothing
 * @param collect the metrics of each process
 * @throws OperatorError when the address cannot be listened on
 */
export async function startMetricsServer(
  host: string,
  port: number,
  tokenOfNow: () => string,
  collect: () => Promise<Metric[][]>,
): Promise<MetricsServer> {
  const server = http.createServer((request, response) => {
    const reply = (status: number, text: string, headers: http.OutgoingHttpHeaders = {}): void => {
      response.writeHead(status, { 'Content-Type': 'text/plain; charset=utf-8', ...headers });
      response.end(text);
    };
    if (request.url?.split('?')[0] !== '/metrics') return reply(404, 'the metrics are at /metrics\n');
    if (request.method !== 'GET' && request.method !== 'HEAD')
      return reply(405, 'the metrics are read with GET\n', { Allow: 'GET, HEAD' });
    const token = tokenOfNow();
    if (token !== '' && !carries(request, token))
      return reply(401, 'the metrics want metrics.token as bearer token\n', {
        'WWW-Authenticate': 'Bearer realm="plugin-host metrics"',
      });
    collect()
      .then(async all => {
        const registry = AggregatorRegistry.aggregate(all);
        reply(200, await registry.metrics(), { 'Content-Type': registry.contentType });
      })
      .catch((error: unknown) => reply(500, `the metrics could not be collected: ${messageOf(error)}\n`));
  });
  server.requestTimeout = REQUEST_MS;
  server.maxConnections = CONNECTIONS_MAX;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  }).catch((error: unknown) => {
    throw new OperatorError(
      `metrics.port: cannot listen on ${host}:${port}: ${messageOf(error)}; change metrics.port (BOT_METRICS_PORT)`,
    );
  });
  const address = server.address() as AddressInfo;
  return {
    port: address.port,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
