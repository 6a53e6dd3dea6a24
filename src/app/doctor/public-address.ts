import { messageOf } from '../../base/errors.ts';
import { type Config, publicBaseOf } from '../../config/load.ts';
import type { Check } from './check.ts';

const PROBE_MS = 5000;
/** The library's words for a request of HTTP/1.0, as a proxy passes them on. */
const OLD_HTTP =
  'the proxy speaks HTTP/1.0 to the service, which answers 505; in nginx set "proxy_http_version 1.1;" (its default is 1.0)';

/** Asks the address users see for the service's health, and says what stands between when it is not answered. */
export async function publicAddress(config: Config): Promise<Omit<Check, 'name'>> {
  const base = publicBaseOf(config, config.values['http.port']);
  if (config.values['http.public_url'] === '')
    return {
      state: 'warn',
      detail: `http.public_url is not set: links to files and the way back from the identity provider lead to ${base}`,
    };
  let answer: Response;
  let text: string;
  try {
    answer = await fetch(`${base}/healthz`, { redirect: 'manual', signal: AbortSignal.timeout(PROBE_MS) });
    text = (await answer.text()).slice(0, 1000);
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    return { state: 'warn', detail: `${base} does not answer now (${messageOf(cause)}); does the service run?` };
  }
  if (answer.status === 200 && text.includes('"alive"')) return { state: 'ok', detail: `${base} leads to the service` };
  if (answer.status === 505) return { state: 'failed', detail: `${base}: ${OLD_HTTP}` };
  return { state: 'warn', detail: `${base}/healthz answers ${answer.status}, not as the service does; does it run?` };
}
