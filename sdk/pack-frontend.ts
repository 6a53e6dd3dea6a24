#!/usr/bin/env node
import fs from 'node:fs';
import path from 'node:path';
import yazl from 'yazl';

/**
 * Packs the files of a folder as the frontend of a plugin: a ZIP with `index.html` at its top.
 *
 *   node sdk/pack-frontend.ts FOLDER OUTPUT.zip
 */

/** @returns the ZIP; the same files give the same bytes */
export async function packFrontend(folder: string): Promise<Buffer> {
  const zip = new yazl.ZipFile();
  const files = fs
    .readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(e => e.isFile())
    .map(e => path.relative(folder, path.join(e.parentPath, e.name)).split(path.sep).join('/'))
    .sort();
  for (const file of files)
    zip.addFile(path.join(folder, file), file, { mtime: new Date(Date.UTC(2000, 0, 1)), mode: 0o100_644 });
  zip.end();
  const chunks: Buffer[] = [];
  for await (const chunk of zip.outputStream) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks);
}

if (process.argv[1] === import.meta.filename) {
  const [folder, output] = process.argv.slice(2);
  if (folder === undefined || output === undefined) {
    console.error('usage: node_modules/.bin/node sdk/pack-frontend.ts FOLDER OUTPUT.zip');
    process.exit(2);
  }
  const index = path.join(folder, 'index.html');
  if (!fs.existsSync(index)) {
    console.error(`there is no ${index}: a frontend begins with it`);
    process.exit(1);
  }
  fs.writeFileSync(output, await packFrontend(folder));
}
