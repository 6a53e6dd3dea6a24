import type { Test } from 'tap';
import { Intake, type IntakeLimits } from '../../src/http/intake.ts';

const MIB = 1024 * 1024;

/** What bodies may take of a server that is started alone. */
export function testIntake(t: Test, limits: Partial<IntakeLimits> = {}): Intake {
  const intake = new Intake({
    bytesMax: 512 * MIB,
    bytesPerAddressMax: 128 * MIB,
    bodyMsMax: 30_000,
    bytesPerSecondMin: 0,
    graceMs: 6000,
    directory: t.testdir(),
    ...limits,
  });
  t.teardown(() => intake.close());
  return intake;
}
