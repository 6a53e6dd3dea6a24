import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import t, { type Test } from 'tap';
import { compilePlugin } from '../../sdk/assemblyscript/build.ts';
import { ENTRY } from '../../src/abi/shared-layout.ts';
import { AuthorSandbox } from '../../src/authors/author-sandbox.ts';
import { newProject, templatesOf, writeKit } from '../../src/authors/new-project.ts';
import { TestHost } from '../../src/authors/test-host.ts';

/** The AssemblyScript kit (sdk/assemblyscript/README.md): its types in an editor, its mistakes and its traps. */

const ROOT = path.resolve(import.meta.dirname, '../..');
const KIT = path.join(ROOT, 'sdk/assemblyscript');
const CHECKER = path.join(ROOT, 'node_modules/typescript/bin/tsc');

/** A new plugin in a folder above which no package is installed. */
function made(t: Test, template = 'http'): string {
  const above = fs.mkdtempSync(path.join(os.tmpdir(), 'plugin-host-as-'));
  t.teardown(() => fs.rmSync(above, { recursive: true, force: true }));
  const folder = path.join(above, 'tried');
  newProject(folder, 'as', template);
  return folder;
}

/** What TypeScript finds in a folder, as an editor would show it. */
const typeMistakes = (folder: string): string =>
  spawnSync(process.execPath, [CHECKER, '--noEmit', '-p', '.'], { cwd: folder, encoding: 'utf8' }).stdout;

/** A plugin whose entry file is this one. */
function written(t: Test, source: string): string {
  const folder = made(t);
  fs.writeFileSync(path.join(folder, 'index.ts'), source);
  return folder;
}

const build = (folder: string) => compilePlugin(path.join(folder, 'index.ts'));

async function hostOf(t: Test, source: string): Promise<TestHost> {
  const host = new TestHost((await build(written(t, source))).module, {});
  t.teardown(() => host.close());
  return host;
}

const plugin = (
  handlers: string,
  top = '',
): string => `import { Context, Json, list, obj, Plugin } from "@plugin-host/sdk";
${top}
Plugin("tried", "Tried", "1.0.0")
  .HTTP("run", "/run", ["POST"], run)
  .Function("twice", twice);
function twice(ctx: Context): void { ctx.Output(obj().num("twice", ctx.Call.Value.integer * 2)); }
${handlers}`;

const READER = `import { Context, Database, Plugin, list, obj } from "@plugin-host/sdk";
Plugin("reader", "Reader", "1.0.0").Requires(Database("Reads").Build()).HTTP("run", "/run", ["GET"], run);
function run(ctx: Context): void {
  const rows = ctx.Database("default").value!.Query("SELECT a, b FROM t");
  const found = list();
  for (let row = rows.next(); row !== null; row = rows.next()) found.add(row.get("b"));
  ctx.JSON(200, obj().list("rows", found));
}
`;

t.test('rows of the database are all read, however deep a value in them is nested', async t => {
  const { module } = await build(written(t, READER));
  const deep = `${'[{"a":'.repeat(500)}"}]"${'}]'.repeat(500)}`;
  const rows = `[[${deep},"first"],[null ,"] second"],[-1.5e3,"third"],[true,"fourth"]]`;
  const data = `{"columns":[{"name":"a","type":"jsonb"},{"name":"b","type":"text"}],"rows":${rows},"cursor":null}`;
  const sandbox = new AuthorSandbox<null>(module, {
    config: {},
    timeoutMs: 5000,
    dispatch: ({ name }) => (name === 'sql_query' ? { code: Buffer.byteLength(data), data } : { code: 1 }),
  });
  t.teardown(() => sandbox.close());
  const http = { method: 'GET', path: '/run', query: {}, query_all: {}, raw_query: '', headers: {}, params: {} };
  const event = JSON.stringify({ kind: 'http', trigger: 'run', request_id: 'r', deadline_ms: 5000, http });
  const outcome = await sandbox.run({ event, body: null, entry: ENTRY.handle, context: null });
  t.equal(Buffer.from(outcome.body).toString(), '{"rows":["first","] second","third","fourth"]}', outcome.failure);
});

t.test('an editor finds nothing wrong with a new plugin, the kit, the samples', t => {
  for (const template of templatesOf('as')) t.equal(typeMistakes(made(t, template)), '', template);
  const folder = made(t);
  fs.copyFileSync(path.join(KIT, 'conformance/index.ts'), path.join(folder, 'conformance.ts'));
  for (const sample of fs.readdirSync(path.join(KIT, 'examples')))
    fs.copyFileSync(path.join(KIT, 'examples', sample, 'index.ts'), path.join(folder, `${sample}.ts`));
  t.equal(typeMistakes(folder), '');
  fs.appendFileSync(path.join(folder, 'index.ts'), 'const wrong: string = obj();\n');
  t.match(typeMistakes(folder), /^index\.ts\(\d+,7\): error TS2322/, 'a mistake is one');
  fs.rmSync(path.join(folder, 'kit/std'), { recursive: true });
  writeKit('as', folder);
  t.ok(fs.existsSync(path.join(folder, 'kit/std/assembly/index.d.ts')), 'what is missing in kit/ is written again');
  t.end();
});

t.test('each mistake has its file, line and column', async t => {
  const mistakes: Array<[source: string, says: RegExp]> = [
    [
      plugin('function run(ctx: Context): void { nothing(); }'),
      /^index\.ts:7:36: TS2304: Cannot find name 'nothing'\.\n/,
    ],
    [plugin('function run(ctx: Context): void { ctx.JSON(200, 1'), /^index\.ts:7:\d+: TS1005: /],
    [
      plugin('function run(ctx: Context): void { const n: i32 = ctx.HTTP.JSON().i64("n"); }'),
      /^index\.ts:7:51: AS200: Conversion from type 'i64'/,
    ],
    [
      plugin('function run(ctx: Context): void { ctx.JSON(200, "x"); }'),
      /^index\.ts:7:50: TS2322: Type 'String' is not assignable to type 'JSONValue'\.\n/,
    ],
    [plugin('', 'import { gone } from "./gone";'), /gone\.ts/],
    [plugin('', 'import * as fs from "fs";'), /'~lib\/fs\.ts' not found\. \(a plugin has .* not Node's API\)/],
    [plugin('function run(ctx: Context): void { fetch("x"); }'), /'fetch'\. \(a plugin has no network of its own; use/],
    [plugin('async function run(ctx: Context): void {}'), /\(AssemblyScript has no async: /],
    [plugin('function run(ctx: Context): void { const x = ctx ?? null; }'), /\(AssemblyScript has no \?\? and/],
    [plugin('function run(ctx: Context): void { for (const a of [1]) {} }'), /\(AssemblyScript has no for \.\.\. of: /],
    [
      plugin('function run(ctx: Context): void { let n = 1; const f = (): i32 => n; f(); }'),
      /Closures \(pass what it needs as an argument/,
    ],
    ['export function run(): void {}', /call Plugin\(id, name, version\)/],
    [
      plugin('function run(ctx: Context): void {}', 'const a = [1]; a[7];'),
      /Index out of range .*\n +at index\.ts:2:\d+/,
    ],
    [
      plugin('function run(ctx: Context): void {}', 'let zero = 0; zero = 1 / zero;'),
      /divide by zero\n +at index\.ts:2:\d+/,
    ],
    [plugin('function run(ctx: Context): void {}', 'throw new Error("no");'), /no \(index\.ts:2:1\)/],
    [
      plugin('function run(ctx: Context): void { alert(); }', 'declare function alert(): void;'),
      /^the plugin uses "alert" of "index", which no host of plugins has: .* through the kit alone$/,
    ],
  ];
  for (const [source, says] of mistakes) await t.rejects(build(written(t, source)), { message: says }, source);
});

t.test('a failure names the message, the place and the functions', async t => {
  const host = await hostOf(
    t,
    plugin(`
class Node { constructor(public next: Node | null) {} }
function run(ctx: Context): void {
  const how = ctx.HTTP.Body;
  if (how == "throw") throw new Error("because of " + how);
  if (how == "assert") assert(how.length == 0, "it is not empty");
  if (how == "index") ctx.Log(priceOf(how.length).toString());
  if (how == "null") ctx.Log(nextOf(new Node(null)).toString());
  if (how == "zero") ctx.Log(divide(how.length - 4).toString());
  if (how == "deep") ctx.Log(deep(0).toString());
  if (how == "memory") ctx.Log(load<i32>(0x7fffffff).toString());
  if (how == "column") ctx.Fail("said");
}
function priceOf(k: i32): i32 { const prices = [1, 2]; return prices[k]; }
function nextOf(node: Node): bool { return node.next!.next === null; }
function divide(n: i32): i32 { return 100 / n; }
function deep(n: i32): i32 { return n < 0 ? 0 : deep(n + 1) + deep(n + 2); }
`),
  );
  const expected: Array<[how: string, says: RegExp, line: number]> = [
    ['throw', /^because of throw \(index\.ts:11:23\)\nunreachable\n/, 11],
    ['assert', /^it is not empty \(index\.ts:12:24\)\nunreachable\n/, 12],
    ['index', /^Index out of range \(~lib\/array\.ts:\d+:\d+\)\nunreachable\n/, 20],
    ['null', /^Unexpected 'null' .*\(index\.ts:21:\d+\)\nunreachable\n/, 21],
    ['zero', /^divide by zero\n/, 22],
    ['deep', /^Maximum call stack size exceeded\n/, 23],
    ['memory', /^memory access out of bounds\n/, 17],
  ];
  for (const [how, says, line] of expected) {
    const { failure, outcome } = await host.http('POST /run', { body: how });
    t.equal(outcome, 'trapped', how);
    t.match(failure, says, how);
    const frames = failure.split('\n').filter(text => text.startsWith('    at '));
    t.match(frames[0], new RegExp(`^ {4}at index/\\w+ \\(index\\.ts:${line}\\)$`), how);
  }
  t.match(await host.http('POST /run', { body: 'column' }), { outcome: 'handler_error', failure: 'said' });
});

t.test('the language has its console, clocks and random numbers', async t => {
  const host = await hostOf(
    t,
    plugin(`
function run(ctx: Context): void {
  console.log("logged");
  console.debug("debugged");
  console.warn("warned");
  console.error("failed");
  trace("traced", 2, 1, 2.5);
  const random = new Uint8Array(16);
  crypto.getRandomValues(random);
  const began = performance.now();
  ctx.JSON(200, obj().num("now", Date.now()).str("day", new Date(0).toISOString()).num("utc", Date.UTC(1970, 0, 2))
    .float("random", Math.random()).bool("later", performance.now() >= began).str("bytes", random.join(",")));
}`),
  );
  const { json, logs } = await host.http('POST /run');
  const seen = json as { now: number; random: number; bytes: string };
  t.ok(Math.abs(seen.now - Date.now()) < 60_000);
  t.match(seen, { day: '1970-01-01T00:00:00.000Z', utc: 86_400_000, later: true });
  const again = (await host.http('POST /run')).json as typeof seen;
  t.notSame([seen.random, seen.bytes], [again.random, again.bytes]);
  t.same(
    logs.map(l => `${l.level} ${l.text}`),
    ['info logged', 'debug debugged', 'warn warned', 'error failed', 'debug traced 1.0, 2.5'],
  );
});

t.test('a body that is no UTF-8 has a mark for each wrong byte, and everything else of it', async t => {
  const host = await hostOf(
    t,
    plugin('function run(ctx: Context): void { ctx.JSON(200, obj().str("text", ctx.HTTP.Body)); }'),
  );
  const cases: Array<[bytes: number[], text: string]> = [
    [[0xff, 0xfe, 0x41], '\ufffd\ufffdA'],
    [[0x41, 0xd0], 'A\ufffd'],
    [[0xd0, 0x96, 0xe2, 0x82, 0xac, 0xf0, 0x9f, 0x98, 0x80], 'Ж€😀'],
    [[0xc0, 0x80, 0xed, 0xa0, 0x80, 0xf5, 0x41], `${'\ufffd'.repeat(6)}A`],
    [[], ''],
  ];
  for (const [bytes, text] of cases)
    t.same((await host.http('POST /run', { body: new Uint8Array(bytes) })).json, { text }, String(bytes));
});

t.test('JSON keeps what it was given', async t => {
  const host = await hostOf(
    t,
    plugin(`
function run(ctx: Context): void {
  const given = ctx.HTTP.JSON();
  if (given.isAbsent) return ctx.JSON(400, list());
  const again = obj().str("text", given.str("text")).num("n", given.i64("n")).float("f", given.f64("f")).json("all", given.get("all"));
  again.finish();
  ctx.JSON(200, again.list("more", list().add(given.get("all")).bool(true).nul().float(NaN)).nul("none"));
}`),
  );
  // Escapes are read in one pass: memory is not freed.
  const text = 'line\n"\u{1f600}\\\u0001'.repeat(50_000);
  const body = { text, n: -7, f: 0.25, all: [{ a: null }, 'ü', 1e21] };
  const { json, failure } = await host.http('POST /run', { body });
  t.same(json, { text, n: -7, f: 0.25, all: body.all, more: [body.all, true, null, null], none: null }, failure);
  const escaped = await host.http('POST /run', { body: '{"text":"\\ud83d\\ude00\\u0416\\/\\ud800","all":-0.5e+3}' });
  t.match(escaped.json, { text: '\u{1f600}Ж/\ufffd', all: -500 });
  const strings = ['"\\q"', '"\\u12G4"', '"\\u12"', '{"a\\x":1}', '"a\nb"'];
  for (const wrong of ['', '{', '[1,]', '01', '1.', '-', '1e', '{"a":1}x', 'nul', '+1', '.5', '1-2', ...strings])
    t.equal((await host.http('POST /run', { body: wrong })).status, 400, wrong);
  const integers: Array<[written: string, read: string]> = [
    ['9223372036854775807', '9223372036854775807'],
    ['-9223372036854775808', '-9223372036854775808'],
    ['1e3', '1000'],
    ['-2.0', '-2'],
    ...['9223372036854775808', '-9223372036854775809', '99999999999999999999', '1e19', '1.9', '"7"'].map(
      (text): [string, string] => [text, '0'],
    ),
  ];
  for (const [number, read] of integers)
    t.match((await host.http('POST /run', { body: `{"n":${number}}` })).text, `"n":${read},`, number);
  t.match(await host.call('twice', 21), { outcome: 'ok', value: { twice: 42 } });
});

t.test('the answer of another plugin is written into a buffer that holds it', async t => {
  const source = `import { Context, Obj, obj, Plugin, PluginDep } from "@plugin-host/sdk";
Plugin("tried", "Tried", "1.0.0").Requires(PluginDep("menu", "Asks").Build()).HTTP("ask", "/ask", ["GET"], ask);
function ask(ctx: Context): void {
  const room = new ArrayBuffer(12);
  const length = ctx.CallPluginInto("menu", "today", obj(), room);
  if (length < 0) return ctx.Fail(ctx.LastError());
  ctx.JSON(200, obj().str("answer", String.UTF8.decode(room.slice(0, length))));
}`;
  const { module } = await build(written(t, source));
  for (const [soup, expected] of Object.entries({
    x: { status: 200, json: { answer: '{"soup":"x"}' } },
    xx: { status: 502, failure: /^the answer has 13 bytes, the buffer 12/ },
  })) {
    const host = new TestHost(module, { plugins: { menu: { today: () => ({ soup }) } } });
    t.match(await host.http('GET /ask'), expected);
    await host.close();
  }
});

t.test('an author chooses the file, options of the compiler and packages', async t => {
  const folder = written(t, '');
  const config = path.join(folder, 'plugin-host.json');
  fs.writeFileSync(config, '{"lang":"as","entry":"src/index.ts"}');
  fs.mkdirSync(path.join(folder, 'src'));
  fs.mkdirSync(path.join(folder, 'node_modules/triple'), { recursive: true });
  fs.writeFileSync(
    path.join(folder, 'node_modules/triple/index.ts'),
    'export function triple(n: i32): i32 { return n * 3; }',
  );
  fs.writeFileSync(
    path.join(folder, 'asconfig.json'),
    JSON.stringify({ extends: './kit/asconfig.json', options: { use: ['LIMIT=7'] } }),
  );
  const entry = path.join(folder, 'src/index.ts');
  const source = plugin(
    'function run(ctx: Context): void { ctx.JSON(200, list().num(triple(LIMIT)).num(ASC_OPTIMIZE_LEVEL).num(ASC_RUNTIME)); }',
    'import { triple } from "triple";',
  );
  fs.writeFileSync(entry, source);
  const host = new TestHost((await compilePlugin(entry)).module, {});
  t.teardown(() => host.close());
  t.same((await host.http('POST /run')).json, [21, 3, 0]);
  fs.writeFileSync(entry, source.replace('triple(LIMIT)', 'triple(NONE)'));
  await t.rejects(compilePlugin(entry), { message: /^src\/index\.ts:7:\d+: TS2304: / });
  const small = { extends: './kit/asconfig.json', options: { optimizeLevel: 0, use: ['LIMIT=7'] } };
  fs.writeFileSync(path.join(folder, 'asconfig.json'), JSON.stringify(small));
  fs.writeFileSync(entry, source);
  const slow = new TestHost((await compilePlugin(entry)).module, {});
  t.teardown(() => slow.close());
  t.same((await slow.http('POST /run')).json, [21, 0, 0]);
});

const IMPORT_ALL = `import { ${[
  ...fs.readFileSync(path.join(KIT, 'assembly/index.ts'), 'utf8').matchAll(/export \{([^}]+)\}/g),
]
  .flatMap(([, names = '']) => names.split(','))
  .map(name => name.trim())
  .filter(name => name !== '')
  .join(', ')} } from "@plugin-host/sdk";\n`;

const REQUIRES = [
  ...['KV("")', 'Database("")', 'HTTP("")', 'NotifyReq("")', 'EventsReq("")', 'PluginDep("menu", "")', 'File("")'],
]
  .map(requirement => `.Requires(${requirement.replace('""', '"Shown"')}.Build())`)
  .join('');

/** A plugin of the code a page shows: functions stand at the top, everything else is done in a handler. */
function pluginOf(code: string): string {
  if (code.startsWith('import ')) return code;
  const functions = [...code.matchAll(/^function (\w+)[\s\S]*?^\}$/gm)];
  const rest = functions.reduce((text, [whole]) => text.replace(whole, ''), code);
  if (rest.startsWith('Plugin(')) {
    const handlers = ['dishes', 'menu', 'today'].map(name => `function ${name}(ctx: Context): void {}\n`);
    return `${IMPORT_ALL}${rest}\n${handlers.join('')}`;
  }
  const known = 'auth: HTTPAuthInfo, page: string, name: string, url: string, chatID: string, picture: ArrayBuffer';
  return `${IMPORT_ALL}
Plugin("page", "Page", "1.0.0")${REQUIRES}.HTTP("run", "/run", ["GET"], run)${functions.map(([, name]) => `.Function("${name}", ${name})`).join('')};
function run(ctx: Context): void { shown(ctx, ctx.HTTP.Auth!, "", "", "", "", new ArrayBuffer(0), new ArrayBuffer(0)); }
function shown(ctx: Context, ${known}, bytes: ArrayBuffer): void { if (page.length == 0) {\n${rest}\n} }
${functions.map(([whole]) => whole).join('\n')}`;
}

t.test('the code that the page of the kit shows builds, and an editor finds nothing wrong with it', async t => {
  const page = fs.readFileSync(path.join(KIT, 'README.md'), 'utf8');
  const shown = [...page.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, code = '']) => pluginOf(code));
  t.ok(shown.length > 10, `${shown.length} pieces of code`);
  const folder = made(t);
  for (const [k, source] of shown.entries()) {
    fs.writeFileSync(path.join(folder, `shown-${k}.ts`), source);
    const { warnings } = await compilePlugin(path.join(folder, `shown-${k}.ts`));
    t.same(warnings, [], source);
  }
  t.equal(typeMistakes(folder), '');
});

t.test('the command builds without a folder of its own', t => {
  const directory = t.testdir({});
  const out = path.join(directory, 'hello.wasm');
  const said = execFileSync(
    process.execPath,
    [path.join(KIT, 'build.ts'), path.join(KIT, 'examples/hello/index.ts'), out],
    {
      encoding: 'utf8',
    },
  );
  t.equal(said, `${out}: ${fs.statSync(out).size} bytes\n`);
  t.end();
});
