import { createHash } from 'node:crypto';
import fs from 'node:fs';
import { registerHooks, stripTypeScriptTypes } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * How processes of tests load sources. Those without their types are kept, by the hash of their text: Node 22 strips them in each process
 * again, and compiles its stripper before that, which is half of the second that loading the service takes. This file has no types, so
 * that the stripper is not loaded for it.
 */
const isProgram = process.argv[1] === import.meta.filename;
/** Named in the address of this file, which `NODE_OPTIONS` carries into processes that get nothing else. */
const directory = isProgram ? process.argv[2] : new URL(import.meta.url).searchParams.get('kept');
/** A module of the test library, and what is loaded in its place. */
const DOMAIN = '/async-hook-domain/dist/mjs/index.js';
const OWN_DOMAIN = new URL('./error-domain.js', import.meta.url);

/**
 * Without the warning that stripping is experimental: programs under test show what they write to standard error.
 *
 * @param {() => string} run
 */
function quietly(run) {
  const { emitWarning } = process;
  process.emitWarning = () => {};
  try {
    return run();
  } finally {
    process.emitWarning = emitWarning;
  }
}

/**
 * @param {string} source
 * @returns {string} without its types
 */
function stripped(source) {
  const kept = path.join(directory, createHash('sha1').update(source).digest('hex'));
  try {
    return fs.readFileSync(kept, 'utf8');
  } catch {}
  const text = quietly(() => stripTypeScriptTypes(source));
  const partial = `${kept}.${process.pid}`;
  try {
    fs.writeFileSync(partial, text);
    fs.renameSync(partial, kept);
  } catch {
    // An account that may not write there strips for itself.
  }
  return text;
}

if (directory !== null && !isProgram)
  registerHooks({
    load(url, context, next) {
      if (url.endsWith(DOMAIN))
        return { format: 'module', shortCircuit: true, source: fs.readFileSync(OWN_DOMAIN, 'utf8') };
      if (!url.startsWith('file:') || !url.endsWith('.ts')) return next(url, context);
      return { format: 'module', shortCircuit: true, source: stripped(fs.readFileSync(fileURLToPath(url), 'utf8')) };
    },
  });

// As a program it strips sources into a folder (`FOLDER FILE...`), so that no test loads the stripper.
if (isProgram)
  for (const file of process.argv.slice(3))
    try {
      stripped(fs.readFileSync(file, 'utf8'));
    } catch {
      // A source with a mistake fails the tests that load it, which name it.
    }
