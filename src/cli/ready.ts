import http from 'node:http';
import https from 'node:https';
import { messageOf, OperatorError } from '../base/errors.ts';
import type { Config } from '../config/load.ts';

const ANSWER_MS = 4000;

/** Where this machine reaches an address the service listens on. */
const reachable = (host: string): string => (host === '0.0.0.0' || host === '::' ? 'localhost' : host);

/** Status and beginning of the answer of `/readyz`. */
function askReady(config: Config): Promise<{ status: number; text: string }> {
  const { 'http.host': host, 'http.port': port, 'http.tls.cert': cert } = config.values;
  const options = { host: reachable(host), port, path: '/readyz', timeout: ANSWER_MS };
  return new Promise((resolve, reject) => {
    const take = (answer: http.IncomingMessage): void => {
      let text = '';
      answer.on('data', (chunk: Buffer) => {
        text = (text + chunk.toString()).slice(0, 1000);
      });
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, text }));
    };
    // The certificate is for the public address, and this asks the machine itself.
    const request = cert === '' ? http.get(options, take) : https.get({ ...options, rejectUnauthorized: false }, take);
    request.on('timeout', () => request.destroy(new Error(`no answer within ${ANSWER_MS / 1000} s`)));
    request.on('error', reject);
  });
}

/**
 * `ready`: asks the service on this machine whether it is ready, for the health check of a container.
 *
 * @returns what to print
 * @throws OperatorError when it is not, with its reason
 */
export async function readyCommand(config: Config): Promise<string> {
  const { 'http.host': host, 'http.port': port } = config.values;
  const { status, text } = await askReady(config).catch((error: unknown) => {
    throw new OperatorError(`the service at ${host}:${port} does not answer: ${messageOf(error)}`);
  });
  if (status !== 200) throw new OperatorError(`the service is not ready (${status}): ${text}`);
  return 'ready';
}
