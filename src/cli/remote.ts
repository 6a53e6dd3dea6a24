import { type PluginHostError, pluginHost } from '../../sdk/client/client.ts';
import { messageOf, OperatorError, UsageError } from '../base/errors.ts';

/** A running service, asked through its admin API by the client in `sdk/client`. */

/** Which service, by which administration key. */
export type RemoteFlags = { url?: string; token?: string; json?: boolean };

/** How long a question may take, and a change, which may be an import. */
const READ_MS = 30_000;
const CHANGE_MS = 600_000;

/** The service found what it was sent wrong (422): the command ends with 3. */
class RefusedError extends OperatorError {
  override readonly exitCode = 3;
}

type Host = ReturnType<typeof pluginHost>;
export type Remote = { host: Host; json: boolean };

/**
 * @param environment with `PLUGIN_HOST_URL` and `PLUGIN_HOST_TOKEN`, for what the flags do not say
 * @throws UsageError when no service or no token is named
 */
export function remoteOf(flags: RemoteFlags, environment: NodeJS.ProcessEnv): Remote {
  const url = flags.url ?? environment.PLUGIN_HOST_URL ?? 'http://127.0.0.1:8080';
  const token = (flags.token ?? environment.PLUGIN_HOST_TOKEN ?? '').trim();
  if (!/^https?:\/\//i.test(url) || !URL.canParse(url))
    throw new UsageError(`${JSON.stringify(url)} is not an address: --url needs one like http://127.0.0.1:8080`);
  if (token === '')
    throw new UsageError('no administration key: give --token or PLUGIN_HOST_TOKEN; POST /api/admin/keys makes one');
  // Not shown: what is pasted wrongly may hold a key.
  if (!/^[\x21-\x7e]+$/.test(token))
    throw new UsageError('the administration key has a space, a line break or another character that no key has');
  return { host: pluginHost({ url, token, fetch: fetchFrom(url) }), json: flags.json === true };
}

/** Asks a service, and makes sure that it is one which answers. */
const fetchFrom =
  (url: string) =>
  async (request: Request): Promise<Response> => {
    const ms = request.method === 'GET' ? READ_MS : CHANGE_MS;
    const answer = await fetch(request, { signal: AbortSignal.timeout(ms) }).catch((error: unknown) => {
      if (error instanceof Error && error.name === 'TimeoutError')
        throw new OperatorError(`${url} did not answer within ${ms / 1000} s`);
      throw error;
    });
    // Every answer of the service has it, and those of what stands in front of it may not.
    if (answer.headers.has('x-request-id')) return answer;
    throw new OperatorError(
      `${url} does not answer as a plugin host does (status ${answer.status}, ${answer.headers.get('content-type') ?? 'no type'}): is the address right?`,
    );
  };

const isRefusal = (error: unknown): error is PluginHostError =>
  error instanceof Error && error.name === 'PluginHostError';

/** Runs a call; what the service refuses becomes one line that names each place. */
async function run<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (!isRefusal(error)) {
      if (error instanceof OperatorError) throw error;
      const cause = error instanceof Error && error.cause !== undefined ? messageOf(error.cause) : messageOf(error);
      throw new OperatorError(`the service cannot be reached: ${cause}`);
    }
    const places = error.errors.map(e => `\n  ${e.pointer || '/'}: ${e.message}`).join('');
    const text = `${error.message}${error.errors.length > 1 ? places : ''}`;
    throw error.status === 422 ? new RefusedError(text) : new OperatorError(text);
  }
}

/** The answer of a call. @throws OperatorError with what the service said against it */
export async function ask<T>(call: () => Promise<{ data?: T }>): Promise<T> {
  const { data } = await run(call);
  if (data === undefined) throw new OperatorError('the service answered nothing');
  return data;
}

/** The same for a call that is answered without a body. */
export async function send(call: () => Promise<unknown>): Promise<void> {
  await run(call);
}

/** What to print: as the API answered it, or for people. */
export const shown = (json: boolean, value: unknown, text: string): string =>
  json ? JSON.stringify(value, null, 2) : text;
