import os from 'node:os';
import { type Config, dataPath } from '../config/load.ts';
import { askService } from '../supervisor/control-socket.ts';

/**
 * `reload`: replaces the serving processes of the running service one by one, without refusing a connection.
 *
 * @returns what to print
 * @throws OperatorError when no service runs on this data directory, or a new process cannot start
 */
export async function reloadCommand(config: Config, progress: (text: string) => void): Promise<string> {
  // It only waits, and what it asks for happens next to a service under load.
  os.setPriority(os.constants.priority.PRIORITY_LOW);
  await askService(dataPath(config), 'reload', progress);
  return 'all serving processes were replaced';
}
