import { type Config, dataPath } from './config.ts';
import { durationMs } from './config-values.ts';
import { Intake } from './http/intake.ts';
import { ownDirectory } from './own-directory.ts';
import { REQUEST_LIMITS } from './request-limits.ts';

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
