import fs from 'node:fs';
import path from 'node:path';
import { fileProblem } from '../base/file-problem.ts';

/** A value and the name under which it was given, for errors. */
export type GivenValue = { name: string; value: string };

/** Largest file that holds one value. */
const BYTES_MAX = 64 * 1024;

/**
 * Reads a file that holds one value. One line break at its end is not part of the value, because editors and `echo`
 * write one.
 *
 * @throws Error that says why it cannot be used
 */
export function readValueFile(file: string): string {
  let text: string;
  try {
    const stat = fs.statSync(file);
    if (!stat.isFile()) throw new Error('it is not a file');
    if (stat.size > BYTES_MAX) throw new Error(`it has ${stat.size} bytes; at most ${BYTES_MAX} are read`);
    text = new TextDecoder('utf-8', { fatal: true }).decode(fs.readFileSync(file));
  } catch (error) {
    throw new Error(`cannot read ${file}: ${fileProblem(error)}`);
  }
  const value = text.replace(/\r?\n$/, '');
  // An empty secret would mean "not set", and an empty database.url the embedded database.
  if (value === '') throw new Error(`${file} is empty; remove it, or write the value into it`);
  return value;
}

function namesIn(directory: string): string[] {
  try {
    return fs.readdirSync(directory).sort();
  } catch (error) {
    throw new Error(`cannot read ${directory}: ${fileProblem(error)}`);
  }
}

/**
 * The values in files that are named like keys, behind a prefix. Names without a known section are other programs' own.
 *
 * @param unknown makes the error for a name that has the section of a key and is none
 */
function valuesIn(
  directory: string,
  names: readonly string[],
  prefix: string,
  keys: readonly string[],
  unknown: (name: string) => Error,
): Map<string, GivenValue> {
  const sections = new Set(keys.map(key => key.split('.')[0]));
  const out = new Map<string, GivenValue>();
  for (const name of names.filter(n => n.startsWith(prefix))) {
    const key = name.slice(prefix.length);
    const [section = '', ...rest] = key.split('.');
    if (rest.length === 0 || !sections.has(section)) continue;
    if (!keys.includes(key)) throw unknown(key);
    const file = path.join(directory, name);
    out.set(key, { name: file, value: readValueFile(file) });
  }
  return out;
}

/**
 * The values systemd passes as credentials: files named like keys (`smtp.password`) in a directory that only the
 * service can read (systemd.exec(5), "LoadCredential").
 *
 * @param unknown makes the error for a name that has the section of a key and is none
 * @throws Error that names the file
 */
export const readCredentials = (
  directory: string,
  keys: readonly string[],
  unknown: (name: string) => Error,
): Map<string, GivenValue> => valuesIn(directory, namesIn(directory), '', keys, unknown);

/** Where the units have their configuration, and systemd the credentials for them. */
export type UnitPlaces = { config: string; store: string };
const PLACES: UnitPlaces = { config: '/etc/plugin-host', store: '/etc/credstore' };

/** The names in the store of credentials, for the configuration of a unit; null when this account may not read them. */
function storedNames(file: string | null, { config, store }: UnitPlaces): string[] | null {
  if (file === null || path.dirname(path.resolve(file)) !== config || !fs.existsSync(store)) return [];
  try {
    return namesIn(store);
  } catch {
    return null;
  }
}

/**
 * Reads the values of credentials from the store of systemd, for a command that is typed in a shell with the configuration of a unit:
 * without them it would work on another database than the service. `config.yaml` is the unit without a name, `NAME.yaml` an instance, of whose
 * `plugin-host.NAME.smtp.password` the unit without a name knows nothing. What this account may not read is left out (`credstoreHint`).
 *
 * @param file the configuration file
 * @param unknown makes the error for a name that is no key
 * @throws Error that names the file
 */
export function readCredstore(
  file: string,
  keys: readonly string[],
  unknown: (name: string) => Error,
  places = PLACES,
): Map<string, GivenValue> {
  const unit = path.basename(file, '.yaml');
  const prefix = unit === 'config' ? 'plugin-host.' : `plugin-host.${unit}.`;
  return valuesIn(places.store, storedNames(file, places) ?? [], prefix, keys, unknown);
}

/** What to say where a value is missed that may lie in the store of credentials; empty when all of it could be read. */
export const credstoreHint = (file: string | null, places = PLACES): string =>
  storedNames(file, places) === null
    ? `what lies in ${places.store} is not known here; it can be read by root alone: run the command as root`
    : '';
