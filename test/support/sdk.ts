import path from 'node:path';
import { buildPlugin } from '../../sdk/assemblyscript/build.ts';

/** A sample plugin of the AssemblyScript kit, built from source. */
export const buildExample = (name: string): Promise<Uint8Array> =>
  buildPlugin(path.resolve(import.meta.dirname, `../../sdk/assemblyscript/examples/${name}/index.ts`));
