import { type PluginHostError, pluginHost } from '../../sdk/client/client.ts';
import { messageOf, OperatorError, UsageError } from '../base/errors.ts';

/** A running service, asked through its admin API by the client in `sdk/client`. */

/** Which service, by which administration key. */
export type RemoteFlags = { url?: string; token?: string; json?: boolean };

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
  const token = flags.token ?? environment.PLUGIN_HOST_TOKEN ?? '';
  if (!URL.canParse(url))
    throw new UsageError(`"${url}" is not an address: --url needs one like http://127.0.0.1:8080`);
  if (token === '')
    throw new UsageError('no administration key: give --token or PLUGIN_HOST_TOKEN; POST /api/admin/keys makes one');
  return { host: pluginHost({ url, token }), json: flags.json === true };
}

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
