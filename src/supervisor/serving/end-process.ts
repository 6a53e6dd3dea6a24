import type { Config } from '../../config/load.ts';
import { durationMs } from '../../config/values.ts';
import { exited } from '../children/child.ts';
import type { ServingProcess } from './serving-process.ts';

const DRAIN_MS = 12_000;
/** Longest time for which a process that was replaced answers on the connections it has. */
const HAND_OVER_MS = 60_000;
const KILLED_MS = 2000;

/** Kills a process and waits until it has ended. */
export async function killProcess(serving: ServingProcess): Promise<void> {
  serving.child.kill('SIGKILL');
  await exited(serving.child, KILLED_MS);
}

/** Ends a process, which still takes requests for `serving.drain_delay`, and answers what is under way. */
export async function endProcess(serving: ServingProcess, { values }: Config): Promise<void> {
  if (!serving.runs) return;
  const delayMs = durationMs(values['serving.drain_delay']);
  serving.child.kill('SIGTERM');
  if (!(await exited(serving.child, delayMs + DRAIN_MS))) await killProcess(serving);
}

/** Ends a process that was replaced: it answers on the connections it has until they are closed. */
export async function retireProcess(serving: ServingProcess, config: Config): Promise<void> {
  // One that has not begun to listen has no connections.
  if (!serving.isReady) return await endProcess(serving, config);
  serving.send({ kind: 'hand_over' });
  if (!(await exited(serving.child, HAND_OVER_MS))) await endProcess(serving, config);
}
