import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { exampleFile } from '../../src/config/example-file.ts';
import { makeEmbeddedTree, makeReleaseTree } from './release-tree.ts';
import { releaseTime, releaseVersion } from './release-version.ts';

/** `npm run release:deb`: the Debian packages of a release, `plugin-host` and `plugin-host-embedded`. */

const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' };
const MAINTAINER = 'Plugin host team <maintainers@plugin-host.invalid>';
const HOME = 'https://plugin-host.invalid/';

export type DebOptions = {
  version?: string;
  /** Level of xz, from 1 to 9: how small and how slow; 0 does not compress. */
  level?: number;
};

type Control = { name: string; depends: string; recommends?: string; about: string; more: string };

const HOST: Control = {
  name: 'plugin-host',
  depends: 'debconf (>= 0.5) | debconf-2.0, libc6 (>= 2.36), libstdc++6, passwd',
  recommends: 'plugin-host-embedded | postgresql, systemd',
  about: 'service that runs sandboxed WebAssembly plugins',
  more: 'A university runs small plugins behind HTTP endpoints and messenger commands. Each request runs in a fresh sandbox, with access decided by the host.',
};

const embeddedOf = (version: string): Control => ({
  name: 'plugin-host-embedded',
  depends: `plugin-host (= ${version}), libc6 (>= 2.36), libstdc++6`,
  about: 'embedded PostgreSQL and SpiceDB of the plugin host',
  more: 'For a machine without a PostgreSQL or a SpiceDB of its own.',
});

/** Writes a file below the tree of a package. */
function write(root: string, at: string, content: string | Buffer, mode = 0o644): void {
  const file = path.join(root, at);
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, content, { mode });
  fs.chmodSync(file, mode);
}

const gzipped = (content: string | Buffer): Buffer => execFileSync('gzip', ['-9n'], { input: content });

/** Text of a package's description: lines of at most 79 characters after a blank. */
const folded = (text: string): string =>
  text
    .match(/.{1,78}(?: |$)/g)!
    .map(line => ` ${line.trim()}\n`)
    .join('');

function controlFile(control: Control, version: string, root: string): string {
  const architecture = ARCHITECTURES[process.arch];
  if (architecture === undefined) throw new Error(`there is no Debian architecture for ${process.arch}`);
  const kib = execFileSync('du', ['-sk', '--apparent-size', root], { encoding: 'utf8' }).split('\t')[0];
  const fields = {
    Package: control.name,
    Version: version,
    Architecture: architecture,
    Maintainer: MAINTAINER,
    'Installed-Size': kib,
    Depends: control.depends,
    Recommends: control.recommends,
    Section: 'net',
    Priority: 'optional',
    Homepage: HOME,
    Description: `${control.about}\n${folded(control.more).trimEnd()}`,
  };
  return Object.entries(fields)
    .flatMap(([name, value]) => (value === undefined ? [] : [`${name}: ${value}\n`]))
    .join('');
}

function documents(root: string, project: string, name: string, version: string, seconds: number): void {
  const overrides = fs.readFileSync(path.join(project, 'deploy/debian', `${name}.lintian-overrides`));
  write(root, `usr/share/lintian/overrides/${name}`, overrides);
  const licence = fs.readFileSync(path.join(project, 'LICENSE'), 'utf8');
  const copyright = `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\nFiles: *\nCopyright: the authors of the plugin host and of the packages it brings\nLicense: Expat\n${licence.replace(/^(?=.)/gm, ' ').replace(/^$/gm, ' .')}`;
  write(root, `usr/share/doc/${name}/copyright`, `${copyright.trimEnd().replace(/\n \.$/, '')}\n`);
  const date = new Date(seconds * 1000).toUTCString().replace('GMT', '+0000');
  const log = `${name} (${version}) stable; urgency=medium\n\n  * Release ${version}; CHANGELOG.md says what changed.\n\n -- ${MAINTAINER}  ${date}\n`;
  write(root, `usr/share/doc/${name}/changelog.gz`, gzipped(log));
}

/** Everything of the package `plugin-host` but its release. */
function hostFiles(root: string, project: string): void {
  const own = (name: string): string => fs.readFileSync(path.join(project, 'deploy/debian', name), 'utf8');
  const release = path.join(root, 'usr/lib/plugin-host/release');
  for (const unit of ['plugin-host.service', 'plugin-host@.service'])
    write(root, `lib/systemd/system/${unit}`, fs.readFileSync(path.join(project, 'deploy', unit)));
  write(root, 'etc/plugin-host/config.yaml', exampleFile({ 'data.dir': '/var/lib/plugin-host' }));
  write(root, 'usr/lib/sysusers.d/plugin-host.conf', own('sysusers.conf'));
  write(root, 'usr/lib/tmpfiles.d/plugin-host.conf', own('tmpfiles.conf'));
  write(root, 'usr/sbin/plugin-host-release', own('plugin-host-release'), 0o755);
  const manual = fs.readFileSync(path.join(release, 'share/plugin-host.1'));
  write(root, 'usr/share/man/man1/plugin-host.1.gz', gzipped(manual));
  const completion = fs.readFileSync(path.join(release, 'share/plugin-host.bash'));
  write(root, 'usr/share/bash-completion/completions/plugin-host', completion);
  for (const page of fs.readdirSync(path.join(release, 'docs')))
    write(root, `usr/share/doc/plugin-host/${page}`, fs.readFileSync(path.join(release, 'docs', page)));
  fs.mkdirSync(path.join(root, 'usr/bin'), { recursive: true });
  // The path keeps the link `current`, so that a reload finds the release it leads to by then.
  fs.symlinkSync('../lib/plugin-host/current/bin/plugin-host', path.join(root, 'usr/bin/plugin-host'));
}

function build(root: string, output: string, control: Control, options: Required<DebOptions>): string {
  const { version, level } = options;
  const size = controlFile(control, version, root);
  write(root, 'DEBIAN/control', size);
  const files = fs
    .readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter(f => !f.startsWith('DEBIAN') && fs.lstatSync(path.join(root, f)).isFile())
    .sort();
  const sums = execFileSync('xargs', ['-0', 'md5sum'], { cwd: root, input: files.join('\0'), maxBuffer: 1 << 26 });
  write(root, 'DEBIAN/md5sums', sums);
  const file = path.join(output, `${control.name}_${version}_${ARCHITECTURES[process.arch]}.deb`);
  const compression = level === 0 ? ['-Znone'] : ['-Zxz', `-z${level}`];
  execFileSync('dpkg-deb', ['--root-owner-group', ...compression, '--build', root, file], { stdio: 'pipe' });
  return file;
}

/** Files of another owner's umask would be unreadable for the service. */
const openModes = (root: string): unknown => execFileSync('chmod', ['-R', 'u+rwX,go+rX,go-w', root]);

/**
 * Makes both packages.
 *
 * @param project directory of the sources, with its packages installed
 * @param output directory that the packages come to
 * @returns paths of `plugin-host` and `plugin-host-embedded`
 */
export async function makeDebs(
  project: string,
  output: string,
  { version = releaseVersion(project), level = 6 }: DebOptions = {},
): Promise<[string, string]> {
  const seconds = releaseTime(project);
  const scripts = path.join(project, 'deploy/debian');
  fs.mkdirSync(output, { recursive: true });
  const work = fs.mkdtempSync(path.join(output, '.deb-'));
  try {
    const [host, embedded] = [path.join(work, 'host'), path.join(work, 'embedded')];
    await makeReleaseTree(project, path.join(host, 'usr/lib/plugin-host/release'), version);
    hostFiles(host, project);
    documents(host, project, 'plugin-host', version, seconds);
    write(host, 'DEBIAN/conffiles', '/etc/plugin-host/config.yaml\n');
    await makeEmbeddedTree(project, path.join(embedded, 'usr/lib/plugin-host/release'));
    documents(embedded, project, 'plugin-host-embedded', version, seconds);
    for (const root of [host, embedded]) openModes(root);
    for (const name of ['postinst', 'prerm', 'postrm'])
      write(host, `DEBIAN/${name}`, fs.readFileSync(path.join(scripts, name)), 0o755);
    write(host, 'DEBIAN/templates', fs.readFileSync(path.join(scripts, 'templates')));
    write(embedded, 'DEBIAN/postinst', fs.readFileSync(path.join(scripts, 'embedded.postinst')), 0o755);
    process.env.SOURCE_DATE_EPOCH = String(seconds);
    const options = { version, level };
    return [build(host, output, HOST, options), build(embedded, output, embeddedOf(version), options)];
  } finally {
    fs.rmSync(work, { recursive: true, force: true });
  }
}

if (process.argv[1] === import.meta.filename) {
  const project = path.resolve(import.meta.dirname, '../..');
  for (const file of await makeDebs(project, path.join(project, 'dist')))
    console.log(`${file} (${Math.round(fs.statSync(file).size / 1e6)} MB)`);
}
