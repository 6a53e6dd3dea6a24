import fs from 'node:fs';
import path from 'node:path';
import { type Browser, chromium } from 'playwright-core';

const ARCHIVE = path.join(import.meta.dirname, '../../node_modules/@sparticuz/chromium/bin/al2023.tar.br');

/** Where a run of tests keeps what one of its processes has unpacked. */
const SHARED = process.env.TEST_DIRECTORY === undefined ? null : path.join(process.env.TEST_DIRECTORY, 'chromium');

type Unpacked = { executablePath: string; libraries: string };

/** The package unpacks itself below the temporary directory, unless it is there. */
async function unpackIn(directory: string): Promise<Unpacked> {
  const before = process.env.TMPDIR;
  process.env.TMPDIR = directory;
  try {
    const { default: packed, inflate } = await import('@sparticuz/chromium');
    return { executablePath: await packed.executablePath(), libraries: path.join(await inflate(ARCHIVE), 'lib') };
  } finally {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
  }
}

/** Unpacks in a folder of this process's own, which becomes that of the run when it is whole: none starts what another still writes. */
async function unpack(home: string): Promise<Unpacked> {
  if (SHARED !== null && fs.existsSync(SHARED)) return await unpackIn(SHARED);
  const own = await unpackIn(home);
  if (SHARED === null) return own;
  const moved = fs.mkdtempSync(`${SHARED}-`);
  for (const name of fs.readdirSync(home)) fs.renameSync(path.join(home, name), path.join(moved, name));
  try {
    fs.renameSync(moved, SHARED);
  } catch {
    // Another process was first.
    fs.rmSync(moved, { recursive: true });
  }
  return await unpackIn(SHARED);
}

let home: string | null = null;

/** A real Chromium with the libraries it needs, both from an npm package, so that the tests need nothing installed. */
export async function startBrowser(): Promise<Browser> {
  home ??= fs.mkdtempSync(path.join(process.env.TEST_DIRECTORY ?? '/tmp', 'browser-'));
  const { executablePath, libraries } = await unpack(home);
  return await chromium.launch({
    executablePath,
    args: ['--headless', '--no-sandbox', '--disable-gpu', '--no-zygote', '--disable-background-networking'],
    env: {
      PATH: process.env.PATH ?? '',
      HOME: home,
      // Names of files are in UTF-8.
      LANG: 'C.UTF-8',
      TMPDIR: home,
      LD_LIBRARY_PATH: libraries,
    },
  });
}
