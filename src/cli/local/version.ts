import { serviceVersion } from '../../base/version.ts';
import { jsonText } from '../print/json-text.ts';

/** `version`: of the service, as JSON with that of Node. @returns what to print */
export function version(json: boolean): string {
  return json ? jsonText({ version: serviceVersion(), node: process.version }) : serviceVersion();
}
