import os from 'node:os';
import path from 'node:path';
import { type Config, dataPath } from '../../config/load.ts';
import { askService } from '../../supervisor/handover/control-socket.ts';
import { jsonText } from '../print/json-text.ts';

/**
 * `reload`: replaces the serving processes of the running service one by one, without refusing a connection.
 *
 * @param file the configuration that was named; the service refuses one that it does not read itself
 * @returns what to print
 * @throws OperatorError when no service runs on this data directory, or a new process cannot start
 */
export async function reloadCommand(
  config: Config,
  file: string | null,
  json: boolean,
  progress: (text: string) => void,
): Promise<string> {
  // It only waits, and what it asks for happens next to a service under load.
  os.setPriority(os.constants.priority.PRIORITY_LOW);
  const named = file === null ? {} : { file: path.resolve(file) };
  await askService(dataPath(config), { command: 'reload', ...named }, progress);
  return json ? jsonText({ reloaded: true }) : 'all serving processes were replaced';
}
