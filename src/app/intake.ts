import type { Log } from '../base/log.ts';
import { connectionsWithin, openFilesMax, openFilesProblem } from '../base/open-files.ts';
import { ownDirectory } from '../base/own-directory.ts';
import { REQUEST_LIMITS } from '../base/request-limits.ts';
import { type Config, dataPath } from '../config/load.ts';
import { durationMs } from '../config/values.ts';
import { makeIsProxy } from '../http/client-address.ts';
import { Connections } from '../http/connections.ts';
import { Intake } from '../http/intake.ts';

/** What connections may be open, and what the log says of those that are refused or end without a request. */
export function composeConnections(config: Config, log: Log, processes: number): Connections {
  const v = config.values;
  const filesMax = openFilesMax();
  const problem = openFilesProblem(v['http.max_connections'], filesMax);
  if (problem !== null) log.warn({ limit: 'http.max_connections' }, problem);
  return new Connections({
    max: connectionsWithin(v['http.max_connections'], filesMax),
    perAddressMax: v['http.max_connections_per_address'],
    processes,
    isProxy: makeIsProxy(v['http.trusted_proxies']),
    onRefused: (limit, address) => log.warn({ limit, address }, 'connections are refused'),
    onUnreadable: (address, connections) =>
      log.warn(
        {
          address,
          connections,
          hint: 'a proxy that speaks HTTP/1.0 gets 505; nginx does so without "proxy_http_version 1.1;". A health check that only connects looks the same',
        },
        'connections end without a request that can be read',
      ),
  });
}

/** What bodies that come in may take of this host. */
export function composeIntake(config: Config): Intake {
  const v = config.values;
  return new Intake({
    bytesMax: v['http.max_receiving'],
    bytesPerAddressMax: v['http.max_receiving_per_address'],
    bodyMsMax: durationMs(v['http.body_timeout']),
    bytesPerSecondMin: v['http.min_body_rate'],
    graceMs: REQUEST_LIMITS.bodyGraceMs,
    directory: ownDirectory(dataPath(config, 'receiving')),
  });
}
