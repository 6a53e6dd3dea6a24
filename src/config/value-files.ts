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
