import { type Config, describeConfig } from '../../config/load.ts';
import { checkTlsFiles } from '../../http/tls-files.ts';
import { checkPackages } from '../../supervisor/start-checks.ts';
import { jsonText } from '../print/json-text.ts';

/**
 * `config check`: every key with its effective value and where it comes from.
 *
 * @returns what to print
 * @throws OperatorError when a package is missing that this configuration needs, or the certificate cannot be used: the service
 *   would not start
 */
export function configCheck(config: Config, json: boolean): string {
  checkPackages(config);
  const files = { cert: config.values['http.tls.cert'], key: config.values['http.tls.key'] };
  if (files.cert !== '') checkTlsFiles(files);
  const rows = describeConfig(config);
  if (json) return jsonText({ file: config.file, values: rows });
  const width = Math.max(...rows.map(r => r.key.length));
  return rows.map(r => `${r.key.padEnd(width)}  ${r.source.padEnd(10)}  ${JSON.stringify(r.value)}`).join('\n');
}
