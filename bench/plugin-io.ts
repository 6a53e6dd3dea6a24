import { openDatabase } from '../src/db/database.ts';
import { assemble, hostImports, manifestOf, withManifest } from '../test/support/wat.ts';
import { install } from './host.ts';
import { add, median } from './report.ts';

const CALLS = 200;
const ROUNDS = 25;
const SQL = 'SELECT $1::int8 AS id, $2::text AS name';
const ARGS = '[9007199254740993, "Ada"]';

/** Runs one query `CALLS` times on one connection. */
const querying = (): Uint8Array =>
  withManifest(
    assemble(`(module ${hostImports('respond', 'sql_open', 'sql_query', 'result_read')} (memory (export "memory") 1)
      (data (i32.const 64) ${JSON.stringify(SQL)}) (data (i32.const 256) ${JSON.stringify(ARGS)})
      (func (export "plugin_handle") (result i32) (local $i i32) (local $h i32) (local $n i32)
        (local.set $h (call $sql_open (i32.const 0) (i32.const 0)))
        (loop $l
          (local.set $n (call $sql_query (local.get $h) (i32.const 64) (i32.const ${SQL.length}) (i32.const 256) (i32.const ${ARGS.length}) (i32.const 0)))
          (if (i32.lt_s (local.get $n) (i32.const 0)) (then unreachable))
          (drop (call $result_read (i32.const 1024) (local.get $n)))
          (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const ${CALLS}))))
        (drop (call $respond (i32.const 200) (i32.const 0) (i32.const 0) (i32.const 64) (i32.const 1))) (i32.const 0)))`),
    manifestOf({ id: 'sqlbench', requirements: [{ kind: 'sql' }] }),
  );

/** Calls another plugin `CALLS` times. */
const calling = (): Uint8Array =>
  withManifest(
    assemble(`(module ${hostImports('respond', 'plugin_call')} (memory (export "memory") 1) (data (i32.const 64) "callee")
      (func (export "plugin_handle") (result i32) (local $i i32)
        (loop $l
          (if (i32.lt_s (call $plugin_call (i32.const 64) (i32.const 6) (i32.const 64) (i32.const 6) (i32.const 64) (i32.const 6)) (i32.const 0)) (then unreachable))
          (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const ${CALLS}))))
        (drop (call $respond (i32.const 200) (i32.const 0) (i32.const 0) (i32.const 64) (i32.const 1))) (i32.const 0)))`),
    manifestOf({ id: 'callbench', requirements: [{ kind: 'plugins:call', target: 'callee' }] }),
  );
const called = (): Uint8Array =>
  withManifest(
    assemble(`(module ${hostImports('respond', 'output')} (memory (export "memory") 1)
      (func (export "plugin_handle") (result i32)
        (drop (call $output (i32.const 64) (i32.const 6)))
        (drop (call $respond (i32.const 200) (i32.const 0) (i32.const 0) (i32.const 64) (i32.const 1))) (i32.const 0)))`),
    manifestOf({ id: 'callee' }),
  );

/** Microseconds of one of `CALLS`, from inside a plugin and from here, in turns; the first rounds warm both up. */
async function compare(url: string, plain: () => Promise<unknown>): Promise<{ inside: number; plain: number }> {
  const [inside, outside]: [number[], number[]] = [[], []];
  for (let round = 0; round < 2 * ROUNDS; round++) {
    let at = performance.now();
    for (let k = 0; k < CALLS; k++) await plain();
    outside.push(((performance.now() - at) * 1000) / CALLS);
    at = performance.now();
    const answer = await fetch(url);
    await answer.arrayBuffer();
    if (answer.status !== 200) throw new Error(`${url}: ${answer.status}`);
    inside.push(((performance.now() - at) * 1000) / CALLS);
  }
  return { inside: median(inside.slice(ROUNDS)), plain: median(outside.slice(ROUNDS)) };
}

/** What a plugin's query and its call of another plugin cost, and the same from plain Node. */
export async function pluginIo(port: number, databaseUrl: string): Promise<void> {
  const base = `http://127.0.0.1:${port}/api/triggers/http`;
  await install(port, querying(), { databases: { default: databaseUrl } });
  const db = openDatabase(databaseUrl, 1, () => {});
  const values = ['9007199254740993', 'Ada'];
  const sql = await compare(`${base}/sqlbench/run`, () => db.query(SQL, values));
  await db.close();
  add(
    'sql_query from a plugin',
    `${sql.inside.toFixed(0)} us`,
    `the same query from plain Node ${sql.plain.toFixed(0)} us`,
  );
  add('sql_query from a plugin / the same query from plain Node', `${(sql.inside / sql.plain).toFixed(2)} x`);
  await install(port, called());
  await install(port, calling());
  const call = await compare(`${base}/callbench/run`, async () => (await fetch(`${base}/callee/run`)).arrayBuffer());
  add(
    'plugin_call',
    `${call.inside.toFixed(0)} us`,
    `a request to the same plugin from plain Node ${call.plain.toFixed(0)} us`,
  );
}
