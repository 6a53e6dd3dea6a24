import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { OperatorError } from '../../../src/base/errors.ts';
import { findOptional, missingPackage } from '../../../src/base/optional-package.ts';

/** A release brings the engine. */
const BUILT = fileURLToPath(new URL('../../../share/typescript-engine.wasm', import.meta.url));
const CACHE = fileURLToPath(new URL('../../../node_modules/.cache/plugin-host/', import.meta.url));
/** What the engine is made of. */
const SOURCES = ['./glue.ts', './build-engine.ts', '../../../src/abi/host-functions.ts', '../../../package.json'];

let read: Promise<Uint8Array> | null = null;

async function find(): Promise<Uint8Array> {
  if (fs.existsSync(BUILT)) return fs.readFileSync(BUILT);
  if (import.meta.filename.endsWith('.js')) throw missingPackage('esbuild', 'plugins in TypeScript are to be built');
  const hash = createHash('sha256');
  for (const source of SOURCES) hash.update(fs.readFileSync(new URL(source, import.meta.url)));
  const target = path.join(CACHE, `engine-${hash.digest('hex').slice(0, 16)}.wasm`);
  if (fs.existsSync(target)) return fs.readFileSync(target);
  if (findOptional('binaryen') === null)
    throw new OperatorError(
      'the engine of TypeScript plugins cannot be built without the package binaryen: run npm ci',
    );
  const { buildEngine } = await import('./build-engine.ts');
  const engine = await buildEngine();
  storeEngine(target, engine);
  return engine;
}

/**
 * Stores the engine for the next process, if it can: a service that was started as root runs as an account that may not write to the
 * folder of its sources, and builds the engine once in each process.
 */
export function storeEngine(target: string, engine: Uint8Array): void {
  const partial = `${target}.${process.pid}.part`;
  try {
    fs.mkdirSync(path.dirname(target), { recursive: true });
    fs.writeFileSync(partial, engine);
    fs.renameSync(partial, target);
  } catch {}
}

/** The engine of TypeScript plugins; built once in a checkout (10 s), where its sources have changed. */
export function readEngine(): Promise<Uint8Array> {
  read ??= find().catch((error: unknown) => {
    read = null;
    throw error;
  });
  return read;
}
