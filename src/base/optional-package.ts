import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { z } from 'zod';
import { OperatorError } from './errors.ts';

/**
 * Packages an installation may leave out (`optionalDependencies` of package.json, docs/operating.md "A lean installation"). They are
 * looked for when they are needed, so that a service which has stores of its own starts without them.
 */

const manifest = z.object({
  dependencies: z.record(z.string(), z.string()),
  optionalDependencies: z.record(z.string(), z.string()),
  /** Set in a release, whose packages come with it. */
  release: z.boolean().default(false),
});

const readManifest = (): z.infer<typeof manifest> =>
  manifest.parse(JSON.parse(fs.readFileSync(new URL('../../package.json', import.meta.url), 'utf8')));

/** The version of a package this release is made for. */
export function pinnedVersion(name: string): string {
  const { dependencies, optionalDependencies } = readManifest();
  const version = optionalDependencies[name] ?? dependencies[name];
  if (version === undefined) throw new Error(`bug: package.json does not name ${name}`);
  return version;
}

/**
 * Path of a file of an optional package; null when the package is not installed.
 *
 * @param specifier as an import would name it
 * @param folder where it is looked for as well
 */
export function findOptional(specifier: string, folder?: string): string | null {
  try {
    return createRequire(import.meta.url).resolve(specifier);
  } catch (error) {
    const isMissing = error instanceof Error && 'code' in error && error.code === 'MODULE_NOT_FOUND';
    if (!isMissing) throw error;
    return folder === undefined ? null : findBelow(specifier, folder);
  }
}

function findBelow(specifier: string, folder: string): string | null {
  try {
    return createRequire(path.join(folder, 'package.json')).resolve(specifier);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'MODULE_NOT_FOUND') return null;
    throw error;
  }
}

/**
 * The error for an optional package that is needed and not installed.
 *
 * @param neededBecause what needs it, as the first half of a sentence
 * @param instead what helps without it, like `set database.url`; empty when nothing does
 */
export function missingPackage(name: string, neededBecause: string, instead = ''): OperatorError {
  const install = readManifest().release
    ? 'install the embedded stores of this release (plugin-host-embedded)'
    : `run npm install ${name}@${pinnedVersion(name)}`;
  return new OperatorError(
    `${neededBecause} and the package ${name} is not installed: ${instead === '' ? install : `${instead} or ${install}`}`,
  );
}
