import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { compilationHints } from '../../src/abi/compilation-hints.ts';
import { leb } from '../../src/abi/leb.ts';
import { openDatabase } from '../../src/db/database.ts';
import type { Finding } from '../../src/plugins/finding.ts';
import { GATE } from '../../src/plugins/gate/gate-limits.ts';
import { readModule } from '../../src/plugins/gate/module.ts';
import { rewriteModule } from '../../src/plugins/gate/rewrite.ts';
import { inspectModule } from '../../src/plugins/inspect.ts';
import { WASM_FLAGS } from '../../src/plugins/limited-child.ts';
import { trialCompile } from '../../src/plugins/trial-compile.ts';
import { expensiveModule, SHAPES, seeded } from '../support/expensive-modules.ts';
import { measureCompile } from '../support/measure-compile.ts';
import { buildExample } from '../support/sdk.ts';
import { startTestService } from '../support/service.ts';
import { assemble, manifestOf, respondText, watPlugin, withManifest } from '../support/wat.ts';

const SOURCES = path.resolve(import.meta.dirname, 'sources');
const GOOD = '(memory (export "memory") 1) (func (export "plugin_handle") (result i32) (i32.const 0))';
const many = (n: number, text: string): string => Array.from({ length: n }, () => text).join(' ');
const plugin = (wat: string): Uint8Array => withManifest(assemble(`(module ${wat})`, false), manifestOf({}));
const refusals = (bytes: Uint8Array): Finding[] => inspectModule(bytes).findings.filter(f => f.level === 'refusal');

/** So many values on the stack, and so many ifs over them: the second function of its module. */
const tall = (values: number, ifs: number): Uint8Array =>
  plugin(
    `${GOOD} (func ${many(values, '(i32.const 1)')} ${many(ifs, '(if (i32.const 1) (then))')} ${many(values, 'drop')})`,
  );

t.test(
  'a refusal for 10,000 values on the stack and 3,500 ifs names the function, the place, the count and the limit',
  t => {
    const bytes = tall(10_000, 3500);
    t.ok(bytes.length < 60_000, 'little to send');
    const [found] = refusals(bytes);
    t.equal(found?.rule, 'compile-memory');
    const { message = '', where = '' } = found ?? {};
    t.match(
      message,
      /^function 1 at byte \d+ would take about \d+ MB to compile; at most 96 MB are allowed\. Counted: \d+ locals and stack values, added up over 10501 control instructions/,
    );
    const at = Number(/at byte (\d+)/.exec(message)?.[1]);
    t.equal(where, `byte ${at}`);
    t.equal(bytes[at + 1], 0x41, 'the byte is that of its body: no locals, then the first constant');
    t.same(refusals(tall(10_000, 10)), [], 'the stack alone is not refused');
    t.same(refusals(tall(10, 3500)), [], 'nor are the ifs alone');
    t.end();
  },
);

t.test('every count of the cost model alone can refuse a module', t => {
  const params = (n: number): string => `(param ${many(n, 'i32')})`;
  const results = (n: number): string => `(result ${many(n, 'i32')})`;
  const rows: Array<[string, string, Uint8Array]> = [
    [
      'locals at branches',
      'compile-memory',
      plugin(`${GOOD} (func (local ${many(9000, 'i64')}) ${many(400, '(if (i32.const 1) (then))')})`),
    ],
    [
      'parameters at branches',
      'compile-memory',
      plugin(`${GOOD} (func ${params(1000)} ${many(4000, '(if (i32.const 1) (then))')})`),
    ],
    [
      'block parameters',
      'compile-memory',
      plugin(
        `${GOOD} (type $t (func ${params(900)} ${results(900)})) (func ${many(900, '(i32.const 1)')} ${many(5000, '(block (type $t))')} ${many(900, 'drop')})`,
      ),
    ],
    [
      'values that calls pass on',
      'compile-memory',
      plugin(
        `${GOOD} (func $f ${params(900)} ${results(900)} unreachable) (func ${many(900, '(i32.const 1)')} ${many(4000, '(call $f)')} ${many(900, 'drop')})`,
      ),
    ],
    [
      'branches of a br_table',
      'compile-memory',
      plugin(
        `${GOOD} (func (local ${many(9000, 'i64')}) ${many(60, 'block')} ${many(20, `block i32.const 0 br_table ${Array.from({ length: 60 }, (_, k) => k).join(' ')} end`)} ${many(60, 'end')})`,
      ),
    ],
    [
      'calls inside try',
      'compile-memory',
      plugin(`${GOOD} (func $f) (func (local ${many(5000, 'i64')}) try ${many(1000, 'call $f')} catch_all end)`),
    ],
    [
      'arithmetic over a tall stack',
      'compile-time',
      plugin(
        `${GOOD} (func (local i32 i32) ${many(9000, '(i32.const 1)')} ${many(100_000, '(local.set 0 (i32.add (local.get 0) (local.get 1)))')} ${many(9000, 'drop')})`,
      ),
    ],
    [
      'parameters of many functions',
      'compile-time',
      expensiveModule(seeded(4), 80_000, 'many small functions with many parameters').bytes,
    ],
  ];
  for (const [name, rule, bytes] of rows)
    t.match(refusals(bytes), [{ rule, message: /at most \d+ (MB|ms) are allowed\. Counted: \d+/ }], name);
  t.end();
});

t.test('unreachable code is not compiled and costs only its bytes', t => {
  const dead = plugin(`${GOOD} (func (local ${many(9000, 'i64')}) unreachable ${many(2000, 'i32.const 1 if end')})`);
  t.same(refusals(dead), []);
  t.end();
});

t.test('an integer in code that is longer than its type allows is refused', t => {
  const section = (id: number, body: number[]): number[] => [id, ...leb(body.length), ...body];
  const withCode = (code: number[]): Uint8Array =>
    Uint8Array.from([
      ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
      ...[...section(1, [1, 0x60, 0, 0]), ...section(3, [1, 0])],
      ...section(10, [1, ...leb(code.length + 2), 0, ...code, 0x0b]),
    ]);
  const padded = (bytes: number): number[] => [...Array.from({ length: bytes - 1 }, () => 0x80), 0];
  const rows: Array<[string, number, (integer: number[]) => number[]]> = [
    ['i32.const', 5, integer => [0x41, ...integer, 0x1a]],
    ['i64.const', 10, integer => [0x42, ...integer, 0x1a]],
    ['an index', 5, integer => [0x20, ...integer, 0x1a]],
    ['an offset', 5, integer => [0x41, 0, 0x28, 2, ...integer, 0x1a]],
  ];
  for (const [name, bytesMax, code] of rows) {
    t.equal(readModule(withCode(code(padded(bytesMax)))).bodies.length, 1, name);
    const message = `an integer is longer than ${bytesMax} bytes`;
    t.throws(() => readModule(withCode(code(padded(bytesMax + 1)))), { rule: 'malformed', message }, name);
  }
  t.end();
});

t.test('a br_table counts each block that it names once', t => {
  const controlOf = (labels: string): number | undefined =>
    readModule(assemble(`(module (func (local i32) block block i32.const 0 br_table ${labels} end end))`)).bodies[0]
      ?.control;
  t.equal(controlOf('0 0 0 1 1'), controlOf('0 1'));
  t.equal((controlOf('0 1') ?? 0) - (controlOf('0 0') ?? 0), 1);
  t.end();
});

t.test('what the toolchains produce stays far below the bounds, and small plugins are optimized whole', async t => {
  const modules: Array<[string, Uint8Array]> = [
    ['AssemblyScript', await buildExample('filebox')],
    ['C', fs.readFileSync(path.join(SOURCES, 'echo-c.wasm'))],
    ['Rust', fs.readFileSync(path.join(SOURCES, 'echo-rust.wasm'))],
  ];
  for (const [name, bytes] of modules) {
    const { bodies, optimized } = readModule(bytes);
    t.ok(optimized.every(Boolean), `${name}: all of ${bodies.length} functions`);
    const carried = Math.max(...bodies.map(b => b.carried));
    t.ok(carried * 12 * 20 < GATE.compileFunctionBytes, `${name}: ${carried} values at its control instructions`);
  }
});

t.test('the trial names the limit a module breaks: memory that is really used, or processor time', async t => {
  const file = path.join(t.testdir({}), 'big.wasm');
  // Both passed by the gate's reader on purpose; the trial is the wall behind it.
  fs.writeFileSync(
    file,
    Buffer.concat([
      assemble(
        `(module (func ${many(10_000, '(i32.const 1)')} ${many(3500, '(if (i32.const 1) (then))')} ${many(10_000, 'drop')}))`,
      ),
    ]),
  );
  t.match(await trialCompile(file, file), /more than 1024 MiB of memory/);
  const { bytes } = expensiveModule(seeded(2), 3_000_000, 'loops in loops around much code');
  const outline = readModule(bytes);
  const runnable = path.join(path.dirname(file), 'slow.wasm');
  fs.writeFileSync(file, bytes);
  fs.writeFileSync(runnable, rewriteModule(bytes, outline, 'plugin_handle', null).bytes);
  t.equal(await trialCompile(file, runnable), null, 'left to the baseline compiler, as the gate has chosen');
  fs.writeFileSync(
    runnable,
    rewriteModule(bytes, { ...outline, optimized: outline.optimized.map(() => true) }, 'plugin_handle', null).bytes,
  );
  t.match(await trialCompile(file, runnable), /more than 2 s of processor time/);
});

t.test('each function is compiled before the module runs, by the compiler the gate chose, and never again', t => {
  const text = (s: string): number[] => [...leb(s.length), ...Buffer.from(s)];
  // Two functions that count to their parameter in a loop.
  const count = [0, 0x03, 0x40, 0x20, 0, 0x41, 1, 0x6b, 0x22, 0, 0x0d, 0, 0x0b, 0x0b];
  const section = (id: number, body: number[]): number[] => [id, ...leb(body.length), ...body];
  const bytes = Uint8Array.from([
    ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, [1, 0x60, 1, 0x7f, 0]),
    ...section(3, [2, 0, 0]),
    ...section(7, [2, ...text('baseline'), 0, 0, ...text('optimized'), 0, 1]),
    ...section(0, compilationHints([false, true])),
    ...section(10, [2, count.length, ...count, count.length, ...count]),
  ]);
  const script = `
    const module = new WebAssembly.Module(Buffer.from('${Buffer.from(bytes).toString('base64')}', 'base64'));
    const { baseline, optimized } = new WebAssembly.Instance(module).exports;
    const seen = () => [%IsLiftoffFunction(baseline), %IsTurboFanFunction(optimized)];
    const before = seen();
    for (let k = 0; k < 20; k++) { baseline(50_000_000); optimized(50_000_000); }
    setTimeout(() => console.log(JSON.stringify([before, seen()])), 200);`;
  const out = execFileSync(process.execPath, [...WASM_FLAGS, '--allow-natives-syntax', '-e', script], {
    encoding: 'utf8',
  });
  t.same(JSON.parse(out), [
    [true, true],
    [true, true],
  ]);
  t.end();
});

t.test('modules made to be expensive: whatever the gate accepts compiles in bounded memory and time', async t => {
  const seed = Math.floor(Math.random() * 2 ** 31);
  t.comment(`seed ${seed}`);
  const next = seeded(seed);
  let accepted = 0;
  for (const shape of Object.keys(SHAPES)) {
    const { bytes } = expensiveModule(next, 20_000 + next(150_000), shape);
    const { rewritten } = inspectModule(bytes);
    if (rewritten === null) continue;
    accepted++;
    const measured = await measureCompile(rewritten.bytes);
    if (typeof measured === 'string') t.fail(`seed ${seed}, ${shape}: ${measured}`);
    else t.ok(measured.memoryMb < 768, `${shape}: ${measured.memoryMb.toFixed(0)} MB for ${bytes.length} bytes`);
  }
  t.ok(accepted >= 5, `${accepted} of ${Object.keys(SHAPES).length} accepted`);
});

t.test(
  'a stored module that an older gate accepted and this one refuses is not run, and the answer says why',
  async t => {
    const s = await startTestService();
    t.teardown(() => s.stop());
    const ok = (id: string): Uint8Array =>
      watPlugin({
        id,
        imports: ['respond'],
        body: '(data (i32.const 64) "ok")',
        handle: `${respondText(64, 2)} (i32.const 0)`,
      });
    const { wasmKey } = await s.install(ok('dear'));
    await s.install(ok('cheap'));
    const db = openDatabase(s.databaseUrl, 1, () => {});
    t.teardown(() => db.close());
    // As a host before this gate had left it: too expensive, rewritten its way.
    const dear = Buffer.from(tall(10_000, 3500));
    const modules = path.join(s.directory, 'modules');
    fs.writeFileSync(path.join(modules, `${wasmKey}.wasm`), dear);
    await db.query(`UPDATE plugin_versions SET runnable = runnable || '{"format": 3}'`);
    await db.query('UPDATE plugin_versions SET sha256 = $2 WHERE wasm_key = $1', [
      wasmKey,
      createHash('sha256').update(dear).digest('hex'),
    ]);
    const newer = await startTestService({}, s);
    t.teardown(() => newer.stop());
    t.equal((await newer.trigger('cheap/run')).text, 'ok', 'what is let through is brought up to date');
    t.match(await newer.trigger('dear/run'), { status: 500, json: { detail: 'the plugin could not be loaded' } });
    const why = /function 1 at byte \d+ would take about \d+ MB to compile; at most 96 MB are allowed/;
    const record = await newer.admin('GET', '/plugins/dear/executions');
    t.match(record.json, { items: [{ outcome: 'load_failed', failure: why }] });
    t.match((await newer.admin('GET', '/plugins/dear')).json, { findings: [{ level: 'refusal', message: why }] });
    const install = await newer.admin('POST', '/plugins/dear/install', { wasm_key: wasmKey, config: {} });
    t.match(install, { status: 422, json: { code: 'module_refused', detail: why } });
    await newer.service.installer.upgrade(version => t.fail(`${version.pluginId} is looked at again`));
  },
);
