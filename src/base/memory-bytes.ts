import os from 'node:os';

/** Memory of the machine, or what the control group of this process may use where that is less (cgroups(7)). */
export function memoryBytes(): number {
  const limit = process.constrainedMemory();
  return limit > 0 ? Math.min(limit, os.totalmem()) : os.totalmem();
}
