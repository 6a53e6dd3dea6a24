import fs from 'node:fs';
import { z } from 'zod';

const manifest = z.object({ version: z.string() });

/** The version of the service, as its package names it. */
export function serviceVersion(): string {
  const text = fs.readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return manifest.parse(JSON.parse(text)).version;
}
