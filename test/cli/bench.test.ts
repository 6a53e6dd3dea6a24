import fs from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { runCommand } from '../support/commands.ts';
import { startTestService } from '../support/service.ts';
import { okPlugin, watPlugin } from '../support/wat.ts';

/** `plugin-host bench`: figures are not compared, because the machine may do anything meanwhile. */

const QUICK = ['--seconds', '0.3', '--connections', '4'];
const directory = fs.mkdtempSync(path.join(process.env.TEST_DIRECTORY ?? '/tmp', 'bench-'));
t.teardown(() => fs.rmSync(directory, { recursive: true, force: true }));

type Kept = Record<'saturated' | 'at_rate' | 'one_connection', Record<string, unknown>>;

const SHOWN = new RegExp(
  [
    /^counting 1\.0\.0: POST \/api\/triggers\/http\/counting\/run\?a=1/,
    /first call after the installation: [\d.]+ ms/,
    /LOAD +RATE +P50 +P95 +P99 +FAILED +GENERATOR/,
    /one connection +[\d.]+\/s .*/,
    /4 connections +[\d.]+\/s .*/,
    /at 20\/s +20\/s .*/,
    /one execution: [\d.]+ ms, 3 host calls, 1 pages of memory/,
    /processor time of a request: main thread \d+ us, lanes and V8 \d+ us, PostgreSQL \d+ us/,
  ]
    .map(line => line.source)
    .join('\\n'),
);

t.test('a module is measured in a service of its own, and the result is kept', async t => {
  const file = path.join(directory, 'p.wasm');
  const counting = watPlugin({
    id: 'counting',
    imports: ['respond', 'kv_get'],
    body: '(data (i32.const 64) "k")',
    requirements: [{ kind: 'kv', description: 'd' }],
    triggers: [
      { name: 'slow', type: 'http', path: '/of/:name', methods: ['GET'] },
      { name: 'run', type: 'http', path: '/run', methods: ['POST', 'GET'] },
    ],
    handle: `(drop (call $kv_get (i32.const 64) (i32.const 1)))
      (drop (call $kv_get (i32.const 64) (i32.const 1)))
      (call $respond (i32.const 200) (i32.const 0) (i32.const 0) (i32.const 64) (i32.const 1))`,
  });
  fs.writeFileSync(file, counting);
  t.match(await runCommand(['bench', file, ...QUICK]), {
    code: 2,
    err: /the path \/of\/:name has a parameter: give one with --path\n$/,
  });
  const ran = await runCommand(['bench', file, '--path', '/run?a=1', '--rate', '20', ...QUICK]);
  t.match(ran, { code: 0, out: SHOWN }, ran.err);
  const kept = JSON.parse(fs.readFileSync(`${file}.bench.json`, 'utf8')) as Kept;
  t.match(kept, {
    target: 'counting 1.0.0',
    request: 'POST /api/triggers/http/counting/run?a=1',
    first_ms: Number,
    execution: { host_calls: 3, run_ms: Number, peak_pages: Number },
    cpu_us: { main: Number, lanes: Number, database: Number },
    saturated: { connections: 4 },
    at_rate: { rate: 20, per_second: 20 },
  });
  for (const load of ['one_connection', 'saturated', 'at_rate'] as const) {
    t.match(kept[load], { failed: 0, per_second: Number, p50_ms: Number, p95_ms: Number, p99_ms: Number }, load);
    t.same(Object.keys(kept[load]?.statuses ?? {}), ['200'], load);
  }
});

t.test('an address is measured as it stands', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  await s.install(okPlugin());
  const where = `${s.base}/api/triggers/http/neighbour/run`;
  const kept = path.join(directory, 'kept.json');
  const ran = await runCommand(['bench', where, '--header', 'X-A: b', '--compare', kept, ...QUICK]);
  t.match(ran, { code: 0, out: new RegExp(`^${s.base}: GET /api/triggers/http/neighbour/run\nLOAD +RATE`) }, ran.err);
  t.notMatch(ran.out, /processor time|LAST/, 'what is not known of it is not said');
  t.match(JSON.parse(fs.readFileSync(kept, 'utf8')), { first_ms: null, cpu_us: null, execution: null });
  const again = await runCommand(['bench', where, '--compare', kept, ...QUICK]);
  t.match(
    again.out,
    /GENERATOR +RATE\/LAST +P99\/LAST\none connection .* [\d.]+ x +[\d.]+ x\n4 connections .* [\d.]+ x +[\d.]+ x\n/,
  );
  t.match(again.out, /compared with the run of 20\d\d-.*, where request and load are the same/);
  // With a rate an address gets that rate alone.
  const gentle = await runCommand(['bench', where, '--rate', '10', '--json', ...QUICK]);
  t.match(JSON.parse(gentle.out), {
    one_connection: null,
    saturated: null,
    at_rate: { rate: 10, per_second: 10, statuses: { 200: 3 } },
  });
  const foreign = path.join(directory, 'foreign.json');
  fs.writeFileSync(foreign, '{"name": "mine"}');
  t.match(await runCommand(['bench', where, '--compare', foreign, ...QUICK]), {
    code: 1,
    err: /foreign\.json is not a result of bench, and would be replaced: name another file with --compare/,
  });
  t.equal(fs.readFileSync(foreign, 'utf8'), '{"name": "mine"}');
  t.match(await runCommand(['bench', `${s.base}/api/triggers/http/neighbour/nothing`, ...QUICK]), {
    code: 1,
    out: '',
    err: /GET \/api\/triggers\/http\/neighbour\/nothing is answered 404; --path, --method, --data and --header say/,
  });
});

t.test('what cannot be measured is said in one line', async t => {
  const notes = path.join(directory, 'notes.txt');
  fs.writeFileSync(notes, 'no module');
  const refused: Array<[string[], number, RegExp]> = [
    [[notes], 3, /an upload would refuse \S+notes\.txt: this is not a WebAssembly file/],
    [['/nowhere.wasm'], 1, /\/nowhere\.wasm cannot be read: /],
    [[directory], 1, /is not the folder of a plugin: it has no plugin-host\.json/],
    [['http://127.0.0.1:1/x'], 1, /http:\/\/127\.0\.0\.1:1\/x does not answer/],
    [['http://[/'], 2, /is not an address/],
    [['http://127.0.0.1:1/x', '--seconds', '0'], 2, /--seconds is "0"; it must be a number above zero/],
    [['http://127.0.0.1:1/x', '--rate', 'fast'], 2, /--rate is "fast"; it must be a number above zero/],
    [['http://127.0.0.1:1/x', '--header', 'no header'], 2, /--header "no header" is no header/],
  ];
  for (const [args, code, err] of refused) {
    const ran = await runCommand(['bench', ...args]);
    t.match(ran, { code, out: '', err }, args.join(' '));
    t.equal(ran.err.split('\n').filter(line => line.startsWith('plugin-host: ')).length, 1, 'one line');
  }
});
