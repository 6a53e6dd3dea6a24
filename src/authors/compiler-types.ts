import fs from 'node:fs';
import path from 'node:path';
import { findOptional } from '../base/optional-package.ts';

/** What an editor reads to know AssemblyScript's types, as it lies in the compiler's package. */
const FILES = [
  'tsconfig-base.json',
  'std/assembly.json',
  'std/assembly/index.d.ts',
  'std/types/assembly/index.d.ts',
  'std/types/assembly/package.json',
];

/**
 * Files with the types of AssemblyScript, by where they lie below `kit/` of a plugin's folder. They are those of the
 * compiler that builds, so that an author's folder needs no package; none when the compiler is not installed.
 */
export function compilerTypes(root: string): Map<string, Buffer> {
  const manifest = findOptional('assemblyscript/package.json', root);
  if (manifest === null) return new Map();
  const contentOf = (file: string): string => fs.readFileSync(path.join(path.dirname(manifest), file), 'utf8');
  // TypeScript 7 finds no members of numbers in a type that is only another name of a class.
  const readable = (text: string): string =>
    text.replace(/^declare type Number = _Float;$/m, 'interface Number extends _Float {}');
  return new Map(FILES.map(file => [file, Buffer.from(readable(contentOf(file)))]));
}
