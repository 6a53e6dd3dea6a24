import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { assertCompiler, buildPlugin } from '../../sdk/assemblyscript/build.ts';
import { writeNewFile } from '../base/write-new-file.ts';
import { makeTrustedFolder } from './children/trusted-folder.ts';

/** A release brings the module. */
const BUILT = fileURLToPath(new URL('../../share/hello.wasm', import.meta.url));
const KIT = fileURLToPath(new URL('../../sdk/assemblyscript/', import.meta.url));

function sourcesOf(directory: string): string[] {
  return fs
    .readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .filter(f => /\.(ts|mjs|json)$/.test(f))
    .sort()
    .map(f => path.join(directory, f));
}

/**
 * Builds the sample plugin `hello` from source, again only when its sources have changed.
 *
 * @param directory where the module is kept; no other account writes to it
 * @returns path of the module
 * @throws OperatorError when the compiler is not installed
 */
export async function buildSample(directory: string, progress: (text: string) => void): Promise<string> {
  if (fs.existsSync(BUILT)) return BUILT;
  const hash = createHash('sha256');
  for (const d of ['assembly', 'examples/hello'])
    for (const f of sourcesOf(path.join(KIT, d))) hash.update(fs.readFileSync(f));
  const target = path.join(directory, `hello-${hash.digest('hex').slice(0, 16)}.wasm`);
  if (fs.existsSync(target)) return target;
  assertCompiler('the sample plugin is to be built', 'start without --sample');
  progress('building the sample plugin (once)');
  makeTrustedFolder(directory);
  const partial = `${target}.${process.pid}.part`;
  writeNewFile(partial, await buildPlugin(path.join(KIT, 'examples/hello/index.ts')), 0o644);
  fs.renameSync(partial, target);
  return target;
}
