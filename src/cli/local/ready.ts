import http from 'node:http';
import https from 'node:https';
import { OperatorError } from '../../base/errors.ts';
import type { Config } from '../../config/load.ts';
import { jsonText } from '../print/json-text.ts';
import { listeningAddress, reachableHost } from '../remote/service-address.ts';
import { unreachable } from '../remote/unreachable.ts';

const ANSWER_MS = 4000;

/** Status and beginning of the answer of `/readyz`. */
function askReady(config: Config): Promise<{ status: number; text: string }> {
  const { 'http.host': host, 'http.port': port, 'http.tls.cert': cert } = config.values;
  const options = { host: reachableHost(host), port, path: '/readyz', timeout: ANSWER_MS };
  return new Promise((resolve, reject) => {
    const take = (answer: http.IncomingMessage): void => {
      let text = '';
      answer.setEncoding('utf8').on('data', (chunk: string) => {
        text = (text + chunk).slice(0, 1000);
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
export async function readyCommand(config: Config, json: boolean): Promise<string> {
  const address = listeningAddress(config, 'set http.port (BOT_HTTP_PORT) to the one it has');
  const { status, text } = await askReady(config).catch((error: unknown) => {
    throw new OperatorError(unreachable(error, address), { cause: error });
  });
  if (status !== 200) throw new OperatorError(`the service is not ready (${status}): ${text}`);
  return json ? jsonText({ ready: true }) : 'ready';
}
