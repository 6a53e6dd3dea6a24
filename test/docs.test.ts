import fs from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { HOST_FUNCTIONS } from '../src/abi/host-functions.ts';
import { parseManifest } from '../src/plugins/manifest.ts';
import { takePort } from './support/ports.ts';
import { openShell, openTerminal, patternOf, type Shell, stepsOf } from './support/shown-commands.ts';
import { gone, ROOT } from './support/started-service.ts';

/**
 * What README.md, docs/getting-started.md and docs/administrators.md show works as it stands there, in order, against one service.
 * Substituted are:
 *
 * - `npm ci`, whose result is there: a copy of the checkout links to its `node_modules`;
 * - `npm start`, which runs on a terminal of its own until both pages are done, with fewer threads and on a free port;
 * - `npx plugin-host plugin dev`, which runs on a terminal of its own until the pages are done;
 * - ports 8080 and 8787 by free ones, `TOKEN=...` by the token the start has printed, and `KEY=...` by the key an upload has;
 * - `npm test`, which runs this file.
 */
const PROJECT = path.resolve(import.meta.dirname, '..');

/** The folder a reader works in: a copy of the checkout, without what earlier starts have left. */
function checkout(): string {
  const folder = fs.mkdtempSync(path.join(ROOT, 'docs-'));
  // The service may run as an account of its own.
  fs.chmodSync(folder, 0o755);
  for (const name of [
    'admin',
    'bin',
    'examples',
    'package.json',
    'sdk',
    'sql',
    'src',
    'tsconfig.json',
    'types',
    'workers',
  ])
    fs.cpSync(path.join(PROJECT, name), path.join(folder, name), { recursive: true });
  fs.symlinkSync(path.join(PROJECT, 'node_modules'), path.join(folder, 'node_modules'));
  return folder;
}

const read = (page: string): string => fs.readFileSync(path.join(PROJECT, page), 'utf8');

t.test('the pages work as they stand there', async t => {
  const folder = checkout();
  const port = String(await takePort());
  const devPort = String(await takePort());
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([k]) => !/^(BOT_|TAP|TEST_|NODE_OPTIONS$|npm_)/.test(k)),
  );
  const terminal = openTerminal('npm start', folder, {
    ...env,
    BOT_HTTP_PORT: port,
    BOT_EXECUTION_LANES: '2',
    NO_COLOR: '1',
  });
  t.teardown(() => terminal.kill());
  const [, token = ''] = await terminal.until(/setup token: (\S+)[\s\S]*try it: .*/);
  const started = terminal.screen();
  /** From the first line of the service on; what npm says stands before it. */
  const onScreen = (text: string): string => text.slice(Math.max(0, text.indexOf('[plugin-host]')));

  let key = '';
  const work = async (commands: string, shell: Shell): Promise<string> => {
    const typed = commands
      .replace(/^npm ci( && |\n)/, '')
      .replaceAll('8080', port)
      .replaceAll('8787', devPort)
      .replace('TOKEN=...', `TOKEN=${token}`)
      .replace('KEY=...', `KEY=${key}`);
    if (typed === 'npm test\n') return '';
    if (typed === 'npm start\n') return onScreen(started);
    if (/^npx plugin-host plugin dev \S+\n$/.test(typed)) {
      const dev = openTerminal(`${typed.trim()} --port ${devPort}`, folder, env);
      t.teardown(() => dev.kill());
      await dev.until(/curl .*\n/);
      return dev.screen();
    }
    const output = await shell.run(typed);
    key = /plugin install \S+ (\S+)( --accept-\S+)*\n/.exec(output)?.[1] ?? key;
    return output;
  };
  let compared = 0;
  let stopped = '';
  for (const page of ['README.md', 'docs/getting-started.md', 'docs/administrators.md']) {
    const shell = openShell(folder, env);
    t.teardown(() => shell.end());
    for (const step of stepsOf(read(page))) {
      if (step.kind === 'file') {
        fs.mkdirSync(path.dirname(path.join(folder, step.name)), { recursive: true });
        fs.writeFileSync(path.join(folder, step.name), step.content);
        continue;
      }
      if (step.kind === 'interrupt') {
        stopped = step.shown;
        continue;
      }
      // Root's first start on a machine makes the account as well.
      const output = (await work(step.commands, shell))
        .replaceAll(port, '8080')
        .replaceAll(devPort, '8787')
        .replace(/^ *\[plugin-host\] creating the system account .*\n/m, '');
      if (step.shown === null) continue;
      compared++;
      t.match(output, patternOf(step.shown), `${page}: ${step.commands}`);
    }
  }
  t.ok(compared >= 11, `${compared} outputs were compared`);
  t.equal(await terminal.interrupt(), 0, 'Ctrl-C ends it well');
  t.match(onScreen(terminal.screen().slice(started.length)), patternOf(stopped));
  t.ok(await gone(path.join(folder, 'data')), 'no process is left');
});

t.test('the page of the plugin interface names each host function as the table has it', async t => {
  const page = read('docs/abi.md');
  for (const { name, parameters, permission, since } of HOST_FUNCTIONS) {
    const needs = permission === 'plugins:call' ? 'plugins:call:<target>' : permission;
    const line = `- \`${name}(${parameters.join(', ')})\`,${needs === null ? '' : ` \`${needs}\`,`} since ${since}: `;
    t.ok(page.includes(line), line);
  }
});

t.test('the manifest of that page is one', async t => {
  const [, json = ''] = /```json\n(\{\n {2}"abi"[\s\S]*?)```/.exec(read('docs/abi.md')) ?? [];
  t.match(parseManifest(json), { ok: true, manifest: { id: 'visits', triggers: { length: 2 } } });
});
