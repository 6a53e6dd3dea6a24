import createClient, { type Client } from 'openapi-fetch';
import type { components, paths } from './api.d.ts';

/**
 * A typed client of the plugin host's API. Paths, parameters, bodies and answers have the types of the OpenAPI document.
 *
 * ```ts
 * const host = pluginHost({ url: 'http://127.0.0.1:8080', token: process.env.PLUGIN_HOST_TOKEN });
 * const { data } = await host.GET('/api/admin/plugins', { params: { query: { limit: 10 } } });
 * for (const plugin of data?.items ?? []) console.log(plugin.id, plugin.state);
 * ```
 */

type Schemas = components['schemas'];
/** A refusal; once its `code` is compared, it has the members of that code. */
export type Problem = Schemas[Extract<keyof Schemas, `Problem.${string}`>];

/** A refusal of the host. `code` is stable, `message` is for people. */
export class PluginHostError extends Error {
  override readonly name = 'PluginHostError';
  readonly status: number;
  readonly code: string;
  /** Each place of the input that is wrong. */
  readonly errors: ReadonlyArray<{ pointer: string; message: string }>;
  /** The whole refusal; empty when the answer was none of the host's. */
  readonly problem: Partial<Problem>;

  constructor(status: number, problem: Partial<Problem>) {
    super(problem.detail ?? `the server answered ${status}`);
    this.status = status;
    this.code = problem.code ?? '';
    this.errors = problem.errors ?? [];
    this.problem = problem;
  }
}

export type PluginHostOptions = {
  /** Address of the service, for example `http://127.0.0.1:8080`. */
  url: string;
  /** An administration key, a user token or a service key. */
  token?: string | undefined;
  /** Instead of the global `fetch`, for example with a proxy of its own. */
  fetch?: (request: Request) => Promise<Response>;
};

/**
 * A client whose calls give the answer as `data`.
 *
 * @throws PluginHostError from each call that is refused; what `fetch` throws when the host cannot be reached
 */
export function pluginHost({ fetch, token, url }: PluginHostOptions): Client<paths> {
  const client = createClient<paths>({
    baseUrl: url.replace(/\/+$/, ''),
    ...(token === undefined || token === '' ? {} : { headers: { Authorization: `Bearer ${token}` } }),
    ...(fetch === undefined ? {} : { fetch }),
  });
  client.use({
    async onResponse({ response }) {
      if (response.ok || response.status < 400) return;
      throw new PluginHostError(response.status, await problemOf(response));
    },
  });
  return client;
}

/** The refusal in an answer; empty when a proxy answered instead of the host. */
async function problemOf(response: Response): Promise<Partial<Problem>> {
  if (!/^application\/problem\+json/.test(response.headers.get('content-type') ?? '')) return {};
  return (await response.json()) as Problem;
}
