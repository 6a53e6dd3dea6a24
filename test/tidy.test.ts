import fs from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { outlineSources } from './support/source-outline.ts';

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
  ['src/authors'],
  ['src/app'],
  ['src/supervisor', 'src/api', 'src/triggers'],
  ['src/execution', 'src/host'],
  ['src/records', 'src/messaging', 'src/events'],
  ['src/university', 'src/projects'],
  ['src/plugins', 'src/identity', 'src/authz', 'src/files', 'src/kits'],
  ['src/outbox', 'src/frontends'],
  ['src/audit', 'src/jobs.ts', 'src/graph', 'src/secrets'],
  ['src/http'],
  ['src/db'],
  ['src/config'],
  ['src/abi'],
  ['src/base'],
];

/** Rooms of a folder from the entry down, by the same rule. Files of the folder itself stand above its rooms. */
const ROOMS: Record<string, string[][]> = {
  'src/cli': [['verbs'], ['local'], ['remote'], ['print']],
  'src/api': [['document'], ['plugins', 'identity', 'operation', 'messages', 'university'], ['access'], ['contract']],
  'src/supervisor': [['serving'], ['stores'], ['handover'], ['children']],
};

/** Entries of processes. */
const ENTRIES = ['src/main.ts', 'workers/run-start.ts'];

const layerOf = (file: string): number => LAYERS.findIndex(l => l.some(p => file === p || file.startsWith(`${p}/`)));
/** The folder of `src` that a file lies in; a file of `src` itself is a folder of its own. */
const folderOf = (file: string): string => file.split('/', 2).join('/');
/** The room of its folder that a file lies in; empty for a file of the folder itself. */
const roomOf = (file: string): string => path.dirname(file).split('/')[2] ?? '';

/** Whether a file may import another one: of a layer below, or of its own folder, where rooms are ordered as layers are. */
function mayImport(file: string, target: string): boolean {
  const [above, below] = [layerOf(file), layerOf(target)];
  if (above !== below) return above < below;
  if (folderOf(file) !== folderOf(target)) return false;
  const [from, to] = [roomOf(file), roomOf(target)];
  if (from === to) return true;
  const rooms = ROOMS[folderOf(file)];
  // A folder without an order has at most rooms that belong to the whole of it, and do not know each other.
  if (rooms === undefined) return from === '' || to === '';
  const rank = (room: string): number => (room === '' ? 0 : 1 + rooms.findIndex(r => r.includes(room)));
  return rank(from) < rank(to);
}

const resolve = (from: string, to: string): string => path.relative(root, path.resolve(root, path.dirname(from), to));
const ALLOWED: Array<[string, string]> = [
  ['src/supervisor/build-sample.ts', 'sdk/assemblyscript/build.ts'],
  ['src/projects/build-thread.ts', 'sdk/assemblyscript/build.ts'],
  ['src/projects/build-thread.ts', 'sdk/c/build.ts'],
  ['src/projects/build-thread.ts', 'sdk/go/build.ts'],
  ['src/authors/run-tests.ts', 'sdk/go/build.ts'],
  // The advice for names that a plugin does not have is the same at the type check as in the kit.
  ['src/authors/check-types.ts', 'sdk/typescript/kit/missing-names.ts'],
  ['src/projects/build-thread.ts', 'sdk/rust/build.ts'],
  ['src/projects/build-thread.ts', 'sdk/typescript/build.ts'],
  ['src/projects/build-project.ts', 'sdk/pack-frontend.ts'],
  ['src/projects/build-project.ts', 'sdk/source-warnings.ts'],
  ['src/authors/start-thread.ts', 'workers/dump-start.ts'],
  ['src/api/plugins/kits-api.ts', 'sdk/typescript/engine/stored-engine.ts'],
  ['src/cli/remote/remote.ts', 'sdk/client/client.ts'],
];

t.test('imports point one way', async t => {
  for (const { file, imports } of product) {
    if (file.startsWith('workers/')) continue;
    t.ok(layerOf(file) >= 0, `${file} has its place in the house`);
    for (const i of imports.filter(x => x.startsWith('.'))) {
      const target = resolve(file, i);
      if (ALLOWED.some(([from, to]) => file.startsWith(from) && target === to)) continue;
      t.ok(mayImport(file, target), `${file} must not import ${target}`);
    }
  }
});

t.test('an import that points up, or to the side, is found', async t => {
  const rows: Array<[file: string, target: string, may: boolean]> = [
    ['src/api/plugins/plugins-api.ts', 'src/plugins/install.ts', true],
    ['src/plugins/install.ts', 'src/api/plugins/plugins-api.ts', false],
    ['src/plugins/install.ts', 'src/identity/users.ts', false],
    ['src/plugins/install.ts', 'src/plugins/gate/rewrite.ts', true],
    ['src/plugins/gate/rewrite.ts', 'src/plugins/install.ts', true],
    ['src/plugins/gate/rewrite.ts', 'src/plugins/other/file.ts', false],
    ['src/jobs.ts', 'src/audit/audit-log.ts', false],
    ['src/audit/audit-log.ts', 'src/jobs.ts', false],
    ['src/api/document/resources.ts', 'src/api/access/access-body.ts', true],
    ['src/api/access/access-body.ts', 'src/api/document/resources.ts', false],
    ['src/api/identity/users-api.ts', 'src/api/plugins/plugin-json.ts', false],
    ['src/supervisor/supervisor.ts', 'src/supervisor/children/child.ts', true],
    ['src/supervisor/children/child.ts', 'src/supervisor/supervisor.ts', false],
    ['src/supervisor/supervisor.ts', 'src/api/contract/router.ts', false],
  ];
  for (const [file, target, may] of rows) t.equal(mayImport(file, target), may, `${file} -> ${target}`);
  for (const [folder, rooms] of Object.entries(ROOMS)) {
    const there = product.filter(s => folderOf(s.file) === folder && roomOf(s.file) !== '').map(s => roomOf(s.file));
    t.same([...new Set(there)].sort(), rooms.flat().sort(), `the order of ${folder} names each room, and no other`);
  }
});

t.test('tests and benchmarks signal processes by number in one file alone', async t => {
  const senders = sources('test', 'bench')
    .filter(({ text }) => /(?<!\.)process\s*\.\s*kill\(/.test(text))
    .map(({ file }) => file)
    // The second tries what a runner has to survive.
    .filter(file => file !== 'test/run-files.test.ts' && file !== 'test/tidy.test.ts');
  t.same(senders, ['test/support/signals.ts']);
});

/** What changes the file system behind links, and where a supervisor that may be root does it: at paths that no other account makes. */
const FOLLOWS = /\bfs\.(writeFileSync|appendFileSync|copyFileSync|cpSync|chmodSync|chownSync|createWriteStream)\(/g;
const FOLLOWED: Readonly<Record<string, string>> = {
  'src/supervisor/stores/embedded-packages.ts': 'programs of our own packages',
  'src/supervisor/stores/embedded-postgres.ts': 'the folder of the socket, after assertNoForeignLink',
  'src/supervisor/stores/spicedb-bridge.ts': 'a socket in a folder of the supervisor',
  'src/supervisor/children/trusted-folder.ts': 'the folder it has just made',
  'src/supervisor/children/unprivileged.ts': 'the data directory itself',
};

t.test('a supervisor that runs as root writes nothing through a link', async t => {
  for (const { file, text } of sources('src/supervisor'))
    t.same(
      [...text.matchAll(FOLLOWS)].map(m => m[1]).filter(() => FOLLOWED[file] === undefined),
      [],
      file,
    );
});

t.test('no files import each other in a circle', async t => {
  const importsOf = new Map(
    product.map(({ file, imports }) => [
      file,
      imports.filter(i => i.startsWith('.')).map(i => path.normalize(path.join(path.dirname(file), i))),
    ]),
  );
  t.ok(importsOf.size > 200);
  const done = new Set<string>();
  const visit = (file: string, way: readonly string[]): void => {
    if (way.includes(file)) t.fail([...way.slice(way.indexOf(file)), file].join(' -> '));
    if (done.has(file) || way.includes(file)) return;
    for (const next of importsOf.get(file) ?? []) visit(next, [...way, file]);
    done.add(file);
  };
  for (const file of importsOf.keys()) visit(file, []);
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
  const pages = JSON.parse(fs.readFileSync(path.join(root, 'admin/package.json'), 'utf8')) as {
    devDependencies: Record<string, string>;
  };
  const pageSources = fs
    .readdirSync(path.join(root, 'admin'), { recursive: true, encoding: 'utf8' })
    .filter(f => /\.tsx?$/.test(f) && !f.startsWith('node_modules'))
    .map(f => fs.readFileSync(path.join(root, 'admin', f), 'utf8'))
    .join('\n');
  for (const [name, version] of Object.entries(pages.devDependencies)) {
    t.match(version, /^\d+\.\d+\.\d+$/, `${name} is pinned exactly`);
    if (!name.startsWith('@types/')) t.ok(pageSources.includes(`'${name}`), `${name} is used by the pages`);
  }
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
  // The table of a kind of credentials is written by its own file, and by the one that notes their last use and expiry.
  const [text] = product.filter(s => s.file === 'src/identity/bearer-table.ts').map(s => s.text);
  t.same(
    [...(text ?? '').matchAll(/UPDATE \$\{([\w.#]+)\}/g)].map(m => m[1]),
    ['this.#options.name', 'name'],
  );
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
    t.ok(text.split('\n').length <= 500, `${file} has ${text.split('\n').length} lines`);
    if (!ENTRIES.includes(file))
      t.notMatch(text, /process\.(env\b(?!\.PATH)|argv\b)/, `${file} leaves the environment to main.ts`);
    t.notMatch(text, /\b(test|TEST)_?(MODE|HOOK|ONLY)\b/, `${file} has no test hook`);
  }
});

const LINES_MAX = 70;

const LONG_FUNCTIONS: Record<string, string> = {
  'src/app/authz.ts composeAuthz': 'wires the feature; its parts refer to each other',
  'src/app/identity.ts composeIdentity': 'wires the feature; its parts refer to each other',
  'src/app/messengers.ts composeMessengers': 'wires the feature; its parts refer to each other',
  'src/files/storage-disk.ts openDiskStorage': 'returns the functions of one storage, which share its directory',
  'src/files/storage-s3.ts openS3Storage': 'returns the functions of one storage, which share its client',
  'src/host/sql.ts sqlHandlers': 'returns nine host functions that share the session of an execution',
  'src/messaging/telegram.ts telegramChannel': 'returns the functions of one channel, which share its client',
  'src/messaging/vk.ts vkChannel': 'returns the functions of one channel, which share its client',
  'src/university/http-source.ts httpSource': 'returns the functions of one source, which share its client',
  'src/university/json-elements.ts jsonElements':
    'one loop over bytes; calls for each byte would cost half of its speed',
  'workers/host-imports.ts makeHostImports':
    'returns all host functions of a lane, which share its state without a look-up',
};

/** Files that one class or function is the point of, and that are named otherwise, each with the reason. */
const OTHER_NAMES: Record<string, string> = {
  'src/cli/local/authz-commands.ts': 'the folder has one such file for each group of commands',
  'src/api/access/relationship-lookup.ts': 'the one endpoint of relationships with a file of its own',
  'src/files/file-access.ts': 'named after the question its one function answers',
};

/** Names that differ by one letter and are clear all the same. */
const ALIKE = ['src/api/contract/route router', 'src/abi api', 'src/api app'];

/** Whether two words are forms of the same one, like `deliver` and `Deliverer`. */
function isSameWord(a: string, b: string): boolean {
  let n = 0;
  while (n < Math.min(a.length, b.length) && a[n] === b[n]) n++;
  return n >= Math.min(5, a.length, b.length) && n >= Math.min(a.length, b.length) - 3;
}

const wordsOf = (name: string): string[] =>
  name
    .replace(/([a-z0-9])([A-Z])/g, '$1-$2')
    .toLowerCase()
    .split('-');

t.test('functions are short, and files are named after their main export', async t => {
  const outlines = outlineSources(
    root,
    product.map(s => s.file),
  );
  const long: string[] = [];
  for (const [file, { all, classes, functions, types }] of outlines) {
    for (const { lines, name } of all)
      if (lines > LINES_MAX) {
        long.push(`${file} ${name}`);
        t.ok(LONG_FUNCTIONS[`${file} ${name}`], `${file} ${name} has ${lines} lines; at most ${LINES_MAX} are allowed`);
      }
    const main = classes.length === 0 ? functions : classes;
    if (main.length !== 1 || OTHER_NAMES[file] !== undefined) continue;
    // An endpoint file exports its routes.
    const name = path.basename(file, '.ts').replace(/-api$/, '-routes');
    const exported = [...main, ...types].flatMap(wordsOf);
    const strange = wordsOf(name).filter(word => !exported.some(e => isSameWord(e, word)));
    t.same(strange, [], `${file} is named after ${main[0]}`);
  }
  t.same(
    Object.keys(LONG_FUNCTIONS).filter(f => !long.includes(f)),
    [],
    'the list of long functions names no function that is short',
  );
});

t.test('no two files of a folder differ by one letter', async t => {
  const stems = (folder: string): string[] =>
    product.filter(s => path.dirname(s.file) === folder).map(s => path.basename(s.file, '.ts'));
  const oneLetter = (a: string, b: string): boolean => {
    const [short, long] = a.length < b.length ? [a, b] : [b, a];
    if (long.length - short.length > 1) return false;
    let k = 0;
    while (k < short.length && short[k] === long[k]) k++;
    return short.slice(short.length === long.length ? k + 1 : k) === long.slice(k + 1);
  };
  for (const folder of new Set(product.map(s => path.dirname(s.file)))) {
    const names = [
      ...stems(folder),
      ...fs
        .readdirSync(path.join(root, folder), { withFileTypes: true })
        .filter(e => e.isDirectory())
        .map(e => e.name),
    ];
    for (const [k, a] of names.entries())
      for (const b of names.slice(k + 1))
        t.notOk(
          oneLetter(a, b) && !ALIKE.includes(`${folder}/${a} ${b}`) && !ALIKE.includes(`${folder}/${b} ${a}`),
          `${folder}: ${a} and ${b} differ by one letter`,
        );
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
