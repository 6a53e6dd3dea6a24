import fs from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { withRecipes } from '../../sdk/recipes.ts';
import { made, run } from '../support/author.ts';
import { missingToolchain } from '../support/toolchains.ts';

/** docs/authors.md: its code is that of the samples, which `gallery-*.test.ts` run, and its words are those of the kits. */

const root = path.resolve(import.meta.dirname, '../..');
const page = fs.readFileSync(path.join(root, 'docs/authors.md'), 'utf8');

t.test('the recipes of docs/authors.md are the code of the samples', async t => {
  t.equal(withRecipes(page), page, 'npm run docs writes them');
  const marks = [...page.matchAll(/^<!-- recipe: (\w+) -->$/gm)].map(m => m[1]);
  const source = fs.readFileSync(path.join(root, 'sdk/typescript/examples/recipes/index.ts'), 'utf8');
  const handlers = [...source.matchAll(/^function (\w+)\(/gm)].map(m => m[1]);
  t.same([...marks].sort(), handlers.sort(), 'each handler of the sample has its recipe');
  const unknown = page.replace('<!-- recipe: claim -->', '<!-- recipe: clam -->');
  t.throws(() => withRecipes(unknown), /sdk\/typescript has no recipe "clam"/);
});

/** The test that the page shows, by the fence. */
const shownTest = (fence: 'ts' | 'go'): string =>
  new RegExp(`Two users ask for the same seat[\\s\\S]*?\`\`\`${fence}\\n([\\s\\S]*?)\`\`\``).exec(page)?.[1] ?? '';

for (const [language, fence, file] of [
  ['ts', 'ts', 'test/plugin.test.ts'],
  ['go', 'go', 'plugin_test.go'],
] as const)
  t.test(
    `the test in ${language} that the page shows passes`,
    { skip: missingToolchain(language) ?? false },
    async t => {
      const folder = await made(t, 'shown', '--lang', language, '--template', 'recipes');
      fs.rmSync(path.join(folder, 'test'), { recursive: true });
      fs.mkdirSync(path.join(folder, path.dirname(file)), { recursive: true });
      fs.writeFileSync(path.join(folder, file), shownTest(fence));
      const tested = await run(['test', folder]);
      t.match(tested, { code: 0, out: /pass 3\b|^ok\s+shown\s/m }, tested.out + tested.err);
    },
  );

/** The text of a kit without its comments, so that a word counts that a plugin can write. */
function kit(folder: string): string {
  const files = fs.readdirSync(path.join(root, folder), { recursive: true, encoding: 'utf8' });
  const sources = files.filter(f => /\.(ts|go|rs|h)$/.test(f) && !f.includes('node_modules'));
  const text = sources.map(f => fs.readFileSync(path.join(root, folder, f), 'utf8')).join('\n');
  return text.replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '');
}

t.test('each word of docs/authors.md "Words" is in its kit', async t => {
  const kits = {
    TypeScript: kit('sdk/typescript/kit'),
    Go: kit('sdk/go/kit'),
    AssemblyScript: kit('sdk/assemblyscript/assembly'),
    Rust: kit('sdk/rust/kit'),
    C: kit('sdk/c/kit'),
  };
  const words = (cell: string): string[] => [...cell.matchAll(/`(\w+)`/g)].map(m => m[1] ?? '');
  const holds = (language: keyof typeof kits, names: readonly string[]): void => {
    for (const name of names) t.match(kits[language], new RegExp(`\\b${name}\\b`), `${language}: ${name}`);
  };
  const table = page.slice(page.indexOf('\n## Words\n'));
  const rows = [...table.matchAll(/^\| (`.*) \| (.+) \| (.+) \|$/gm)];
  t.ok(rows.length > 40, `${rows.length} rows`);
  for (const [, same = '', rust = '', c = ''] of rows) {
    const other = new Map([...same.matchAll(/(TypeScript|Go|AssemblyScript): `(\w+)`/g)].map(m => [m[1], m[2] ?? '']));
    const common = words(same.replace(/ \(.*\)/, ''));
    for (const language of ['TypeScript', 'Go', 'AssemblyScript'] as const) {
      const own = other.get(language);
      holds(language, own === undefined ? common : [own]);
    }
    holds('Rust', words(rust));
    holds('C', words(c));
  }
});
