import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { messageOf } from '../base/errors.ts';
import { makeTrustedFolder } from './children/trusted-folder.ts';

/** A release brings the pages. */
const BUILT = fileURLToPath(new URL('../../share/admin/', import.meta.url));
const SOURCES = fileURLToPath(new URL('../../admin/', import.meta.url));
const EXACT_JSON = fileURLToPath(new URL('../base/exact-json.ts', import.meta.url));
const CLIENT_TYPES = fileURLToPath(new URL('../../sdk/client/api.d.ts', import.meta.url));

/** Sources of the pages, and the packages they are made with. */
function hashOfSources(): string {
  const hash = createHash('sha256');
  const files = fs
    .readdirSync(SOURCES, { recursive: true, encoding: 'utf8' })
    .filter(f => !f.startsWith('node_modules') && fs.statSync(path.join(SOURCES, f)).isFile())
    .sort();
  for (const file of files) hash.update(`${file}\0`).update(fs.readFileSync(path.join(SOURCES, file)));
  // What the pages have from elsewhere.
  for (const file of [CLIENT_TYPES, EXACT_JSON]) hash.update(fs.readFileSync(file));
  return hash.digest('hex').slice(0, 16);
}

/** Whether the packages that build the pages are installed: they are not with `npm ci --omit=dev`. */
function hasBuilder(): boolean {
  try {
    createRequire(path.join(SOURCES, 'build.ts')).resolve('vite');
    return true;
  } catch {
    return false;
  }
}

/**
 * Builds the administration pages from source, again only when the sources have changed.
 *
 * @param directory where they are kept, each build in a folder of its own
 * @returns the folder with index.html; null when what builds them is not installed, or fails
 */
export async function buildPages(directory: string, progress: (text: string) => void): Promise<string | null> {
  if (fs.existsSync(path.join(BUILT, 'index.html'))) return BUILT;
  if (!fs.existsSync(CLIENT_TYPES)) return null;
  const target = path.join(directory, hashOfSources());
  if (fs.existsSync(target)) return target;
  if (!hasBuilder()) return null;
  progress('building the administration pages (once)');
  makeTrustedFolder(directory);
  const partial = `${target}.${process.pid}.part`;
  try {
    await promisify(execFile)(process.execPath, [path.join(SOURCES, 'build.ts'), partial]);
  } catch (error) {
    fs.rmSync(partial, { recursive: true, force: true });
    const [, , reason = messageOf(error)] = /^(.*\n)*?.*\b(Error:.*)$/m.exec(messageOf(error)) ?? [];
    progress(`the administration pages cannot be built, the API works without them: ${reason}`);
    return null;
  }
  for (const old of fs.readdirSync(directory))
    if (path.join(directory, old) !== partial) fs.rmSync(path.join(directory, old), { recursive: true, force: true });
  fs.renameSync(partial, target);
  return target;
}
