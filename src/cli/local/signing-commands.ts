import fs from 'node:fs';
import path from 'node:path';
import { OperatorError } from '../../base/errors.ts';
import { fileProblem } from '../../base/file-problem.ts';
import { frontendNote, makeSigningKeys, SIGNED_COMMENT, signModule } from '../../plugins/module-signature.ts';
import { sha256Of } from '../../plugins/module-storage.ts';
import { jsonText } from '../print/json-text.ts';

/** `plugin keygen` and `plugin sign`: what an author signs modules with (docs/plugins.md "Signatures"). */

const unwritable = (file: string, error: unknown): OperatorError =>
  new OperatorError(`${file} cannot be written: ${fileProblem(error)}`);

function writeNew(file: string, content: string, mode: number): void {
  try {
    fs.writeFileSync(file, content, { mode, flag: 'wx' });
  } catch (error) {
    throw unwritable(file, error);
  }
}

/** Writes next to the file and renames: what cannot be written whole leaves the file as it was. */
function replaceFile(file: string, content: Uint8Array): void {
  let partial: string | null = null;
  try {
    const real = fs.realpathSync(file);
    partial = `${real}.${process.pid}.partial`;
    fs.writeFileSync(partial, content, { mode: fs.statSync(real).mode & 0o777, flag: 'wx' });
    fs.renameSync(partial, real);
  } catch (error) {
    if (partial !== null) fs.rmSync(partial, { force: true });
    throw unwritable(file, error);
  }
}

function read(file: string): Buffer {
  try {
    return fs.readFileSync(file);
  } catch (error) {
    throw new OperatorError(`${file} cannot be read: ${fileProblem(error)}`);
  }
}

function zipAt(file: string): Buffer {
  const zip = read(file);
  if (zip.toString('latin1', 0, 2) !== 'PK') throw new OperatorError(`--frontend ${file} is not a ZIP file`);
  return zip;
}

/** `plugin keygen FILE`: FILE.key and FILE.pub, which must not be there yet. @returns what to print */
export function keygenCommand(file: string, flags: { json?: boolean }): string {
  const keys = makeSigningKeys();
  const [secret, shown] = [`${file}.key`, `${file}.pub`];
  for (const made of [secret, shown])
    if (fs.existsSync(made)) throw new OperatorError(`${made} exists already; name another file`);
  writeNew(secret, keys.secret, 0o600);
  writeNew(shown, keys.public, 0o644);
  const name = path
    .basename(file)
    .replace(/[=,\s]+/g, '-')
    .slice(0, 64);
  const trusted = `${name}=${keys.public.split('\n')[1] ?? ''}`;
  if (flags.json === true) return jsonText({ secret, public: shown, key_id: keys.id, trusted });
  return [
    `${secret}: the secret key ${keys.id}; it has no password, so keep it where builds alone can read it`,
    `${shown}: the public key`,
    `sign a module:   plugin-host plugin sign FILE.wasm --key ${secret}`,
    `trust this key:  plugins.trusted_keys: ["${trusted}"]`,
  ].join('\n');
}

/** `plugin sign FILE --key KEY [--frontend ZIP]`. @returns what to print */
export function signCommand(
  file: string,
  flags: { key: string; frontend?: string; comment?: string; json?: boolean },
): string {
  const module = read(file);
  if (module.toString('latin1', 0, 4) !== '\0asm') throw new OperatorError(`${file} is not a WebAssembly file`);
  const about = flags.comment ?? `file:${path.basename(file)} timestamp:${Math.floor(Date.now() / 1000)}`;
  const comment = flags.frontend === undefined ? about : `${about} ${frontendNote(sha256Of(zipAt(flags.frontend)))}`;
  if (!SIGNED_COMMENT.test(comment))
    throw new OperatorError('--comment must be one line of at most 8000 characters, without control characters');
  const signed = signModule(module, read(flags.key).toString(), comment);
  if (signed === undefined)
    throw new OperatorError(
      `${flags.key} is no secret key without a password; make one with plugin-host plugin keygen, or minisign -G -W`,
    );
  replaceFile(file, signed);
  const facts = { file, size: signed.length, comment };
  return flags.json === true ? jsonText(facts) : `${file} is signed: ${comment}`;
}
