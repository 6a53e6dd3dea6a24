import { once } from 'node:events';
import net from 'node:net';
import t from 'tap';
import { type Database, openDatabase } from '../../src/db/database.ts';
import { type CallAnswer, callerPlugin, callHost, type ScriptedCall } from '../support/caller.ts';
import { makeDatabase } from '../support/database.ts';
import { MANY_LANES, startTestService } from '../support/service.ts';
import { until } from '../support/until.ts';

const SQL = [{ kind: 'sql', description: 'Grades' }];
type Teardown = { teardown(fn: () => unknown): void };

async function world(t: Teardown, env: Record<string, string> = {}) {
  const s = await startTestService(env);
  t.teardown(() => s.stop());
  const own = await makeDatabase();
  t.teardown(() => own.drop());
  const db = openDatabase(own.url, 2, () => {});
  t.teardown(() => db.close());
  await db.query('CREATE TABLE marks (id bigint PRIMARY KEY, name text NOT NULL, mark int)');
  const databases = { default: own.url };
  await s.install(callerPlugin({ id: 'caller', requirements: SQL }), { databases });
  const run = (...calls: ScriptedCall[]): Promise<CallAnswer[]> => callHost(s, 'caller', calls);
  return { s, own, db, run };
}

const json = (a: CallAnswer | undefined): unknown => JSON.parse(a?.text ?? '');
const backends = async (db: Database): Promise<Array<{ query: string; state: string }>> =>
  (
    await db.query<{ query: string; state: string }>(
      `SELECT query, state FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'plugin-host plugin'`,
    )
  ).rows;

t.test('a plugin queries, changes and counts rows of a database it was given', async t => {
  const { run } = await world(t);
  const answers = await run(
    ['sql_open', 'default'],
    [
      'sql_exec',
      1,
      'INSERT INTO marks VALUES ($1, $2, $3), ($4, $5, NULL)',
      '[1, "Ада", 5, 9223372036854775807, "Боб"]',
    ],
    ['sql_query', 1, 'SELECT id, name, mark FROM marks ORDER BY id', '', 0],
    ['sql_query', 1, 'UPDATE marks SET mark = 4 WHERE id = $1 RETURNING mark', '[9223372036854775807]', 10],
    ['sql_query', 1, 'DELETE FROM marks', '[]', 0],
    ['sql_exec', 1, 'DELETE FROM marks', ''],
    ['sql_close', 1],
  );
  t.same(
    answers.map(a => (a.code < 0 ? a.text : a.code)),
    [1, 19, answers[2]?.code, answers[3]?.code, 38, 19, 0],
  );
  t.equal(answers[1]?.text, '{"rows_affected":2}');
  t.equal(
    answers[2]?.text,
    '{"columns":[{"name":"id","type":"int8"},{"name":"name","type":"text"},{"name":"mark","type":"int4"}],"rows":[[1,"Ада",5],[9223372036854775807,"Боб",null]],"cursor":null}',
  );
  t.match(json(answers[3]), { rows: [[4]], cursor: null });
  t.same(json(answers[4]), { columns: [], rows: [], cursor: null });
  t.equal(answers[5]?.text, '{"rows_affected":0}');
});

t.test('values of every type arrive whole', async t => {
  const { run } = await world(t);
  const cells: Array<[sql: string, json: string, type: string]> = [
    ['9223372036854775807::int8', '9223372036854775807', 'int8'],
    ['(-32768)::int2', '-32768', 'int2'],
    ["'12345678901234567890.000000001000'::numeric", '"12345678901234567890.000000001000"', 'numeric'],
    ["'NaN'::numeric", '"NaN"', 'numeric'],
    ['0.1::float8', '0.1', 'float8'],
    ['1e300::float8', '1e+300', 'float8'],
    ["'-Infinity'::float8", '"-Infinity"', 'float8'],
    ['true', 'true', 'bool'],
    ["'2026-11-22 10:00:00.123456+03'::timestamptz", '"2026-11-22T07:00:00.123456Z"', 'timestamptz'],
    ["'2026-11-22 10:00:00.123456'::timestamp", '"2026-11-22T10:00:00.123456"', 'timestamp'],
    ["'infinity'::timestamptz", '"infinity"', 'timestamptz'],
    ["'2026-11-22'::date", '"2026-11-22"', 'date'],
    ["'25:01:02.5'::interval", '"25:01:02.5"', 'interval'],
    ["'\\x00ff10'::bytea", '"AP8Q"', 'bytea'],
    [`'{"a": [1, 12345678901234567890]}'::json`, '{"a": [1, 12345678901234567890]}', 'json'],
    [`'{"b":1.50}'::jsonb`, '{"b": 1.50}', 'jsonb'],
    ['ARRAY[1, NULL, 9223372036854775807]::int8[]', '[1,null,9223372036854775807]', 'int8[]'],
    [`ARRAY[['a,"b', 'c'], ['d', '']]::text[]`, '[["a,\\"b","c"],["d",""]]', 'text[]'],
    ["'{}'::int4[]", '[]', 'int4[]'],
    [`E'quote " back \\\\ line \\n tab'::text`, '"quote \\" back \\\\ line \\n tab"', 'text'],
    ["'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid", '"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"', 'uuid'],
    ['NULL::int8', 'null', 'int8'],
    ["'(1,2)'::point", '"(1,2)"', 'other'],
  ];
  const [, answer] = await run(['sql_open', ''], ['sql_query', 1, `SELECT ${cells.map(c => c[0]).join(', ')}`, '', 0]);
  const text = answer?.text ?? '';
  t.equal(text.slice(text.indexOf('"rows":') + 7), `[[${cells.map(c => c[1]).join(',')}]],"cursor":null}`);
  const { columns } = JSON.parse(text) as { columns: Array<{ type: string }> };
  t.same(
    columns.map(c => c.type),
    cells.map(c => c[2]),
  );
});

t.test('arguments of every type arrive complete, and an error names the wrong one and what would be right', async t => {
  const { run } = await world(t);
  const [, whole] = await run(
    ['sql_open', ''],
    [
      'sql_query',
      1,
      'SELECT $1::int8, $2::numeric, $3::text, $4::bool, $5::bytea, $6::jsonb, $7::int8[], $8::text, $9::float8',
      '[9223372036854775807, 1234567890.12345678901234567890, "x", true, {"base64":"AP8Q"}, {"json":{"n":[12345678901234567890]}}, {"array":[1,null,9223372036854775807]}, null, 1e-7]',
      0,
    ],
  );
  t.match(
    whole?.text,
    '"rows":[[9223372036854775807,"1234567890.12345678901234567890","x",true,"AP8Q",{"n": [12345678901234567890]},[1,null,9223372036854775807],null,1e-07]]',
  );
  const commas = `"${'a,\\"[{'.repeat(30_000)}"`;
  const [, long] = await run(['sql_open', ''], ['sql_query', 1, 'SELECT length($1::text)', `[${commas}]`, 0]);
  t.match(long?.text, '[[150000]]', 'what stands in a text is no value');
  const wrong: Array<[string, RegExp]> = [
    ['{}', /^the arguments must be a JSON array/],
    ['[1', /^the arguments are not JSON/],
    ['[[1]]', /^\/0 must be null, true, false, a number/],
    ['[1, {"x": 1}]', /^\/1 must be null/],
    ['[{"base64": "?"}]', /^\/0 must be null/],
    ['["a\\u0000"]', /^\/0 contains a NUL character/],
    [`[${'1,'.repeat(1000)}1]`, /^the statement has 1001 arguments; at most 1000/],
    [`[{"json": [${'1,'.repeat(20_000)}1]}]`, /^the arguments contain more than 20000 values/],
  ];
  for (const [args, text] of wrong) {
    const [, a] = await run(['sql_open', ''], ['sql_query', 1, 'SELECT $1', args, 0]);
    t.equal(a?.code, -3, args.slice(0, 20));
    t.match(a?.text, text);
  }
});

t.test('errors of the database have SQLSTATE and position, and never parts of the connection string', async t => {
  const { own, run, s } = await world(t);
  const a = await run(
    ['sql_open', ''],
    ['sql_query', 1, 'SELEC 1', '', 0],
    ['sql_query', 1, 'SELECT * FROM nothing', '', 0],
    ['sql_exec', 1, "INSERT INTO marks VALUES (1, 'a', 1), (1, 'b', 1)", ''],
    ['sql_query', 1, 'SELECT 1; SELECT 2', '', 0],
    ['sql_query', 1, 'SELECT $1::int', '["x"]', 0],
    ['sql_query', 1, 'SELECT 1', '[1]', 0],
    ['sql_query', 1, 'SELECT 1', '', -1],
    ['sql_query', 7, 'SELECT 1', '', 0],
    ['sql_query', 1, 'COPY marks TO STDOUT', '', 0],
    ['sql_exec', 1, 'COPY marks FROM STDIN', ''],
    ['sql_query', 1, 'SELECT 2 AS still', '', 0],
  );
  t.same(
    a.slice(1, 9).map(x => [x.code, x.text]),
    [
      [-3, '42601: syntax error at or near "SELEC" (position 1)'],
      [-3, '42P01: relation "nothing" does not exist (position 15)'],
      [-8, '23505: duplicate key value violates unique constraint "marks_pkey" (constraint marks_pkey)'],
      [-3, '42601: the text contains several statements; send each in a separate call'],
      [-3, '22P02: invalid input syntax for type integer: "x"'],
      [-3, '08P01: bind message supplies 1 parameters, but prepared statement "" requires 0'],
      [-3, 'the number of rows is below zero'],
      [-2, '7 is not an open handle or transaction of this execution'],
    ],
  );
  t.match(a.at(-1)?.text, '"still"', 'the connection goes on');
  const url = new URL(own.url);
  const bad: Array<[string, string]> = [
    ['wrong_password', own.url.replace(/:[^:@/]+@/, ':secretword@')],
    ['no_server', 'postgresql://someone:secretword@127.0.0.1:1/db'],
    ['no_database', own.url.replace(url.pathname, '/not_there')],
  ];
  for (const [id, connection] of bad) {
    await s.install(callerPlugin({ id, requirements: SQL }), { databases: { default: connection } });
    const [refused] = await callHost(s, id, [['sql_open', 'default']]);
    t.equal(refused?.code, -5, id);
    t.match(refused?.text, /^(\w{5}: )?the database cannot be reached$/);
  }
});

t.test('a call takes one statement, with arguments and without, and nothing of several is done', async t => {
  const { db, run } = await world(t);
  const several = "INSERT INTO marks VALUES (1, 'a', 1); INSERT INTO marks VALUES (2, 'b', 2)";
  const a = await run(
    ['sql_open', ''],
    ['sql_exec', 1, several, ''],
    ['sql_exec', 1, several, '[]'],
    ['sql_query', 1, several, '', 0],
    ['sql_exec', 1, 'SELECT 1; COMMIT; DROP TABLE marks', ''],
    ['sql_exec', 1, "INSERT INTO marks VALUES (3, 'c', 3);", ''],
    ['sql_exec', 1, "INSERT INTO marks VALUES (4, 'a;b', $1) -- ; not one more", '[4]'],
    ['sql_exec', 1, 'SELECT n FROM generate_series(1, 200000) n', ''],
  );
  for (const k of [1, 2, 3, 4])
    t.same([a[k]?.code, a[k]?.text], [-3, '42601: the text contains several statements; send each in a separate call']);
  t.same(
    a.slice(5).map(x => x.text),
    ['{"rows_affected":1}', '{"rows_affected":1}', '{"rows_affected":200000}'],
  );
  t.same((await db.query('SELECT id FROM marks ORDER BY id')).rows, [{ id: '3' }, { id: '4' }]);
});

t.test('COPY statements end as errors, and no other statement or session ends with them', async t => {
  const { run } = await world(t);
  const a = await run(
    ['sql_open', ''],
    ['sql_exec', 1, "INSERT INTO marks SELECT n, 'x', 1 FROM generate_series(1, 5000) n", ''],
    ['sql_query', 1, 'COPY marks TO STDOUT', '', 0],
    ['sql_exec', 1, 'COPY marks TO STDOUT', ''],
    ['sql_query', 1, 'COPY marks FROM STDIN', '', 0],
    ['sql_exec', 1, 'COPY marks FROM STDIN', ''],
    ['sql_query', 1, '', '', 0],
    ['sql_query', 1, '-- nothing', '', 0],
    ['sql_query', 1, 'SELECT count(*) FROM marks', '', 0],
    [
      'sql_query',
      1,
      'SELECT $1::text[], $2::int[], $3::bytea[]',
      '[{"array":["a\\"b\\\\c","{}",null,"NULL"]},{"array":[{"array":[1,2]},{"array":[3,4]}]},{"array":[{"base64":"AP8="}]}]',
      0,
    ],
  );
  t.same(
    a.slice(2, 8).map(x => [x.code > 0, x.code > 0 ? '' : x.text.slice(0, 5)]),
    [
      [true, ''],
      [true, ''],
      [false, '57014'],
      [false, '57014'],
      [true, ''],
      [true, ''],
    ],
  );
  t.match(a[8]?.text, '"rows":[[5000]]');
  t.match(a[9]?.text, '"rows":[[["a\\"b\\\\c","{}",null,"NULL"],[[1,2],[3,4]],["AP8="]]]');
});

t.test('only databases that were declared and given can be opened, and none without the permission', async t => {
  const { own, run, s } = await world(t);
  const two = await run(
    ['sql_open', 'default'],
    ['sql_open', 'default'],
    ['sql_open', 'default'],
    ['sql_open', 'other'],
  );
  t.same(
    two.map(a => [a.code, a.code < 0 ? a.text : '']),
    [
      [1, ''],
      [2, ''],
      [-4, '2 handles of database "default" are open in this execution; close one of them'],
      [-1, 'permission denied'],
    ],
  );
  await s.install(callerPlugin({ id: 'none', requirements: [] }));
  const denied = await callHost(s, 'none', [
    ['sql_open', 'default'],
    ['sql_query', 1, 'SELECT 1', '', 0],
    ['sql_exec', 1, 'SELECT 1', ''],
    ['sql_fetch', 1, 0],
    ['sql_begin', 1],
    ['sql_commit', 1],
    ['sql_rollback', 1],
    ['sql_close', 1],
  ]);
  for (const a of denied) t.same([a.code, a.text], [-1, 'permission denied']);
  await s.install(
    callerPlugin({
      id: 'named',
      requirements: [
        { kind: 'sql', name: 'grades' },
        { kind: 'sql', name: 'archive' },
      ],
    }),
    { databases: { grades: own.url, archive: own.url } },
  );
  t.same(
    (
      await callHost(s, 'named', [
        ['sql_open', 'grades'],
        ['sql_open', 'archive'],
        ['sql_open', ''],
      ])
    ).map(a => a.code),
    [1, 2, -1],
  );
});

t.test('rows beyond the first page are fetched through a cursor', async t => {
  const { run } = await world(t);
  const a = await run(
    ['sql_open', ''],
    ['sql_query', 1, 'SELECT n FROM generate_series(1, 7) n', '', 3],
    ['sql_query', 1, 'SELECT 1', '', 0],
    ['sql_fetch', 2, 3],
    ['sql_fetch', 2, 3],
    ['sql_fetch', 2, 3],
    ['sql_query', 1, 'SELECT n FROM generate_series(1, 3) n', '', 3],
    ['sql_query', 1, 'SELECT n FROM generate_series(1, 1000000) n', '', 2],
    ['sql_close', 3],
    ['sql_fetch', 3, 1],
    ['sql_query', 1, 'SELECT 5 AS five', '', 0],
    ['sql_query', 1, 'SELECT 10 / (n - 4) FROM generate_series(1, 9) n', '', 2],
    ['sql_fetch', 4, 5],
    ['sql_fetch', 4, 5],
    ['sql_query', 1, 'SELECT 6 AS six', '', 0],
  );
  t.match(json(a[1]), { rows: [[1], [2], [3]], cursor: 2 });
  t.same([a[2]?.code, a[2]?.text], [-8, 'cursor 2 is open on this connection: fetch its rows to the end or close it']);
  t.same(json(a[3]), { rows: [[4], [5], [6]], cursor: 2 });
  t.same(json(a[4]), { rows: [[7]], cursor: null });
  t.same([a[5]?.code, a[5]?.text], [-2, '2 is not an open cursor of this execution']);
  t.match(json(a[6]), { rows: [[1], [2], [3]], cursor: null }, 'no cursor for rows that are not there');
  t.match(json(a[7]), { cursor: 3 });
  t.same([a[8]?.code, a[9]?.code], [0, -2]);
  t.match(json(a[10]), { rows: [[5]] });
  t.match(a[12]?.text, /^22012: division by zero/);
  t.equal(a[13]?.code, -2, 'a cursor that failed is closed');
  t.match(json(a[14]), { rows: [[6]] });
});

t.test('a connection with an open cursor is reset and used for the next execution', async t => {
  const { db, run } = await world(t);
  for (let k = 0; k < 3; k++) {
    const [, page] = await run(['sql_open', ''], ['sql_query', 1, 'SELECT n FROM generate_series(1, 100000) n', '', 1]);
    t.match(json(page), { rows: [[1]], cursor: 2 });
  }
  t.ok((await backends(db)).length <= 2);
  t.match((await run(['sql_open', ''], ['sql_query', 1, 'SELECT 1 AS one', '', 0]))[1]?.text, '"one"');
  // Deaf to cancellation, and not looking for its client.
  const stubborn =
    'DO $$ BEGIN LOOP BEGIN PERFORM pg_sleep(60); EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP; END $$';
  const killed = run(
    ['sql_open', ''],
    ['sql_exec', 1, 'SET client_connection_check_interval = 0', ''],
    ['sql_exec', 1, stubborn, ''],
  );
  await t.rejects(killed, { message: /^504 / });
  const busy = async (): Promise<number> => (await backends(db)).filter(b => b.query.includes('LOOP')).length;
  for (let k = 0; k < 500 && (await busy()) > 0; k++) await new Promise(r => setTimeout(r, 20));
  t.equal(await busy(), 0, 'its session is ended');
});

t.test('answers of many values are refused, whatever they weigh', async t => {
  const { run } = await world(t);
  const a = await run(
    ['sql_open', ''],
    ['sql_query', 1, 'SELECT array_fill(0, ARRAY[200000])', '', 0],
    ['sql_query', 1, 'SELECT n, n, n, n, n, n, n, n, n, n, n FROM generate_series(1, 20000) n', '', 10000],
    ['sql_query', 1, 'SELECT n FROM generate_series(1, 20000) n', '', 10000],
    ['sql_query', 1, 'SELECT 1', '', 0],
    ['sql_fetch', 2, 10000],
    ['sql_query', 1, 'SELECT 1 AS one', '', 0],
  );
  for (const k of [1, 2]) t.match(a[k], { code: -4, text: /^the answer holds more than 100000 values/ });
  t.ok((a[3]?.code ?? 0) > 0);
  t.match(a[4], { code: -8 }, 'its cursor is open');
  t.ok((a[5]?.code ?? 0) > 0);
  t.match(a[6]?.text, '"one"');
});

/** A server that speaks like PostgreSQL until it is asked something. */
async function oddServer(t: Teardown, says: (socket: net.Socket, asked: number) => void): Promise<string> {
  const server = net.createServer(socket => {
    let asked = 0;
    socket.on('data', () => says(socket, asked++));
    socket.on('error', () => {});
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const address = server.address();
  return `postgresql://u:p@127.0.0.1:${typeof address === 'object' ? address?.port : 0}/d`;
}

const message = (type: string, body: Buffer): Buffer => {
  const head = Buffer.alloc(5);
  head.write(type);
  head.writeUInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
};

t.test('a server that is not PostgreSQL, or stops answering, ends no process and keeps no connection', async t => {
  const { s } = await world(t, { ...MANY_LANES, BOT_EXECUTION_TIMEOUT_MS: '3000' });
  const auth = (code: number): Buffer => {
    const body = Buffer.alloc(4);
    body.writeUInt32BE(code);
    return message('R', body);
  };
  const ready = Buffer.concat([auth(0), message('Z', Buffer.from('I'))]);
  const ways: Record<string, (socket: net.Socket, asked: number) => void> = {
    'an unknown way to log in': socket => void socket.write(auth(99)),
    GSS: socket => void socket.write(auth(7)),
    'a password method without its list': socket => void socket.write(auth(10)),
    'no message at all': socket => void socket.write('HTTP/1.1 400 Bad Request\r\n\r\n'),
    'rows that were not asked for': socket => void socket.write(message('D', Buffer.from([0, 1]))),
    'an endless login': socket => {
      const more = (): void => {
        if (!socket.destroyed && socket.write(Buffer.alloc(65_536, 'N'))) setImmediate(more);
        else socket.once('drain', more);
      };
      socket.write(Buffer.from([0x4e, 0x7f, 0xff, 0xff, 0xff]));
      more();
    },
    silence: () => {},
    'silence behind the login': (socket, asked) => void (asked === 0 && socket.write(ready)),
    'an error and an end in one packet': socket =>
      void socket.write(Buffer.concat([message('E', Buffer.from('SFATAL\0C57P01\0Mgone\0\0')), auth(0)]), () =>
        socket.end(),
      ),
  };
  const attempt = async (what: string, k: number): Promise<void> => {
    const says = ways[what];
    if (says === undefined) throw new Error(what);
    const id = `caller${k}`;
    await s.install(callerPlugin({ id, requirements: SQL }), { databases: { default: await oddServer(t, says) } });
    const [opened] = await callHost(s, id, [['sql_open', '']]);
    t.ok(opened?.code === -5, `${what}: ${opened?.code} ${opened?.text}`);
    const tried = await s.admin('POST', `/plugins/${id}/databases/test`, { name: 'default' });
    t.match(tried.json, { ok: false }, what);
  };
  const names = Object.keys(ways);
  // What waits for a silent server has 250 ms left to answer, and one floods the machine: each of these goes alone.
  const alone = ['an endless login', 'silence', 'silence behind the login'];
  for (const what of alone) await attempt(what, names.indexOf(what));
  await Promise.all(names.map((what, k) => (alone.includes(what) ? undefined : attempt(what, k))));
});

t.test('a transaction is committed, rolled back, or undone when its execution ends', async t => {
  const { db, run } = await world(t);
  const insert = (id: number): ScriptedCall => ['sql_exec', 2, `INSERT INTO marks VALUES (${id}, 'x', 1)`, ''];
  const committed = await run(
    ['sql_open', ''],
    ['sql_begin', 1],
    insert(1),
    ['sql_exec', 1, 'SELECT 1', ''],
    ['sql_begin', 2],
    ['sql_commit', 2],
    ['sql_commit', 2],
  );
  t.same(
    committed.map(a => (a.code < 0 ? [a.code, a.text] : a.code)),
    [
      1,
      2,
      19,
      [-8, 'transaction 2 is open on handle 1: use its number, end it, or open another handle'],
      [-8, '2 is a transaction; nested transactions are not supported'],
      0,
      [-2, '2 is not an open transaction of this execution'],
    ],
  );
  await run(['sql_open', ''], ['sql_begin', 1], insert(2), ['sql_rollback', 2]);
  await run(['sql_open', ''], ['sql_begin', 1], insert(3));
  await run(['sql_open', ''], ['sql_begin', 1], insert(4), ['sql_close', 1]);
  const failed = await run(['sql_open', ''], ['sql_begin', 1], insert(5), insert(5), insert(6), ['sql_commit', 2]);
  t.same([failed[4]?.text.slice(0, 5), failed[5]?.code, failed[5]?.text.slice(0, 5)], ['25P02', -8, '25P02']);
  await run(
    ['sql_open', ''],
    ['sql_exec', 1, 'BEGIN', ''],
    ['sql_exec', 1, "INSERT INTO marks VALUES (7, 'x', 1)", ''],
  );
  const { rows } = await db.query<{ id: string }>('SELECT id FROM marks ORDER BY id');
  t.same(
    rows.map(r => r.id),
    ['1'],
  );
});

const STATE: Array<[what: string, leave: string, look: string, fresh: string]> = [
  ['a setting', "SET work_mem = '77MB'", "SELECT current_setting('work_mem') <> '77MB'", 'true'],
  ['a temporary table', 'CREATE TEMP TABLE left_over (x int)', "SELECT to_regclass('left_over') IS NULL", 'true'],
  [
    'a prepared statement',
    'PREPARE left_over AS SELECT 1',
    'SELECT count(*) FROM pg_prepared_statements WHERE from_sql',
    '0',
  ],
  [
    'an advisory lock',
    'SELECT pg_advisory_lock(42)',
    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 42 AND pid = pg_backend_pid()",
    '0',
  ],
  ['a role', 'SET ROLE pg_read_all_data', "SELECT current_user <> 'pg_read_all_data'", 'true'],
  [
    'a cursor',
    'DECLARE left_over CURSOR WITH HOLD FOR SELECT 1',
    'SELECT count(*) FROM pg_cursors WHERE is_holdable',
    '0',
  ],
  ['a listener', 'LISTEN left_over', 'SELECT count(*) FROM pg_listening_channels()', '0'],
  [
    'an open transaction',
    'BEGIN ISOLATION LEVEL SERIALIZABLE',
    "SELECT current_setting('transaction_isolation') <> 'serializable'",
    'true',
  ],
];

t.test('nothing of a session passes to the next execution, ended or killed', async t => {
  const { db, run, s } = await world(t, { ...MANY_LANES, BOT_EXECUTION_TIMEOUT_MS: '3000' });
  for (const [what, leave, look, fresh] of STATE) {
    await run(['sql_open', ''], ['sql_exec', 1, leave, '']);
    const [, seen] = await run(['sql_open', ''], ['sql_query', 1, look, '', 0]);
    t.match(seen?.text, `"rows":[[${fresh}]]`, what);
  }
  // As many at once as one caller may have running: the next execution gets a connection one of them had.
  for (let from = 0; from < STATE.length; from += 7) {
    const killed = STATE.slice(from, from + 7).map(([, leave]) =>
      run(['sql_open', ''], ['sql_exec', 1, leave, ''], 'loop').catch((e: Error) => e.message),
    );
    for (const k of await Promise.all(killed)) t.match(k, /^504 /);
    for (let k = 0; k < 200 && s.service.executor.inFlight > 0; k++) await new Promise(r => setTimeout(r, 20));
    await s.admin('POST', '/plugins/caller/triggers/run/resume');
  }
  for (const [what, , look, fresh] of STATE) {
    const [, seen] = await run(['sql_open', ''], ['sql_query', 1, look, '', 0]);
    t.match(seen?.text, `"rows":[[${fresh}]]`, `${what}, after a kill`);
  }
  // Others see the lock until the connection it was taken on is cleaned, which happens behind the answer.
  const locks = (): Promise<{ rowCount: number | null }> =>
    db.query(
      "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = 42 AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
    );
  for (let k = 0; k < 200 && (await locks()).rowCount !== 0; k++) await new Promise(r => setTimeout(r, 20));
  t.equal((await locks()).rowCount, 0, 'no connection keeps the lock');
});

t.test('a connection whose execution left a transaction open is used again, without it', async t => {
  const { db, run } = await world(t);
  const open = async (): Promise<Array<{ pid: number; state: string }>> =>
    (
      await db.query<{ pid: number; state: string }>(
        `SELECT pid, state FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'plugin-host plugin'`,
      )
    ).rows;
  await run(
    ['sql_open', ''],
    ['sql_exec', 1, 'BEGIN', ''],
    ['sql_exec', 1, "INSERT INTO marks VALUES (1, 'x', 1)", ''],
  );
  const [first] = await open();
  let left = await open();
  while (left.some(({ state }) => state !== 'idle')) left = await open();
  t.ok(first !== undefined);
  t.same(
    left.map(({ pid }) => pid),
    [first?.pid],
  );
});

t.test('a statement that runs when its execution is ended is cancelled', async t => {
  const { db, run, s } = await world(t, { BOT_EXECUTION_TIMEOUT_MS: '1500' });
  const late = await run(
    ['sql_open', ''],
    ['sql_exec', 1, 'SET statement_timeout = 0', ''],
    ['sql_query', 1, 'SELECT pg_sleep(60)', '', 0],
  );
  t.match(
    late[2],
    { code: -6, text: '57014: the statement was ended at the deadline of the execution' },
    'the plugin gets the error before its deadline, and has time left to answer',
  );
  for (let k = 0; k < 100 && s.service.executor.inFlight > 0; k++) await new Promise(r => setTimeout(r, 10));
  const at = performance.now();
  let left = await backends(db);
  while (left.length > 0 && performance.now() - at < 5000) {
    await new Promise(r => setTimeout(r, 20));
    left = await backends(db);
  }
  t.same(left, [], 'neither the statement nor its connection is there');
  t.match((await run(['sql_open', ''], ['sql_query', 1, 'SELECT 1 AS one', '', 0]))[1]?.text, '"one"');
});

t.test('an answer that is too large ends the connection, not the plugin', async t => {
  const { run } = await world(t);
  const a = await run(
    ['sql_open', ''],
    ['sql_query', 1, "SELECT repeat('x', 40000000)", '', 0],
    ['sql_query', 1, 'SELECT 1', '', 0],
    ['sql_open', ''],
    ['sql_query', 2, 'SELECT 2 AS two', '', 0],
  );
  t.equal(a[1]?.code, -4);
  t.match(a[1]?.text, /^the database sent more than 4194304 bytes for one call/);
  t.equal(a[2]?.code, -2);
  t.match(a[4]?.text, '"two"');
});

t.test('connections are used again, bounded, and end when a plugin is given another database', async t => {
  const { db, own, run, s } = await world(t, MANY_LANES);
  // What makes a connection fresh ends with the statement that prepares it.
  const areFresh = async (): Promise<boolean> =>
    (await backends(db)).every(b => b.state === 'idle' && !/^(SELECT 1|ROLLBACK|DISCARD ALL|CLOSE)/.test(b.query));
  for (let k = 0; k < 5; k++) {
    await run(['sql_open', ''], ['sql_query', 1, 'SELECT 1', '', 0]);
    // The next one takes another connection while this one is being made fresh.
    await until(() => areFresh());
  }
  t.ok(
    (await backends(db)).length <= 2,
    'one after another share a connection, or the one that has just been made fresh',
  );
  // Twice as many as there are slots at a time: on a busy machine more would wait past their deadline.
  for (let k = 0; k < 3; k++)
    await Promise.all(
      Array.from({ length: 16 }, () =>
        run(['sql_open', ''], ['sql_open', ''], ['sql_exec', 2, 'SELECT pg_sleep(0.05)', '']),
      ),
    );
  const n = (await backends(db)).length;
  t.ok(n <= 16, `${n} connections, two for each of eight slots at most`);
  const other = await makeDatabase();
  t.teardown(() => other.drop());
  const wasm = callerPlugin({ id: 'caller', requirements: SQL, version: '2' });
  await s.install(wasm, { databases: { default: other.url } });
  t.match(
    (await run(['sql_open', ''], ['sql_query', 1, 'SELECT current_database()', '', 0]))[1]?.text,
    new URL(other.url).pathname.slice(1),
  );
  for (let k = 0; k < 200 && (await backends(db)).length > 0; k++) await new Promise(r => setTimeout(r, 20));
  t.same(await backends(db), [], 'those to the old one are closed');
  t.ok(own.url !== other.url);
});

t.test('an administrator can test a connection before a plugin gets it', async t => {
  const { own, s } = await world(t);
  const where = '/plugins/caller/databases/test';
  const good = await s.admin('POST', where, { connection_string: own.url });
  t.equal(good.status, 200);
  t.match(good.json, { ok: true, database: new URL(own.url).pathname.slice(1), server_version: /^\d+/ });
  t.ok((good.json.warnings as string[]).some(w => /superuser/.test(w)));
  t.match((await s.admin('POST', where, {})).json, { ok: true }, 'the installed one');
  const self = await s.admin('POST', where, { connection_string: s.databaseUrl });
  t.ok((self.json.warnings as string[]).some(w => /database of the service itself/.test(w)));
  const secret = 'secretword';
  const bad = await s.admin('POST', where, { connection_string: `postgresql://someone:${secret}@127.0.0.1:1/db` });
  t.match(bad.json, { ok: false, error: { code: 'ECONNREFUSED', message: /ECONNREFUSED/ } });
  const wrong = await s.admin('POST', where, { connection_string: own.url.replace(/:[^:@/]+@/, `:${secret}@`) });
  t.match(wrong.json, { ok: false, error: { code: '28P01' } });
  for (const a of [bad, wrong]) t.notMatch(a.text, secret);
  t.match((await s.admin('POST', where, { name: 'grades' })).json, { status: 422, errors: [{ pointer: '/name' }] });
  t.match((await s.admin('POST', where, { connection_string: 'mysql://x' })).json, {
    status: 422,
    errors: [{ pointer: '/connection_string' }],
  });
  t.equal((await s.admin('POST', '/plugins/missing/databases/test', {})).status, 404);
  // The client library would read a file of this machine, and wait for one that is a pipe.
  for (const file of ['sslcert=/etc/shadow', 'sslkey=/dev/zero', 'SSLROOTCERT=/x']) {
    const connection = `postgresql://a:b@127.0.0.1:1/db?${file}`;
    const refused = await s.admin('POST', where, { connection_string: connection });
    t.match([refused.status, refused.json.errors], [422, [{ pointer: '/connection_string' }]], file);
    const installed = await s
      .install(callerPlugin({ id: 'caller', version: '9', requirements: SQL }), {
        databases: { default: connection },
      })
      .then(String, String);
    t.match(installed, /422.*must not hold/, file);
  }
});
