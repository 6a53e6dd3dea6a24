import http from 'node:http';
import { inspectModule } from '../src/plugins/inspect.ts';
import { buildExample } from '../test/support/sdk.ts';
import { assemble, hostImports, manifestOf, withManifest } from '../test/support/wat.ts';
import { ExecutionState } from '../workers/execution-state.ts';
import { GuestMemory } from '../workers/guest-memory.ts';
import { makeHostImports } from '../workers/host-imports.ts';
import { PluginRuntime } from '../workers/plugin-runtime.ts';
import { admin, install } from './host.ts';
import { closedLoop } from './load.ts';
import { add, median } from './report.ts';
import { GREET } from './throughput.ts';

/** Time of an execution inside a lane, without queues and HTTP. */
export async function instanceTimes(): Promise<void> {
  const { rewritten } = inspectModule(await buildExample('hello'));
  if (rewritten === null) throw new Error('the sample is refused');
  const module = new WebAssembly.Module(Uint8Array.from(rewritten.bytes));
  const loaded = {
    id: 1,
    versionId: 1,
    pluginId: 'hello',
    module,
    memoryPages: rewritten.memoryPages,
    overwritten: rewritten.overwritten,
    config: {},
  };
  const control = new WebAssembly.Memory({ initial: 1, maximum: 1 });
  const state = new ExecutionState(new Int32Array(control.buffer));
  const guest = new GuestMemory(state.control);
  const channel = { keepBody: () => null, call: () => -5 };
  const imports = makeHostImports(state, guest, channel);
  const shared = { plugin_host: imports, wasi_snapshot_preview1: {}, control, controlWords: state.control };
  const event = Buffer.from(
    '{"kind":"http","trigger":"greet","request_id":"x","deadline_ms":5000,"http":{"method":"GET","path":"/greet","query":{},"headers":{"host":"127.0.0.1:8080"},"remote_addr":"127.0.0.1","auth":null,"params":{}}}',
  );
  state.event.set(event, 0, event.length);
  for (const recycle of [true, false]) {
    const runtime = new PluginRuntime(loaded, shared, recycle);
    const times: number[] = [];
    for (let round = 0; round < 5; round++) {
      const n = 20_000;
      const at = performance.now();
      for (let k = 0; k < n; k++) {
        state.reset();
        runtime.run(guest);
        runtime.release(true);
      }
      times.push(((performance.now() - at) * 1000) / n);
    }
    add(`execution of the sample alone, memory ${recycle ? 'recycled' : 'fresh'}`, `${median(times).toFixed(1)} us`);
  }
}

const sleeper = (): Uint8Array =>
  withManifest(
    assemble(`(module ${hostImports('respond')} (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
      (memory (export "memory") 1)
      (func (export "plugin_handle") (result i32)
        (i32.store (i32.const 1040) (i32.const 1)) (i64.store (i32.const 1048) (i64.const 50000000))
        (drop (call $poll (i32.const 1024) (i32.const 2048) (i32.const 1) (i32.const 4096)))
        (drop (call $respond (i32.const 200) (i32.const 0) (i32.const 0) (i32.const 64) (i32.const 1))) (i32.const 0)))`),
    manifestOf({ id: 'sleeper' }),
  );
const burner = (): Uint8Array =>
  withManifest(
    assemble(
      `(module (memory (export "memory") 1) (func (export "plugin_handle") (result i32) (loop $l (br $l)) (i32.const 0)))`,
    ),
    manifestOf({ id: 'burner' }),
  );

const grower = (id: string, pages: number): Uint8Array =>
  withManifest(
    assemble(
      `(module (memory (export "memory") 1) (func (export "plugin_handle") (result i32)
        (loop $l (br_if $l (i32.ne (memory.grow (i32.const ${pages})) (i32.const -1)))) (i32.const 0)))`,
    ),
    manifestOf({ id }),
  );

/** The status a caller at one of this machine's addresses is answered. */
const statusFrom = (localAddress: string, port: number, trigger: string): Promise<number | undefined> =>
  new Promise((resolve, reject) => {
    const request = http.get(
      { localAddress, port, host: '127.0.0.1', path: `/api/triggers/http/${trigger}` },
      answer => {
        answer.resume().once('end', () => resolve(answer.statusCode));
      },
    );
    request.once('error', reject);
  });

/** What sleeping and burning executions leave to others. */
export async function contention(port: number, seconds: number): Promise<void> {
  await install(port, sleeper());
  const l = await closedLoop(port, '/api/triggers/http/sleeper/run', 64, seconds);
  add(
    '64 clients of a plugin that sleeps 50 ms (one caller has 7 slots: 140/s at best)',
    `${l.perSecond.toFixed(0)}/s`,
    `failed ${l.failed}`,
  );
  await install(port, burner());
  const shares: number[] = [];
  const tails: number[] = [];
  for (let round = 0; round < 3; round++) {
    // Eight timeouts suspend the trigger.
    await admin(port, 'POST', '/plugins/burner/triggers/run/resume');
    const quiet = await closedLoop(port, GREET, 16, seconds);
    // Two callers, since one alone leaves a slot free.
    const asking = Array.from({ length: 8 }, (_, k) =>
      statusFrom(k < 4 ? '127.0.0.1' : '127.0.0.2', port, 'burner/run'),
    );
    await new Promise(resolve => setTimeout(resolve, 300));
    const noisy = await closedLoop(port, GREET, 16, Math.min(seconds, 4));
    const statuses = await Promise.all(asking);
    if (statuses.some(s => s !== 504)) throw new Error(`burners answered ${statuses.join(', ')}`);
    shares.push(noisy.perSecond / quiet.perSecond);
    tails.push(noisy.p99 / quiet.p99);
  }
  add("honest plugin's throughput next to 8 burning executions / quiet", median(shares).toFixed(2), {
    atLeast: 0.4,
    aim: 0.6,
  });
  add("honest plugin's p99 meanwhile / quiet", `${median(tails).toFixed(1)} x`, { atMost: 5, aim: 2.5, unit: 'x' });
}

/** A language's allocator grows memory bit by bit; that must not cost more than the memory itself. */
export async function growth(port: number): Promise<void> {
  await install(port, grower('steps', 64));
  await install(port, grower('once', 8191));
  const time = async (id: string): Promise<number> => {
    const at = performance.now();
    const r = await fetch(`http://127.0.0.1:${port}/api/triggers/http/${id}/run`);
    await r.arrayBuffer();
    if (!r.ok) throw new Error(`${id} answered ${r.status}`);
    return performance.now() - at;
  };
  const steps: number[] = [];
  const once: number[] = [];
  for (let k = 0; k < 15; k++) {
    steps.push(await time('steps'));
    once.push(await time('once'));
  }
  add('memory grown to 512 MB in 128 steps, in one', `${median(steps).toFixed(0)}, ${median(once).toFixed(0)} ms`);
}
