import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { OperatorError, UsageError } from '../base/errors.ts';
import { didYouMean } from '../base/nearest-name.ts';
import { listGallery } from '../projects/gallery.ts';
import { LANGUAGES, type Language, PROJECT_FILE } from '../projects/project.ts';
import { compilerTypes } from './compiler-types.ts';

/** Folders of the kits; each has `templates/<name>` and, for all of them, `templates/common`, and `examples/<sample>`. */
const KITS: Record<Language, string> = {
  ts: fileURLToPath(new URL('../../sdk/typescript/', import.meta.url)),
  go: fileURLToPath(new URL('../../sdk/go/', import.meta.url)),
  rust: fileURLToPath(new URL('../../sdk/rust/', import.meta.url)),
  c: fileURLToPath(new URL('../../sdk/c/', import.meta.url)),
  as: fileURLToPath(new URL('../../sdk/assemblyscript/', import.meta.url)),
};
/** What is the same in every language: below the name of a template or sample its tests and frontend, in `common` the rest. */
const GALLERY = fileURLToPath(new URL('../../sdk/gallery/', import.meta.url));
const SCHEMAS = fileURLToPath(new URL('../../sdk/schema/', import.meta.url));
/** Where an editor finds the schema of `plugin-host.json`, as `writeKit` puts it there. */
const SCHEMA = './kit/schema/plugin-host.json';
const COMMON = 'common';
/** Files that would mean something to npm, git, Go or Cargo where the template lies. */
const NAMES: Readonly<Record<string, string>> = {
  _gitignore: '.gitignore',
  '_package.json': 'package.json',
  '_go.mod': 'go.mod',
  '_Cargo.toml': 'Cargo.toml',
  '_cargo/config.toml': '.cargo/config.toml',
  '_vscode/settings.json': '.vscode/settings.json',
};
/** What stands in a template for the id and the name of the plugin. */
const ID = 'template-plugin';
const NAME = 'Template Plugin';
/** The file of a sample in Go that names its package, and the line that does. */
const PACKAGE_FILE = 'go.mod';
const PACKAGE_LINE = /^(module )[\w-]+/m;
/** The page of a plugin of the gallery, and its last section: how to begin with that plugin. */
const PAGE_FILE = 'README.md';
const BEGIN_SECTION = /\n## Begin with it\n.*$/s;

const foldersIn = (folder: string): string[] => (fs.existsSync(folder) ? fs.readdirSync(folder).sort() : []);

/** Names of the templates of a language. */
export const templatesOf = (language: Language): string[] =>
  foldersIn(path.join(KITS[language], 'templates')).filter(name => name !== COMMON);

/** Names of the samples of a language, which a plugin can begin with as well. */
export const samplesOf = (language: Language): string[] => foldersIn(path.join(KITS[language], 'examples'));

/** The plugins of the gallery that are written in a language: a plugin can begin with one, too. */
const galleryOf = (language: Language) => listGallery().filter(p => p.language === LANGUAGES[language]);

/** `office-hours` as people write it: `Office Hours`. */
const titleOf = (id: string): string =>
  id
    .split(/[-_]/)
    .map(word => word.charAt(0).toUpperCase() + word.slice(1))
    .join(' ');

function filesBelow(folder: string): string[] {
  return fs
    .readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter(file => fs.statSync(path.join(folder, file)).isFile());
}

/** Whether the build made a file, or `writeKit` put it there. */
const isMade = (file: string): boolean => /^(kit|build|target|node_modules|\.plugin-host)[/\\]/.test(file);

/**
 * Writes the types of the kit into a plugin's folder, for the editor and the type checker, with the schemas of its JSON
 * files; the build has its own copy. Files that are the same already are left alone.
 */
export function writeKit(language: Language, root: string): void {
  const kit = path.join(KITS[language], language === 'as' ? 'assembly' : 'kit');
  const files = new Map<string, Uint8Array>([
    ...filesBelow(kit)
      .filter(file => language !== 'ts' || file.endsWith('.ts'))
      .map(file => [file, fs.readFileSync(path.join(kit, file))] as const),
    ...filesBelow(SCHEMAS)
      .filter(file => file.endsWith('.json'))
      .map(file => [path.join('schema', file), fs.readFileSync(path.join(SCHEMAS, file))] as const),
    // Tests are written in TypeScript for every language.
    ['test.d.ts', fs.readFileSync(path.join(KITS.ts, 'kit/test.d.ts'))],
    ...(language === 'as' ? compilerTypes(root) : []),
  ]);
  for (const [file, content] of files) {
    const target = path.join(root, 'kit', file);
    if (fs.existsSync(target) && fs.readFileSync(target).equals(content)) continue;
    fs.mkdirSync(path.dirname(target), { recursive: true });
    fs.writeFileSync(target, content);
  }
}

/** `plugin-host.json` of a new folder: with its schema, and with the frontend where it was copied to. */
function projectText(text: string): string {
  const project: { frontend?: string } = JSON.parse(text);
  const { frontend } = project;
  // What leads out of the folder of a sample lies in the gallery, and was copied into the new folder.
  const own = frontend?.startsWith('../') === true ? { frontend: path.posix.basename(frontend) } : {};
  return `${JSON.stringify({ $schema: SCHEMA, ...project, ...own }, null, 2)}\n`;
}

/**
 * The entry file of a sample with another id and name. A sample declares its id as the first text of this value, and its
 * name as the next text.
 *
 * @throws Error when it does not
 */
function redeclared(text: string, sample: string, id: string): string {
  const declaration = new RegExp(`(["'])${sample}\\1([^"']*)(["'])(?:(?!\\3).)*\\3`);
  if (!declaration.test(text)) throw new Error(`bug: the sample ${sample} does not declare its id and its name`);
  return text.replace(
    declaration,
    (_, quote: string, between: string) => `${quote}${id}${quote}${between}${quote}${titleOf(id)}${quote}`,
  );
}

/** A folder that goes into a new one, and what becomes of its texts. */
type Part = { from: string; change(text: string, file: string): string };

const templatePart = (from: string, id: string): Part => ({
  from,
  change: text => text.replaceAll(ID, id).replaceAll(NAME, titleOf(id)),
});

function samplePart(from: string, sample: string, id: string): Part {
  const { entry }: { entry: string } = JSON.parse(fs.readFileSync(path.join(from, PROJECT_FILE), 'utf8'));
  return {
    from,
    change(text, file) {
      if (file === PAGE_FILE) return text.replace(/^# .*/, `# ${titleOf(id)}`).replace(BEGIN_SECTION, '');
      if (id === sample) return text;
      if (file === entry) return redeclared(text, sample, id);
      return file === PACKAGE_FILE ? text.replace(PACKAGE_LINE, (_, before: string) => before + id) : text;
    },
  };
}

/** The parts of a new folder; a file of a later one replaces that of an earlier one. */
function partsOf(language: Language, template: string, id: string): Part[] {
  const templates = path.join(KITS[language], 'templates');
  const isTemplate = templatesOf(language).includes(template);
  const whole = galleryOf(language).find(p => p.id === template)?.folder;
  // A template in Go has tests in Go, and a plugin of the gallery has all of its files in its own folder.
  const shared = (isTemplate && language === 'go') || whole !== undefined ? [] : [path.join(GALLERY, template)];
  const before = [path.join(GALLERY, COMMON), path.join(templates, COMMON), ...shared];
  const sample = whole ?? path.join(KITS[language], 'examples', template);
  const own = isTemplate ? templatePart(path.join(templates, template), id) : samplePart(sample, template, id);
  return [...before.map(from => templatePart(from, id)), own];
}

/**
 * Makes a folder for a new plugin.
 *
 * @param folder path of the folder; its last part is the id of the plugin
 * @param template name of a template or a sample of the language
 * @returns the files it has, the kit left out
 * @throws OperatorError when the folder is there and not empty, UsageError for an unknown template or a wrong id
 */
export function newProject(folder: string, language: Language, template: string): string[] {
  const root = path.resolve(folder);
  const id = path.basename(root);
  if (!/^[a-z0-9][a-z0-9_-]{0,63}$/.test(id))
    throw new UsageError(
      `"${id}" cannot be the id of a plugin: it must have lower-case letters, digits, _ and -, at most 64, and begin with a letter or digit`,
    );
  const names = [...templatesOf(language), ...samplesOf(language), ...galleryOf(language).map(p => p.id)];
  if (!names.includes(template))
    throw new UsageError(
      `there is no template "${template}" for ${LANGUAGES[language]}${didYouMean(template, names)}; there are ${names.join(', ')}`,
    );
  if (fs.existsSync(root) && fs.readdirSync(root).length > 0)
    throw new OperatorError(`${root} is there already and is not empty; name another folder`);
  const written: string[] = [];
  for (const { change, from } of partsOf(language, template, id))
    for (const file of filesBelow(from).filter(file => !isMade(file))) {
      const name = NAMES[file] ?? file;
      const target = path.join(root, name);
      const text = change(fs.readFileSync(path.join(from, file), 'utf8'), file);
      fs.mkdirSync(path.dirname(target), { recursive: true });
      fs.writeFileSync(target, name === PROJECT_FILE ? projectText(text) : text);
      written.push(name);
    }
  if (!written.includes(PROJECT_FILE)) throw new Error(`bug: template ${template} has no ${PROJECT_FILE}`);
  writeKit(language, root);
  return [...new Set(written)].sort();
}
