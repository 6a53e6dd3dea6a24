import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { GateRefusal } from '../src/plugins/gate/reader.ts';
import { inspectModule } from '../src/plugins/inspect.ts';
import { startS3Server } from '../test/support/s3-server.ts';
import { buildExample } from '../test/support/sdk.ts';
import { signalDescendant } from '../test/support/signals.ts';
import { assemble, hostImports, manifestOf, withManifest } from '../test/support/wat.ts';
import { makeCaller } from './caller.ts';
import { compileExpensive, killExpensive } from './endure-compile.ts';
import { driftBesideRevocations } from './endure-drift.ts';
import { hostsApart, isRight } from './endure-hosts.ts';
import { attackConformance, attackLanguages, type Isolation } from './endure-isolation.ts';
import { manyPlugins } from './endure-plugins.ts';
import { restoreAfterUninstall } from './endure-restore.ts';
import { staleAnswers } from './endure-stale.ts';
import { uploadsUnderKills } from './endure-uploads.ts';
import { installFilebox, makeSource, transfer } from './files.ts';
import { admin, type Host, install, memoryMb, servingPid, startHost } from './host.ts';
import { closedLoop } from './load.ts';
import { median } from './report.ts';
import { largeBatch, pullUniversity } from './university.ts';

/**
 * The figures that take long: what the service holds over many kills, executions, mutants, crashes, and under hostile
 * traffic. `npm run endure` runs all of it but the soak; `npm run endure -- NAME [COUNT] [SEED]` one of them.
 */

const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'plugin-host-endure-'));
fs.chmodSync(directory, 0o711);
const [only, countGiven, seedGiven] = process.argv.slice(2);
const seed = seedGiven === undefined ? (Math.random() * 2 ** 32) >>> 0 : Number(seedGiven);
let state = seed;
const next = (n: number): number => {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return Math.floor((state / 2 ** 32) * n);
};
let failed = 0;
const report = (name: string, ok: boolean, text: string): void => {
  if (!ok) failed++;
  console.log(`${ok ? 'ok    ' : 'NOT OK'} ${name.padEnd(10)} ${text}`);
};
const pause = (ms: number): Promise<void> => new Promise(resolve => setTimeout(resolve, ms));
const trigger = (port: number, where: string, init?: RequestInit): Promise<Response> =>
  fetch(`http://127.0.0.1:${port}/api/triggers/http/${where}`, init);

const burner = (id: string): Uint8Array =>
  withManifest(
    assemble(
      `(module (memory (export "memory") 1) (func (export "plugin_handle") (result i32) (loop $l (br $l)) (i32.const 0)))`,
    ),
    manifestOf({ id }),
  );

const threads = (pid: number): number => fs.readdirSync(`/proc/${pid}/task`).length;

/** 24 endless loops of three plugins at once, on a warm host: 504 at the deadline, the threads gone soon after. */
async function loops(): Promise<void> {
  const host = await startHost(directory);
  try {
    for (const id of ['loop_a', 'loop_b', 'loop_c']) await install(host.port, burner(id));
    await closedLoop(host.port, '/api/triggers/http/hello/greet', 8, 2);
    const pid = servingPid(host);
    const before = threads(pid);
    const one = async (id: string): Promise<[number, number]> => {
      const at = performance.now();
      const status = (await trigger(host.port, `${id}/run`)).status;
      return [status, performance.now() - at];
    };
    const single = await one('loop_a');
    report(
      'loop',
      single[0] === 504 && single[1] < 5150,
      `one loop: ${single[0]} after ${single[1].toFixed(0)} ms (5000 + 150)`,
    );
    await admin(host.port, 'POST', '/plugins/loop_a/triggers/run/resume');
    const all = await Promise.all(Array.from({ length: 24 }, (_, k) => one(`loop_${'abc'[k % 3]}`)));
    const worst = Math.max(...all.map(a => a[1]));
    report(
      'loops',
      all.every(a => a[0] === 504) && worst < 5250,
      `24 loops: the last after ${worst.toFixed(0)} ms (5000 + 250), statuses ${[...new Set(all.map(a => a[0]))].join(', ')}`,
    );
    await pause(2000);
    report(
      'loops',
      (await trigger(host.port, 'hello/greet')).status === 200,
      `threads before ${before}, two seconds after ${threads(pid)}`,
    );
  } finally {
    await host.stop();
  }
}

/** Kills by deadline, with a short one so that it does not take long; memory and threads are back afterwards. */
async function kills(count: number): Promise<void> {
  const host = await startHost(directory, { BOT_EXECUTION_TIMEOUT_MS: '300' });
  try {
    await install(host.port, burner('kill_me'));
    const round = async (n: number): Promise<number> => {
      let timeouts = 0;
      // New threads are started 100 ms apart; a caller that waits for one beyond the deadline gets 503, which counts as no kill.
      while (timeouts < n) {
        await admin(host.port, 'POST', '/plugins/kill_me/triggers/run/resume');
        const all = await Promise.all(
          Array.from({ length: Math.min(8, n - timeouts) }, () =>
            trigger(host.port, 'kill_me/run').then(r => r.status),
          ),
        );
        timeouts += all.filter(s => s === 504).length;
        if (all.some(s => s !== 504 && s !== 503)) throw new Error(`statuses ${all.join(', ')}`);
      }
      await pause(3000);
      return timeouts;
    };
    await closedLoop(host.port, '/api/triggers/http/hello/greet', 64, 3);
    await round(16);
    const pid = servingPid(host);
    const [mb, n] = [memoryMb(pid), threads(pid)];
    const timeouts = await round(count);
    const grown = memoryMb(pid) - mb;
    report(
      'kills',
      timeouts === count && grown <= 25 && threads(pid) === n,
      `${timeouts} of ${count} kills answered 504; memory ${grown >= 0 ? '+' : ''}${grown.toFixed(1)} MB (at most 25), threads ${n} before, ${threads(pid)} after`,
    );
  } finally {
    await host.stop();
  }
}

/** Executions that take all the memory they may; what they used is given back. */
async function eaters(count: number): Promise<void> {
  const host = await startHost(directory);
  try {
    await install(
      host.port,
      withManifest(
        assemble(
          `(module (memory (export "memory") 1) (func (export "plugin_handle") (result i32)
             (drop (memory.grow (i32.const 8191))) (memory.fill (i32.const 0) (i32.const 1) (i32.const 536870912)) (i32.const 0)))`,
        ),
        manifestOf({ id: 'eater' }),
      ),
    );
    await closedLoop(host.port, '/api/triggers/http/hello/greet', 64, 3);
    const pid = servingPid(host);
    const eat = async (): Promise<number> =>
      await trigger(host.port, 'eater/run').then(r => r.arrayBuffer().then(() => r.status));
    const settled = async (): Promise<number> => {
      await pause(3000);
      return memoryMb(pid);
    };
    await eat();
    const before = await settled();
    const statuses: number[] = [];
    for (let k = 0; k < count; k++) statuses.push(await eat());
    const grown = (await settled()) - before;
    report(
      'eaters',
      statuses.every(status => status === 204) && grown <= 25 && servingPid(host) === pid,
      `${count} executions that filled 512 MB: ${statuses.filter(status => status === 204).length} answered; memory ${grown >= 0 ? '+' : ''}${grown.toFixed(1)} MB afterwards (at most 25)`,
    );
  } finally {
    await host.stop();
  }
}

/** Small executions: none fails, memory stays. */
async function small(count: number): Promise<void> {
  const host = await startHost(directory);
  try {
    await closedLoop(host.port, '/api/triggers/http/hello/greet', 64, 3);
    const pid = servingPid(host);
    const mb = memoryMb(pid);
    let bad = 0;
    for (let k = 0; k < count; k += 50) {
      const all = await Promise.all(Array.from({ length: 50 }, () => trigger(host.port, 'hello/greet')));
      bad += all.filter(r => r.status !== 200).length;
      await Promise.all(all.map(r => r.arrayBuffer()));
    }
    const grown = memoryMb(pid) - mb;
    report(
      'small',
      bad === 0 && grown <= 30,
      `${count} executions: ${bad} failed; memory ${grown >= 0 ? '+' : ''}${grown.toFixed(1)} MB (at most 30)`,
    );
  } finally {
    await host.stop();
  }
}

/** Mutants of real modules: none gets past the caps, none raises an unclassified error, none ends the process. */
async function mutants(count: number): Promise<void> {
  const sources = path.resolve(import.meta.dirname, '../test/plugins/sources');
  const originals = [
    await buildExample('hello'),
    await buildExample('guestbook'),
    ...['echo-c.wasm', 'echo-rust.wasm'].map(f => fs.readFileSync(path.join(sources, f))),
  ];
  let [accepted, compiled, unclassified, escaped] = [0, 0, 0, 0];
  for (let k = 0; k < count; k++) {
    const bytes = Uint8Array.from(originals[k % originals.length] ?? []);
    for (let m = next(4); m >= 0; m--) bytes[next(3) === 0 ? next(bytes.length) : next(400)] = next(256);
    let rewritten: Uint8Array | undefined;
    try {
      rewritten = inspectModule(bytes).rewritten?.bytes;
    } catch (error) {
      unclassified++;
      console.log(`mutant ${k}: ${error instanceof GateRefusal ? 'refusal that was not caught' : String(error)}`);
      continue;
    }
    if (rewritten === undefined) continue;
    accepted++;
    try {
      const module = new WebAssembly.Module(Uint8Array.from(rewritten));
      compiled++;
      const memories = WebAssembly.Module.imports(module).filter(i => i.kind !== 'function');
      if (memories.map(i => i.name).join() !== 'mem,ctl' || WebAssembly.Module.exports(module).length > 0) escaped++;
    } catch (error) {
      if (!(error instanceof WebAssembly.CompileError)) unclassified++;
    }
  }
  report(
    'mutants',
    unclassified === 0 && escaped === 0,
    `seed ${seed}: ${count} mutants, ${accepted} passed the gate, ${compiled} compiled; ${unclassified} unclassified errors, ${escaped} past the caps`,
  );
}

/** Modules made to be expensive: what the gate accepts compiles in bounds, and leaves nothing behind when it is killed. */
async function compile(count: number): Promise<void> {
  const r = await compileExpensive(count, next);
  for (const failure of r.failures) console.log(failure);
  report(
    'compile',
    r.failures.length === 0 && r.memoryMb < 768 && r.cpuMs < 2500,
    `seed ${seed}: ${count} modules, ${r.accepted} accepted; at most ${r.memoryMb.toFixed(0)} MB (768) and ${r.cpuMs.toFixed(0)} ms of processor time (2500) for one, ${r.memoryPerMb.toFixed(0)} MB and ${r.cpuPerMb.toFixed(0)} ms for a megabyte of module; ${r.failures.length} failed`,
  );
  const repeated = (n: number, text: string): string => Array.from({ length: n }, () => text).join(' ');
  // As tall and as branched as the gate lets it through.
  const tall = `(func $f ${repeated(1000, '(i32.const 1)')} ${repeated(2200, '(if (i32.const 1) (then))')} ${repeated(1000, 'drop')})`;
  const module = withManifest(
    assemble(
      `(module (memory (export "memory") 1) ${tall} (func (export "plugin_handle") (result i32) (loop $l (call $f) (br $l)) (i32.const 0)))`,
    ),
    manifestOf({ id: 'expensive' }),
  );
  const k = await killExpensive(directory, module);
  report(
    'compile',
    k.statuses.every(status => status === 504 || status === 503) && k.memoryMb < 300 && k.idleCpuMs < 200,
    `eight calls of a function as expensive as the gate allows: ${k.statuses.join(', ')}; memory +${k.memoryMb.toFixed(0)} MB at most (300), ${k.idleCpuMs.toFixed(0)} ms of processor time in two seconds after the last kill (200)`,
  );
}

const journal = (): Uint8Array =>
  withManifest(
    assemble(`(module ${hostImports('input_len', 'input_read', 'respond', 'kv_get', 'kv_set', 'fail')} (memory (export "memory") 1)
      (func $body (result i32) (drop (call $input_read (i32.const 1) (i32.const 1024) (i32.const 1024))) (call $input_len (i32.const 1)))
      (func (export "plugin_handle") (result i32) (local $n i32) (local $r i32)
        (local.set $n (call $body))
        ;; A body that begins with "?" asks for the key behind it, anything else is stored under itself.
        (if (i32.eq (i32.load8_u (i32.const 1024)) (i32.const 63))
          (then (local.set $r (call $kv_get (i32.const 1025) (i32.sub (local.get $n) (i32.const 1)))))
          (else (local.set $r (call $kv_set (i32.const 1024) (local.get $n) (i32.const 1024) (local.get $n) (i32.const 0)))))
        (drop (call $respond (if (result i32) (i32.lt_s (local.get $r) (i32.const 0)) (then (i32.const 500)) (else (i32.const 200)))
          (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)))
        (i32.const 0)))`),
    manifestOf({ id: 'journal', requirements: [{ kind: 'kv' }] }),
  );

/** Seeded kill -9 of the serving process and of PostgreSQL under writes: what was acknowledged is there afterwards. */
async function crashes(count: number): Promise<void> {
  const host = await startHost(directory);
  const acknowledged: string[] = [];
  let writing = true;
  try {
    await install(host.port, journal());
    const writer = async (w: number): Promise<void> => {
      for (let k = 0; writing; k++) {
        const key = `${w}-${k}`;
        const ok = await trigger(host.port, 'journal/run', {
          method: 'POST',
          body: key,
          signal: AbortSignal.timeout(8000),
        }).then(
          async r => {
            await r.arrayBuffer();
            return r.status === 200;
          },
          () => false,
        );
        if (ok) acknowledged.push(key);
        else await pause(20);
      }
    };
    let installs = 0;
    const installer = async (): Promise<void> => {
      while (writing) {
        await install(host.port, burner(`half_${next(5)}`)).then(
          () => installs++,
          () => {},
        );
        await pause(200);
      }
    };
    const busy = [...Array.from({ length: 4 }, (_, w) => writer(w)), installer()];
    // What was running at two crashes in a row is suspended, whatever caused them.
    const resumeAll = async (): Promise<void> => {
      for (const id of ['journal', 'hello', ...[0, 1, 2, 3, 4].map(n => `half_${n}`)])
        await admin(host.port, 'POST', `/plugins/${id}/resume`).then(
          r => r.arrayBuffer(),
          () => {},
        );
    };
    const back: number[] = [];
    const backSoon: number[] = [];
    let ofPostgres = 0;
    for (let k = 0; k < count; k++) {
      await resumeAll();
      // Half of the kills meet a process that has run for a while, half one that has just come back.
      const soon = next(2) === 0;
      await pause(soon ? 100 + next(1500) : 3200 + next(1000));
      const postgres = next(4) === 0;
      const file = path.join(host.data, 'postgres/postmaster.pid');
      const pid =
        postgres && fs.existsSync(file) ? Number(fs.readFileSync(file, 'latin1').split('\n')[0]) : servingPid(host);
      if (pid === 0) continue;
      const at = performance.now();
      try {
        signalDescendant(pid, 'SIGKILL');
      } catch {
        continue;
      }
      if (postgres) {
        ofPostgres++;
        // The next kill comes when it serves again: what is asked is that it comes back, not that it never goes.
        for (
          let i = 0;
          i < 600 &&
          (await trigger(host.port, 'journal/run', { method: 'POST', body: '?0-0' }).then(
            r => r.status,
            () => 0,
          )) >= 500;
          i++
        )
          await pause(20);
        continue;
      }
      while (
        (await trigger(host.port, 'hello/greet').then(
          r => r.status,
          () => 0,
        )) !== 200
      ) {
        await pause(5);
        if (performance.now() - at > 20_000) throw new Error('the service does not come back');
      }
      (soon ? backSoon : back).push(performance.now() - at);
    }
    writing = false;
    await Promise.all(busy);
    await resumeAll();
    let lost = 0;
    for (const key of acknowledged) {
      const r = await trigger(host.port, 'journal/run', { method: 'POST', body: `?${key}` });
      await r.arrayBuffer();
      if (r.status !== 200) lost++;
    }
    const plugins = (await (await admin(host.port, 'GET', '/plugins?limit=100')).json()) as {
      items: Array<{ id: string }>;
    };
    let half = 0;
    for (const { id } of plugins.items.filter(p => p.id.startsWith('half_'))) {
      const one = (await (await admin(host.port, 'GET', `/plugins/${id}`)).json()) as { installed_version: unknown };
      const answers = one.installed_version === null ? 404 : 504;
      if (one.installed_version !== null) await admin(host.port, 'POST', `/plugins/${id}/triggers/run/resume`);
      if ((await trigger(host.port, `${id}/run`)).status !== answers) half++;
    }
    back.sort((a, b) => a - b);
    backSoon.sort((a, b) => a - b);
    report(
      'crashes',
      lost === 0 && half === 0,
      `seed ${seed}: ${back.length + backSoon.length} kills of the serving process, ${ofPostgres} of PostgreSQL; ${acknowledged.length} acknowledged writes, ${lost} lost; ${installs} installs, ${half} half done`,
    );
    report(
      'crashes',
      (back.at(-1) ?? 0) < 1000,
      `answers again after ${back[back.length >> 1]?.toFixed(0)} ms (median), ${back.at(-1)?.toFixed(0)} ms (longest; at most 1000); when killed again within 1.6 s ${backSoon[backSoon.length >> 1]?.toFixed(0)} and ${backSoon.at(-1)?.toFixed(0)} ms`,
    );
  } finally {
    writing = false;
    await host.stop();
  }
  const left = fs.readdirSync('/proc').filter(p => /^\d+$/.test(p) && readCommand(p).includes(directory));
  report('crashes', left.length === 0, `processes left after the supervisor ended: ${left.length}`);
}

function readCommand(pid: string): string {
  try {
    return fs.readFileSync(`/proc/${pid}/cmdline`, 'latin1');
  } catch {
    return '';
  }
}

const HOSTILE: Record<string, string> = {
  loop: '(loop $l (br $l)) (i32.const 0)',
  trap: '(unreachable)',
  eater:
    '(loop $l (br_if $l (i32.ne (memory.grow (i32.const 64)) (i32.const -1)))) (memory.fill (i32.const 0) (i32.const 1) (i32.const 60000000)) (i32.const 0)',
  recurse: '(call $deep)',
};

/**
 * Hours in minutes: honest traffic with and without 5 % hostile requests; memory after the warm-up and the tail. Half of it
 * lets hostile triggers in again every five seconds, half of it leaves them to the host, which suspends them.
 */
async function soak(minutes: number): Promise<void> {
  const host = await startHost(directory, { BOT_EXECUTION_TIMEOUT_MS: '1000' });
  try {
    for (const [id, code] of Object.entries(HOSTILE))
      await install(
        host.port,
        withManifest(
          assemble(
            `(module (memory (export "memory") 1) (func $deep (result i32) (call $deep)) (func (export "plugin_handle") (result i32) ${code}))`,
          ),
          manifestOf({ id }),
        ),
      );
    // A few hundred requests a second, so that latency tells of the host and not of a full machine.
    const honest = async (
      seconds: number,
      hostile: 'none' | 'suspended' | 'lifted',
    ): Promise<{ p99: number; failed: number; n: number }> => {
      const until = performance.now() + seconds * 1000;
      const times: number[] = [];
      let bad = 0;
      const client = async (): Promise<void> => {
        while (performance.now() < until) {
          if (hostile !== 'none' && next(20) === 0) {
            const id = Object.keys(HOSTILE)[next(4)] ?? 'trap';
            void trigger(host.port, `${id}/run`).then(
              r => r.arrayBuffer(),
              () => {},
            );
          }
          const at = performance.now();
          const ok = await trigger(host.port, 'hello/greet').then(
            r => r.arrayBuffer().then(() => r.status === 200),
            () => false,
          );
          if (!ok) bad++;
          times.push(performance.now() - at);
          await pause(next(20));
        }
      };
      const lift = setInterval(() => {
        if (hostile !== 'lifted') return;
        for (const id of Object.keys(HOSTILE))
          void admin(host.port, 'POST', `/plugins/${id}/triggers/run/resume`).then(
            r => r.arrayBuffer(),
            () => {},
          );
      }, 5000);
      await Promise.all(Array.from({ length: 4 }, client));
      clearInterval(lift);
      times.sort((a, b) => a - b);
      return { p99: times[Math.floor(times.length * 0.99)] ?? 0, failed: bad, n: times.length };
    };
    await honest(30, 'lifted');
    const pid = servingPid(host);
    const readings: number[] = [];
    const lifted: number[] = [];
    let [bad, n] = [0, 0];
    for (let m = 0; m < minutes; m++) {
      const h = await honest(60, 'lifted');
      lifted.push(h.p99);
      bad += h.failed;
      n += h.n;
      // What still runs, an eater of memory perhaps, is no growth.
      await pause(3000);
      readings.push(memoryMb(pid));
      console.log(
        `       minute ${m + 1}: p99 ${h.p99.toFixed(1)} ms, ${h.failed} of ${h.n} failed, ${readings.at(-1)?.toFixed(0)} MB, ${threads(pid)} threads`,
      );
    }
    const third = Math.max(1, Math.floor(minutes / 3));
    const mean = (v: number[]): number => v.reduce((a, b) => a + b, 0) / v.length;
    const grown = mean(readings.slice(-third)) - mean(readings.slice(0, third));
    const quiet = await honest(60, 'none');
    const suspended = await honest(minutes * 60, 'suspended');
    bad += suspended.failed;
    n += suspended.n;
    const against = (p99: number): string =>
      `${p99.toFixed(1)} ms, ${quiet.p99.toFixed(1)} ms without (${(p99 / quiet.p99).toFixed(2)} x`;
    report(
      'soak',
      bad === 0 && servingPid(host) === pid,
      `seed ${seed}: ${minutes} min, ${n} honest requests, ${bad} failed; the process never ended: ${servingPid(host) === pid}`,
    );
    report(
      'soak',
      suspended.p99 <= quiet.p99 * 1.5,
      `honest p99 with hostile traffic ${against(suspended.p99)}, at most 1.5)`,
    );
    report(
      'soak',
      median(lifted) <= quiet.p99 * 1.5,
      `honest p99 while every suspension is lifted after 5 s ${against(median(lifted))}, at most 1.5)`,
    );
    report(
      'soak',
      grown < 30,
      `memory of the last third against the first: ${grown >= 0 ? '+' : ''}${grown.toFixed(1)} MB`,
    );
  } finally {
    await host.stop();
  }
}

/** A file of a gibibyte through every step, on disk and in S3; the memory of the serving process meanwhile. */
async function gigabyte(count: number): Promise<void> {
  for (const onS3 of [false, true]) {
    const of = path.join(directory, onS3 ? 'gigabyte-s3' : 'gigabyte');
    fs.mkdirSync(of, { mode: 0o711 });
    const s3 = onS3 ? await startS3Server(path.join(of, 's3')) : null;
    const host = await startHost(of, s3?.env ?? {});
    try {
      await gigabyteOn(host, of, onS3 ? 'S3' : 'disk', count);
    } finally {
      await host.stop();
      await s3?.stop();
      fs.rmSync(of, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
    }
  }
}

async function gigabyteOn(host: Host, at: string, where: string, count: number): Promise<void> {
  const caller = await makeCaller(host.port);
  await installFilebox(host.port, caller);
  await transfer(host.port, caller, await makeSource(at, 32 * 1024 * 1024));
  const source = await makeSource(at, 1024 * 1024 * 1024);
  const pid = servingPid(host);
  const before = memoryMb(pid);
  for (let k = 0; k < count; k++) {
    let most = before;
    const timer = setInterval(() => {
      most = Math.max(most, memoryMb(pid));
    }, 20);
    const t = await transfer(host.port, caller, source);
    clearInterval(timer);
    report(
      'gigabyte',
      most - before < 120,
      `1 GiB on ${where}: copy ${t.copyMbs.toFixed(0)}, upload ${t.uploadMbs.toFixed(0)}, read by the plugin ${t.readMbs.toFixed(0)}, link ${t.linkMbs.toFixed(0)} MB/s, complete ${t.completeMs.toFixed(0)} ms; memory ${before.toFixed(0)} MB before, ${most.toFixed(0)} at most (+120)`,
    );
  }
}

/** Files that come in while the serving process is killed: nothing acknowledged is lost, nothing is half there. */
/** A university of so many students is pulled into an empty database, and again; 100,000 records come in one request. */
async function universities(students: number): Promise<void> {
  const sizes = { seed, students, groups: Math.round(students / 15), teachers: Math.round(students / 20) };
  const r = await pullUniversity(path.join(directory, 'university'), sizes);
  const changed = r.second.run.types.reduce((n, t) => n + t.created + t.updated, 0);
  report(
    'university',
    r.first.run.state === 'succeeded' && changed === 0 && r.second.outboxEntries === 0 && r.checks.length === 0,
    `${r.first.records} records in ${r.first.seconds.toFixed(0)} s, the graph ${r.first.lagSeconds.toFixed(0)} s behind; again in ${r.second.seconds.toFixed(1)} s, ${changed} changed, ${r.second.outboxEntries} entries; p99 of triggers ${r.quietP99.toFixed(1)} ms quiet, ${r.first.p99.toFixed(1)} and ${r.second.p99.toFixed(1)} ms during the import; memory ${r.memoryBefore.toFixed(0)} MB before, ${r.first.memoryMb.toFixed(0)} at most; spot checks: ${r.checks.length === 0 ? 'right' : r.checks.join('; ')}`,
  );
  const large = await largeBatch(path.join(directory, 'batch'), 100_000);
  report(
    'university',
    large.most - large.before < 150,
    `100,000 persons in one request: ${large.perSecond.toFixed(0)}/s, memory ${large.before.toFixed(0)} MB before, ${large.most.toFixed(0)} at most`,
  );
}

async function uploads(count: number): Promise<void> {
  for (const onS3 of [false, true]) {
    const r = await uploadsUnderKills(path.join(directory, onS3 ? 'on-s3' : 'on-disk'), count, onS3, next);
    report(
      'uploads',
      r.lost + r.half + r.strange === 0,
      `seed ${seed}: ${onS3 ? 'S3' : 'disk'}, ${r.kills} kills, ${r.complete} completions acknowledged; ${r.lost} lost, ${r.half} half, ${r.strange} objects and files that do not belong together after cleaning`,
    );
  }
}

/** Three hosts of one database, something fails, a right is taken back: no caller is let in by it more than five seconds later. */
async function stale(count: number): Promise<void> {
  await staleAnswers(path.join(directory, 'stale'), count, next, r =>
    report(
      'stale',
      r.late === 0,
      `${r.fault}, ${r.kind} taken back: ${r.asked} asked, ${r.late} let in later than 5 s, the last after ${r.lastMs.toFixed(0)} ms; all hosts let in again after ${r.recoveredMs.toFixed(0)} ms`,
    ),
  );
  console.log(`       stale seed ${seed}`);
}

/** Three hosts in network namespaces are killed and cut off in turn: nothing is lost, and the others take over. */
async function hosts(count: number): Promise<void> {
  const f = await hostsApart(path.join(directory, 'hosts'), count, r =>
    report(
      'hosts',
      isRight(r),
      `${r.victim} ${r.fault} (${r.duties.join(', ')}): events waited ${r.eventMs.toFixed(0)} ms at most, messages ${r.messageMs.toFixed(0)}, pulls ${r.pullMs.toFixed(0)}, rights ${r.grantMs.toFixed(0)}; ${r.asked} asked of the others, ${r.failed.length} failed ${[...new Set(r.failed)].slice(0, 5).join('; ')}; ${r.late} let in too late; back after ${r.backMs.toFixed(0)} ms`,
    ),
  );
  report(
    'hosts',
    f.lostWrites + f.lostEvents + f.lostMessages + f.lostImports.length === 0 && f.drift === '',
    `acknowledged and lost: ${f.writes} writes, ${f.lostWrites}; ${f.events} events, ${f.lostEvents}; ${f.messages} messages, ${f.lostMessages}; ${f.imports} imports, ${f.lostImports.join('; ') || 0}; drift ${f.drift === '' ? 'none' : f.drift}`,
  );
}

/** Nothing of an execution is left for the next, in any language, and no random number is drawn twice. */
async function isolation(count: number): Promise<void> {
  const found = await attackLanguages(count, directory, next, missingIn('isolation'));
  for (const r of found) reportIsolation('isolation', r);
}

const missingIn =
  (name: string) =>
  (language: string, why: string): void =>
    report(name, false, `${language} is missing: ${why}`);

/** The same attack on the plugins that do everything a kit offers. */
async function conformance(count: number): Promise<void> {
  const found = attackConformance(count, directory, next, missingIn('conformance'));
  for await (const r of found) reportIsolation('conformance', r);
}

function reportIsolation(name: string, r: Isolation): void {
  report(
    name,
    r.leaks.length === 0 && r.repeated === 0,
    `seed ${seed}: ${r.language}, ${r.executions} executions, ${r.again} gave their memory to the next; leaks: ${r.leaks.length === 0 ? 'none' : r.leaks.join('; ')}; random numbers drawn twice: ${r.repeated}`,
  );
}

/** Many installed plugins, called in turn: the memory stays within the budget, and nothing fails. */
async function plugins(count: number): Promise<void> {
  const r = await manyPlugins(directory, count);
  report(
    'plugins',
    r.failed.length === 0 && r.mostMb <= r.budgetMb,
    `${r.plugins} plugins, ${r.go} in Go, ${r.called} calls in turn: memory ${r.mostMb.toFixed(0)} MB at most of a budget of ${r.budgetMb}; failed ${r.failed.length} ${r.failed.slice(0, 3).join('; ')}`,
  );
}

/** A comparison of the graph with the database takes no revocation for a difference, and none is granted after it. */
async function drift(count: number): Promise<void> {
  const r = await driftBesideRevocations(path.join(directory, 'drift'), count);
  report(
    'drift',
    // One that comes while the embedded store is replaced waits until the new one is filled, and its answer says so.
    r.differences.length + r.late === 0,
    `${r.compared[0]} relationships, ${r.compared[1]} at the end; a comparison took ${r.comparisonMs.toFixed(0)} ms; ${r.revoked} taken back meanwhile, in ${r.revokeMs.toFixed(1)} ms (${r.revokeMsMost.toFixed(0)} at most, ${r.quietMs.toFixed(1)} without a comparison); ${r.undelivered} not delivered within the wait, as answered; ${r.late} still granted; differences: ${r.differences.slice(0, 5).join(', ') || 'none'}`,
  );
}

/** A plugin that was uninstalled after a backup is as it was when that is restored, its rights in the graph included. */
async function restores(count: number): Promise<void> {
  for (let k = 0; k < count; k++) {
    const wrong = await restoreAfterUninstall(path.join(directory, `restore-${k}`));
    report(
      'restores',
      wrong.length === 0,
      `uninstalled after a backup, then restored: ${wrong.join('; ') || 'as it was'}`,
    );
  }
}

const figures: Record<string, [number, (count: number) => Promise<void>]> = {
  loops: [1, () => loops()],
  kills: [100, kills],
  eaters: [20, eaters],
  small: [20_000, small],
  crashes: [200, crashes],
  mutants: [1_000_000, mutants],
  isolation: [1_000_000, isolation],
  conformance: [1_000_000, conformance],
  plugins: [1000, plugins],
  stale: [28, stale],
  drift: [40_000, drift],
  restores: [3, restores],
  hosts: [12, hosts],
  compile: [2000, compile],
  uploads: [40, uploads],
  gigabyte: [1, gigabyte],
  university: [30_000, universities],
  soak: [30, soak],
};
try {
  for (const [name, [count, run]] of Object.entries(figures)) {
    if (only === undefined ? name === 'soak' : name !== only) continue;
    await run(countGiven === undefined ? count : Number(countGiven));
  }
} finally {
  fs.rmSync(directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
}
process.exit(failed === 0 ? 0 : 1);
