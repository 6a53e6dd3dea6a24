import { createHash } from 'node:crypto';
import { ServiceError } from '../base/errors.ts';

/** An address like `https://*.plugins.example.org`: one label for the plugin, before a name. */
const PATTERN = /^(https?):\/\/\*\.([a-z0-9.-]+)(:\d+)?$/;
const PLAIN_LABEL = /^[a-z0-9](?:[a-z0-9-]{0,48}[a-z0-9])?$/;

/** Whether a value of `plugins.origin` can be used; empty is none. */
export const isOriginPattern = (value: string): boolean => value === '' || PATTERN.test(value);

/**
 * Origins of plugins (`plugins.origin`, docs/SECURITY.md "An origin for each plugin"). An id that is no DNS label, or
 * could be taken for an encoded one, is written as `p--` and a hash.
 */
export class PluginOrigins {
  readonly #scheme: string;
  readonly #suffix: string;
  readonly #ids: () => Iterable<string>;

  /**
   * @param pattern like `https://*.plugins.example.org`
   * @param ids of the installed plugins
   */
  constructor(pattern: string, ids: () => Iterable<string>) {
    const [, scheme = '', name = '', port = ''] = PATTERN.exec(pattern) ?? [];
    this.#scheme = scheme;
    const isDefault = port === (scheme === 'https' ? ':443' : ':80');
    this.#suffix = `.${name}${isDefault ? '' : port}`;
    this.#ids = ids;
  }

  /** The origin of a plugin, without a slash at its end. */
  originOf(pluginId: string): string {
    return `${this.#scheme}://${labelOf(pluginId)}${this.#suffix}`;
  }

  /** The owner of the origin that a request came to: the plugin's id, empty for a label no plugin has, null for the service's own. */
  pluginAt(host: string | undefined): string | null {
    // A name with a final dot is the same name.
    const name = host?.toLowerCase().replace(/\.(?=$|:)/, '') ?? '';
    if (!name.endsWith(this.#suffix)) return null;
    const label = name.slice(0, -this.#suffix.length);
    if (!label.startsWith('p--')) return labelOf(label) === label ? label : '';
    for (const id of this.#ids()) if (labelOf(id) === label) return id;
    return '';
  }

  /**
   * @throws ServiceError `not_found` for what the origin of a plugin does not serve: our pages, the API, other plugins
   */
  checkPath(host: string | undefined, path: string): void {
    const id = this.pluginAt(host);
    if (id === null || SERVED.test(path) || path.startsWith(`/plugins/${id}/app`)) return;
    throw new ServiceError('not_found', `there is nothing at ${path} on the origin of a plugin`);
  }
}

/** Paths that the origin of a plugin serves in addition to its triggers, which are handled separately. */
const SERVED = /^\/(api\/files|api\/auth\/plugin-session|healthz|readyz)(\/|$)/;

function labelOf(id: string): string {
  if (PLAIN_LABEL.test(id) && !id.includes('--')) return id;
  return `p--${createHash('sha256').update(id).digest('hex').slice(0, 40)}`;
}
