import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { withCustomSection } from '../../src/abi/custom-section.ts';
import { ABI_NEWEST } from '../../src/abi/host-functions.ts';
import { CONTROL } from '../../src/abi/host-memory.ts';
import { leb } from '../../src/abi/leb.ts';
import type { Finding } from '../../src/plugins/finding.ts';
import { GateRefusal } from '../../src/plugins/gate/reader.ts';
import { inspectModule } from '../../src/plugins/inspect.ts';
import { trialCompile } from '../../src/plugins/trial-compile.ts';
import { buildExample } from '../support/sdk.ts';
import { startTestService } from '../support/service.ts';
import { assemble, hostImports, manifestOf, respondText, watPlugin, withManifest } from '../support/wat.ts';

const SOURCES = path.resolve(import.meta.dirname, 'sources');
const GOOD = '(memory (export "memory") 1) (func (export "plugin_handle") (result i32) (i32.const 0))';

const refusals = (bytes: Uint8Array): Finding[] => inspectModule(bytes).findings.filter(f => f.level === 'refusal');
const plugin = (wat: string): Uint8Array => withManifest(assemble(`(module ${wat})`, false), manifestOf({}));

/** A module from raw sections: what no assembler would write. */
function raw(sections: Array<[number, number[]]>): Uint8Array {
  return Uint8Array.from([
    0,
    0x61,
    0x73,
    0x6d,
    1,
    0,
    0,
    0,
    ...sections.flatMap(([id, body]) => [id, ...leb(body.length), ...body]),
  ]);
}

async function modules(): Promise<Array<[string, Uint8Array]>> {
  const out: Array<[string, Uint8Array]> = [
    ['AssemblyScript hello', await buildExample('hello')],
    ['AssemblyScript guestbook', await buildExample('guestbook')],
    ['C', fs.readFileSync(path.join(SOURCES, 'echo-c.wasm'))],
    ['Rust', fs.readFileSync(path.join(SOURCES, 'echo-rust.wasm'))],
  ];
  const go = ['/usr/local/go/bin/go', '/usr/bin/go', '/usr/lib/go/bin/go'].find(f => fs.existsSync(f));
  if (go !== undefined) {
    const target = path.join(process.env.TEST_DIRECTORY ?? '/tmp', `echo-go-${process.pid}.wasm`);
    execFileSync(go, ['build', '-buildmode=c-shared', '-o', target, 'echo.go'], {
      cwd: SOURCES,
      env: { ...process.env, GOOS: 'wasip1', GOARCH: 'wasm', GOTOOLCHAIN: 'local' },
    });
    out.push(['Go', fs.readFileSync(target)]);
  }
  return out;
}

t.test('the gate accepts what the toolchains produce, and the modules run', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  for (const [name, bytes] of await modules()) {
    t.same(refusals(bytes), [], name);
    const { id } = await s.install(bytes, name.includes('guestbook') ? { moderator_key: 'k' } : {});
    if (!id.endsWith('_echo')) continue;
    const a = await s.trigger(`${id}/echo`, { method: 'POST', body: 'привет' });
    t.equal(`${a.status} ${a.text} ${a.headers.get('x-lang')}`, `200 привет ${id.replace('_echo', '')}`);
    const { json } = await s.admin('GET', `/plugins/${id}/executions`);
    const [first] = json.items as Array<{ id: number }>;
    const record = await s.admin('GET', `/plugins/${id}/executions/${first?.id}`);
    t.match(record.json.log, [{ level: 'info', text: 'echo of 12 bytes' }], 'standard output becomes log lines');
  }
});

t.test('the gate refuses each dangerous module with its rule and a reason', async t => {
  const many = (n: number, text: string): string => Array.from({ length: n }, () => text).join(' ');
  const killers: Array<[string, string, Uint8Array]> = [
    ['a table of 8 million entries', 'table-size', plugin(`(table 8000000 funcref) ${GOOD}`)],
    [
      '100,000 tables',
      'too-many',
      raw([
        [1, [0]],
        [4, [...leb(100_000), ...Array.from({ length: 100_000 }, () => [0x70, 0, 0]).flat()]],
      ]),
    ],
    [
      '50,000 locals',
      'locals',
      plugin(
        `(memory (export "memory") 1) (func (export "plugin_handle") (result i32) (local ${many(50_000, 'i64')}) (i32.const 0))`,
      ),
    ],
    [
      'locals times ifs',
      'compile-memory',
      plugin(
        `(memory (export "memory") 1) (func (export "plugin_handle") (result i32) (local ${many(9000, 'i64')}) ${many(1000, '(if (i32.const 1) (then))')} (i32.const 0))`,
      ),
    ],
    [
      'blocks nested 20,000 deep',
      'nesting',
      raw([
        [1, [1, 0x60, 0, 0]],
        [3, [1, 0]],
        [
          10,
          [
            1,
            ...leb(60_003),
            0,
            ...Array.from({ length: 20_000 }, () => [0x02, 0x40]).flat(),
            ...Array.from({ length: 20_001 }, () => 0x0b),
            0,
          ],
        ],
      ]),
    ],
    ['a garbage-collected struct', 'gc-type', raw([[1, [1, 0x5f, 1, 0x7f, 0]]])],
    ['a garbage-collected array', 'gc-type', raw([[1, [1, 0x5e, 0x78, 1]]])],
    ['a recursive type group', 'gc-type', raw([[1, [1, 0x4e, 1, 0x60, 0, 0]]])],
    [
      '20,000 custom sections',
      'too-many',
      Buffer.concat([plugin(GOOD), Buffer.from(Array.from({ length: 20_000 }, () => [0, 2, 1, 0x61]).flat())]),
    ],
    ['a 64-bit memory', 'memory64', raw([[5, [1, 4, 1]]])],
    ['two memories', 'multi-memory', raw([[5, [2, 0, 1, 0, 1]]])],
    ['a shared memory', 'shared-memory', raw([[5, [1, 3, 1, 2]]])],
    [
      'an imported memory',
      'import-kind',
      plugin('(import "env" "memory" (memory 1)) (func (export "plugin_handle") (result i32) (i32.const 0))'),
    ],
    ['an imported table', 'import-kind', plugin(`(import "env" "t" (table 1 funcref)) ${GOOD}`)],
    ['an imported global', 'import-kind', plugin(`(import "env" "g" (global i32)) ${GOOD}`)],
    [
      'an initial memory of 8193 pages',
      'memory-initial',
      plugin('(memory (export "memory") 8193) (func (export "plugin_handle") (result i32) (i32.const 0))'),
    ],
    ['no memory', 'no-memory', plugin('(func (export "plugin_handle") (result i32) (i32.const 0))')],
    [
      'a hidden memory',
      'memory-not-exported',
      plugin('(memory 1) (func (export "plugin_handle") (result i32) (i32.const 0))'),
    ],
    ['no entry', 'no-entry', plugin('(memory (export "memory") 1)')],
    [
      'an entry of another type',
      'entry-signature',
      plugin('(memory (export "memory") 1) (func (export "plugin_handle"))'),
    ],
    [
      'an _initialize with a result',
      'entry-signature',
      plugin(`(func (export "_initialize") (result i32) (i32.const 1)) ${GOOD}`),
    ],
    ['a command', 'command', plugin(`(func (export "_start")) ${GOOD}`)],
    ['an unknown module', 'import-unknown', plugin(`(import "env" "abort" (func (param i32))) ${GOOD}`)],
    ['an unknown host function', 'import-unknown', plugin(`(import "plugin_host" "shell" (func (param i32))) ${GOOD}`)],
    ['an unknown WASI function', 'import-unknown', plugin(`(import "wasi_snapshot_preview1" "fork" (func)) ${GOOD}`)],
    [
      'a host function of another type',
      'import-signature',
      plugin(`(import "plugin_host" "kv_get" (func (param i64) (result i32))) ${GOOD}`),
    ],
    [
      'a WASI function of another type',
      'import-signature',
      plugin(`(import "wasi_snapshot_preview1" "proc_exit" (func (param i64))) ${GOOD}`),
    ],
    [
      'atomic instructions',
      'threads',
      raw([
        [1, [1, 0x60, 0, 0]],
        [3, [1, 0]],
        [10, [1, 5, 0, 0xfe, 3, 0, 0x0b]],
      ]),
    ],
    ['no manifest', 'manifest', assemble(`(module ${GOOD})`)],
    ['two manifests', 'manifest', withManifest(plugin(GOOD), manifestOf({}))],
    ['a manifest that is not JSON', 'manifest', withManifest(assemble(`(module ${GOOD})`), undefined)],
    ['a newer protocol', 'manifest', withManifest(assemble(`(module ${GOOD})`), manifestOf({ abi: ABI_NEWEST + 1 }))],
    ['a text file', 'not-wasm', Buffer.from('hello')],
    ['an empty file', 'not-wasm', new Uint8Array(0)],
    ['a component', 'not-core-module', Uint8Array.from([0, 0x61, 0x73, 0x6d, 0x0d, 0, 1, 0])],
    ['a module cut short', 'truncated', plugin(GOOD).subarray(0, 40)],
  ];
  for (const [name, rule, bytes] of killers) {
    const found = refusals(bytes);
    t.ok(
      found.some(f => f.rule === rule),
      `${name}: ${rule}, found ${JSON.stringify(found)}`,
    );
    for (const f of found) t.ok(f.message.length > 10, 'the reason is a sentence');
  }
});

t.test('a file that is no module is named as what it is', t => {
  const says = (bytes: Uint8Array): string => refusals(bytes)[0]?.message ?? '';
  t.match(says(new Uint8Array(0)), /not a WebAssembly file: it is empty$/);
  t.match(says(Buffer.from('PK\x03\x04 and more')), /it is a ZIP file; the pages of a plugin go along as a file/);
  t.match(says(Buffer.from('<!doctype html>')), /it does not start with \\0asm$/);
  t.end();
});

t.test('what a manifest has and the host does not know is a finding, with what was probably meant', async t => {
  const trigger = { name: 'run', type: 'http', path: '/run', methods: ['GET'], polcy: 'true' };
  const command = {
    name: 'menu',
    type: 'messenger',
    access: { users: true, reason: 'x' },
    path: '/menu',
    constructor: 1,
  };
  const field = { name: 'key', secret: true, sensitve: true };
  const manifest = {
    ...manifestOf({ triggers: [trigger, command], requirements: [{ kind: 'kv', cofig: [], config: [field] }] }),
    $schema: 'kit/schema/manifest.json',
    trigers: [],
  };
  const bytes = withManifest(assemble(`(module ${GOOD})`), manifest);
  const found = inspectModule(bytes).findings.filter(f => f.rule === 'unknown-member');
  t.same(
    found.map(f => `${f.level}: ${f.where}: ${f.message}`),
    [
      'warning: manifest /requirements/0/cofig: "cofig" is unknown and has no effect; did you mean "config"?',
      'warning: manifest /requirements/0/config/0/secret: "secret" is unknown and has no effect',
      'warning: manifest /requirements/0/config/0/sensitve: "sensitve" is unknown and has no effect; did you mean "sensitive"?',
      'warning: manifest /triggers/0/polcy: "polcy" is unknown and has no effect',
      'warning: manifest /triggers/1/access: a command suggests no access: an administrator decides by roles and a policy who may use it',
      'warning: manifest /triggers/1/path: a command has no path: its name is the word that users write',
      'warning: manifest /triggers/1/constructor: "constructor" is unknown and has no effect',
      'warning: manifest /trigers: "trigers" is unknown and has no effect; did you mean "triggers"?',
    ],
  );
  const many = Object.fromEntries(Array.from({ length: 1000 }, (_, k) => [`member${k}`, k]));
  const full = inspectModule(withManifest(assemble(`(module ${GOOD})`), { ...manifestOf({}), ...many })).findings;
  t.equal(full.filter(f => f.rule === 'unknown-member').length, 20, 'as many as a person reads');
});

t.test('a refused manifest says what stands at the wrong place, and what would be right', async t => {
  const trigger = { name: 'run', type: 'http', path: '/run', methods: ['GET'] };
  const wrong: Array<[object, string]> = [
    [
      { id: 'Menu!' },
      'manifest /id: "Menu!": must have lower-case letters, digits, _ and -, at most 64, and begin with a letter or digit',
    ],
    [{ version: 2 }, 'manifest /version: 2: must be a string'],
    [{ version: '' }, 'manifest /version: "": must not be empty'],
    [{ version: null }, 'manifest /version: null: must be a string'],
    [{ name: undefined }, 'manifest /name: is missing; it must be a string'],
    [
      { start: 'twice' },
      'manifest /start: "twice": leave it out, or write "once": the start then runs at the upload alone',
    ],
    [{ triggers: {} }, 'manifest /triggers: must be a list'],
    [{ triggers: [{ ...trigger, type: 'Http' }] }, 'manifest /triggers/0/type: "Http": must be "http" or "messenger"'],
    [
      { triggers: [{ ...trigger, path: 'run' }] },
      'manifest /triggers/0/path: "run" does not begin with /; a path like /profile or /items/:id',
    ],
    [
      { triggers: [{ ...trigger, name: 'r'.repeat(200) }] },
      `manifest /triggers/0/name: "${'r'.repeat(100)}…": letters, digits, _ . and - only, at most 64`,
    ],
  ];
  const access = { users: true, reason: 'x' };
  wrong.push(
    [
      { triggers: [{ ...trigger, access: { ...access, user: true } }] },
      'manifest /triggers/0/access/user: is not a field known here',
    ],
    [
      { triggers: [{ ...trigger, access: { ...access, users: false } }] },
      'manifest /triggers/0/access/users: name who may call: users, service_keys or public',
    ],
  );
  for (const [members, expected] of wrong)
    t.same(
      refusals(withManifest(assemble(`(module ${GOOD})`), { ...manifestOf({}), ...members })).map(
        f => `${f.where}: ${f.message}`,
      ),
      [expected],
    );
});

t.test('a host function newer than the declared protocol is refused by name, an older protocol is served', async t => {
  const file = (abi: number): Uint8Array =>
    withManifest(assemble(`(module ${hostImports('file_read_into')} ${GOOD})`), manifestOf({ abi }));
  t.match(refusals(file(3)), [
    { rule: 'import-newer', where: 'import plugin_host.file_read_into', message: /since protocol version 4/ },
  ]);
  t.same(refusals(file(4)), []);
  for (const name of ['kv_get_many', 'kv_update', 'kv_increment']) {
    const atomic = (abi: number): Uint8Array =>
      withManifest(assemble(`(module ${hostImports(name)} ${GOOD})`), manifestOf({ abi }));
    t.match(refusals(atomic(4)), [
      { rule: 'import-newer', where: `import plugin_host.${name}`, message: /since protocol version 5/ },
    ]);
    t.same(refusals(atomic(5)), []);
  }
  const s = await startTestService();
  t.teardown(() => s.stop());
  for (const abi of [1, 2, 3, 4, 5]) {
    await s.install(
      watPlugin({
        id: `v${abi}`,
        abi,
        imports: ['respond'],
        body: '(data (i32.const 64) "ok")',
        handle: `${respondText(64, 2)} (i32.const 0)`,
      }),
    );
    t.equal((await s.trigger(`v${abi}/run`)).text, 'ok');
  }
  const unstated = manifestOf({ id: 'unstated' });
  delete unstated.abi;
  const answer = await s.upload(withManifest(assemble(`(module ${GOOD})`), unstated));
  t.match(answer.json, { id: 'unstated', abi: 3 }, 'a manifest without abi counts as protocol 3');
});

t.test('a table cannot grow beyond its cap and the process lives', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  await s.install(
    watPlugin({
      id: 'grower',
      imports: ['respond'],
      body: '(table $t 1 funcref)',
      handle: `(block $end (loop $l (br_if $end (i32.eq (table.grow $t (ref.null func) (i32.const 1000)) (i32.const -1))) (br $l)))
        (i32.store (i32.const 64) (table.size $t)) ${respondText(64, 4)} (i32.const 0)`,
    }),
  );
  const r = await fetch(`${s.base}/api/triggers/http/grower/run`);
  t.equal(r.status, 200);
  t.ok(Buffer.from(await r.arrayBuffer()).readUInt32LE(0) <= 100_000);
});

t.test('a huge function name cannot fill the heap of the thread that prints the stack of a trap', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  const recursive = watPlugin({ id: 'name_bomb', body: '(func $f (call $f))', handle: '(call $f) (i32.const 0)' });
  // A name section (core specification 7.4.1) that gives $f a name of 20 MB.
  const length = 20_000_000;
  const map = [1, 0, ...leb(length)];
  const content = Buffer.concat([Uint8Array.from([1, ...leb(map.length + length), ...map]), Buffer.alloc(length, 'x')]);
  await s.install(withCustomSection(recursive, 'name', content));
  t.equal((await s.trigger('name_bomb/run')).status, 502, 'a trap like any other');
  t.equal((await s.trigger('name_bomb/run')).status, 502, 'and the service lives');
});

t.test(
  "a module that the compiler refuses is refused with the compiler's message, and the trial has a memory limit",
  async t => {
    const file = path.join(t.testdir({}), 'bad.wasm');
    // Passes the gate, which is no validator: an i64 where an i32 is wanted.
    fs.writeFileSync(file, assemble('(module (func (result i32) (i64.const 0)))', false));
    t.match(await trialCompile(file, file), /type error|expected i32/i);
    fs.writeFileSync(file, assemble('(module (func))'));
    t.equal(await trialCompile(file, file), null);
  },
);

/** A module with one memory whose `plugin_handle` is the given instructions. */
const withBody = (...code: number[]): Uint8Array =>
  withManifest(
    raw([
      [1, [1, 0x60, 0, 1, 0x7f]],
      [3, [1, 0]],
      [5, [1, 0, 1]],
      [7, [2, ...leb(6), ...Buffer.from('memory'), 2, 0, ...leb(13), ...Buffer.from('plugin_handle'), 0, 0]],
      [10, [1, ...leb(code.length + 4), 0, ...code, 0x41, 0, 0x0b]],
    ]),
    manifestOf({}),
  );

t.test("no guest instruction reaches the host's control memory, which is memory 1 of the rewritten module", async t => {
  const names: Array<[string, number[]]> = [
    ['i32.load', [0x41, 0, 0x28, 0x42, 1, 0, 0x1a]],
    ['i32.store', [0x41, 0, 0x41, 1, 0x36, 0x42, 1, 0]],
    ['i64.store32 with a padded alignment', [0x41, 0, 0x42, 1, 0x3e, 0xc2, 0, 1, 0]],
    ['memory.size', [0x3f, 1, 0x1a]],
    ['memory.grow', [0x41, 0, 0x40, 1, 0x1a]],
    ['memory.fill', [0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 11, 1]],
    ['memory.copy to it', [0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 10, 1, 0]],
    ['memory.copy from it', [0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 10, 0, 1]],
    ['v128.load', [0x41, 0, 0xfd, 0, 0x40, 1, 0, 0x1a]],
    ['v128.load8_lane', [0x41, 0, 0xfd, 12, ...Array.from({ length: 16 }, () => 0), 0xfd, 84, 0x40, 1, 0, 0, 0x1a]],
  ];
  const file = path.join(t.testdir({}), 'named.wasm');
  for (const [name, code] of names) {
    const bytes = withBody(...code);
    t.match(refusals(bytes), [{ rule: 'multi-memory' }], name);
    // Should the gate ever miss one: the compiler validates the upload, in which that memory does not exist.
    fs.writeFileSync(file, bytes);
    t.match(await trialCompile(file, file), /memory index 1/i, `${name}, to the compiler`);
  }
  t.same(refusals(withBody(0x3f, 0, 0x1a)), [], 'the same module on its own memory passes');
});

t.test(
  'a rewritten module exports nothing, and making an instance runs start, `_initialize` and the entry in this order',
  t => {
    const order = (extra: string): number[] => {
      const seen: number[] = [];
      const { rewritten } = inspectModule(
        plugin(`${hostImports('log')} (memory (export "memory") 1)
        (func $say (param i32) (drop (call $log (local.get 0) (i32.const 0) (i32.const 0))))
        (func $start (call $say (i32.const 1))) (func $init (call $say (i32.const 2)))
        (func (export "plugin_handle") (result i32) (call $say (i32.const 3)) (i32.const -7)) ${extra}`),
      );
      if (rewritten === null) throw new Error('refused');
      const module = new WebAssembly.Module(Uint8Array.from(rewritten.bytes));
      t.same(WebAssembly.Module.exports(module), []);
      const ctl = new WebAssembly.Memory({ initial: 1, maximum: 1 });
      const words = new Int32Array(ctl.buffer);
      const log = (level: number): number => seen.push(level * 10 + (words[CONTROL.entered] ?? 9));
      const mem = new WebAssembly.Memory({ initial: 1, maximum: 8192 });
      new WebAssembly.Instance(module, { plugin_host: { log }, $host: { mem, ctl } });
      t.equal(words[CONTROL.code], -7);
      return seen;
    };
    t.same(order(''), [31]);
    t.same(order('(start $start)'), [10, 31]);
    t.same(order('(export "_initialize" (func $init))'), [20, 31]);
    t.same(order('(export "_initialize" (func $init)) (start $start)'), [10, 20, 31]);
    t.end();
  },
);

t.test('an entry that is itself an imported function, in a module without functions of its own', t => {
  const { findings, rewritten } = inspectModule(
    plugin(`${hostImports('body_len')} (memory (export "memory") 1) (export "plugin_handle" (func $body_len))`),
  );
  t.same(findings, []);
  t.ok(rewritten !== null && WebAssembly.validate(Uint8Array.from(rewritten.bytes)));
  t.end();
});

t.test('as many memory.size as a function may hold are rewritten', t => {
  const sites = Array.from({ length: 60_000 }, () => '(drop (memory.size))').join(' ');
  const { findings, rewritten } = inspectModule(
    plugin(
      `(memory (export "memory") 1) (func ${sites}) (func (export "plugin_handle") (result i32) (memory.grow (memory.size)))`,
    ),
  );
  t.same(findings, []);
  t.ok(rewritten !== null && WebAssembly.validate(Uint8Array.from(rewritten.bytes)));
  t.end();
});

t.test('what only an export declares may still be named by ref.func after the exports are gone', t => {
  const memory = '(memory (export "memory") 1)';
  const rows = [
    `${memory} (func $h (export "plugin_handle") (result i32) (drop (ref.func $h)) (i32.const 0))`,
    `${memory} (func $f (export "other")) (func (export "plugin_handle") (result i32) (drop (ref.func $f)) (i32.const 0))`,
    `${memory} (table 2 funcref) (func $f (export "other")) (func $g) (elem (i32.const 0) $g) (func (export "plugin_handle") (result i32) (drop (ref.func $f)) (i32.const 0))`,
  ];
  for (const wat of rows) {
    const { findings, rewritten } = inspectModule(plugin(wat));
    t.same(findings, []);
    t.ok(rewritten !== null && WebAssembly.validate(Uint8Array.from(rewritten.bytes)), wat);
  }
  t.end();
});

t.test('empty function and code sections are filled, not repeated', t => {
  const exported = [2, ...leb(6), ...Buffer.from('memory'), 2, 0, ...leb(13), ...Buffer.from('plugin_handle'), 0, 0];
  const imported = [1, ...leb(11), ...Buffer.from('plugin_host'), ...leb(8), ...Buffer.from('body_len'), 0, 0];
  const empty: Array<[number, number[]]> = [
    [3, [0]],
    [10, [0]],
  ];
  for (const [functions, code] of [
    [true, true],
    [true, false],
    [false, true],
    [false, false],
  ]) {
    const sections: Array<[number, number[]]> = [
      [1, [1, 0x60, 0, 1, 0x7f]],
      [2, imported],
      [5, [1, 0, 1]],
      [7, exported],
    ];
    if (functions === true) sections.splice(2, 0, empty[0]!);
    if (code === true) sections.push(empty[1]!);
    const { findings, rewritten } = inspectModule(withManifest(raw(sections), manifestOf({})));
    t.same(findings, []);
    t.ok(rewritten !== null && WebAssembly.validate(Uint8Array.from(rewritten.bytes)), `${functions} ${code}`);
  }
  t.end();
});

t.test('mutants of real modules never get past the caps and never raise an unclassified error', async t => {
  const seed = Math.floor(Math.random() * 2 ** 31);
  t.comment(`seed ${seed}`);
  let state = seed;
  const next = (n: number): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state % n;
  };
  const originals = [await buildExample('hello'), fs.readFileSync(path.join(SOURCES, 'echo-c.wasm'))];
  let accepted = 0;
  for (let k = 0; k < 4000; k++) {
    const original = originals[k % 2]!;
    const bytes = Uint8Array.from(original);
    // Mostly the small sections at the front, where the limits stand.
    for (let m = 0; m <= next(3); m++) bytes[next(3) === 0 ? next(bytes.length) : next(400)] = next(256);
    try {
      const { rewritten } = inspectModule(bytes);
      if (rewritten === null) continue;
      accepted++;
      let module: WebAssembly.Module;
      try {
        module = new WebAssembly.Module(Uint8Array.from(rewritten.bytes));
      } catch (error) {
        t.ok(error instanceof WebAssembly.CompileError, 'only the compiler may refuse it now');
        continue;
      }
      const memories = WebAssembly.Module.imports(module).filter(i => i.kind !== 'function');
      if (memories.map(m => m.name).join() !== 'mem,ctl') t.fail(`mutant ${k} imports ${JSON.stringify(memories)}`);
      if (WebAssembly.Module.exports(module).length > 0) t.fail(`mutant ${k} exports something`);
    } catch (error) {
      if (!(error instanceof GateRefusal)) t.fail(`mutant ${k}: ${String(error)}`);
    }
  }
  t.ok(accepted > 100, `${accepted} mutants passed the gate`);
});
