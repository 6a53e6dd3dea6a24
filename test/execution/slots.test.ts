import t from 'tap';
import { HostCall } from '../../src/host/host-functions.ts';
import type { InstalledPlugin } from '../../src/plugins/registry.ts';
import { MANY_LANES, startTestService } from '../support/service.ts';
import { mostAtOnce, sleeper, watchedSleeper } from '../support/sleepers.ts';
import { respondText, watPlugin } from '../support/wat.ts';

const callOf = (plugin: InstalledPlugin): HostCall =>
  new HostCall({
    plugin,
    requestId: 'r',
    trigger: 'run',
    kind: 'http',
    principal: null,
    caller: '203.0.113.1',
    deadline: Number.POSITIVE_INFINITY,
    callers: [],
    message: null,
  });

t.test(
  'of 64 clients of a plugin that sleeps a second never more than 8 run at once, and the answers to those that miss their deadline say why',
  async t => {
    const s = await startTestService({ BOT_EXECUTION_LANES: '20', BOT_HTTP_TRUSTED_PROXIES: '127.0.0.1' });
    t.teardown(() => s.stop());
    await s.install(watchedSleeper('sleeper', 1000));
    await s.install(sleeper('short', 1));
    await s.trigger('short/run');
    let otherAnswers = 0;
    let over = false;
    const others = (async () => {
      while (!over) {
        if ((await s.trigger('short/run')).status === 200) otherAnswers++;
      }
    })();
    const answers = await Promise.all(
      Array.from({ length: 64 }, async (_, k) => {
        // Two callers, since one alone leaves a slot free.
        const headers = { 'x-forwarded-for': `203.0.113.${k % 2}` };
        const r = await fetch(`${s.base}/api/triggers/http/sleeper/run`, { headers });
        return { status: r.status, headers: r.headers, bytes: Buffer.from(await r.arrayBuffer()) };
      }),
    );
    over = true;
    await others;
    const served = answers.filter(a => a.status === 200);
    const late = answers.filter(a => a.status !== 200);
    t.ok(
      served.length >= 24 && served.length <= 40,
      `${served.length} of 64 are served in five seconds, eight a second`,
    );
    const spans = served.map(a => [a.bytes.readBigUInt64LE(0), a.bytes.readBigUInt64LE(8)] as const);
    t.ok(spans.every(([from, to]) => to > from));
    t.equal(mostAtOnce(spans), 8, 'eight run at once, never more');
    for (const a of late) {
      t.ok([503, 504].includes(a.status), `answered ${a.status}`);
      if (a.status !== 503) continue;
      t.equal(a.headers.get('retry-after'), '1');
      t.match(JSON.parse(a.bytes.toString()), { code: 'no_slot', detail: /slotsPerPlugin/ });
    }
    t.ok(late.filter(a => a.status === 503).length >= 16, 'the answers to those that miss their deadline say why');
    t.ok(otherAnswers > 20, 'another plugin is served meanwhile');
  },
);

t.test('waiting executions are served in the order in which they came', async t => {
  const s = await startTestService(MANY_LANES);
  t.teardown(() => s.stop());
  await s.install(sleeper('sleeper', 200));
  await s.trigger('sleeper/run');
  const { executor, registry } = s.service;
  const plugin = registry.find('sleeper');
  if (plugin === undefined) throw new Error('not installed');
  const began: Array<{ k: number; at: number }> = [];
  await new Promise<void>(resolve => {
    for (let k = 0; k < 40; k++) {
      const admittedAt = performance.now();
      executor.execute({
        pluginId: 'sleeper',
        moduleId: plugin.moduleId,
        entry: 0,
        event: '{}',
        body: null,
        callers: [],
        caller: '203.0.113.1',
        deadline: admittedAt + 5000,
        context: callOf(plugin),
        done(o) {
          t.equal(o.kind, 'ok');
          began.push({ k, at: admittedAt + o.queueWaitMs });
          if (began.length === 40) resolve();
        },
      });
    }
  });
  began.sort((a, b) => a.at - b.at);
  for (const [place, { k }] of began.entries())
    t.ok(Math.abs(k - place) < 9, 'first come, first served, within one batch of eight');
});

t.test('one plugin cannot use all waiting places of the host, and one caller not all of a plugin', async t => {
  const s = await startTestService({ ...MANY_LANES, BOT_EXECUTION_TIMEOUT_MS: '1500' });
  t.teardown(() => s.stop());
  await s.install(sleeper('hog', 1400));
  await s.install(sleeper('short', 1));
  await s.trigger('short/run');
  const { executor, registry } = s.service;
  const plugin = registry.find('hog');
  if (plugin === undefined) throw new Error('not installed');
  const kinds = new Map<string, number>();
  const refused: string[] = [];
  let other: ReturnType<typeof s.trigger> | undefined;
  let ended = 0;
  const all = 600 + 600;
  // The first deadline lies between these.
  const ends = { earliest: performance.now() + 1500, latest: Number.POSITIVE_INFINITY };
  const secondsTo = (end: number): number => Math.max(1, Math.ceil((end - performance.now()) / 1000));
  await new Promise<void>(resolve => {
    for (let k = 0; k < all; k++) {
      const most = secondsTo(ends.latest);
      executor.execute({
        pluginId: 'hog',
        moduleId: plugin.moduleId,
        entry: 0,
        event: '{}',
        body: null,
        callers: [],
        caller: k < 600 ? '203.0.113.1' : `user:${k}`,
        deadline: performance.now() + 1500,
        context: callOf(plugin),
        done(o) {
          kinds.set(o.kind, (kinds.get(o.kind) ?? 0) + 1);
          if (o.kind === 'queue_full') {
            refused.push(o.failure);
            const [after, least] = [o.retryAfterSeconds ?? 0, secondsTo(ends.earliest)];
            t.ok(least <= after && after <= most, `${after} s: there is room when the first deadline passes`);
          }
          if (++ended === all) resolve();
        },
      });
      if (k === 0) ends.latest = performance.now() + 1500;
    }
    const of = (limit: string): number => refused.filter(text => text.includes(limit)).length;
    t.equal(of('512 (waitingPerCallerMax)'), 600 - 512, 'beyond 512 of a caller a refusal comes at once');
    t.equal(of('1024 (waitingPerPluginMax)'), 600 - 512, 'beyond 1024 of all callers, too');
    t.equal(refused.length, 2 * (600 - 512));
    other = s.trigger('short/run');
  });
  t.equal((await other)?.status, 200);
  for (let k = 0; k < 200 && executor.inFlight > 0; k++) await new Promise(r => setTimeout(r, 10));
  t.equal(executor.inFlight, 0, 'slots are given back when the ended threads are gone');
  t.ok((kinds.get('no_slot') ?? 0) > 900);
});

t.test('executions of the old version finish on the old version', async t => {
  const s = await startTestService(MANY_LANES);
  t.teardown(() => s.stop());
  const versioned = (version: string, text: string, ms: number): Uint8Array =>
    watPlugin({
      id: 'v',
      version,
      imports: ['respond'],
      moreImports: '(import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))',
      body: `(data (i32.const 64) "${text}")`,
      handle: `(i64.store (i32.const 1048) (i64.const ${ms}000000)) (i32.store (i32.const 1040) (i32.const 1))
        (drop (call $poll (i32.const 1024) (i32.const 2048) (i32.const 1) (i32.const 4096))) ${respondText(64, 3)} (i32.const 0)`,
    });
  await s.install(versioned('1', 'one', 3000));
  // Uploaded before, so that only the switch happens while the old one runs.
  const { json } = await s.upload(versioned('2', 'two', 1));
  const old = s.trigger('v/run');
  for (let k = 0; k < 100 && s.service.executor.inFlight === 0; k++) await new Promise(r => setTimeout(r, 5));
  t.equal((await s.admin('POST', '/plugins/v/install', { wasm_key: json.wasm_key })).status, 200);
  t.equal((await s.trigger('v/run')).text, 'two', 'new requests get the new version at once');
  t.equal(s.service.executor.inFlight, 1, 'the old execution still runs');
  t.equal((await old).text, 'one');
});
