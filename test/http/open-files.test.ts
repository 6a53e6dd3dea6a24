import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import t from 'tap';
import { connectionsWithin, OTHER_FILES, openFilesMax, openFilesProblem } from '../../src/base/open-files.ts';
import { takePort } from '../support/ports.ts';
import { request } from '../support/service.ts';
import { childPid, ROOT, startProgram } from '../support/started-service.ts';
import { until } from '../support/until.ts';

/** A limit on open files ends no process (docs/operating.md "Open files"). */
const MAIN = path.resolve(import.meta.dirname, '../../src/main.ts');
const FILES = 400;

t.test('connections leave descriptors for everything else', t => {
  t.equal(connectionsWithin(10_000, 65_536), 10_000);
  t.equal(connectionsWithin(10_000, 1024), 1024 - OTHER_FILES);
  t.equal(connectionsWithin(10_000, 100), 16, 'an administrator gets in');
  t.equal(openFilesProblem(10_000, 65_536), null);
  t.equal(openFilesProblem(10_000, Number.POSITIVE_INFINITY), null);
  t.match(openFilesProblem(10_000, 1024), /at most 1024 files.*768 connections.*instead of 10000.*to 10256/);
  t.ok(openFilesMax() > 16);
  t.end();
});

t.test('more clients than files: the service says so at its start, refuses the rest, and goes on', async t => {
  const directory = fs.mkdtempSync(path.join(ROOT, 'files-'));
  const port = await takePort();
  const limited = `ulimit -n ${FILES} && exec "$0" "$@"`;
  const run = startProgram('sh', ['-c', limited, process.execPath, MAIN, 'serve'], directory, {
    BOT_HTTP_PORT: String(port),
    BOT_EXECUTION_LANES: '2',
  });
  t.teardown(async () => {
    run.child.kill('SIGTERM');
    await run.exited;
  });
  const base = `http://127.0.0.1:${port}`;
  await until(async () => (await request(`${base}/readyz`).catch(() => null))?.status === 200);
  t.match(run.output(), new RegExp(`at most ${FILES} files may be open, so ${FILES - OTHER_FILES} connections`));
  const serving = childPid(run.child.pid, 'serving');

  let closed = 0;
  const sockets = Array.from({ length: 2 * FILES }, () =>
    net
      .connect(port, '127.0.0.1')
      .on('error', () => {})
      .once('close', () => closed++),
  );
  await until(() => closed >= FILES);
  // Timers that look at the system have their turn.
  await new Promise(r => setTimeout(r, 1500));
  t.equal(childPid(run.child.pid, 'serving'), serving, 'the process is the same');
  for (const socket of sockets) socket.destroy();
  await until(async () => (await request(`${base}/readyz`).catch(() => null))?.status === 200);
  t.equal(childPid(run.child.pid, 'serving'), serving, 'and still is when it answers again');
});
