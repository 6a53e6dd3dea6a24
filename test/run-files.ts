import fs from 'node:fs';
import path from 'node:path';
import tap from 'tap';
import { WASM_FLAGS } from '../src/plugins/limited-child.ts';

/**
 * Runs test files, three at a time, each in a process of its own, and writes what they say as one TAP stream: `run.ts` calls it.
 * The command `tap run` would load hooks for mocks and coverage into every process, which nothing here uses, and which take as long
 * as the tests.
 */
const root = path.resolve(import.meta.dirname, '..');
const END_IN_TIME = path.join(root, 'test/support/end-in-time.ts');
const FILE_SECONDS_MAX = 240;

const given = process.argv.slice(2);
const files =
  given.length > 0
    ? given
    : fs
        .readdirSync(path.join(root, 'test'), { recursive: true, encoding: 'utf8' })
        .filter(name => name.endsWith('.test.ts'))
        .sort()
        .map(name => path.join('test', name));

// More than there are cores: tests wait for processes and answers half of their time.
tap.jobs = 3;
// Each file has its own time.
tap.setTimeout(0);
// The library would hand its hook on in NODE_OPTIONS.
for (const name of files)
  void tap.spawn('env', ['-u', 'NODE_OPTIONS', process.execPath, ...WASM_FLAGS, '--import', END_IN_TIME, name], {
    name,
    cwd: root,
    buffered: true,
    timeout: FILE_SECONDS_MAX * 1000,
    env: { ...process.env, TAP_TIMEOUT: String(FILE_SECONDS_MAX) },
  });
