import fs from 'node:fs';
import path from 'node:path';
import t from 'tap';

/** The rules of the house (docs/ARCHITECTURE.md), kept by a test. */
const root = path.resolve(import.meta.dirname, '..');

type Source = { file: string; text: string; imports: string[] };

function sources(...directories: string[]): Source[] {
  return directories
    .flatMap(d => fs.readdirSync(path.join(root, d), { recursive: true, encoding: 'utf8' }).map(f => `${d}/${f}`))
    .filter(f => f.endsWith('.ts') && !f.includes('node_modules/'))
    .sort()
    .map(file => {
      const text = fs.readFileSync(path.join(root, file), 'utf8');
      const imports = [...text.matchAll(/(?:from|import\()\s*'([^']+)'/g)].map(m => m[1] ?? '');
      return { file, text, imports };
    });
}

const product = sources('src', 'workers');

/** Layers from the entry down; an import may only go down, or stay within its folder. */
const LAYERS = [
  ['src/main.ts'],
  ['src/cli'],
  ['src/app'],
  ['src/supervisor', 'src/api', 'src/triggers'],
  ['src/execution', 'src/host'],
  ['src/records', 'src/messaging', 'src/events'],
  ['src/university'],
  ['src/plugins', 'src/identity', 'src/authz', 'src/files'],
  ['src/outbox', 'src/frontends'],
  ['src/audit', 'src/jobs.ts', 'src/graph'],
  ['src/http'],
  ['src/db'],
  ['src/config'],
  ['src/abi'],
  ['src/base'],
];

const layerOf = (file: string): number => LAYERS.findIndex(l => l.some(p => file === p || file.startsWith(`${p}/`)));
const resolve = (from: string, to: string): string => path.relative(root, path.resolve(root, path.dirname(from), to));
const ALLOWED: Array<[string, string]> = [['src/supervisor/build-sample.ts', 'sdk/assemblyscript/build.ts']];

t.test('imports point one way', async t => {
  for (const { file, imports } of product) {
    if (file.startsWith('workers/')) continue;
    t.ok(layerOf(file) >= 0, `${file} has its place in the house`);
    for (const i of imports.filter(x => x.startsWith('.'))) {
      const target = resolve(file, i);
      if (ALLOWED.some(([from, to]) => file.startsWith(from) && target === to)) continue;
      const [from, to] = [layerOf(file), layerOf(target)];
      const sameFolder =
        path.dirname(file) === path.dirname(target) ||
        path.dirname(target).startsWith(`${path.dirname(file)}/`) ||
        path.dirname(file).startsWith(`${path.dirname(target)}/`);
      t.ok(
        from < to || (from === to && sameFolder && path.dirname(file) !== 'src'),
        `${file} must not import ${target}`,
      );
    }
  }
});

t.test('the sandbox holds no authority: workers import only abi and limits', async t => {
  for (const { file, imports } of sources('workers'))
    for (const i of imports) {
      const target = i.startsWith('.') ? resolve(file, i) : i;
      t.ok(/^(node:|workers\/|src\/abi\/|src\/base\/limits\.ts$)/.test(target), `${file} imports ${target}`);
    }
});

t.test('each npm package is imported by one file', async t => {
  const users = new Map<string, string[]>();
  for (const { file, imports } of product)
    for (const i of new Set(imports.filter(x => !x.startsWith('.') && !x.startsWith('node:'))))
      users.set(i, [...(users.get(i) ?? []), file]);
  // zod is the vocabulary of parsing, wherever something unknown comes in.
  users.delete('zod');
  // The server's types appear where an exchange is made from them; pg's client type where one is held; nodes of a
  // policy where they are walked.
  const types: Record<string, string[]> = {
    'uWebSockets.js': [
      'src/http/connections.ts',
      'src/http/exchange.ts',
      'src/http/peer-address.ts',
      'src/http/request-body.ts',
    ],
    pg: ['src/db/notifications.ts', 'src/db/held-lock.ts'],
    '@marcbachmann/cel-js': ['src/authz/policy-ast.ts'],
  };
  for (const [name, files] of users)
    t.equal(files.filter(f => !types[name]?.includes(f)).length, 1, `${name} is imported by ${files.join(', ')}`);
});

t.test('every dependency is used', async t => {
  const manifest = JSON.parse(fs.readFileSync(path.join(root, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>;
    optionalDependencies: Record<string, string>;
    devDependencies: Record<string, string>;
  };
  const all =
    [...product, ...sources('test', 'sdk')].map(s => s.text).join('\n') +
    fs
      .readFileSync(path.join(root, 'package.json'), 'utf8')
      .replace(/"(dev|optional)?[dD]ependencies": \{[^}]*\}/g, '');
  const tools: Record<string, string> = { node: '"node ', typescript: 'tsc', '@biomejs/biome': 'biome' };
  for (const [name, version] of Object.entries({
    ...manifest.dependencies,
    ...manifest.optionalDependencies,
    ...manifest.devDependencies,
  })) {
    t.match(version, /^(npm:[\w-]+@)?\d+\.\d+\.\d+[\w.-]*$/, `${name} is pinned exactly`);
    const wanted = name.startsWith('@types/') ? null : (tools[name] ?? name);
    if (wanted !== null) t.ok(all.includes(wanted), `${name} is used`);
  }
});

t.test('each table is written by one file, and the API holds no SQL', async t => {
  const writers = new Map<string, Set<string>>();
  for (const { file, text } of product) {
    for (const m of text.matchAll(/\b(?:INSERT INTO|UPDATE|DELETE FROM)\s+([a-z_]{4,})/g))
      writers.set(m[1] ?? '', new Set([...(writers.get(m[1] ?? '') ?? []), file]));
    if (file.startsWith('src/api/'))
      t.notMatch(text, /\b(SELECT|INSERT|UPDATE|DELETE)\b .*\b(FROM|INTO|SET)\b/, `${file} holds no SQL`);
  }
  t.ok(writers.size >= 5);
  for (const [table, files] of writers) t.equal(files.size, 1, `${table} is written by ${[...files].join(', ')}`);
});

t.test('names, sizes and habits', async t => {
  for (const { file, text } of [...product, ...sources('test', 'bench')]) {
    t.match(path.basename(file), /^[a-z0-9]+(-[a-z0-9]+)*(\.test|\.d)?\.ts$/, `${file} is kebab-case`);
    t.notMatch(
      path.basename(file),
      /manager|helper|util|common|^index\.ts$/i,
      `${file} has a name that says what it is`,
    );
    t.notMatch(text, /^\s*(export )?(const )?enum |\benum [A-Z]\w* \{/m, `${file} has no enum`);
    t.notMatch(text, new RegExp(`${'@ts-'}(ignore|nocheck|expect-error)`), `${file} does not silence the type check`);
  }
  for (const { file, text } of product) {
    t.ok(text.split('\n').length <= 370, `${file} has ${text.split('\n').length} lines`);
    if (file !== 'src/main.ts')
      t.notMatch(text, /process\.(env\b(?!\.PATH)|argv\b)/, `${file} leaves the environment to main.ts`);
    t.notMatch(text, /\b(test|TEST)_?(MODE|HOOK|ONLY)\b/, `${file} has no test hook`);
  }
});

t.test('migrations are numbered without a gap', async t => {
  const numbers = fs
    .readdirSync(path.join(root, 'sql'))
    .filter(f => f.endsWith('.sql'))
    .sort()
    .map(f => Number(f.slice(0, 3)));
  t.same(
    numbers,
    numbers.map((_, k) => k + 1),
  );
});

t.test('limits stand in the relations the service counts on', async t => {
  const { assertLimits } = await import('../src/base/limits.ts');
  t.doesNotThrow(() => assertLimits());
});
