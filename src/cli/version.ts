import { serviceVersion } from '../base/version.ts';

/** `version`: of the service, as JSON with that of Node. @returns what to print */
export function version(json: boolean): string {
  return json ? JSON.stringify({ version: serviceVersion(), node: process.version }) : serviceVersion();
}
