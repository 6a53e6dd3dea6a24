import fs from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import path from 'node:path';

/** Copies the sources of the program, for a release and for the package that authors install. */

/** Folders of which sources lose their types; a release has none of them with types. */
const FOLDERS = ['src', 'workers', 'sql', 'docs'];
const FILES = [
  'LICENSE',
  'README.md',
  'CHANGELOG.md',
  'bin/packed-plugin-host.js',
  'deploy/plugin-host.service',
  'deploy/plugin-host@.service',
  'sdk/client/client.ts',
  'sdk/describe-module.ts',
  'sdk/describe-thread.ts',
  'sdk/pack-frontend.ts',
  'sdk/assemblyscript/advice.ts',
  'sdk/assemblyscript/build.ts',
  'sdk/assemblyscript/code-map.ts',
  'sdk/c/build.ts',
  'sdk/c/lacking.ts',
  'sdk/dwarf/debug-functions.ts',
  'sdk/dwarf/debug-reader.ts',
  'sdk/dwarf/line-programs.ts',
  'sdk/dwarf/with-positions.ts',
  'sdk/go/build.ts',
  'sdk/rust/build.ts',
  'sdk/source-warnings.ts',
  'sdk/schema/manifest.json',
  'sdk/schema/plugin-host.json',
  'sdk/typescript/build.ts',
  'sdk/typescript/engine/glue.ts',
  'sdk/typescript/engine/link-plugin.ts',
  'sdk/typescript/engine/positions-of.ts',
  'sdk/typescript/engine/run-engine.ts',
  'sdk/typescript/engine/segments.ts',
  'sdk/typescript/engine/stored-engine.ts',
  'sdk/typescript/kit/missing-names.ts',
];
/** What authors get as it is written: the kits, their templates, and the samples. */
const KITS = [
  'examples',
  'sdk/gallery',
  'sdk/typescript/kit',
  'sdk/typescript/templates',
  'sdk/typescript/examples',
  'sdk/typescript/README.md',
  'sdk/go/kit',
  'sdk/go/templates',
  'sdk/go/examples',
  'sdk/go/reseed.go.overlay',
  'sdk/go/README.md',
  'sdk/rust/kit',
  'sdk/rust/examples',
  'sdk/rust/templates',
  'sdk/rust/README.md',
  'sdk/c/kit',
  'sdk/c/templates',
  'sdk/c/examples',
  'sdk/c/README.md',
  'sdk/assemblyscript/assembly',
  'sdk/assemblyscript/templates',
  'sdk/assemblyscript/examples',
  'sdk/assemblyscript/README.md',
];

/** Folders that building or trying a sample in its place has left there. */
const BUILT = /[/\\]examples[/\\][^/\\]+[/\\](kit|build|target|node_modules|\.plugin-host)$/;

/** What a sample that was tried in its place needs for itself: its configuration, and keys. */
const SECRET = /[/\\](?:config\.json|[^/\\]+\.key|\.env)$/;

/** Copies a file; sources lose their types, in place, so that a line keeps its number. */
function copySource(from: string, to: string): void {
  fs.mkdirSync(path.dirname(to), { recursive: true });
  if (!from.endsWith('.ts')) return fs.copyFileSync(from, to);
  const text = stripTypeScriptTypes(fs.readFileSync(from, 'utf8'));
  // Imports, and the files that threads are started with.
  fs.writeFileSync(to.replace(/\.ts$/, '.js'), text.replace(/'(\.{1,2}\/[^'\n]*)\.ts'/g, "'$1.js'"));
}

/** The file as it lies in the sources, or without types in a release. */
const sourceOf = (root: string, file: string): string =>
  fs.existsSync(path.join(root, file)) ? file : file.replace(/\.ts$/, '.js');

/**
 * @param root directory of the sources, or of a release
 * @param target directory to copy into; nothing there is removed
 */
export function copyProgram(root: string, target: string): void {
  for (const folder of FOLDERS)
    for (const file of fs.readdirSync(path.join(root, folder), { recursive: true, encoding: 'utf8' })) {
      const from = path.join(root, folder, file);
      if (fs.statSync(from).isFile()) copySource(from, path.join(target, folder, file));
    }
  for (const file of FILES.map(f => sourceOf(root, f)))
    if (fs.existsSync(path.join(root, file))) copySource(path.join(root, file), path.join(target, file));
  for (const kit of KITS)
    fs.cpSync(path.join(root, kit), path.join(target, kit), {
      recursive: true,
      filter: from => !BUILT.test(from) && !SECRET.test(from),
    });
}
