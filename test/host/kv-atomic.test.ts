import t from 'tap';
import { HOST_ERROR } from '../../src/abi/host-functions.ts';
import { openDatabase } from '../../src/db/database.ts';
import { type CallAnswer, callerPlugin, callHost, type ScriptedCall } from '../support/caller.ts';
import { MANY_LANES, startTestService } from '../support/service.ts';

const MIB = 1024 * 1024;
const KV = [{ kind: 'kv', description: 'k' }];
const { invalid, tooLarge } = HOST_ERROR;
/** Arguments of `kv_update`. */
const ifAbsent = (key: string, value: string, ttl = 0): ScriptedCall => ['kv_update', key, 0, '', value, ttl];
const ifEqual = (key: string, expected: string, value: string, ttl = 0): ScriptedCall => [
  'kv_update',
  key,
  1,
  expected,
  value,
  ttl,
];
const many = (...keys: string[]): ScriptedCall => ['kv_get_many', JSON.stringify(keys)];
const base64 = (text: string): string => Buffer.from(text).toString('base64');
/** What `kv_update` answered: whether it wrote, and the value it found. */
const told = (a: CallAnswer | undefined): [number | undefined, string | undefined] => [a?.code, a?.body.toString()];

t.test('the key-value store, atomically', async t => {
  const s = await startTestService(MANY_LANES);
  t.teardown(() => s.stop());
  const db = openDatabase(s.databaseUrl, 2, () => {});
  t.teardown(() => db.close());
  for (const id of ['one', 'two']) await s.install(callerPlugin({ id, requirements: KV }));
  const run = (...calls: ScriptedCall[]): Promise<CallAnswer[]> => callHost(s, 'one', calls);
  const last = async (...calls: ScriptedCall[]): Promise<CallAnswer | undefined> => (await run(...calls)).at(-1);
  /** The clock of the database decides; a row is moved into the past instead of waiting. */
  const expire = (key: string) =>
    db.query("UPDATE plugin_kv SET expires_at = now() - interval '1 second' WHERE key = $1", [key]);
  /** What is left of a time to live, in units no busy machine takes to look. */
  const HOUR = 3600;
  const hoursLeft = async (key: string): Promise<number | null> =>
    (
      await db.query<{ s: number | null }>(
        "SELECT round(extract(epoch FROM expires_at - now()) / 3600)::int AS s FROM plugin_kv WHERE plugin_id = 'one' AND key = $1",
        [key],
      )
    ).rows[0]?.s ?? null;

  t.test('mode 0 of kv_update writes only an absent key, and gives the value that is there', async t => {
    const a = await run(
      ifAbsent('a', 'first'),
      ifAbsent('a', 'second'),
      ['kv_get', 'a'],
      ifAbsent('e', ''),
      ifAbsent('e', 'x'),
    );
    t.same(a.map(told), [
      [1, ''],
      [0, 'first'],
      [5, ''],
      [1, ''],
      [0, ''],
    ]);
    t.equal(a[2]?.text, 'first');
  });

  t.test('mode 1 of kv_update writes only over the value it expects, never an absent key', async t => {
    const a = await run(
      ['kv_set', 'b', 'old', 0],
      ifEqual('b', 'other', 'new'),
      ifEqual('b', 'old', 'new'),
      ifEqual('b', 'old', 'newer'),
      ['kv_get', 'b'],
      ifEqual('b-absent', '', 'x'),
      ['kv_get', 'b-absent'],
      ifEqual('b', 'new', ''),
      ifEqual('b', '', 'again'),
    );
    t.same(a.slice(1, 4).map(told), [
      [0, 'old'],
      [1, ''],
      [0, 'new'],
    ]);
    t.equal(a[4]?.text, 'new');
    t.same(told(a[5]), [0, '']);
    t.equal(a[6]?.code, HOST_ERROR.notFound);
    t.same([a[7]?.code, a[8]?.code], [1, 1], 'an empty value is a value');
  });

  t.test('an expired value is absent, and a time to live of 0 means none', async t => {
    await run(
      ifAbsent('t', 'v', 10 * HOUR),
      ifAbsent('u', 'v'),
      ['kv_set', 'w', '5', 10 * HOUR],
      ['kv_set', 'x', '5', 0],
    );
    t.equal(await hoursLeft('t'), 10);
    t.equal(await hoursLeft('u'), null);
    for (const key of ['t', 'w']) await expire(key);
    t.same(told(await last(ifEqual('t', 'v', 'n'))), [0, ''], 'nothing is compared with it');
    t.same((await last(many('t', 'x')))?.text, `{"t":null,"x":"${base64('5')}"}`);
    t.same(told(await last(ifAbsent('t', 'n'))), [1, '']);
    t.equal(await hoursLeft('t'), null, 'it begins again, without its former time to live');
    t.equal((await last(['kv_increment', 'w', 2, 0]))?.text, '2');
    t.equal(await hoursLeft('w'), null);
    await run(ifEqual('t', 'n', 'm', 5 * HOUR), ['kv_increment', 'w', 1, 7 * HOUR]);
    t.same([await hoursLeft('t'), await hoursLeft('w')], [5, 7]);
    t.equal((await last(['kv_increment', 'w', 1, 0]))?.text, '4');
    t.equal(await hoursLeft('w'), 7, '0 keeps the time to live of a number');
    await run(ifEqual('t', 'm', 'n', 0));
    t.equal(await hoursLeft('t'), null, 'and takes it from a value');
  });

  t.test('kv_increment adds to int64 text of any sign, and refuses what is none or would overflow', async t => {
    const [max, min] = [9223372036854775807n, -9223372036854775808n];
    const a = await run(
      ['kv_increment', 'n', 0, 0],
      ['kv_increment', 'n', max, 0],
      ['kv_increment', 'n', 1, 0],
      ['kv_get', 'n'],
      ['kv_increment', 'n', min, 0],
      ['kv_increment', 'n', min, 0],
      ['kv_increment', 'n', -(2n ** 62n), 0],
      ['kv_increment', 'm', min, 0],
      ['kv_increment', 'm', -1, 0],
      ['kv_increment', 'm', max, 0],
    );
    t.same(
      a.map(x => (x.code < 0 ? x.code : x.text)),
      ['0', `${max}`, invalid, `${max}`, '-1', invalid, `${-(2n ** 62n) - 1n}`, `${min}`, invalid, '-1'],
    );
    t.match(a[2]?.text, 'the value is 9223372036854775807; the sum with 1 is outside the range of int64');
    for (const text of [
      '',
      ' 1',
      '1 ',
      '+1',
      '1.0',
      '1e3',
      '0x10',
      'abc',
      '-',
      '1\n',
      '٣',
      '9223372036854775808',
      '-9223372036854775809',
      '9'.repeat(30),
      'x'.repeat(MIB),
    ]) {
      const refused = await last(['kv_set', 'bad', text, 0], ['kv_increment', 'bad', 1, 0]);
      t.same(
        [refused?.code, refused?.text],
        [invalid, 'the value is not the decimal text of an int64'],
        text.slice(0, 30),
      );
    }
    t.equal((await last(['kv_set', 'z', '-007', 0], ['kv_increment', 'z', 7, 0]))?.text, '0');
  });

  t.test('kv_get_many gives many values in the order of the keys, null for an absent one', async t => {
    const keys = ['9', '10', '__proto__', 'quote"\\', 'ключ', 'absent', 'empty', '9'];
    const set = keys.slice(0, 5).map((key, n): ScriptedCall => ['kv_set', key, `v${n}`, 0]);
    const a = await last(...set, ['kv_set', 'empty', '', 0], many(...keys));
    t.equal(
      a?.text,
      `{"9":"${base64('v0')}","10":"${base64('v1')}","__proto__":"${base64('v2')}","quote\\"\\\\":"${base64('v3')}","ключ":"${base64('v4')}","absent":null,"empty":""}`,
    );
    t.equal((await last(many()))?.text, '{}');
    t.equal((await last(['kv_set', 'raw', Buffer.from([0, 0xff, 0x80]), 0], many('raw')))?.text, '{"raw":"AP+A"}');
    const hundred = Array.from({ length: 100 }, (_, n) => `k${n}`);
    t.equal(Object.keys(JSON.parse((await last(many(...hundred)))?.text ?? '')).length, 100);
    const wrong: Array<[string, number, RegExp]> = [
      ['', invalid, /^the keys are not JSON/],
      ['"a"', invalid, /JSON array of strings/],
      ['["a",1]', invalid, /JSON array of strings/],
      ['["a",""]', invalid, /^\/1: the key is empty$/],
      ['["a\\u0000"]', invalid, /^\/0: the key contains a NUL/],
      ['["\\ud800"]', invalid, /^\/0: the key contains half a surrogate pair$/],
      [JSON.stringify(['a', 'k'.repeat(513)]), tooLarge, /^\/1: the key has 513 bytes/],
      [JSON.stringify([...hundred, 'one too many']), tooLarge, /^the call has 101 keys; at most 100/],
    ];
    for (const [json, code, text] of wrong) {
      const refused = await last(['kv_get_many', json]);
      t.equal(refused?.code, code, json.slice(0, 30));
      t.match(refused?.text, text);
    }
    await run(...[0, 1, 2, 3].map((n): ScriptedCall => ['kv_set', `big${n}`, Buffer.alloc(MIB, n), 0]));
    const four = await last(many('big0', 'big1', 'big2', 'big3'));
    const values = JSON.parse(four?.text ?? '') as Record<string, string>;
    t.same(
      [0, 1, 2, 3].map(n => Buffer.from(values[`big${n}`] ?? '', 'base64').equals(Buffer.alloc(MIB, n))),
      [true, true, true, true],
      '4 MiB are read',
    );
    const refused = await last(many('9', 'big0', 'big1', 'big2', 'big3'));
    t.same(
      [refused?.code, refused?.text],
      [tooLarge, 'the values have 4194306 bytes together; at most 4194304 are read in one call'],
    );
  });

  t.test('wrong arguments are refused by number and by name, and nothing is written', async t => {
    const big = 'x'.repeat(MIB + 1);
    const wrong: Array<[ScriptedCall, number, RegExp]> = [
      [['kv_update', 'q', 2, '', 'v', 0], invalid, /^mode 2 is not 0 .* or 1/],
      [['kv_update', 'q', -1, '', 'v', 0], invalid, /^mode -1 is not 0/],
      [ifAbsent('', 'v'), invalid, /^the key is empty$/],
      [ifAbsent('q\0', 'v'), invalid, /NUL/],
      [ifAbsent('q', 'v', -1), invalid, /time to live is below zero/],
      [ifAbsent('q'.repeat(513), 'v'), tooLarge, /^the key has 513 bytes; at most 512/],
      [ifAbsent('q', big), tooLarge, /^the value has 1048577 bytes; at most 1048576/],
      [ifEqual('q', big, 'v'), tooLarge, /^the expected value has 1048577 bytes; at most 1048576/],
      [['kv_increment', '', 1, 0], invalid, /^the key is empty$/],
      [['kv_increment', 'q', 1, -1], invalid, /time to live is below zero/],
      [['kv_increment', 'q'.repeat(513), 1, 0], tooLarge, /^the key has 513 bytes/],
    ];
    for (const [call, code, text] of wrong) {
      const refused = await last(call);
      t.equal(refused?.code, code, JSON.stringify(call).slice(0, 60));
      t.match(refused?.text, text);
    }
    t.equal((await last(['kv_get', 'q']))?.code, HOST_ERROR.notFound);
    const whole = 'y'.repeat(MIB);
    t.same(
      (await run(ifAbsent('whole', whole), ifEqual('whole', whole, 'n'), ifEqual('whole', whole, 'm'))).map(told),
      [
        [1, ''],
        [1, ''],
        [0, 'n'],
      ],
    );
  });

  t.test('every function of the store keeps to the keys of its own plugin', async t => {
    const two = (...calls: ScriptedCall[]): Promise<CallAnswer[]> => callHost(s, 'two', calls);
    await run(
      ['kv_set', 'p', 'of one', 0],
      ['kv_set', 'p-shared', 'same', 0],
      ['kv_set', 'p-text', 'text', 0],
      ['kv_set', 'p-n', '1', 0],
    );
    await two(
      ['kv_set', 'p', 'of two', 0],
      ['kv_set', 'p-shared', 'same', 0],
      ['kv_set', 'p-text', '9223372036854775807', 0],
    );
    const ask = [
      ['kv_get', 'p'],
      many('p', 'p-n'),
      ['kv_list', 'p', '', 0],
      ['kv_increment', 'p-text', 1, 0],
    ] as ScriptedCall[];
    t.same(
      (await run(...ask)).map(a => a.text),
      [
        'of one',
        `{"p":"${base64('of one')}","p-n":"${base64('1')}"}`,
        '{"keys":["p","p-n","p-shared","p-text"],"next":null}',
        'the value is not the decimal text of an int64',
      ],
    );
    t.same(
      (await two(...ask)).map(a => a.text),
      [
        'of two',
        `{"p":"${base64('of two')}","p-n":null}`,
        '{"keys":["p","p-shared","p-text"],"next":null}',
        'the value is 9223372036854775807; the sum with 1 is outside the range of int64',
      ],
    );
    const changed = await two(
      ifAbsent('p-n', '5'),
      ['kv_increment', 'p-n', 1, 0],
      ifEqual('p-shared', 'same', 'changed'),
      ifAbsent('p', 'x'),
      ['kv_delete', 'p'],
    );
    t.same(
      changed.map(a => [a.code, a.body.toString()]),
      [
        [1, ''],
        [1, ''],
        [1, ''],
        [0, 'of two'],
        [1, ''],
      ],
    );
    t.same(
      (await run(['kv_get', 'p'], ['kv_get', 'p-n'], ['kv_get', 'p-shared'])).map(a => a.text),
      ['of one', '1', 'same'],
    );
    t.same(
      (await two(['kv_get', 'p-n'], ['kv_get', 'p-shared'])).map(a => a.text),
      ['6', 'changed'],
    );
  });

  t.test(
    'of executions at the same time one writes an absent or expired key, and the others see its value',
    async t => {
      for (const state of ['absent', 'expired']) {
        for (let round = 0; round < 10; round++) {
          const key = `race-${state}-${round}`;
          if (state === 'expired') await run(ifAbsent(key, 'gone', 1));
          await expire(key);
          const all = await Promise.all(Array.from({ length: 12 }, (_, n) => last(ifAbsent(key, `writer ${n}`))));
          const winners = all.filter(a => a?.code === 1);
          t.equal(winners.length, 1, `${state}, round ${round}`);
          const [kept] = await run(['kv_get', key]);
          const seen = new Set(all.filter(a => a?.code === 0).map(a => a?.body.toString()));
          t.same([...seen], [kept?.text], 'who lost was told the value that is there');
        }
      }
    },
  );

  t.test("a write that waits for another one sees the other one's result", async t => {
    const waiting = async (): Promise<boolean> =>
      (
        await db.query(
          "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%plugin_kv_%'",
        )
      ).rowCount === 1;
    /** Answers a call that began while another transaction had written, and not yet committed, a value. */
    const during = async (call: ScriptedCall, key: string, value: string): Promise<CallAnswer | undefined> => {
      let answer: Promise<CallAnswer | undefined> | null = null;
      await db.withTransaction(async client => {
        await client.query(
          `INSERT INTO plugin_kv (plugin_id, key, value) VALUES ('one', $1, $2)
           ON CONFLICT (plugin_id, key) DO UPDATE SET value = EXCLUDED.value`,
          [key, Buffer.from(value)],
        );
        answer = last(call);
        while (!(await waiting())) await new Promise(r => setImmediate(r));
      });
      return await (answer as Promise<CallAnswer | undefined> | null)!;
    };
    t.same(told(await during(ifAbsent('w-absent', 'mine'), 'w-absent', 'theirs')), [0, 'theirs']);
    await run(['kv_set', 'w-equal', 'old', 0], ['kv_set', 'w-same', 'old', 0], ['kv_set', 'w-sum', '1', 0]);
    t.same(told(await during(ifEqual('w-equal', 'old', 'mine'), 'w-equal', 'theirs')), [0, 'theirs']);
    t.same(told(await during(ifEqual('w-same', 'old', 'mine'), 'w-same', 'old')), [1, '']);
    t.equal((await during(['kv_increment', 'w-sum', 1, 0], 'w-sum', '10'))?.text, '11');
    t.match((await during(['kv_increment', 'w-sum', 1, 0], 'w-sum', 'text'))?.text, 'not the decimal text');
    t.same(
      (await run(['kv_get', 'w-absent'], ['kv_get', 'w-equal'], ['kv_get', 'w-same'])).map(a => a.text),
      ['theirs', 'theirs', 'mine'],
    );
  });

  t.test('no addition of executions at the same time is lost, and each gives a sum of its own', async t => {
    const sums = await Promise.all(
      Array.from({ length: 24 }, () =>
        run(...Array.from({ length: 5 }, (): ScriptedCall => ['kv_increment', 'sum', 1, 0])),
      ),
    );
    const numbers = sums.flat().map(a => Number(a.text));
    t.same(
      [...numbers].sort((a, b) => a - b),
      Array.from({ length: 120 }, (_, n) => n + 1),
    );
  });

  t.test('of executions that compare and set the same value one wins each round, and no step is skipped', async t => {
    await run(['kv_set', 'steps', '0', 0]);
    const climb = async (): Promise<number> => {
      let [won, now] = [0, '0'];
      while (Number(now) < 40) {
        const a = await last(ifEqual('steps', now, String(Number(now) + 1)));
        if (a?.code === 1) won++;
        const next = a?.code === 1 ? String(Number(now) + 1) : (a?.body.toString() ?? '');
        if (a?.code !== 1 && next === now) throw new Error(`not written over ${now}, the very value that was expected`);
        now = next;
      }
      return won;
    };
    const won = await Promise.all(Array.from({ length: 8 }, climb));
    t.equal(
      won.reduce((a, b) => a + b),
      40,
      `of ${won.join(', ')}`,
    );
  });

  t.test('a plugin of protocol 5 learns the protocol and the limits from host_info', async t => {
    t.match(JSON.parse((await last(['host_info']))?.text ?? ''), {
      abi: 5,
      limits: { kvManyKeysMax: 100, kvManyBytesMax: 4 * MIB, kvValueBytesMax: MIB, kvKeyBytesMax: 512 },
    });
  });
});
