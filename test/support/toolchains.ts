import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import { missingTools } from '../../sdk/c/build.ts';

/** Toolchains of the kits for other languages, which a machine may not have. */

const answers = (tool: string, ...words: string[]): string | null => {
  const { status, stdout } = spawnSync(tool, words, { encoding: 'utf8' });
  return status === 0 ? stdout.trim() : null;
};

const noC = await missingTools();

const LOOK: Readonly<Record<string, () => string | null>> = {
  go: () => {
    const version = answers('go', 'env', 'GOVERSION');
    if (version === null) return 'there is no go on this machine';
    return Number(/^go1\.(\d+)/.exec(version)?.[1] ?? 0) < 24 ? `this machine has ${version}` : null;
  },
  c: () => noC,
  rust: () => {
    const folder = answers('rustc', '--print', 'target-libdir', '--target', 'wasm32-wasip1');
    if (folder === null) return 'there is no rustc on this machine';
    return fs.existsSync(folder) ? null : 'rustc has no target wasm32-wasip1 on this machine';
  },
};

/** Why plugins in a language, by the word of `--lang`, cannot be built here; null when they can. */
export const missingToolchain = (language: string): string | null => LOOK[language]?.() ?? null;
