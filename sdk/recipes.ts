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
  const found = new RegExp(`^(?:static ph_code|func|fn|function) (?:is_)?${name}\\(.*\\{$[\\s\\S]*?^}$`, 'm').exec(
    source,
  );
  return found?.[0];
}

/** What stands above the first handler: what is imported, declared, and shared by handlers. */
function headOf(source: string): string | undefined {
  const at = source.search(/^(?:static ph_code|func|fn|function) greet\(.*\{$/m);
  return at === -1 ? undefined : source.slice(0, at).trimEnd();
}

type Kit = (typeof KITS)[number];
const EXCERPTS: Record<string, (kit: Kit, what: string) => string | undefined> = {
  recipe: ({ file, folder }, name) => functionIn(read(folder, 'examples/recipes', file), name),
  declaration: ({ file, folder }) => headOf(read(folder, 'examples/recipes', file)),
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
 * The page with its code as the kits have it now. `<!-- recipe: NAME -->` asks for the function of a recipe, `declaration: SAMPLE`
 * for what stands above all of them, `template: NAME` for a whole template; the code goes until `<!-- end -->`.
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
