import { UsageError } from '../../base/errors.ts';
import { type Config, type ConfigKey, envNameOf } from '../../config/load.ts';

/** Where a command asks a service, and what says so. */
export type ServiceAddress = { url: string; from: string };

/** Where this machine reaches an address the service listens on. */
export const reachableHost = (host: string): string =>
  host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? 'localhost' : host;

/** Which of some keys were set, and where. */
function originOf({ file, sources }: Config, keys: readonly ConfigKey[]): string {
  const set = keys.filter(key => sources[key] !== 'default');
  if (set.length === 0) return 'the default';
  return set.map(key => (sources[key] === 'file' ? `${key} of ${file}` : envNameOf(key))).join(' and ');
}

/** Where a service listens. @param help what to do when the configuration does not say it @throws UsageError with that */
export function listeningAddress(config: Config, help: string): ServiceAddress {
  const { 'http.host': host, 'http.port': port, 'http.tls.cert': cert } = config.values;
  if (port === 0)
    throw new UsageError(
      `the address of the service is not known: http.port is 0 (${originOf(config, ['http.port'])}), which takes a free one; ${help}`,
    );
  const name = reachableHost(host);
  const url = `${cert === '' ? 'http' : 'https'}://${name.includes(':') ? `[${name}]` : name}:${port}`;
  return {
    url,
    from: originOf(config, ['http.host', 'http.port', ...(cert === '' ? [] : ['http.tls.cert' as const])]),
  };
}

/**
 * Where the service of a configuration is asked from its own machine: where it listens, because a proxy may be down. With TLS of
 * its own the public address comes first, which its certificate is for.
 *
 * @throws UsageError when the configuration does not say it
 */
export function serviceAddress(config: Config): ServiceAddress {
  const { 'http.port': port, 'http.public_url': publicUrl, 'http.tls.cert': cert } = config.values;
  if (publicUrl !== '' && (cert !== '' || port === 0))
    return { url: publicUrl, from: originOf(config, ['http.public_url']) };
  return listeningAddress(config, 'give --url');
}
