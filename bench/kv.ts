import { openDatabase } from '../src/db/database.ts';
import { assemble, hostImports, manifestOf, withManifest } from '../test/support/wat.ts';
import { install } from './host.ts';
import { closedLoop, type Load } from './load.ts';
import { startPeer, stopPeers } from './peers.ts';
import { add, median, spread } from './report.ts';
import { GREET } from './throughput.ts';

const KV_CALLS = 200;
const kvPlugin = (): Uint8Array =>
  withManifest(
    assemble(`(module ${hostImports('respond', 'kv_get', 'kv_set')} (memory (export "memory") 1) (data (i32.const 64) "k") (data (i32.const 128) "a value of some length for the benchmark")
      (func (export "plugin_handle") (result i32) (local $i i32)
        (drop (call $kv_set (i32.const 64) (i32.const 1) (i32.const 128) (i32.const 39) (i32.const 0)))
        (loop $l (drop (call $kv_get (i32.const 64) (i32.const 1)))
          (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const ${KV_CALLS}))))
        (drop (call $respond (i32.const 200) (i32.const 0) (i32.const 0) (i32.const 64) (i32.const 1))) (i32.const 0)))`),
    manifestOf({ id: 'kvbench', requirements: [{ kind: 'kv' }] }),
  );
/** One `kv_get` of one of 256 keys, by chance, and a `kv_set` of the same key if it `sets`. */
const kvTrigger = (id: string, sets: boolean): Uint8Array =>
  withManifest(
    assemble(`(module ${hostImports('respond', 'kv_get', 'kv_set', 'result_read')}
      (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
      (memory (export "memory") 1) (data (i32.const 64) "k-") (data (i32.const 128) "a value of some length for the benchmark")
      (func (export "plugin_handle") (result i32) (local $n i32)
        (drop (call $random (i32.const 66) (i32.const 1)))
        (i32.store8 (i32.const 67) (i32.add (i32.const 97) (i32.shr_u (i32.load8_u (i32.const 66)) (i32.const 4))))
        (i32.store8 (i32.const 66) (i32.add (i32.const 97) (i32.and (i32.load8_u (i32.const 66)) (i32.const 15))))
        (local.set $n (call $kv_get (i32.const 64) (i32.const 4)))
        (if (i32.gt_s (local.get $n) (i32.const 0)) (then (drop (call $result_read (i32.const 1024) (local.get $n)))))
        ${sets ? '(if (call $kv_set (i32.const 64) (i32.const 4) (i32.const 128) (i32.const 39) (i32.const 0)) (then unreachable))' : ''}
        (drop (call $respond (i32.const 200) (i32.const 0) (i32.const 0) (i32.const 64) (i32.const 4))) (i32.const 0)))`),
    manifestOf({ id, requirements: [{ kind: 'kv' }] }),
  );

/** What a blocking host call costs with its query, against the query alone. */
export async function hostCalls(port: number, databaseUrl: string): Promise<void> {
  await install(port, kvPlugin());
  const url = `http://127.0.0.1:${port}/api/triggers/http/kvbench/run`;
  // Both sides run code that V8 has optimised by then.
  for (let k = 0; k < 40; k++) await (await fetch(url)).text();
  const db = openDatabase(databaseUrl, 1, () => {});
  const query = {
    name: 'g',
    text: 'SELECT value FROM plugin_kv WHERE plugin_id = $1 AND key = $2 AND (expires_at IS NULL OR expires_at > now())',
    values: ['kvbench', 'k'],
  };
  for (let k = 0; k < 40 * KV_CALLS; k++) await db.query(query);
  const plain: number[] = [];
  const inside: number[] = [];
  for (let round = 0; round < 25; round++) {
    let at = performance.now();
    for (let k = 0; k < KV_CALLS; k++) await db.query(query);
    plain.push(((performance.now() - at) * 1000) / KV_CALLS);
    at = performance.now();
    await (await fetch(url)).text();
    inside.push(((performance.now() - at) * 1000) / KV_CALLS);
  }
  await db.close();
  add(
    'kv_get from a plugin',
    `${median(inside).toFixed(0)} us`,
    `the same query from plain Node ${median(plain).toFixed(0)} us`,
  );
  add('kv_get from a plugin / the same query from plain Node', `${(median(inside) / median(plain)).toFixed(2)} x`, {
    atMost: 1.5,
    aim: 1.1,
    unit: 'x',
  });
}

/** Until the rate does not grow any more: executions that wait spread over lanes, and V8 optimises each of them by itself. */
async function warm(port: number, path: string): Promise<void> {
  let best = 0;
  for (let k = 0, worse = 0; k < 20 && worse < 3; k++) {
    const { perSecond } = await closedLoop(port, path, 64, 1);
    worse = perSecond > best * 1.03 ? 0 : worse + 1;
    best = Math.max(best, perSecond);
  }
}

const FRESH_SECONDS = 5;

/** The rate of a plugin in the fifth second of its first load. */
async function freshRate(port: number, path: string): Promise<number> {
  let rate = 0;
  for (let second = 0; second < FRESH_SECONDS; second++) rate = (await closedLoop(port, path, 64, 1)).perSecond;
  return rate;
}

const READS = '/api/triggers/http/kvreads/run';
const WRITES = '/api/triggers/http/kvwrites/run';

/**
 * Requests of triggers that ask the key-value store, in turns with those of the sample, and with the same answers of a handler written by
 * hand (uWebSockets.js and `pg`, the same statements).
 */
export async function kvTriggers(port: number, databaseUrl: string, rounds: number, seconds: number): Promise<void> {
  await install(port, kvTrigger('kvreads', false));
  await install(port, kvTrigger('kvwrites', true));
  const byHand = await startPeer('by-hand', databaseUrl);
  try {
    const fresh = await freshRate(port, READS);
    for (const path of [GREET, WRITES, READS]) for (const at of [port, byHand]) await warm(at, path);
    const loads = new Map<string, Load[]>();
    let failed = 0;
    for (let round = 0; round < rounds; round++)
      for (const path of [GREET, WRITES, READS])
        for (const at of [port, byHand]) {
          const load = await closedLoop(at, path, 64, seconds);
          failed += load.failed;
          const key = `${at} ${path}`;
          loads.set(key, [...(loads.get(key) ?? []), load]);
        }
    const rates = (at: number, path: string): number[] => (loads.get(`${at} ${path}`) ?? []).map(l => l.perSecond);
    const against = (path: string, at: number, other: string): string => {
      const others = rates(at, other);
      return spread(
        rates(port, path).map((rate, k) => rate / (others[k] ?? 1)),
        2,
      );
    };
    for (const [name, path] of [
      ['the sample', GREET],
      ['one kv_get', READS],
      ['kv_get and kv_set', WRITES],
    ] as const)
      add(`${name}: requests/s, by hand`, spread(rates(port, path), 0), `by hand ${spread(rates(byHand, path), 0)}`);
    const also = `failed ${failed}`;
    add('the sample / by hand', against(GREET, byHand, GREET), { atLeast: 0.33, aim: 0.5, also });
    add('a trigger with one kv_get / by hand', against(READS, byHand, READS), { atLeast: 0.75, aim: 1 });
    add('a trigger with kv_get and kv_set / by hand', against(WRITES, byHand, WRITES), { atLeast: 0.75, aim: 1 });
    add('a fresh trigger with one kv_get: its fifth second / later', (fresh / median(rates(port, READS))).toFixed(2), {
      atLeast: 0.8,
      aim: 1,
    });
    add('a trigger with one kv_get / the sample', against(READS, port, GREET), { atLeast: 0.45, aim: 0.6 });
    add('a trigger with kv_get and kv_set / the sample', against(WRITES, port, GREET), { atLeast: 0.2, aim: 0.35 });
  } finally {
    stopPeers();
  }
}
