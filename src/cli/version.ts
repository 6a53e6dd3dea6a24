import fs from 'node:fs';

/** `version`: of the service, as JSON with that of Node. @returns what to print */
export function version(json: boolean): string {
  const value: unknown = JSON.parse(fs.readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  const own = typeof value === 'object' && value !== null && 'version' in value ? String(value.version) : 'unknown';
  return json ? JSON.stringify({ version: own, node: process.version }) : own;
}
