#!/usr/bin/env node
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

/**
 * The command `plugin-host` of the package that a service hands out, where its sources are JavaScript. JavaScript that an old Node can
 * read: such a Node starts the one that npm has installed with the package.
 */

/** The oldest Node that runs the sources and every package. */
const WANTED = '22.19';

const program = new URL('../src/main.js', import.meta.url);

/** @returns the path of the Node that is installed with this package; null where there is none for this machine */
function installedNode() {
  try {
    return createRequire(import.meta.url).resolve(`node-${process.platform}-${process.arch}/bin/node`);
  } catch {
    return null;
  }
}

/** Runs the command with another Node, and ends as it ends. */
function runWith(node) {
  const child = spawn(node, [fileURLToPath(program), ...process.argv.slice(2)], { stdio: 'inherit' });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
    process.on(signal, () => {
      // A terminal sends its signals to both.
      if (process.stdin.isTTY !== true) child.kill(signal);
    });
  child.on('exit', code => process.exit(code ?? 1));
}

const [major, minor] = WANTED.split('.').map(Number);
const [ownMajor, ownMinor] = process.versions.node.split('.').map(Number);

if (ownMajor > major || (ownMajor === major && ownMinor >= minor)) await import(program);
else {
  const node = installedNode();
  if (node !== null) runWith(node);
  else {
    process.stderr.write(
      `plugin-host: this is Node ${process.versions.node}; ${WANTED} or newer is needed: install it, or run npx -p node@22 -p ADDRESS plugin-host with the address of this package\n`,
    );
    process.exitCode = 1;
  }
}
