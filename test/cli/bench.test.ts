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

t.test('a module is measured in a service of its own, and compared with the run before', async t => {
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
  const first = await runCommand(['bench', file, '--path', '/run?a=1', '--json', ...QUICK]);
  t.match(first, { code: 0, err: '' }, first.err);
  const made = JSON.parse(first.out) as Record<'saturated' | 'at_rate' | 'one_connection', Record<string, unknown>>;
  t.match(made, {
    target: /^counting /,
    request: 'POST /api/triggers/http/counting/run?a=1',
    first_ms: Number,
    execution: { host_calls: 3, run_ms: Number, peak_pages: Number },
    cpu_us: { main: Number, lanes: Number, database: Number },
    last: null,
  });
  for (const load of ['one_connection', 'saturated', 'at_rate'] as const) {
    t.match(made[load], { failed: 0, per_second: Number, p50_ms: Number, p95_ms: Number, p99_ms: Number }, load);
    t.same(Object.keys(made[load]?.statuses ?? {}), ['200'], load);
  }
  t.equal(made.saturated.connections, 4);
  const second = await runCommand(['bench', file, '--path', '/run', '--rate', '20', ...QUICK]);
  t.match(second, {
    code: 0,
    out: /^counting .*: POST .*\/run\nfirst call after the installation: [\d.]+ ms\nLOAD +RATE +P50 +P95 +P99 +FAILED +GENERATOR +RATE\/LAST +P99\/LAST\none connection +[\d.]+\/s [\s\S]*\nat 20\/s [\s\S]*\none execution: [\d.]+ ms, 3 host calls, 1 pages of memory\nprocessor time of a request: main thread \d+ us, /,
  });
  t.match(second.out, /compared with the run of 20\d\d-/);
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
  t.match((await runCommand(['bench', where, '--compare', kept, ...QUICK])).out, /RATE\/LAST/);
  t.match(await runCommand(['bench', `${s.base}/api/triggers/http/neighbour/nothing`, ...QUICK]), {
    code: 1,
    out: '',
    err: /GET \/api\/triggers\/http\/neighbour\/nothing is answered 404: .*--path, --method, --data and --header say/,
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
