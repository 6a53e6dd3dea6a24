import fs from 'node:fs';
import path from 'node:path';
import { buildPlugin } from '../../sdk/assemblyscript/build.ts';

/** A sample plugin of the AssemblyScript kit, built from source; once for all tests of a run. */
export async function buildExample(name: string): Promise<Uint8Array> {
  const directory = process.env.TEST_DIRECTORY;
  const kept = directory === undefined ? null : path.join(directory, `example-${name}.wasm`);
  if (kept !== null && fs.existsSync(kept)) return fs.readFileSync(kept);
  const built = await buildPlugin(
    path.resolve(import.meta.dirname, `../../sdk/assemblyscript/examples/${name}/index.ts`),
  );
  if (kept === null) return built;
  const partial = `${kept}.${process.pid}.part`;
  fs.writeFileSync(partial, built);
  fs.renameSync(partial, kept);
  return built;
}
