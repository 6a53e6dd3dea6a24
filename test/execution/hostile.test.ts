import fs from 'node:fs';
import t from 'tap';
import { HOST_FUNCTIONS, wasmParametersOf } from '../../src/abi/host-functions.ts';
import { MANY_LANES, startTestService, type TestService } from '../support/service.ts';
import { choice, choosingPlugin, okPlugin, respondText, watPlugin } from '../support/wat.ts';

const LOOP = '(loop $l (br $l))';

/** Asks the neighbour again and again while `work` runs; every answer must be as always. */
async function whileNeighbourAnswers<T>(s: TestService, work: Promise<T>): Promise<T> {
  let over = false;
  const asking = (async () => {
    let asked = 0;
    while (!over || asked === 0) {
      const a = await s.trigger('neighbour/run');
      if (a.status !== 200 || a.text !== 'ok') throw new Error(`the neighbour answered ${a.status} ${a.text}`);
      asked++;
    }
    return asked;
  })();
  const result = await work.finally(() => {
    over = true;
  });
  t.ok((await asking) > 0);
  return result;
}

const outcomes = async (s: TestService, id: string): Promise<string[]> => {
  const { json } = await s.admin('GET', `/plugins/${id}/executions`);
  return (json.items as Array<{ outcome: string; status: number; failure: string | null }>).map(
    r => `${r.status} ${r.outcome}`,
  );
};

const threads = (): number => fs.readdirSync('/proc/self/task').length;

t.test('hostile plugins', async t => {
  const s = await startTestService(MANY_LANES);
  t.teardown(() => s.stop());
  await s.install(okPlugin());
  await s.trigger('neighbour/run');

  const allLanes = async (): Promise<void> => {
    for (let k = 0; k < 200 && s.service.executor.lanesRunning < 12; k++) await new Promise(r => setTimeout(r, 25));
  };

  const loops: Array<[string, Uint8Array]> = [
    ['in its handler', watPlugin({ id: 'loop_handler', handle: `${LOOP} (i32.const 0)` })],
    [
      'in its start function',
      watPlugin({ id: 'loop_start', body: `(func $s ${LOOP}) (start $s)`, handle: '(i32.const 0)' }),
    ],
    [
      'in _initialize',
      watPlugin({ id: 'loop_init', body: `(func (export "_initialize") ${LOOP})`, handle: '(i32.const 0)' }),
    ],
    [
      'behind a catch_all',
      watPlugin({
        id: 'loop_catch',
        moreImports: '(import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))',
        handle: `(loop $l (try (do (call $exit (i32.const 3))) (catch_all)) (br $l)) (i32.const 0)`,
      }),
    ],
  ];
  // Takes all that it may have, page by page, and then goes on for ever.
  const eats = watPlugin({
    id: 'loop_eats',
    memory: '1 8192',
    handle: `(local $at i32) (local $end i32)
      (loop $grow
        (local.set $at (i32.mul (memory.grow (i32.const 16)) (i32.const 65536)))
        (if (i32.gt_s (local.get $at) (i32.const 0)) (then
          (local.set $end (i32.add (local.get $at) (i32.const 1048576)))
          (loop $touch
            (i32.store (local.get $at) (i32.const 1))
            (br_if $touch (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 4096))) (local.get $end))))
          (br $grow))))
      ${LOOP} (i32.const 0)`,
  });
  loops.push(['with much memory', eats]);
  const logs = (id: string, times: number): Uint8Array =>
    watPlugin({
      id,
      imports: ['log'],
      body: '(data (i32.const 64) "here and no further")',
      handle: `(local $n i32)
        (loop $l
          (drop (call $log (i32.const 1) (i32.const 64) (i32.const 19)))
          (br_if $l (i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1))) (i32.const ${times}))))
        ${LOOP} (i32.const 0)`,
    });
  loops.push(['behind a log line', logs('loop_log', 1)], ['behind many', logs('loop_logs', 2000)]);
  for (const [where, module] of loops) await s.install(module).catch(e => t.fail(`${where}: ${e}`));

  t.test('an endless loop answers 504 at the deadline, and its neighbours do not notice', async t => {
    await allLanes();
    const before = threads();
    const ids = ['loop_handler', 'loop_start', 'loop_init', 'loop_log', 'loop_logs', 'loop_eats'];
    const started = performance.now();
    const answers = await whileNeighbourAnswers(s, Promise.all(ids.map(id => s.trigger(`${id}/run`))));
    const took = performance.now() - started;
    for (const a of answers) {
      t.equal(a.status, 504);
      t.match(a.json, { code: 'deadline_exceeded', status: 504, detail: /5000 ms/ });
    }
    t.ok(took >= 5000, 'not before the deadline');
    for (const id of ids) t.same(await outcomes(s, id), ['504 deadline']);
    await allLanes();
    t.equal(s.service.executor.lanesRunning, 12, 'the ended threads were replaced');
    t.equal(s.service.executor.inFlight, 0, 'no slot is kept');
    t.ok(threads() <= before + 1, 'no thread is left over');
    const recordOf = async (id: string) => {
      const [item] = (await s.admin('GET', `/plugins/${id}/executions`)).json.items as Array<{ id: number }>;
      return (await s.admin('GET', `/plugins/${id}/executions/${item?.id}`)).json;
    };
    const logOf = async (id: string): Promise<unknown[]> => (await recordOf(id)).log as unknown[];
    t.match(await recordOf('loop_handler'), { peak_pages: /^\d$/, failure: /for \d+ ms: look for an endless loop/ });
    const eater = await recordOf('loop_eats');
    t.match(eater, { failure: /, in which it took \d+ MB of memory: look for data that only grow, an endless loop/ });
    t.ok(Number(eater.peak_pages) > 1024, `${eater.peak_pages} pages`);
    const line = { level: 'info', text: 'here and no further' };
    t.same(await logOf('loop_log'), [line], 'the log of an execution that was stopped');
    t.same(await logOf('loop_handler'), [], 'and of no other');
    const many = await logOf('loop_logs');
    t.match(many.at(-1), { level: 'warn', text: /is kept up to 8192 bytes/ });
    t.ok(many.length > 300 && many.length < 400, `${many.length} lines in 8 KiB`);
  });

  t.test('a plugin that catches every exception cannot continue after proc_exit', async t => {
    const a = await s.trigger('loop_catch/run');
    t.equal(a.status, 502);
    t.same(await outcomes(s, 'loop_catch'), ['502 exited']);
  });

  t.test('a trap is 502, the cause is in the record and not in the answer', async t => {
    await s.install(watPlugin({ id: 'trap', handle: 'unreachable' }));
    const a = await s.trigger('trap/run');
    t.equal(a.status, 502);
    t.match(a.json, { code: 'plugin_trapped' });
    t.notMatch(a.text, /unreachable/);
    const { json } = await s.admin('GET', '/plugins/trap/executions');
    t.match(json.items, [{ outcome: 'trapped', failure: /unreachable/ }]);
  });

  t.test('a stack that overflows is a trap, in the plugin and inside a host call', async t => {
    await s.install(
      watPlugin({
        id: 'stack',
        body: '(func $f (param i64) (call $f (local.get 0)) (drop (i64.add (local.get 0) (i64.const 1))))',
        handle: '(call $f (i64.const 1)) (i32.const 0)',
      }),
    );
    t.equal((await s.trigger('stack/run')).status, 502);
    await s.install(
      watPlugin({
        id: 'stack_host',
        imports: ['config_get', 'kv_get', 'respond'],
        requirements: [{ kind: 'kv', description: 'x' }],
        body: `(data (i32.const 64) "ok") (func $f (try (do (drop (call $kv_get (i32.const 64) (i32.const 2))) (call $f)) (catch_all)))`,
        handle: `(call $f) ${respondText(64, 2)} (i32.const 0)`,
      }),
    );
    const a = await whileNeighbourAnswers(s, s.trigger('stack_host/run'));
    t.ok([200, 502, 504].includes(a.status), `answered ${a.status}`);
    t.equal((await s.trigger('neighbour/run')).text, 'ok');
  });

  t.test('memory beyond 512 MB is refused to the plugin, and given back afterwards', async t => {
    // Grows page by page and touches each; answers the number of pages it got.
    await s.install(
      watPlugin({
        id: 'eater',
        imports: ['respond'],
        handle: `(local $p i32)
          (block $full (loop $l
            (br_if $full (i32.eq (memory.grow (i32.const 1023)) (i32.const -1)))
            (i32.store (i32.sub (i32.mul (memory.size) (i32.const 65536)) (i32.const 8)) (i32.const 7))
            (br $l)))
          (i32.store (i32.const 64) (memory.size))
          ${respondText(64, 4)} (i32.const 0)`,
      }),
    );
    const response = await whileNeighbourAnswers(
      s,
      fetch(`${s.base}/api/triggers/http/eater/run`).then(async r => ({
        status: r.status,
        body: Buffer.from(await r.arrayBuffer()),
      })),
    );
    t.equal(response.status, 200);
    const pages = response.body.readUInt32LE(0);
    t.ok(pages > 8000 && pages <= 8192, `${pages} pages`);
    const { json } = await s.admin('GET', '/plugins/eater/executions');
    t.match(json.items, [{ peak_pages: pages }]);
    // Most languages only trap then.
    const grows = '(loop $l (br_if $l (i32.ne (memory.grow (i32.const 100)) (i32.const -1))))';
    await s.install(watPlugin({ id: 'full', memory: '1', handle: `${grows} unreachable` }));
    await s.trigger('full/run');
    const { items } = (await s.admin('GET', '/plugins/full/executions')).json;
    t.match(items, [{ outcome: 'trapped', failure: /^unreachable \(it had 5\d\d MB of memory, and may have 512\)/ }]);
  });

  t.test('a log flood is cut, and the record says so', async t => {
    await s.install(
      watPlugin({
        id: 'flood',
        imports: ['log', 'respond'],
        memory: '2',
        body: '(data (i32.const 64) "ok\\1b[2J")',
        handle: `(local $i i32)
          (loop $l (drop (call $log (i32.const 1) (i32.const 64) (i32.const 1000)))
            (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 5000))))
          ${respondText(64, 2)} (i32.const 0)`,
      }),
    );
    t.equal((await s.trigger('flood/run')).status, 200);
    const { json } = await s.admin('GET', '/plugins/flood/executions');
    const id = (json.items as Array<{ id: number }>)[0]?.id;
    const log = (await s.admin('GET', `/plugins/flood/executions/${id}`)).json.log as Array<{
      level: string;
      text: string;
    }>;
    t.ok(JSON.stringify(log).length < 64 * 1024 * 6 + 1000);
    t.match(log.at(-1), { level: 'warn', text: /log cut at 65536 bytes/ });
    t.match(log[0]?.text, /^ok\\x1b\[2J/, 'control characters are escaped');
  });

  t.test('a guest that holds exceptions fills no memory but its own', async t => {
    const values = Array<string>(900).fill('(i64.const -1)').join(' ');
    await s.install(
      watPlugin({
        id: 'thrower',
        // Each frame keeps the exception it has caught, in case it throws it again.
        body: `(tag $t (param ${Array<string>(900).fill('i64').join(' ')}))
          (global $never (mut i32) (i32.const 0))
          (func $f (try $a (do (throw $t ${values})) (catch_all (call $f) (if (global.get $never) (then (rethrow $a))))))`,
        handle: '(call $f) (i32.const 0)',
      }),
    );
    const before = process.memoryUsage.rss();
    let most = 0;
    const watch = setInterval(() => {
      most = Math.max(most, process.memoryUsage.rss() - before);
    }, 5);
    t.equal((await s.trigger('thrower/run')).status, 502, 'one alone comes to the end of its stack');
    const answers = await whileNeighbourAnswers(
      s,
      Promise.all(Array.from({ length: 8 }, () => s.trigger('thrower/run'))),
    );
    clearInterval(watch);
    // Eight on two busy cores may come to their deadline before the end of their stacks.
    for (const a of answers) t.ok([502, 503, 504].includes(a.status), `answered ${a.status}`);
    t.ok(most < 8 * 64 * 1024 * 1024, `held ${(most / 1024 / 1024).toFixed(0)} MB`);
  });

  t.test('more than 10,000 host calls end the execution, also behind a catch_all', async t => {
    await s.install(
      watPlugin({
        id: 'calls',
        imports: ['input_len', 'respond'],
        body: '(data (i32.const 64) "ok")',
        handle: `(loop $l (try (do (drop (call $input_len (i32.const 0)))) (catch_all)) (br $l)) ${respondText(64, 2)} (i32.const 0)`,
      }),
    );
    const a = await s.trigger('calls/run');
    t.equal(a.status, 502);
    t.match(a.json, { code: 'plugin_quota_exceeded', detail: /10000 host calls/ });
  });

  t.test('headers that would break the protocol or belong to the host are refused', async t => {
    const bad: Array<[string, RegExp]> = [
      ['{"X":"a\\r\\nSet-Cookie: admin_session=1"}', /control/],
      ['{"X\\r\\nY":"a"}', /not a token/],
      ['{"Content-Length":"5"}', /set by the host alone/],
      ['{"transfer-encoding":"chunked"}', /set by the host alone/],
      ['{"Connection":"close"}', /set by the host alone/],
      ['{"Set-Cookie":"admin_session=x"}', /own cookies/],
      ['{"Set-Cookie":"idp_login_1=x; Path=/api/auth/idp"}', /own cookies/],
      ['{"set-cookie":[" user_session =x"]}', /own cookies/],
      ['{"Keep-Alive":"timeout=100"}', /set by the host alone/],
      ['{"trailer":"x"}', /set by the host alone/],
      ['{"X":"\\u0100"}', /non-Latin-1/],
      ['{"X":5}', /not a string/],
      ['[1]', /not a JSON object/],
      ['{', /not JSON/],
    ];
    const texts = bad.map(([headers]) => Buffer.from(headers));
    const wrongStatus = [199, 600, 0, -1];
    await s.install(
      choosingPlugin({
        id: 'headers',
        imports: ['respond'],
        body: texts
          .map((text, k) => `(data (i32.const ${100 * (k + 1)}) "${text.toString('hex').replaceAll(/../g, '\\$&')}")`)
          .join('\n'),
        choices: [
          ...texts.map((text, k) => ({ status: 200, at: 100 * (k + 1), length: text.length })),
          ...wrongStatus.map(status => ({ status, at: 0, length: 0 })),
        ].map(
          ({ at, length, status }) =>
            `(block (result i32) (drop (call $respond (i32.const ${status}) (i32.const ${at}) (i32.const ${length}) (i32.const 0) (i32.const 0))) (i32.const 0))`,
        ),
      }),
    );
    for (const [k, [headers, reason]] of bad.entries()) {
      const a = await s.trigger('headers/run', choice(k));
      t.equal(a.status, 502, headers);
      t.match(a.json, { code: 'plugin_response_invalid', detail: reason });
      t.equal(a.headers.get('set-cookie'), null);
    }
    for (const [k, status] of wrongStatus.entries())
      t.equal((await s.trigger('headers/run', choice(bad.length + k))).status, 502, `status ${status}`);
  });

  t.test('every host function answers -3 to a pointer outside the memory and goes on', async t => {
    const ways: Array<{ what: string; handle: string }> = [];
    for (const row of HOST_FUNCTIONS) {
      const pairs = row.parameters.filter(p => p !== 'i32' && p !== 'i64').length;
      t.equal(wasmParametersOf(row).length, row.parameters.length + pairs);
      // One pair at a time points outside: behind the end, over the end, wrapping around.
      for (let bad = 0; bad < pairs; bad++)
        for (const [pointer, length] of [
          [65_536, 1],
          [65_535, 2],
          [-1, 2],
          [1, -1],
          [-16, -16],
        ]) {
          let k = -1;
          const args = row.parameters.flatMap(p => {
            if (p === 'i32') return ['(i32.const 1)'];
            if (p === 'i64') return ['(i64.const 0)'];
            k++;
            return k === bad
              ? [`(i32.const ${pointer})`, `(i32.const ${length})`]
              : ['(i32.const 64)', '(i32.const 2)'];
          });
          if (row.name === 'respond') args[0] = '(i32.const 200)';
          ways.push({
            what: `${row.name}, pair ${bad}: ${pointer}, ${length}`,
            handle: `(if (result i32) (i32.ne (call $${row.name} ${args.join(' ')}) (i32.const -3))
              (then (i32.const -100)) (else ${respondText(64, 2)} (i32.const 0)))`,
          });
        }
    }
    t.ok(ways.length > 100);
    // Permissions stand before arguments for functions of the host; local ones check the pair alone.
    const kinds = new Set(HOST_FUNCTIONS.map(row => row.permission).filter(kind => kind !== null));
    const plugins = Array.from({ length: Math.ceil(ways.length / 200) }, (_, n) => ways.slice(n * 200, n * 200 + 200));
    for (const [n, some] of plugins.entries()) {
      await s.install(
        choosingPlugin({
          id: `pointers_${n}`,
          imports: HOST_FUNCTIONS.map(row => row.name),
          requirements: [...kinds].map(kind => (kind === 'plugins:call' ? { kind, target: 'ok' } : { kind })),
          body: '(data (i32.const 64) "ok")',
          choices: some.map(way => way.handle),
        }),
        { databases: { default: 'postgresql://nowhere/none' } },
      );
      for (const [k, { what }] of some.entries()) {
        const a = await s.trigger(`pointers_${n}/run`, choice(k));
        t.equal(`${a.status} ${a.text}`, '200 ok', what);
      }
    }
  });
});
