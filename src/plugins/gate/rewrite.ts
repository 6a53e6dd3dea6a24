import { Buffer } from 'node:buffer';
import type { ModuleOutline } from './module.ts';
import { leb } from './reader.ts';

/** Where a rewritten module takes its memory from. No uploaded module can name it: imports are checked before. */
export const MEMORY_IMPORT = { module: '$host', name: 'mem' } as const;

const KEPT_EXPORTS = new Set(['plugin_handle', 'plugin_describe', '_initialize']);

/**
 * Rewrites a module that passed the gate: its memory becomes an import with a capped maximum, table maxima are capped,
 * and only the entry points stay exported. Function, table, global and type indices do not move; memory index 0 stays.
 *
 * @param bytes the module as uploaded
 * @param outline what `readModule` returned for these bytes, with a memory
 * @returns the module to compile
 */
export function rewriteModule(bytes: Uint8Array, outline: ModuleOutline): Uint8Array {
  const memory = outline.memory;
  if (memory === null) throw new Error('rewriteModule needs a module with a memory');
  const memoryImport = [
    ...leb(MEMORY_IMPORT.module.length),
    ...Buffer.from(MEMORY_IMPORT.module),
    ...leb(MEMORY_IMPORT.name.length),
    ...Buffer.from(MEMORY_IMPORT.name),
    2,
    1,
    ...leb(memory.min),
    ...leb(memory.max),
  ];
  const importCount = leb(outline.importedFunctions.length + 1);
  const parts: Uint8Array[] = [bytes.subarray(0, 8)];
  const put = (id: number, ...body: Uint8Array[]): void => {
    const length = body.reduce((sum, b) => sum + b.length, 0);
    parts.push(Uint8Array.from([id, ...leb(length)]), ...body);
  };
  // Function names make the stack of a trap readable; other custom sections are dead weight.
  const name = outline.custom.find(c => c.name === 'name');
  const nameSection = outline.sections.find(s => s.id === 0 && name !== undefined && s.end === name.end)?.start;
  let importsDone = false;
  const putImports = (old: Uint8Array): void => {
    put(2, Uint8Array.from(importCount), old, Uint8Array.from(memoryImport));
    importsDone = true;
  };
  for (const section of outline.sections) {
    const body = bytes.subarray(section.start, section.end);
    if (section.id === 2) {
      putImports(bytes.subarray(outline.importEntriesAt, section.end));
      continue;
    }
    if (!importsDone && section.id > 2) putImports(new Uint8Array(0));
    if (section.id === 5 || (section.id === 0 && section.start !== nameSection)) continue;
    if (section.id === 4 && outline.tableSection) put(4, Uint8Array.from(outline.tableSection));
    else if (section.id === 7) {
      const kept = outline.exports.filter(e => KEPT_EXPORTS.has(e.name));
      put(7, Uint8Array.from(leb(kept.length)), ...kept.map(e => bytes.subarray(e.start, e.end)));
    } else put(section.id, body);
  }
  return Buffer.concat(parts);
}
