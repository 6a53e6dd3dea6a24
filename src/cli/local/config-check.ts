import { type Config, describeConfig } from '../../config/load.ts';
import { checkPackages } from '../../supervisor/start-checks.ts';
import { jsonText } from '../print/json-text.ts';

/**
 * `config check`: every key with its effective value and where it comes from.
 *
 * @returns what to print
 * @throws OperatorError when a package is missing that this configuration needs: the service would not start
 */
export function configCheck(config: Config, json: boolean): string {
  checkPackages(config);
  const rows = describeConfig(config);
  if (json) return jsonText({ file: config.file, values: rows });
  const width = Math.max(...rows.map(r => r.key.length));
  return rows.map(r => `${r.key.padEnd(width)}  ${r.source.padEnd(10)}  ${JSON.stringify(r.value)}`).join('\n');
}
