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
 * The values systemd passes as credentials: files named like keys (`smtp.password`) in a directory that only the
 * service can read (systemd.exec(5), "LoadCredential"). Names without a known section are other programs' own.
 *
 * @param unknown makes the error for a name that has the section of a key and is none
 * @throws Error that names the file
 */
export function readCredentials(
  directory: string,
  keys: readonly string[],
  unknown: (name: string) => Error,
): Map<string, GivenValue> {
  const sections = new Set(keys.map(key => key.split('.')[0]));
  const out = new Map<string, GivenValue>();
  for (const name of namesIn(directory)) {
    const [section = '', ...rest] = name.split('.');
    if (rest.length === 0 || !sections.has(section)) continue;
    if (!keys.includes(name)) throw unknown(name);
    const file = path.join(directory, name);
    out.set(name, { name: file, value: readValueFile(file) });
  }
  return out;
}

/** Configuration of the units, and where their secrets lie for systemd (systemd.exec(5), "LoadCredential"). */
const OF_UNITS = '/etc/plugin-host';
const CREDSTORE = '/etc/credstore';

/**
 * The same values as they are stored, for a command that is typed in a shell with the configuration of a unit: without them it would work
 * on another database than the service. `/etc/plugin-host/config.yaml` is the unit without a name, `NAME.yaml` an instance.
 *
 * @param file the configuration file
 * @param unreadable told when there is a store that this account may not read
 * @param unknown makes the error for a name that is no key
 * @param store the folder, for tests
 * @throws Error that names the file
 */
export function readCredstore(
  file: string,
  keys: readonly string[],
  unreadable: (store: string) => void,
  unknown: (name: string) => Error,
  { store = CREDSTORE, ofUnits = OF_UNITS }: { store?: string; ofUnits?: string } = {},
): Map<string, GivenValue> {
  const out = new Map<string, GivenValue>();
  if (path.dirname(path.resolve(file)) !== ofUnits || !fs.existsSync(store)) return out;
  const unit = path.basename(file, '.yaml');
  const prefix = unit === 'config' ? 'plugin-host.' : `plugin-host.${unit}.`;
  let names: string[];
  try {
    names = fs.readdirSync(store).sort();
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EACCES') unreadable(store);
    return out;
  }
  const sections = new Set(keys.map(key => key.split('.')[0]));
  for (const name of names) {
    const key = name.startsWith(prefix) ? name.slice(prefix.length) : '';
    const [section = '', ...rest] = key.split('.');
    // Of `plugin-host.second.smtp.password` the unit without a name knows nothing.
    if (rest.length === 0 || !sections.has(section)) continue;
    if (!keys.includes(key)) throw unknown(key);
    const at = path.join(store, name);
    out.set(key, { name: at, value: readValueFile(at) });
  }
  return out;
}
