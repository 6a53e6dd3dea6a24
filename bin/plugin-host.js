#!/usr/bin/env node
import fs from 'node:fs';

/**
 * The command `plugin-host`. JavaScript that an old Node can read: one that cannot run the sources says so in a line, and what to do.
 * package.json asks for Node 20, which is enough for npm: its scripts run on the package `node`.
 */

/** The oldest Node that runs the sources and every package. */
const WANTED = '22.19';

const [major, minor] = WANTED.split('.').map(Number);
const [ownMajor, ownMinor] = process.versions.node.split('.').map(Number);

/**
 * A program that has taken over from another one begins with processes that run: a signal to stop waits until `serve` listens to it, which
 * is when it knows them.
 */
function keepSignals() {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    const isHeard = () => process.listenerCount(signal) > 1;
    process.on(signal, () => {
      if (isHeard()) return;
      const look = setInterval(() => {
        if (!isHeard()) return;
        clearInterval(look);
        process.emit(signal, signal);
      }, 20);
      // A program that has failed by then ends.
      look.unref();
    });
  }
}

if (/^\d+$/.test(process.env.PLUGIN_HOST_TAKEOVER ?? '')) keepSignals();

if (ownMajor > major || (ownMajor === major && ownMinor >= minor)) await import('../src/main.ts');
else {
  const manifest = JSON.parse(fs.readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
  const isInstalled = fs.existsSync(new URL('../node_modules/.bin/node', import.meta.url));
  const help = isInstalled
    ? 'run it with npm start or npx plugin-host, which use the Node in node_modules'
    : `install it, or run npm install node@${manifest.optionalDependencies.node} and then npm start or npx plugin-host`;
  process.stderr.write(`plugin-host: this is Node ${process.versions.node}; ${WANTED} or newer is needed: ${help}\n`);
  process.exitCode = 1;
}
