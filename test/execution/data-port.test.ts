import t from 'tap';
import { MANY_LANES, startTestService } from '../support/service.ts';
import { assemble, hostImports, manifestOf, withManifest } from '../support/wat.ts';

t.test(
  'large answers and large host-call arguments of executions that follow each other on a lane do not mix',
  async t => {
    const s = await startTestService({ BOT_EXECUTION_LANES: '1' });
    t.teardown(() => s.stop());
    // 100 KB into the store and 20 KB out: both leave shared memory for the lane's data port.
    await s.install(
      withManifest(
        assemble(`(module ${hostImports('respond', 'kv_set')} (memory (export "memory") 8) (data (i32.const 0) "key")
        (func (export "plugin_handle") (result i32) (local $r i32)
          (memory.fill (i32.const 1000) (i32.const 120) (i32.const 110000))
          (local.set $r (call $kv_set (i32.const 0) (i32.const 3) (i32.const 1000) (i32.const 100000) (i32.const 0)))
          (if (i32.lt_s (local.get $r) (i32.const 0)) (then (return (local.get $r))))
          (drop (call $respond (i32.const 200) (i32.const 0) (i32.const 0) (i32.const 2000) (i32.const 20000))) (i32.const 0)))`),
        manifestOf({ id: 'large', requirements: [{ kind: 'kv' }] }),
      ),
    );
    for (let round = 0; round < 3; round++) {
      const all = await Promise.all(Array.from({ length: 60 }, () => s.trigger('large/run')));
      t.same([...new Set(all.map(a => `${a.status} ${a.text.length}`))], ['200 20000']);
    }
  },
);

t.test('an exception the plugin does not catch is named, with where it was thrown', async t => {
  const s = await startTestService(MANY_LANES);
  t.teardown(() => s.stop());
  const throws = (id: string, where: string): Uint8Array =>
    withManifest(assemble(`(module (memory (export "memory") 1) (tag $e) ${where})`), manifestOf({ id }));
  await s.install(throws('late', '(func (export "plugin_handle") (result i32) (throw $e))'));
  await s.install(
    throws(
      'early',
      '(func (export "_initialize") (throw $e)) (func (export "plugin_handle") (result i32) (i32.const 0))',
    ),
  );
  for (const [id, failure] of [
    ['late', /^an exception was thrown and not caught$/],
    ['early', /not caught in the start function or _initialize/],
  ] as const) {
    t.equal((await s.trigger(`${id}/run`)).status, 502);
    t.match((await s.admin('GET', `/plugins/${id}/executions`)).json, { items: [{ outcome: 'trapped', failure }] });
  }
});
