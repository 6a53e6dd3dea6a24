import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { buildPlugin } from '../../sdk/assemblyscript/build.ts';
import { readEngine } from '../../sdk/typescript/engine/stored-engine.ts';
import { copyProgram } from '../../src/kits/copy-program.ts';
import { copyPackage, EMBEDDED, productionPackages } from './installed-packages.ts';
import { releaseVersion } from './release-version.ts';

/** Makes the tree of a release (docs/operating.md "Releases"). */

/** The administration pages: a release does not bring what builds them. */
function buildPages(project: string, target: string): void {
  execFileSync(process.execPath, [path.join(project, 'admin/build.ts'), target], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
}

/** What the program reads of it at run time, and what npm would show. */
function releaseManifest(project: string, version: string): string {
  const { name, description, type, license, engines, dependencies, optionalDependencies } = JSON.parse(
    fs.readFileSync(path.join(project, 'package.json'), 'utf8'),
  );
  const manifest = { name, version, description, type, license, engines, release: true };
  return `${JSON.stringify({ ...manifest, private: true, dependencies, optionalDependencies }, null, 2)}\n`;
}

/** Removes the symbols of programs and libraries, where `strip` is there. */
function strip(files: readonly string[]): void {
  if (files.length > 0) spawnSync('strip', ['--strip-unneeded', ...files], { stdio: 'ignore' });
}

const filesOf = (directory: string): string[] =>
  fs
    .readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .map(f => path.join(directory, f))
    .filter(f => fs.lstatSync(f).isFile());

/** The Node that the release runs on; it is 18 MB smaller without symbols. */
function copyNode(project: string, to: string): void {
  fs.mkdirSync(path.dirname(to), { recursive: true });
  fs.copyFileSync(path.join(project, 'node_modules/node/bin/node'), to);
  fs.chmodSync(to, 0o755);
  strip([to]);
}

/**
 * Makes the tree of a release in a directory, which must not exist.
 *
 * @param project directory of the sources, with its packages installed
 */
export async function makeReleaseTree(project: string, target: string, version: string): Promise<void> {
  const packages = productionPackages(project);
  fs.mkdirSync(path.dirname(target), { recursive: true });
  fs.mkdirSync(target);
  copyProgram(project, target);
  for (const name of packages)
    copyPackage(path.join(project, 'node_modules', name), path.join(target, 'node_modules', name));
  fs.writeFileSync(path.join(target, 'package.json'), releaseManifest(project, version));
  copyNode(project, path.join(target, 'bin/node'));
  const program = path.join(target, 'bin/plugin-host');
  fs.copyFileSync(path.join(project, 'deploy/release/plugin-host.sh'), program);
  fs.chmodSync(program, 0o755);
  fs.mkdirSync(path.join(target, 'share'));
  fs.writeFileSync(
    path.join(target, 'share/hello.wasm'),
    await buildPlugin(path.join(project, 'sdk/assemblyscript/examples/hello/index.ts')),
  );
  buildPages(project, path.join(target, 'share/admin'));
  // What watches the service: alerts and dashboards.
  for (const folder of ['prometheus', 'grafana'])
    fs.cpSync(path.join(project, 'deploy', folder), path.join(target, 'share', folder), { recursive: true });
  const printed = (...args: string[]): string => execFileSync(program, args, { encoding: 'utf8' });
  fs.writeFileSync(path.join(target, 'share/plugin-host.1'), printed('man'));
  fs.writeFileSync(path.join(target, 'share/plugin-host.bash'), printed('completion', 'bash'));
}

/** Makes the tree with the embedded stores and what builds plugins, which is laid over a release. */
export async function makeEmbeddedTree(project: string, target: string): Promise<void> {
  for (const name of EMBEDDED) {
    const from = path.join(project, 'node_modules', name);
    if (!fs.existsSync(from)) throw new Error(`${name} is not installed; run npm ci first`);
    copyPackage(from, path.join(target, 'node_modules', name));
  }
  fs.mkdirSync(path.join(target, 'share'), { recursive: true });
  fs.writeFileSync(path.join(target, 'share/typescript-engine.wasm'), await readEngine());
  strip(filesOf(target).filter(f => /(\.so[.0-9]*|\/bin\/[^/]+)$/.test(f)));
}

/** Bytes of all files below a directory. */
export const treeBytes = (directory: string): number =>
  filesOf(directory).reduce((sum, file) => sum + fs.statSync(file).size, 0);

if (process.argv[1] === import.meta.filename) {
  const [target, option] = process.argv.slice(2);
  if (target === undefined || (option !== undefined && option !== '--embedded'))
    throw new Error('say where: npm run release:tree -- DIRECTORY [--embedded]');
  const project = path.resolve(import.meta.dirname, '../..');
  await makeReleaseTree(project, path.resolve(target), releaseVersion(project));
  if (option !== undefined) await makeEmbeddedTree(project, path.resolve(target));
}
