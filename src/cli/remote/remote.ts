import { type PluginHostError, pluginHost } from '../../../sdk/client/client.ts';
import { OperatorError, UsageError } from '../../base/errors.ts';
import { jsonText } from '../print/json-text.ts';
import type { ServiceAddress } from './service-address.ts';
import { unreachable } from './unreachable.ts';

/** A running service, asked through its admin API by the client in `sdk/client`. */

/** Which service, by which administration key. */
export type RemoteFlags = { url?: string; token?: string; json?: boolean };

/** How long a question may take, and a change, which may be an import. */
const READ_MS = 30_000;
const CHANGE_MS = 600_000;

/** Words of the API, each with what stands for it on the command line. */
export type Options = Readonly<Record<string, string>>;

/** What the service said against a call; the command ends with 3 when it found wrong what it was sent (422). */
class ServiceRefusal extends OperatorError {
  override readonly exitCode: number;
  override readonly facts: Readonly<Record<string, unknown>>;

  /** @param options what stands on the command line for words of the API */
  constructor(refusal: PluginHostError, options: Options) {
    const { code, errors, message, status } = refusal;
    const places = errors.map(e => `\n  ${e.pointer || '/'}: ${e.message}`).join('');
    const help = status === 401 ? '; plugin-host admin key makes a key, --token or PLUGIN_HOST_TOKEN gives it' : '';
    const [first] = errors;
    // Of several places the message names the first.
    const text =
      first === undefined || errors.length === 1
        ? `${message}${help}`
        : `${message.replace(`: ${first.pointer} ${first.message}`, '')}${places}${help}`;
    super(
      Object.entries(options).reduce((t, [word, option]) => t.replaceAll(word, option), text),
      { cause: refusal },
    );
    this.exitCode = status === 422 ? 3 : 1;
    this.facts = { service: { status, code, errors } };
  }
}

type Host = ReturnType<typeof pluginHost>;
export type Remote = { host: Host; json: boolean };

/** The text to print, and the exit code when that is not 0. */
export type Answer = string | { text: string; exitCode: number };

/**
 * @param token as it was given; undefined when it was not
 * @throws UsageError when the address or the key is none
 */
export function remoteOf(address: ServiceAddress, token: string | undefined, json: boolean): Remote {
  const { from, url } = address;
  const key = (token ?? '').trim();
  if (!/^https?:\/\//i.test(url) || !URL.canParse(url))
    throw new UsageError(
      `${JSON.stringify(url)} (${from}) is not an address: give one like http://127.0.0.1:8080 with --url`,
    );
  if (/^\/(?:api|admin|account)(?:\/|$)/.test(new URL(url).pathname))
    throw new UsageError(
      `${url} (${from}) is a path of a service: give the address alone, like ${new URL(url).origin}`,
    );
  if (key === '')
    throw new UsageError(
      'no administration key: give --token or PLUGIN_HOST_TOKEN; an administrator makes one with plugin-host admin key',
    );
  // Not shown: what is pasted wrongly may hold a key.
  if (!/^[\x21-\x7e]+$/.test(key))
    throw new UsageError('the administration key has a space, a line break or another character that no key has');
  return { host: pluginHost({ url, token: key, fetch: fetchFrom(address) }), json };
}

/** Asks a service, and makes sure that it is one which answers. */
const fetchFrom =
  (address: ServiceAddress) =>
  async (request: Request): Promise<Response> => {
    const { from, url } = address;
    const where = `${url} (${from})`;
    const ms = request.method === 'GET' ? READ_MS : CHANGE_MS;
    const answer = await fetch(request, { signal: AbortSignal.timeout(ms) }).catch((error: unknown) => {
      if (error instanceof Error && error.name === 'TimeoutError')
        throw new OperatorError(`${where} did not answer within ${ms / 1000} s`);
      throw new OperatorError(`${unreachable(error, address)} --url names another address`, { cause: error });
    });
    // Every answer of the service has it, and those of what stands in front of it may not.
    const isOurs = answer.headers.has('x-request-id');
    if (isOurs && /^text\/html/.test(answer.headers.get('content-type') ?? ''))
      throw new OperatorError(`${where} answers with a page: give the address alone, like ${new URL(url).origin}`);
    if (isOurs) return answer;
    throw new OperatorError(
      `${where} does not answer as a plugin host does (status ${answer.status}, ${answer.headers.get('content-type') ?? 'no type'}): is the address right? --url names another one`,
    );
  };

const isRefusal = (error: unknown): error is PluginHostError =>
  error instanceof Error && error.name === 'PluginHostError';

/** Runs a call; what the service refuses becomes one line that names each place. */
async function run<T>(call: () => Promise<T>, options: Options): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (isRefusal(error)) throw new ServiceRefusal(error, options);
    throw error;
  }
}

/** The answer of a call. @throws OperatorError with what the service said against it */
export async function ask<T>(call: () => Promise<{ data?: T }>, options: Options = {}): Promise<T> {
  const { data } = await run(call, options);
  if (data === undefined) throw new OperatorError('the service answered nothing');
  return data;
}

/** Makes a call that is answered without a body. */
export async function send(call: () => Promise<unknown>): Promise<void> {
  await run(call, {});
}

/** What to print: as the API answered it, or for people. */
export const shown = (json: boolean, value: object, text: string): string => (json ? jsonText(value) : text);
