import { createHash } from 'node:crypto';
import fs from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
/** The folders a lane may import from (the sandbox holds no authority). */
const FOLDERS = ['workers', 'src/abi'];
const FILES = ['src/base/limits.ts'];

/**
 * Strips the types of the lane's source files once, with Node's own stripper. Otherwise every thread would do it, which
 * takes 100 ms each, three times as long as starting the thread.
 *
 * @param directory where the stripped files are kept, by the hash of their sources
 * @param program the file of workers/ to run
 * @returns its path
 */
export function prepareLaneSource(directory: string, program: 'run-plugin' | 'run-start'): string {
  // A release holds its sources without types.
  if (import.meta.filename.endsWith('.js')) return path.join(ROOT, `workers/${program}.js`);
  const files = [...FOLDERS.flatMap(d => fs.readdirSync(path.join(ROOT, d)).map(f => `${d}/${f}`)), ...FILES]
    .filter(f => f.endsWith('.ts'))
    .sort();
  const sources = files.map(f => ({ file: f, text: fs.readFileSync(path.join(ROOT, f), 'utf8') }));
  const hash = createHash('sha256').update(process.version);
  for (const s of sources) hash.update(`\0${s.file}\0${s.text}`);
  const target = path.join(directory, `lane-${hash.digest('hex').slice(0, 16)}`);
  const entry = path.join(target, `workers/${program}.mjs`);
  if (fs.existsSync(entry)) return entry;
  const partial = `${target}.${process.pid}.part`;
  for (const { file, text } of sources) {
    const to = path.join(partial, file.replace(/\.ts$/, '.mjs'));
    fs.mkdirSync(path.dirname(to), { recursive: true });
    fs.writeFileSync(to, stripTypeScriptTypes(text).replace(/(from\s*'\.{1,2}\/[^']*)\.ts'/g, "$1.mjs'"));
  }
  try {
    fs.renameSync(partial, target);
  } catch (error) {
    // Another process with this directory was faster; its files are the same.
    fs.rmSync(partial, { recursive: true, force: true });
    if (!fs.existsSync(entry)) throw error;
  }
  return entry;
}
