import path from 'node:path';
import { buildPlugin as buildC } from '../../sdk/c/build.ts';
import { buildPlugin as buildGo } from '../../sdk/go/build.ts';
import { buildPlugin as buildRust } from '../../sdk/rust/build.ts';
import { buildPlugin as buildTypeScript } from '../../sdk/typescript/build.ts';

/** A plugin of the benchmark: the same greeter in several languages. `missing`: why it could not be built here. */
export type LanguagePlugin = {
  language: string;
  id: string;
  bytes: Uint8Array | null;
  buildMs: number;
  missing: string;
};

/** Triggers `greet`, `visit` (one `kv_get` and one `kv_set`) and `draw` (two random numbers below 2^53). */
const LANGUAGES: Array<{ language: string; entry: string; build(entry: string): Promise<{ module: Uint8Array }> }> = [
  { language: 'go', entry: 'go/main.go', build: buildGo },
  { language: 'typescript', entry: 'typescript/greeter.ts', build: buildTypeScript },
  { language: 'c', entry: 'c/main.c', build: buildC },
  { language: 'rust', entry: 'rust/src/lib.rs', build: buildRust },
];

/** Builds the greeter in every language whose tools are here. */
export async function buildLanguagePlugins(): Promise<LanguagePlugin[]> {
  const plugins: LanguagePlugin[] = [];
  for (const { build, entry, language } of LANGUAGES) {
    const id = `greeter-${language}`;
    const file = path.join(import.meta.dirname, entry);
    try {
      // The first build fills caches of the toolchain, as at an author's.
      await build(file);
      const begun = performance.now();
      const { module: bytes } = await build(file);
      plugins.push({ language, id, bytes, buildMs: performance.now() - begun, missing: '' });
    } catch (error) {
      const missing = error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error);
      plugins.push({ language, id, bytes: null, buildMs: 0, missing });
    }
  }
  return plugins;
}
