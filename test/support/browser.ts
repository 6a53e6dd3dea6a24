import fs from 'node:fs';
import path from 'node:path';
import { type Browser, chromium } from 'playwright-core';

const ARCHIVE = path.join(import.meta.dirname, '../../node_modules/@sparticuz/chromium/bin/al2023.tar.br');

let unpacked: string | null = null;

/** A real Chromium with the libraries it needs, both from an npm package, so that the tests need nothing installed. */
export async function startBrowser(): Promise<Browser> {
  // The package unpacks itself below the temporary directory: one of this process's own, or one test starts what another still writes.
  unpacked ??= fs.mkdtempSync(path.join(process.env.TEST_DIRECTORY ?? '/tmp', 'browser-'));
  process.env.TMPDIR = unpacked;
  const { default: packed, inflate } = await import('@sparticuz/chromium');
  const executablePath = await packed.executablePath();
  const libraries = path.join(await inflate(ARCHIVE), 'lib');
  return await chromium.launch({
    executablePath,
    args: ['--headless', '--no-sandbox', '--disable-gpu', '--no-zygote', '--disable-background-networking'],
    env: {
      PATH: process.env.PATH ?? '',
      HOME: process.env.TMPDIR,
      // Names of files are in UTF-8.
      LANG: 'C.UTF-8',
      TMPDIR: process.env.TMPDIR,
      LD_LIBRARY_PATH: libraries,
    },
  });
}
