import t from 'tap';
import { MANY_LANES, startTestService, type TestService } from '../support/service.ts';
import { watPlugin } from '../support/wat.ts';

const PAGES = 3;

/**
 * Answers how many bytes of its whole memory are not zero outside its own data, its global, the memory's size and what
 * its table holds; then it soils all of it and ends the way the query asks for.
 */
const spy = (id: string): Uint8Array =>
  watPlugin({
    id,
    imports: ['respond', 'input_len', 'input_read'],
    moreImports: '(import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))',
    memory: String(PAGES),
    body: `
      (data (i32.const 100) "init")
      (global $g (mut i32) (i32.const 7))
      (table $t 4 16 funcref)
      (elem (i32.const 0) $one)
      (func $one (result i32) (i32.const 1))
      (func $dirty (result i32) (local $p i32) (local $n i32)
        (block $end (loop $l
          (br_if $end (i32.ge_u (local.get $p) (i32.mul (memory.size) (i32.const 65536))))
          (if (i64.ne (i64.load (local.get $p)) (i64.const 0)) (then (local.set $n (i32.add (local.get $n) (i32.const 1)))))
          (local.set $p (i32.add (local.get $p) (i32.const 8)))
          (br $l)))
        (local.get $n))`,
    handle: `(local $n i32) (local $pages i32) (local $init i32) (local $mode i32)
      (local.set $n (call $dirty))
      (local.set $pages (memory.size))
      (local.set $init (i32.load (i32.const 100)))
      (drop (call $input_read (i32.const 1) (i32.const 1024) (i32.const 1)))
      (local.set $mode (i32.load8_u (i32.const 1024)))
      ;; answer: dirty words, pages, global, data, table[0] null?, table[1] null?, table size
      (i32.store (i32.const 2048) (local.get $n))
      (i32.store (i32.const 2052) (local.get $pages))
      (i32.store (i32.const 2056) (global.get $g))
      (i32.store (i32.const 2060) (local.get $init))
      (i32.store (i32.const 2064) (ref.is_null (table.get $t (i32.const 0))))
      (i32.store (i32.const 2068) (ref.is_null (table.get $t (i32.const 1))))
      (i32.store (i32.const 2072) (table.size $t))
      (drop (call $respond (i32.const 200) (i32.const 0) (i32.const 0) (i32.const 2048) (i32.const 28)))
      (global.set $g (i32.const 99))
      (table.set $t (i32.const 0) (ref.null func))
      (table.set $t (i32.const 1) (ref.func $one))
      (drop (table.grow $t (ref.func $one) (i32.const 4)))
      (if (i32.eq (local.get $mode) (i32.const 103)) (then (drop (memory.grow (i32.const 5)))))
      (memory.fill (i32.const 0) (i32.const 255) (i32.mul (memory.size) (i32.const 65536)))
      (if (i32.eq (local.get $mode) (i32.const 116)) (then unreachable))
      (if (i32.eq (local.get $mode) (i32.const 101)) (then (call $exit (i32.const 1))))
      (if (i32.eq (local.get $mode) (i32.const 107)) (then (loop $l (br $l))))
      (i32.const 0)`,
  });

/** A mode: normal, grow, trap, exit, kill. */
type Mode = 'n' | 'g' | 't' | 'e' | 'k';

async function ask(s: TestService, id: string, mode: Mode): Promise<{ status: number; seen: number[] | null }> {
  const r = await fetch(`${s.base}/api/triggers/http/${id}/run`, { method: 'POST', body: mode });
  const bytes = Buffer.from(await r.arrayBuffer());
  return {
    status: r.status,
    seen: r.status === 200 ? Array.from({ length: 7 }, (_, k) => bytes.readUInt32LE(4 * k)) : null,
  };
}

/** Only the four bytes of its own data may be set at the start of an execution. */
const CLEAN = [1, PAGES, 7, Buffer.from('init').readUInt32LE(0), 0, 1, 4];

for (const memory of ['recycled', 'fresh']) {
  t.test(`nothing of one execution is visible to the next (execution.memory: ${memory})`, async t => {
    // A short deadline, so that killed executions do not make the test long; two lanes, so that memories are used again.
    const s = await startTestService({
      BOT_EXECUTION_MEMORY: memory,
      BOT_EXECUTION_TIMEOUT_MS: '300',
      BOT_EXECUTION_LANES: '8',
    });
    t.teardown(() => s.stop());
    const seed = Math.floor(Math.random() * 2 ** 31);
    t.comment(`seed ${seed}`);
    let state = seed;
    const next = (n: number): number => {
      state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
      return (state >>> 8) % n;
    };
    const ids = ['spy_a', 'spy_b'];
    for (const id of ids) await s.install(spy(id));
    let kills = 0;
    let checked = 0;
    for (let round = 0; round < 60; round++) {
      // A failing trigger is suspended after three failures in a row; a success in between keeps it open.
      const answers = await Promise.all(
        Array.from({ length: 12 }, async () => {
          const id = ids[next(2)] ?? 'spy_a';
          const pick = next(40);
          const mode: Mode =
            pick === 0 && kills++ < 6
              ? 'k'
              : pick < 4
                ? 'g'
                : pick < 6 && round % 3 === 0
                  ? 't'
                  : pick < 8 && round % 3 === 1
                    ? 'e'
                    : 'n';
          return { mode, ...(await ask(s, id, mode)) };
        }),
      );
      for (const { mode, seen, status } of answers) {
        if (seen === null) {
          t.ok([502, 503, 504].includes(status), `${mode} answered ${status}`);
          continue;
        }
        checked++;
        if (seen.join() !== CLEAN.join()) t.same(seen, CLEAN, `after mode ${mode} in round ${round}`);
      }
      for (const id of ids) await s.admin('POST', `/plugins/${id}/triggers/run/resume`);
    }
    t.ok(checked > 300, `${checked} executions looked at all of their memory`);
  });
}

t.test('an answer is not lost or mixed up when it is too large for its place in shared memory', async t => {
  const s = await startTestService(MANY_LANES);
  t.teardown(() => s.stop());
  // Answers the body it was sent.
  await s.install(
    watPlugin({
      id: 'echo',
      imports: ['respond', 'input_len', 'input_read'],
      memory: '200',
      handle: `(local $n i32) (local.set $n (call $input_len (i32.const 1)))
        (drop (call $input_read (i32.const 1) (i32.const 0) (local.get $n)))
        (drop (call $respond (i32.const 200) (i32.const 0) (i32.const 0) (i32.const 0) (local.get $n))) (i32.const 0)`,
    }),
  );
  const sizes = [0, 1, 100, 5000, 6144, 6145, 9000, 10_000, 70_000, 1_000_000, 10_485_760];
  await Promise.all(
    [...sizes, ...sizes].map(async (size, k) => {
      const body = Buffer.alloc(size, 65 + k);
      const r = await fetch(`${s.base}/api/triggers/http/echo/run`, { method: 'POST', body });
      t.equal(r.status, 200, `${size} bytes`);
      t.ok(Buffer.from(await r.arrayBuffer()).equals(body), `${size} bytes come back`);
    }),
  );
  const r = await fetch(`${s.base}/api/triggers/http/echo/run`, { method: 'POST', body: Buffer.alloc(10_485_761) });
  t.equal(r.status, 413);
  t.match(await r.json(), { code: 'body_too_large', detail: /http.max_body \(10485760 bytes\)/ });
});
