import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { EMBEDDED, productionPackages } from './installed-packages.ts';
import { makeEmbeddedTree, makeReleaseTree, treeBytes } from './release-tree.ts';
import { releaseTime, releaseVersion } from './release-version.ts';

/** `npm run release`: the archive of a release and that of the embedded stores, for this system and processor. */

export type ReleaseFiles = { version: string; archive: string; embedded: string };

/** Packs a folder so that the same files make the same bytes. */
function pack(folder: string, archive: string, seconds: number): void {
  const tar = ['--sort=name', '--owner=0', '--group=0', '--numeric-owner', `--mtime=@${seconds}`, '--mode=go-w'];
  const gzip = '--use-compress-program=gzip -9n';
  execFileSync('tar', [...tar, gzip, '-cf', archive, '-C', path.dirname(folder), path.basename(folder)]);
}

/** What `package-lock.json` says of a package. */
const Locked = z.object({ version: z.string(), integrity: z.string().optional(), license: z.string().optional() });

/**
 * The packages that a release and its part with the embedded stores bring, as CycloneDX
 * (https://cyclonedx.org/docs/1.6/json/). `npm sbom` leaves out those that development needs as well.
 */
export function billOfMaterials(project: string, version: string): string {
  const { packages } = z
    .object({ packages: z.record(z.string(), z.unknown()) })
    .parse(JSON.parse(fs.readFileSync(path.join(project, 'package-lock.json'), 'utf8')));
  const components = [...new Set([...productionPackages(project), ...EMBEDDED])].sort().map(at => {
    const { integrity, license, version } = Locked.parse(packages[`node_modules/${at}`]);
    const name = at.split('node_modules/').at(-1) ?? at;
    const purl = `pkg:npm/${name.replace('@', '%40')}@${version}`;
    const [algorithm, sum] = integrity?.split('-') ?? [];
    return {
      type: 'library',
      'bom-ref': at,
      name,
      version,
      purl,
      ...(license === undefined ? {} : { licenses: [{ expression: license }] }),
      ...(algorithm === 'sha512' && sum !== undefined
        ? { hashes: [{ alg: 'SHA-512', content: Buffer.from(sum, 'base64').toString('hex') }] }
        : {}),
    };
  });
  const component = { type: 'application', name: 'plugin-host', version, purl: `pkg:npm/plugin-host@${version}` };
  const bom = { bomFormat: 'CycloneDX', specVersion: '1.6', version: 1, metadata: { component }, components };
  return `${JSON.stringify(bom, null, 2)}\n`;
}

/**
 * Makes both archives and their checksums.
 *
 * @param project directory of the sources, with its packages installed
 * @param output directory that the archives come to
 */
export async function makeRelease(
  project: string,
  output: string,
  say: (line: string) => void,
  version = releaseVersion(project),
): Promise<ReleaseFiles> {
  const seconds = releaseTime(project);
  const platform = `${process.platform}-${process.arch}`;
  fs.mkdirSync(output, { recursive: true });
  const work = fs.mkdtempSync(path.join(output, '.release-'));
  try {
    const name = `plugin-host-${version}`;
    const tree = path.join(work, name);
    await makeReleaseTree(project, tree, version);
    const archive = path.join(output, `${name}-${platform}.tar.gz`);
    const unpackedMb = Math.round(treeBytes(tree) / 1e6);
    pack(tree, archive, seconds);
    fs.rmSync(tree, { recursive: true });
    await makeEmbeddedTree(project, tree);
    const embedded = path.join(output, `plugin-host-embedded-${version}-${platform}.tar.gz`);
    const embeddedMb = Math.round(treeBytes(tree) / 1e6);
    pack(tree, embedded, seconds);
    const sbom = path.join(output, `${name}-${platform}.cdx.json`);
    fs.writeFileSync(sbom, billOfMaterials(project, version));
    const sum = (file: string): string => createHash('sha256').update(fs.readFileSync(file)).digest('hex');
    const lines = [archive, embedded, sbom].map(f => `${sum(f)}  ${path.basename(f)}\n`);
    fs.writeFileSync(path.join(output, `${name}-${platform}.sha256`), lines.join(''));
    const packedMb = (file: string): number => Math.round(fs.statSync(file).size / 1e6);
    say(`${archive} (${packedMb(archive)} MB, unpacked ${unpackedMb} MB)`);
    say(`${embedded} (${packedMb(embedded)} MB, unpacked ${embeddedMb} MB)`);
    return { version, archive, embedded };
  } finally {
    fs.rmSync(work, { recursive: true, force: true });
  }
}

if (process.argv[1] === import.meta.filename) {
  const project = path.resolve(import.meta.dirname, '../..');
  await makeRelease(project, path.join(project, 'dist'), line => console.log(line));
}
