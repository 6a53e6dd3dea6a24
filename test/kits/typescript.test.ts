import fs from 'node:fs';
import path from 'node:path';
import t, { type Test } from 'tap';
import { buildPlugin } from '../../sdk/typescript/build.ts';
import { storeEngine } from '../../sdk/typescript/engine/stored-engine.ts';
import { ENTRY } from '../../src/abi/shared-layout.ts';
import { AuthorSandbox } from '../../src/authors/author-sandbox.ts';
import { TestHost } from '../../src/authors/test-host.ts';
import { inspectModule } from '../../src/plugins/inspect.ts';
import { type Json, startTestService } from '../support/service.ts';

/** What the build of a TypeScript plugin and a running service say to its author. */

function folder(t: Test, files: Record<string, string>): string {
  const directory = t.testdir(files);
  return path.join(directory, 'index.ts');
}

const plugin = (
  handler: string,
  more = '',
): string => `import { definePlugin, KV, TriggerHTTP } from '@plugin-host/sdk';
${more}
definePlugin({ ID: 'small', Name: 'Small', Version: '1.0.0', Requirements: [], Triggers: [
  { Name: 'go', Type: TriggerHTTP, Path: '/go', Methods: ['GET'], Handler: ${handler} },
] });
`;

/** Sources, and what the build says to them. */
const MISTAKES: Record<string, { files: Record<string, string>; says: RegExp }> = {
  'a mistake of the language': {
    files: { 'index.ts': 'const a = ;\n' },
    says: /^index\.ts:1:11: Unexpected ";"\n {4}const a = ;$/,
  },
  'a file that is not there': {
    files: { 'index.ts': "import './missing.ts';\n" },
    says: /^index\.ts:1:8: Could not resolve "\.\/missing\.ts"/,
  },
  'the kit by another name': {
    files: { 'index.ts': `import { definePlugin } from 'plugin-host';\ndefinePlugin({});\n` },
    says: /^index\.ts:1:\d+: there is no "plugin-host": a plugin imports its kit from "@plugin-host\/sdk"/,
  },
  'a module of Node': {
    files: { 'index.ts': "import fs from 'node:fs';\nfs.readFileSync('a');\n" },
    says: /^index\.ts:1:\d+: "node:fs" is a module of Node; a plugin has the language and the kit, not Node's API; use ctx\.FileRead/,
  },
  'no plugin': {
    files: { 'index.ts': 'export {};\n' },
    says: /^index\.ts: no plugin is defined: call definePlugin\(\{\.\.\.\}\) at its top level$/,
  },
  'two plugins': {
    files: { 'index.ts': `${plugin('() => {}')}definePlugin({ ID: 'b', Name: 'B', Version: '1', Triggers: [] });\n` },
    says: /definePlugin is called twice/,
  },
  'a trigger without a handler': {
    files: { 'index.ts': plugin('undefined as never') },
    says: /the trigger "go" has no Handler/,
  },
  'an error at the top level': {
    files: {
      'index.ts': `import { broken } from './part.ts';\nbroken();\n`,
      'part.ts': `export function broken(): void {\n  throw new Error('too early');\n}\n`,
    },
    says: /^the top level failed: Error: too early\n +at part\.ts:2:\d+\n +at index\.ts:2:1$/,
  },
  'an endless loop at the top level': {
    files: { 'index.ts': `${plugin('() => {}')}spin();\nfunction spin(): void {\n  for (;;) {}\n}\n` },
    says: /^the top level failed: .*endless loop\??\n +at spin \(index\.ts:\d+/,
  },
  'an endless loop before a plugin is defined': {
    files: { 'index.ts': 'spin();\nfunction spin(): void {\n  for (;;) {}\n}\n' },
    says: /^the top level failed: it did not end within 5 s; look for an endless loop\n +at index\.ts:2:/,
  },
  'a host function at the top level': {
    files: {
      'index.ts': `import { Context } from '@plugin-host/sdk';\nnew Context({ kind: 'http' } as never).KVGet('a');\n${plugin('() => {}')}`,
    },
    says: /^the top level failed: HostError: permission denied\n +at index\.ts:2:/,
  },
  "a module of Node without Node's prefix": {
    files: { 'index.ts': `import fs from 'fs';\n${plugin('() => void fs')}` },
    says: /^index\.ts:1:\d+: "fs" is a module of Node; a plugin has the language and the kit/,
  },
  'what needs a browser': {
    files: { 'index.ts': `document.title = 'Menu';\n${plugin('() => {}')}` },
    says: /^the top level failed: ReferenceError: .*document.* \(a plugin does not run in a browser; .*\)\n +at index\.ts:1:/,
  },
  'a top level that waits': {
    files: { 'index.ts': `await null;\n${plugin('() => {}')}` },
    says: /^index\.ts:1:\d+: the top level of a plugin cannot wait: move what waits into a handler/,
  },
  'a name the kit does not have': {
    files: { 'index.ts': `import { Nope } from '@plugin-host/sdk';\n${plugin('() => void Nope')}` },
    says: /^index\.ts:1:\d+: there is no "Nope" in what is imported here/,
  },
  'a package that is not installed': {
    files: { 'index.ts': `import _ from 'no-such-library';\n${plugin('() => void _')}` },
    says: /^index\.ts:1:\d+: Could not resolve "no-such-library": run npm install no-such-library in the folder of the plugin/,
  },
  'a wrong path and an unknown id': {
    files: { 'index.ts': plugin('() => {}').replace("'/go'", "'go'").replace("'small'", "'Small One'") },
    says: /^manifest \/id: .*\ntrigger "go", path: .*; a path like \/profile/,
  },
};

for (const [what, { files, says }] of Object.entries(MISTAKES))
  t.test(`the build names where ${what} is`, async t => {
    await t.rejects(buildPlugin(folder(t, files)), { name: 'BuildError', message: says });
  });

t.test('a package with the name of a module of Node is taken', async t => {
  const entry = folder(t, {
    'index.ts': `import { once } from 'events';\n${plugin('ctx => ctx.JSON(200, once)')}`,
  });
  const library = path.join(path.dirname(entry), 'node_modules/events');
  fs.mkdirSync(library, { recursive: true });
  fs.writeFileSync(path.join(library, 'index.js'), 'export const once = 1;\n');
  fs.writeFileSync(path.join(library, 'package.json'), '{"name":"events","module":"index.js"}');
  t.same((await buildPlugin(entry)).warnings, []);
});

/** A plugin next to a package of npm. */
function withPackage(t: Test, index: string, source: string): string {
  const entry = folder(t, { 'index.ts': index });
  const library = path.join(path.dirname(entry), 'node_modules/library');
  fs.mkdirSync(library, { recursive: true });
  fs.writeFileSync(path.join(library, 'index.js'), source);
  fs.writeFileSync(path.join(library, 'package.json'), '{"name":"library","main":"index.js"}');
  return entry;
}

t.test('a package that asks whether there is a module of Node works without it', async t => {
  const index = `import library from 'library';\n${plugin('ctx => ctx.JSON(200, library())')}`;
  const guarded =
    "let c = 'none';\ntry { c = require('crypto'); } catch (e) { c = e.message; }\nmodule.exports = () => c;\n";
  const { module, warnings } = await buildPlugin(withPackage(t, index, guarded));
  t.same(warnings, []);
  const host = new TestHost(module, {});
  t.teardown(() => host.close());
  t.match((await host.http('GET /go', {})).text, /^"\\"crypto\\" is a module of Node; a plugin has the language/);
});

t.test('of a package with files for Node and for a browser, those for a browser are taken', async t => {
  const index = `import { id } from 'library';\n${plugin('ctx => ctx.JSON(200, id())')}`;
  const entry = withPackage(t, index, "import { randomUUID } from 'node:crypto';\nexport const id = randomUUID;\n");
  const library = path.join(path.dirname(entry), 'node_modules/library');
  fs.writeFileSync(
    path.join(library, 'browser.js'),
    'export const id = () => [process.env.NODE_ENV, crypto.randomUUID().length];\n',
  );
  const exports = { '.': { node: './index.js', browser: './browser.js', default: './index.js' } };
  fs.writeFileSync(path.join(library, 'package.json'), JSON.stringify({ name: 'library', exports }));
  const host = new TestHost((await buildPlugin(entry)).module, {});
  t.teardown(() => host.close());
  t.same((await host.http('GET /go', {})).json, ['production', 36]);
});

t.test('what a package needs of Node is one mistake, with what to do', async t => {
  const needs = ['fs', 'http', 'net', 'https', 'zlib']
    .map(name => `import * as ${name} from 'node:${name}';\n`)
    .join('');
  const entry = withPackage(
    t,
    `import { a } from 'library';\n${plugin('() => void a')}`,
    `${needs}export const a = [fs, http, net, https, zlib];\n`,
  );
  await t.rejects(buildPlugin(entry), {
    message:
      /^the package "library" needs modules of Node \(node:fs, node:http, node:net, node:https, node:zlib\), which a plugin does not have: use .*ctx\.HTTPRequest.*$/,
  });
});

t.test('a call that will be denied, because nothing requires it, is a warning with its place', async t => {
  const handler = `ctx => {\n  // ctx.FileMeta('no call')\n  ctx.KVGet('a');\n  ctx.JSON(200, ctx.HTTPGet('https://uni.example').Body);\n}`;
  const files = { 'index.ts': plugin(handler) };
  t.match((await buildPlugin(folder(t, files))).warnings, [
    /^index\.ts:\d+:6: this call is denied without the requirement KV\(\.\.\.\)$/,
    /^index\.ts:\d+:\d+: this call is denied without the requirement HTTP\(\.\.\.\)$/,
  ]);
  const required = files['index.ts'].replace('Requirements: []', `Requirements: [KV('a').Build(), HTTP('b').Build()]`);
  const imported = required.replace('definePlugin, KV', 'definePlugin, HTTP, KV');
  t.same((await buildPlugin(folder(t, { 'index.ts': imported }))).warnings, []);
});

t.test('a module imports the host functions of its requirements alone', async t => {
  const importsOf = async (requirements: string): Promise<string[]> => {
    const source = plugin('ctx => ctx.JSON(200, 1)').replace('Requirements: []', `Requirements: [${requirements}]`);
    const { module } = await buildPlugin(folder(t, { 'index.ts': source }));
    const { findings, manifest } = inspectModule(module);
    t.same(
      findings.filter(f => f.level !== 'note'),
      [],
      'the gate has nothing against it',
    );
    t.equal(manifest?.id, 'small');
    return WebAssembly.Module.imports(new WebAssembly.Module(new Uint8Array(module)))
      .filter(i => i.module === 'plugin_host' && i.name.startsWith('kv_'))
      .map(i => i.name);
  };
  t.same(await importsOf(''), []);
  t.equal((await importsOf("KV('Counts').Build()")).length, 7);
});

t.test('a top level that asks for time or random numbers is named, and runs in every execution', async t => {
  const source = plugin(
    'ctx => ctx.JSON(200, { at })',
    'const at = [Date.now(), new Date().getTime(), Math.random()];',
  );
  const { module, warnings } = await buildPlugin(folder(t, { 'index.ts': source }));
  t.equal(warnings.length, 3, warnings.join('\n'));
  t.match(warnings[0], /^index\.ts:2:\d+: reads the clock at the top level.*Start: 'once'/);
  const once = source.replace("Version: '1.0.0'", "Version: '1.0.1', Start: 'once'");
  const { module: remembered, warnings: none } = await buildPlugin(folder(t, { 'index.ts': once }));
  t.same(none, []);
  const s = await startTestService();
  t.teardown(() => s.stop());
  const answers = async (): Promise<number> =>
    new Set([(await s.trigger('small/go')).text, (await s.trigger('small/go')).text]).size;
  await s.install(module);
  t.equal(await answers(), 2, 'each execution has its own');
  await s.install(remembered);
  t.equal(await answers(), 1, 'all executions share it');
});

t.test('the start of a plugin without such a top level is remembered', async t => {
  const { module } = await buildPlugin(folder(t, { 'index.ts': plugin('ctx => ctx.JSON(200, 1)') }));
  const s = await startTestService();
  t.teardown(() => s.stop());
  const { uploaded } = await s.install(module);
  t.match(uploaded.findings, [{ rule: 'start', level: 'note', message: /^its start is remembered/ }]);
});

t.test("what goes wrong in a handler stands in the record with the author's lines", async t => {
  const handlers: Record<string, [handler: string, failure: RegExp]> = {
    throws: [
      '() => {\n    null!.x;\n  }',
      /^TypeError: cannot read property 'x' of null\n +at \w+ \(index\.ts:5:\d+\)$/,
    ],
    rejects: ['async () => { await null; throw new RangeError("late"); }', /^RangeError: late\n +at .*index\.ts:4:/],
    forgets: [
      'async () => { Promise.reject(new Error("lost")); await null; }',
      /^a promise was rejected.*Error: lost\n.*index\.ts:4:/,
    ],
    waits: ['() => new Promise<void>(() => {})', /^the handler waits for a promise that nothing will settle$/],
    recurs: [
      '() => { const f = (n: number): number => f(n + 1) + 1; f(0); }',
      /^RangeError: Maximum call stack size exceeded\n +at f \(index\.ts:4:\d+\), \d\d times$/,
    ],
    counts: [
      'ctx => ctx.JSON(200, Number.MAX_SAFE_INTEGER + (2n as never))',
      /^TypeError: .*BigInt.* \(ids, and whole numbers beyond 2\^53 in JSON, are a bigint: .*\)\n.*index\.ts:4:/,
    ],
    text: ['() => { throw "no error"; }', /^no error was thrown$/],
    causes: [
      '() => { throw new Error("outer", { cause: new Error("inner") }); }',
      /^Error: outer\n.*\ncaused by Error: inner\n/,
    ],
  };
  const s = await startTestService();
  t.teardown(() => s.stop());
  for (const [name, [handler, failure]] of Object.entries(handlers)) {
    const { module } = await buildPlugin(folder(t, { 'index.ts': plugin(handler).replace("'small'", `'${name}'`) }));
    await s.install(module);
    t.equal((await s.trigger(`${name}/go`)).status, 502, name);
    const list = await s.admin('GET', `/plugins/${name}/executions?limit=1`);
    t.match(list.json.items, [{ outcome: 'handler_error', failure }], name);
  }
});

t.test('a transaction takes no async function, and takes back what that has done', async t => {
  const handler = `ctx => {
  const db = ctx.Database('default');
  ctx.Log(JSON.stringify(db.Query('SELECT')));
  db.Transaction((async (tx: Transaction) => { tx.Exec('INSERT'); await null; }) as never);
}`;
  const source = plugin(handler, "import { Database, type Transaction } from '@plugin-host/sdk';");
  const requiring = source.replace('Requirements: []', "Requirements: [Database('Rows').Build()]");
  const { module } = await buildPlugin(folder(t, { 'index.ts': requiring }));
  const calls: string[] = [];
  const answers: Record<string, string> = {
    sql_exec: '{"rows_affected":1}',
    sql_query: '{"columns":[{"name":"a","type":"int4"}],"rows":[[1],[2]],"cursor":null}',
  };
  const sandbox = new AuthorSandbox<null>(module, {
    config: {},
    timeoutMs: 5000,
    dispatch({ name }) {
      calls.push(name);
      const data = answers[name];
      return data === undefined ? { code: 1 } : { code: data.length, data };
    },
  });
  t.teardown(() => sandbox.close());
  const http = { method: 'GET', path: '/go', query: {}, query_all: {}, raw_query: '', headers: {}, params: {} };
  const event = JSON.stringify({ kind: 'http', trigger: 'go', request_id: 'r', deadline_ms: 5000, http });
  const { failure, log } = await sandbox.run({ event, body: null, entry: ENTRY.handle, context: null });
  t.match(
    failure,
    /^TypeError: the function of a transaction must not be async: statements need no await\n.*index\.ts:7:/,
  );
  t.same(calls, ['sql_open', 'sql_query', 'sql_begin', 'sql_exec', 'sql_rollback']);
  t.same(log[0]?.text, '[{"a":1},{"a":2}]', 'rows in JSON are a list');
});

t.test(
  'an endless loop ends before the deadline with the function that ran, in a catch and behind a promise',
  async t => {
    const spin = 'function spin(): number {\n  let n = 0;\n  for (;;) n++;\n}';
    const s = await startTestService({ BOT_EXECUTION_TIMEOUT_MS: '2000' });
    t.teardown(() => s.stop());
    const handlers = {
      spins: 'ctx => ctx.JSON(200, spin())',
      catches: 'ctx => { try { spin(); } catch { ctx.JSON(200, 1); } }',
      resumes: 'async ctx => { await null; ctx.JSON(200, spin()); }',
    };
    for (const [name, handler] of Object.entries(handlers)) {
      const source = plugin(handler, spin).replace("'small'", `'${name}'`);
      const { module } = await buildPlugin(folder(t, { 'index.ts': source }));
      await s.install(module);
      // The lane of a loop runs at the lowest priority. On a busy machine it may get no processor time in the last
      // 250 ms, and the host then stops it without a place. Three executions without a place are a failure.
      const failures: string[] = [];
      const named = /time of the execution is used up.*\n +at spin \(index\.ts:\d+:\d+\)/;
      while (failures.length < 3 && !named.test(failures.at(-1) ?? '')) {
        t.equal((await s.trigger(`${name}/go`)).status, 504, name);
        const list = (await s.admin('GET', `/plugins/${name}/executions?limit=1`)).json.items as Json[];
        const [last] = list;
        t.equal(last?.outcome, 'deadline', name);
        failures.push(String(last?.failure));
      }
      t.match(failures.at(-1), named, name);
    }
  },
);

t.test('timers, promises and what programs expect of a language are there', async t => {
  const handler = `async ctx => {
    const order: string[] = [];
    setTimeout(() => order.push('second'), 20);
    setTimeout(() => order.push('first'), 10);
    const off = setTimeout(() => order.push('never'), 5);
    clearTimeout(off);
    await new Promise(resolve => setTimeout(resolve, 30));
    queueMicrotask(() => order.push('third'));
    await null;
    const random = crypto.getRandomValues(new Uint8Array(8));
    console.log('a', 1, { b: 2n }, null);
    console.error(new Error('shown'));
    const wrong = [-1, NaN].map(ttl => { try { ctx.KVSet('k', 'x', ttl); } catch (e) { return String(e); } });
    ctx.JSON(200, {
      order, big: 2n ** 63n, text: new TextDecoder().decode(new TextEncoder().encode('ü😀')),
      uuid: /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(crypto.randomUUID()),
      wrong, random: random.some(b => b !== 0), grouped: Object.groupBy([1, 2, 3], n => n % 2 ? 'odd' : 'even'),
    });
  }`;
  const { module } = await buildPlugin(folder(t, { 'index.ts': plugin(handler) }));
  const s = await startTestService();
  t.teardown(() => s.stop());
  await s.install(module);
  const { text } = await s.trigger('small/go');
  t.equal(
    text,
    '{"order":["first","second","third"],"big":9223372036854775808,"text":"ü😀","uuid":true,' +
      '"wrong":["TypeError: a time to live must be 0 or more, not -1; 0 means no end","TypeError: a time to live must be 0 or more, not NaN; 0 means no end"],' +
      '"random":true,"grouped":{"odd":[1,3],"even":[2]}}',
  );
  const list = await s.admin('GET', '/plugins/small/executions?limit=1');
  const [{ id }] = list.json.items as [{ id: number }];
  const record = await s.admin('GET', `/plugins/small/executions/${id}`);
  t.match(record.json.log, [
    { level: 'info', text: 'a 1 {"b":2} null' },
    { level: 'error', text: /^Error: shown\n +at \w+ \(index\.ts:\d+:\d+\)$/ },
  ]);
});

t.test('an engine that cannot be stored fails no build', t => {
  const directory = t.testdir({ taken: '' });
  storeEngine(path.join(directory, 'taken/engine.wasm'), new Uint8Array([7]));
  storeEngine(path.join(directory, 'new/engine.wasm'), new Uint8Array([7]));
  t.same([...fs.readFileSync(path.join(directory, 'new/engine.wasm'))], [7]);
  t.end();
});
