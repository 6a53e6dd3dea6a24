import t from 'tap';
import { openDatabase } from '../../src/db/database.ts';
import { sweepExpired } from '../../src/host/kv-writes.ts';
import { type Json, startTestService } from '../support/service.ts';
import { until } from '../support/until.ts';
import { watPlugin } from '../support/wat.ts';

/**
 * A plugin whose body is a script of bytes: `g`, `s`, `d`, `l` runs kv_get, kv_set (ttl 1), kv_delete, kv_list on the
 * key behind it; it answers the result, and what was parked or the error text.
 */
const probe = (id: string, requirements: Array<Record<string, unknown>>): Uint8Array =>
  watPlugin({
    id,
    imports: [
      'respond',
      'input_len',
      'input_read',
      'kv_get',
      'kv_set',
      'kv_delete',
      'kv_list',
      'result_read',
      'error_len',
      'error_read',
    ],
    memory: '64',
    requirements,
    handle: `(local $n i32) (local $op i32) (local $r i32) (local $m i32) (local $k i32)
      (local.set $n (call $input_len (i32.const 1)))
      (drop (call $input_read (i32.const 1) (i32.const 65536) (local.get $n)))
      (local.set $op (i32.load8_u (i32.const 65536)))
      (local.set $k (i32.sub (local.get $n) (i32.const 1)))
      (if (i32.eq (local.get $op) (i32.const 103)) (then (local.set $r (call $kv_get (i32.const 65537) (local.get $k)))))
      (if (i32.eq (local.get $op) (i32.const 115)) (then (local.set $r (call $kv_set (i32.const 65537) (i32.const 3) (i32.const 65540) (i32.sub (local.get $n) (i32.const 4)) (i32.const 0)))))
      (if (i32.eq (local.get $op) (i32.const 116)) (then (local.set $r (call $kv_set (i32.const 65537) (i32.const 3) (i32.const 65540) (i32.sub (local.get $n) (i32.const 4)) (i32.const 1)))))
      (if (i32.eq (local.get $op) (i32.const 100)) (then (local.set $r (call $kv_delete (i32.const 65537) (local.get $k)))))
      (if (i32.eq (local.get $op) (i32.const 108)) (then (local.set $r (call $kv_list (i32.const 65537) (local.get $k) (i32.const 0) (i32.const 0) (i32.const 3)))))
      (i32.store (i32.const 1024) (local.get $r))
      (local.set $m (i32.const 0))
      (if (i32.lt_s (local.get $r) (i32.const 0)) (then
        (local.set $m (call $error_len)) (drop (call $error_read (i32.const 1028) (local.get $m))))
      (else (if (i32.or (i32.eq (local.get $op) (i32.const 103)) (i32.eq (local.get $op) (i32.const 108))) (then
        (local.set $m (local.get $r)) (drop (call $result_read (i32.const 1028) (local.get $m)))))))
      (if (i32.gt_u (local.get $m) (i32.const 60000)) (then (local.set $m (i32.const 0))))
      (drop (call $respond (i32.const 200) (i32.const 0) (i32.const 0) (i32.const 1024) (i32.add (local.get $m) (i32.const 4))))
      (i32.const 0)`,
  });

t.test('the key-value store', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  const kv = [{ kind: 'kv', description: 'k' }];
  await s.install(probe('one', kv));
  await s.install(probe('two', kv));
  await s.install(probe('none', []));
  const ask = async (id: string, script: string | Buffer): Promise<[number, string]> => {
    const r = await fetch(`${s.base}/api/triggers/http/${id}/run`, { method: 'POST', body: script });
    const bytes = Buffer.from(await r.arrayBuffer());
    if (r.status !== 200) throw new Error(`${r.status} ${bytes.toString()}`);
    return [bytes.readInt32LE(0), bytes.subarray(4).toString()];
  };

  t.test('keeps values per plugin', async t => {
    t.same(await ask('one', 'sabcvalue'), [0, '']);
    t.same(await ask('one', 'gabc'), [5, 'value']);
    t.same(await ask('two', 'gabc'), [-2, 'not found']);
    t.same(await ask('one', 'sabc'), [0, ''], 'an empty value is a value');
    t.same(await ask('one', 'gabc'), [0, '']);
    t.same(await ask('one', 'dabc'), [1, '']);
    t.same(await ask('one', 'dabc'), [0, '']);
    t.same(await ask('one', 'gabc'), [-2, 'not found']);
  });

  t.test('without the permission every function answers exactly "permission denied"', async t => {
    for (const script of ['gabc', 'sabcx', 'dabc', 'la'])
      t.same(await ask('none', script), [-1, 'permission denied'], script);
  });

  t.test('the record of an execution names the call that was denied, and its permission', async t => {
    const log = async (): Promise<unknown> => {
      const { items } = (await s.admin('GET', '/plugins/none/executions?limit=1')).json;
      const [last] = items as Json[];
      return last === undefined ? null : (await s.admin('GET', `/plugins/none/executions/${last.id}`)).json.log;
    };
    await until(async () => (await log()) !== null);
    const text = /^kv_(get|set|delete|list) was denied: it needs the requirement KV$/;
    t.match(await log(), [{ level: 'warn', text }]);
  });

  t.test('lists keys by prefix, in order, page by page', async t => {
    for (const k of ['a10', 'a20', 'a30', 'a40', 'b10', 'a%0', 'a_0']) await ask('two', `s${k}x`);
    t.same(await ask('two', 'la').then(([, text]) => JSON.parse(text)), { keys: ['a%0', 'a10', 'a20'], next: 'a20' });
    t.same(await ask('two', 'lb').then(([, text]) => JSON.parse(text)), { keys: ['b10'], next: null });
    t.same(
      await ask('two', 'la%').then(([, text]) => JSON.parse(text)),
      { keys: ['a%0'], next: null },
      'a prefix is no pattern',
    );
  });

  t.test('values up to 1 MiB are kept, larger ones, empty, long and NUL keys are refused with the reason', async t => {
    const big = Buffer.alloc(1024 * 1024 + 4, 'x');
    big.write('sbig', 0);
    t.same(await ask('one', big), [0, '']);
    t.equal((await ask('one', 'gbig'))[0], 1024 * 1024);
    t.match(await ask('one', Buffer.concat([big, Buffer.from('x')])), [-4, /1048577 bytes; at most 1048576/]);
    t.match(await ask('one', 'g'), [-3, /empty/]);
    t.match(await ask('one', `g${'k'.repeat(513)}`), [-4, /513 bytes/]);
    t.match(await ask('one', 'ga\0b'), [-3, /NUL/]);
    t.match(await ask('one', Buffer.from([103, 0xff, 0xfe])), [-3, /UTF-8/]);
  });

  t.test('a value with a time to live is gone after it, and swept from the database', async t => {
    t.same(await ask('one', 'tttlsoon'), [0, '']);
    t.same(await ask('one', 'gttl'), [4, 'soon']);
    const db = openDatabase(s.databaseUrl, 1, () => {});
    // The clock of the database decides; the row is moved into the past instead of waiting.
    await db.query("UPDATE plugin_kv SET expires_at = now() - interval '1 second' WHERE key = 'ttl'");
    t.same(await ask('one', 'gttl'), [-2, 'not found']);
    t.same(await ask('one', 'dttl'), [0, ''], 'what has lapsed did not exist');
    await ask('one', 'tttlsoon');
    await db.query("UPDATE plugin_kv SET expires_at = now() - interval '1 second' WHERE key = 'ttl'");
    t.equal(await sweepExpired(db), 1);
    t.equal((await db.query("SELECT 1 FROM plugin_kv WHERE key = 'ttl'")).rowCount, 0);
    await db.close();
  });
});
