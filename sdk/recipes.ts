import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

/** Puts the code of the sample `recipes`, which tests run in each kit, into docs/authors.md. */

const SDK = fileURLToPath(new URL('.', import.meta.url));

/** Kits as the page shows them: how a fence names the language, and the file of a sample or template. */
const KITS = [
  { fence: 'ts', folder: 'typescript', file: 'index.ts' },
  { fence: 'go', folder: 'go', file: 'main.go' },
  { fence: 'rust', folder: 'rust', file: 'src/lib.rs' },
  { fence: 'c', folder: 'c', file: 'main.c' },
  { fence: 'ts', folder: 'assemblyscript', file: 'index.ts' },
] as const;
/** What is shown at once; the others open with a click. */
const SHOWN_FIRST = 2;
const OTHERS = '<details><summary>Rust, C, AssemblyScript</summary>';

const read = (folder: string, ...file: string[]): string =>
  fs.readFileSync(path.join(SDK, folder, ...file), 'utf8').trimEnd();

/** A function by its name; `is_name` where the name alone is one of the language's own functions. */
function functionIn(source: string, name: string): string | undefined {
  const found = new RegExp(`^(?:static ph_code|func|fn|function) (?:is_)?${name}\\([\\s\\S]*?^}$`, 'm').exec(source);
  return found?.[0];
}

/** The line that contains a phrase, and the lines below it that are indented more or close it. */
function linesIn(source: string, phrase: string): string | undefined {
  const lines = source.split('\n');
  const from = lines.findIndex(line => line.includes(phrase));
  const indent = /^\s*/.exec(lines[from] ?? '')?.[0] ?? '';
  const isPart = (line: string): boolean => /^\s/.test(line.slice(indent.length)) || /^[\])},]+$/.test(line.trim());
  const rest = lines.slice(from + 1);
  const end = rest.findIndex(line => !line.startsWith(indent) || !isPart(line));
  if (from === -1) return undefined;
  return [lines[from], ...rest.slice(0, end)].map(line => line?.slice(indent.length)).join('\n');
}

type Kit = (typeof KITS)[number];
const EXCERPTS: Record<string, (kit: Kit, what: string) => string | undefined> = {
  recipe: ({ file, folder }, name) => functionIn(read(folder, 'examples/recipes', file), name),
  lines: ({ file, folder }, phrase) => linesIn(read(folder, 'examples/recipes', file), phrase),
  template: ({ file, folder }, name) =>
    read(folder, 'templates', name, file).replaceAll('template-plugin', 'hello').replaceAll('Template Plugin', 'Hello'),
};

/** @throws Error when a kit does not have what the page asks for */
function blocksOf(kind: string, what: string): string {
  const blocks = KITS.map(kit => {
    const text = EXCERPTS[kind]?.(kit, what);
    if (text === undefined) throw new Error(`sdk/${kit.folder} has no ${kind} "${what}", which docs/authors.md shows`);
    return `\`\`\`${kit.fence}\n${text.replaceAll('\t', '  ')}\n\`\`\``;
  });
  return [...blocks.slice(0, SHOWN_FIRST), OTHERS, ...blocks.slice(SHOWN_FIRST), '</details>'].join('\n\n');
}

/**
 * The page with its code as the kits have it now. `<!-- recipe: NAME -->` asks for the function of a recipe, `lines: TEXT`
 * for the lines where a recipe declares something, `template: NAME` for a whole template; the code goes until `<!-- end -->`.
 *
 * @throws Error when a kit does not have it
 */
export const withRecipes = (page: string): string =>
  page.replace(
    /^(<!-- (\w+): (.+) -->)$[\s\S]*?^<!-- end -->$/gm,
    (_, mark: string, kind: string, what: string) => `${mark}\n\n${blocksOf(kind, what)}\n\n<!-- end -->`,
  );

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const page = path.join(SDK, '../docs/authors.md');
  fs.writeFileSync(page, withRecipes(fs.readFileSync(page, 'utf8')));
}
