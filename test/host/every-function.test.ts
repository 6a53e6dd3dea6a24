import http from 'node:http';
import t, { type TAP } from 'tap';
import { HOST_ERROR, HOST_FUNCTIONS } from '../../src/abi/host-functions.ts';
import { openDatabase } from '../../src/db/database.ts';
import {
  type Argument,
  BAD_PAIR,
  type CallAnswer,
  callerPlugin,
  callHost,
  type ScriptedCall,
} from '../support/caller.ts';
import { makeDatabase } from '../support/database.ts';
import { listenFor } from '../support/listen.ts';
import { messengerWorld } from '../support/messenger-world.ts';
import { watPlugin } from '../support/wat.ts';

/**
 * The table of docs/abi.md "Host functions", row by row: allowed, not permitted, wrong arguments, pairs that lie
 * outside of the memory, a deadline that passes during the call, and what is too large.
 */

type Refused = [args: Argument[], code: number];
type Row = {
  /** Calls before it, whose answers do not matter. */
  before?: ScriptedCall[];
  allowed: Argument[];
  /** At least so much, or exactly so; `ends`: the handler has failed by it. */
  gives: number | 'positive' | 'ends';
  wrong: Refused[];
  /** A text says why nothing can be. */
  tooLarge: Refused | string;
  /**
   * What makes it wait: a table of the service that another session has locked, another call, or why it never waits.
   * With a table the execution is ended; a call is answered -6.
   */
  slow: { table: string } | { before?: ScriptedCall[]; args: Argument[] } | string;
};

const invalid = HOST_ERROR.invalid;
const big = (bytes: number): string => 'x'.repeat(bytes);
const MIB = 1024 * 1024;
const FILE = '0'.repeat(32);
const message = JSON.stringify({ text: 'hello' });
const opened: ScriptedCall[] = [['sql_open', '']];
const begun: ScriptedCall[] = [...opened, ['sql_begin', 1]];
const atCommit =
  'CREATE TEMP TABLE slow (n int); CREATE FUNCTION pg_temp.wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(60); RETURN NULL; END $$';
const LOCAL = 'it is answered where the plugin runs';

/**
 * Rows of functions scripts can call; `%url%` is a server, `%silent%` one that never answers, `%user%` a user who can
 * be told.
 */
const ROWS: Record<string, Row> = {
  output: {
    allowed: ['answer'],
    gives: 0,
    wrong: [],
    tooLarge: [[big(10 * MIB + 1)], HOST_ERROR.tooLarge],
    slow: LOCAL,
  },
  reply: {
    allowed: [message],
    gives: invalid,
    wrong: [[['{}'], invalid]],
    tooLarge: 'only a messenger trigger replies: see test/messaging',
    slow: 'only a messenger trigger replies',
  },
  fail: { allowed: ['no'], gives: 'ends', wrong: [], tooLarge: 'a long text is cut', slow: LOCAL },
  log: {
    allowed: [1, 'line'],
    gives: 0,
    wrong: [
      [[4, 'line'], invalid],
      [[-1, 'line'], invalid],
    ],
    tooLarge: 'a long text is cut',
    slow: LOCAL,
  },
  config_get: {
    allowed: ['place'],
    gives: 'positive',
    wrong: [[['other'], HOST_ERROR.notFound]],
    tooLarge: "values are the administrator's",
    slow: LOCAL,
  },
  kv_get: {
    before: [['kv_set', 'a', 'value', 0]],
    allowed: ['a'],
    gives: 5,
    wrong: [
      [['none'], HOST_ERROR.notFound],
      [[''], invalid],
    ],
    tooLarge: [[big(513)], HOST_ERROR.tooLarge],
    slow: { table: 'plugin_kv' },
  },
  kv_set: {
    allowed: ['a', 'v', 0],
    gives: 0,
    wrong: [
      [['', 'v', 0], invalid],
      [['a', 'v', -1], invalid],
    ],
    tooLarge: [['a', big(MIB + 1), 0], HOST_ERROR.tooLarge],
    slow: { table: 'plugin_kv' },
  },
  kv_delete: {
    allowed: ['none'],
    gives: 0,
    wrong: [[[''], invalid]],
    tooLarge: [[big(513)], HOST_ERROR.tooLarge],
    slow: { table: 'plugin_kv' },
  },
  kv_list: {
    allowed: ['', '', 10],
    gives: 'positive',
    wrong: [[['', '', -1], invalid]],
    tooLarge: 'a prefix longer than any key finds nothing',
    slow: { table: 'plugin_kv' },
  },
  sql_open: {
    allowed: [''],
    gives: 1,
    wrong: [[['other'], HOST_ERROR.denied]],
    tooLarge: 'a name has nothing to be too large',
    slow: 'a server that falls silent: test/host/sql',
  },
  sql_query: {
    before: opened,
    allowed: [1, 'SELECT 1', '', 0],
    gives: 'positive',
    wrong: [
      [[7, 'SELECT 1', '', 0], HOST_ERROR.notFound],
      [[1, 'SELEC', '', 0], invalid],
      [[1, 'SELECT $1', '{', 0], invalid],
      [[1, 'SELECT 1', '', -1], invalid],
    ],
    tooLarge: [[1, "SELECT repeat('x', 5000000)", '', 0], HOST_ERROR.tooLarge],
    slow: { before: opened, args: [1, 'SELECT pg_sleep(60)', '', 0] },
  },
  sql_fetch: {
    before: [...opened, ['sql_query', 1, 'SELECT generate_series(1, 5)', '', 2]],
    allowed: [2, 2],
    gives: 'positive',
    wrong: [
      [[9, 1], HOST_ERROR.notFound],
      [[2, -1], invalid],
    ],
    tooLarge: 'its rows are bounded as those of sql_query',
    slow: {
      before: [
        ...opened,
        ['sql_query', 1, 'SELECT pg_sleep(CASE WHEN n > 2 THEN 60 ELSE 0 END) FROM generate_series(1, 5) n', '', 1],
      ],
      args: [2, 2],
    },
  },
  sql_exec: {
    before: opened,
    allowed: [1, 'CREATE TEMP TABLE x (n int)', ''],
    gives: 'positive',
    wrong: [
      [[7, 'SELECT 1', ''], HOST_ERROR.notFound],
      [[1, 'SELECT 1', '7'], invalid],
    ],
    tooLarge: [[1, "SELECT repeat('x', 5000000)", ''], HOST_ERROR.tooLarge],
    slow: { before: opened, args: [1, 'SELECT pg_sleep(60)', ''] },
  },
  sql_begin: {
    before: opened,
    allowed: [1],
    gives: 2,
    wrong: [[[7], HOST_ERROR.notFound]],
    tooLarge: 'a number',
    slow: 'BEGIN waits for no lock',
  },
  sql_commit: {
    before: begun,
    allowed: [2],
    gives: 0,
    wrong: [[[1], HOST_ERROR.notFound]],
    tooLarge: 'a number',
    slow: {
      before: [
        ...begun,
        ...atCommit
          .split('; ')
          .map((sql): ScriptedCall => ['sql_exec', 2, sql, ''])
          .slice(0, 1),
        ['sql_exec', 2, atCommit.slice(atCommit.indexOf('CREATE FUNCTION')), ''],
        [
          'sql_exec',
          2,
          'CREATE CONSTRAINT TRIGGER late AFTER INSERT ON slow DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION pg_temp.wait()',
          '',
        ],
        ['sql_exec', 2, 'INSERT INTO slow VALUES (1)', ''],
      ],
      args: [2],
    },
  },
  sql_rollback: {
    before: begun,
    allowed: [2],
    gives: 0,
    wrong: [[[1], HOST_ERROR.notFound]],
    tooLarge: 'a number',
    slow: 'ROLLBACK waits for no lock',
  },
  sql_close: {
    before: opened,
    allowed: [1],
    gives: 0,
    wrong: [[[7], HOST_ERROR.notFound]],
    tooLarge: 'a number',
    slow: 'it waits for no lock',
  },
  http_request: {
    allowed: ['{"url":"%url%/small"}', ''],
    gives: 'positive',
    wrong: [
      [['{"url":"ftp://a.b/"}', ''], invalid],
      [['', ''], invalid],
    ],
    tooLarge: [['{"url":"%url%/large"}', ''], HOST_ERROR.tooLarge],
    slow: { args: ['{"url":"%url%/silent"}', ''] },
  },
  notify_user: {
    allowed: ['%user%', message],
    gives: 0,
    wrong: [
      [[999_999, message], HOST_ERROR.notFound],
      [[-1, message], invalid],
      [['%user%', '{'], invalid],
    ],
    tooLarge: [['%user%', JSON.stringify({ text: big(70_000) })], HOST_ERROR.tooLarge],
    slow: { table: 'messenger_accounts' },
  },
  notify_chat: {
    allowed: ['TELEGRAM:11', message],
    gives: 0,
    wrong: [
      [['12', message], HOST_ERROR.notFound],
      [['11', '{}'], invalid],
    ],
    tooLarge: [['11', JSON.stringify({ text: big(70_000) })], HOST_ERROR.tooLarge],
    slow: { table: 'messenger_chats' },
  },
  notify_students: {
    allowed: ['{"locale":"en"}', message],
    gives: 'positive',
    wrong: [
      [['{}', message], invalid],
      [['{"all":true}', ''], invalid],
    ],
    tooLarge: [['{"all":true}', JSON.stringify({ text: big(70_000) })], HOST_ERROR.tooLarge],
    slow: { table: 'student_positions' },
  },
  file_meta: {
    allowed: [FILE],
    gives: HOST_ERROR.notFound,
    wrong: [[[''], HOST_ERROR.notFound]],
    tooLarge: 'an id has nothing to be too large',
    slow: { table: 'files' },
  },
  file_url: {
    allowed: [FILE],
    gives: HOST_ERROR.notFound,
    wrong: [[['../x'], HOST_ERROR.notFound]],
    tooLarge: 'an id has nothing to be too large',
    slow: { table: 'files' },
  },
  file_store: {
    allowed: ['{"name":"a","mime_type":"text/plain","file_type":"document"}', 'bytes'],
    gives: 'positive',
    wrong: [
      [['{}', 'x'], invalid],
      [['{"name":"a/b","mime_type":"text/plain","file_type":"document"}', 'x'], invalid],
    ],
    tooLarge: [['{"name":"a","mime_type":"text/plain","file_type":"document"}', big(3000)], HOST_ERROR.tooLarge],
    slow: { table: 'files' },
  },
  file_read: {
    allowed: [FILE, 0, 0],
    gives: HOST_ERROR.notFound,
    wrong: [
      [[FILE, -1, 0], invalid],
      [[FILE, 0, -1], invalid],
    ],
    tooLarge: 'a chunk is cut at 1 MB',
    slow: { table: 'files' },
  },
  event_publish: {
    allowed: ['grade.given', '{}'],
    gives: 0,
    wrong: [
      [['', '{}'], invalid],
      [['a', '{'], invalid],
    ],
    tooLarge: [['a', JSON.stringify(big(256 * 1024))], HOST_ERROR.tooLarge],
    slow: { table: 'events' },
  },
  plugin_call: {
    allowed: ['echo', 'f', 'bytes'],
    gives: 5,
    wrong: [
      [['echo', '', ''], invalid],
      [['gone', 'f', ''], HOST_ERROR.notFound],
      [['caller', 'f', ''], HOST_ERROR.denied],
    ],
    tooLarge: 'an answer is bounded by what `output` takes',
    slow: { args: ['loops', 'f', ''] },
  },
  file_read_into: {
    allowed: [FILE, 0, 16],
    gives: HOST_ERROR.notFound,
    wrong: [[[FILE, -1, 16], invalid]],
    tooLarge: 'a chunk is cut at 1 MB',
    slow: { table: 'files' },
  },
  kv_get_many: {
    allowed: ['["a"]'],
    gives: 'positive',
    wrong: [
      [['{}'], invalid],
      [['["a", ""]'], invalid],
    ],
    tooLarge: [[JSON.stringify(Array.from({ length: 101 }, (_, n) => `${n}`))], HOST_ERROR.tooLarge],
    slow: { table: 'plugin_kv' },
  },
  kv_update: {
    before: [['kv_delete', 'u']],
    allowed: ['u', 0, '', 'v', 0],
    gives: 1,
    wrong: [
      [['u', 2, '', 'v', 0], invalid],
      [['', 0, '', 'v', 0], invalid],
      [['u', 0, '', 'v', -1], invalid],
    ],
    tooLarge: [['u', 1, big(MIB + 1), 'v', 0], HOST_ERROR.tooLarge],
    slow: { table: 'plugin_kv' },
  },
  kv_increment: {
    before: [['kv_delete', 'i']],
    allowed: ['i', 1, 0],
    gives: 1,
    wrong: [
      [['', 1, 0], invalid],
      [['i', 1, -1], invalid],
    ],
    tooLarge: [[big(513), 1, 0], HOST_ERROR.tooLarge],
    slow: { table: 'plugin_kv' },
  },
  host_info: { allowed: [], gives: 'positive', wrong: [], tooLarge: 'it takes nothing', slow: LOCAL },
};

/** Functions every script is made of; they are tried by a module of their own below. */
const OWN: Record<string, Array<[args: string, expected: number | 'positive']>> = {
  input_len: [
    ['(i32.const 0)', 'positive'],
    ['(i32.const 1)', 4],
    ['(i32.const 2)', invalid],
  ],
  input_read: [
    ['(i32.const 1) (i32.const 4096) (i32.const 4)', 4],
    ['(i32.const 1) (i32.const -16) (i32.const 32)', invalid],
    ['(i32.const 1) (i32.const 4096) (i32.const -1)', invalid],
    ['(i32.const 5) (i32.const 0) (i32.const 4)', invalid],
  ],
  result_read: [
    ['(i32.const 4096) (i32.const 16)', 0],
    ['(i32.const -16) (i32.const 32)', invalid],
  ],
  body_len: [['', 0]],
  body_read: [
    ['(i32.const 0) (i32.const 4096) (i32.const 16)', 0],
    ['(i32.const 9) (i32.const 4096) (i32.const 16)', invalid],
    ['(i32.const 0) (i32.const -16) (i32.const 32)', invalid],
  ],
  error_len: [['', 'positive']],
  error_read: [
    ['(i32.const 4096) (i32.const 64)', 'positive'],
    ['(i32.const -16) (i32.const 32)', invalid],
  ],
  respond: [
    ['(i32.const 200) (i32.const -16) (i32.const 32) (i32.const 0) (i32.const 0)', invalid],
    ['(i32.const 200) (i32.const 0) (i32.const 0) (i32.const -16) (i32.const 32)', invalid],
    ['(i32.const 99) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)', invalid],
    ['(i32.const 200) (i32.const 0) (i32.const 200000) (i32.const 0) (i32.const 0)', HOST_ERROR.tooLarge],
    ['(i32.const 200) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 10485761)', HOST_ERROR.tooLarge],
  ],
};

const REQUIREMENTS = [
  { kind: 'kv', description: 'x', config: [{ name: 'place' }] },
  ...['sql', 'network', 'notify', 'file', 'events'].map(kind => ({ kind, description: 'x' })),
  ...['echo', 'loops', 'gone'].map(target => ({ kind: 'plugins:call', target, description: 'x' })),
];

const fits = (answer: CallAnswer | undefined, gives: number | 'positive'): boolean =>
  answer !== undefined && (gives === 'positive' ? answer.code > 0 : answer.code === gives);

t.test('every row of the table is there, and no other', t => {
  t.same([...Object.keys(ROWS), ...Object.keys(OWN)].sort(), HOST_FUNCTIONS.map(f => f.name).sort());
  t.end();
});

t.test('every function does its work, and refuses what it must', async t => {
  const server = http.createServer((request, response) => {
    if (request.url === '/silent') return;
    response.end(request.url === '/large' ? Buffer.alloc(11 * MIB) : 'small');
  });
  const base = await listenFor(t, server);
  const own = await makeDatabase();
  t.teardown(() => own.drop());
  const echo =
    '(drop (call $input_read (i32.const 1) (i32.const 1024) (i32.const 100))) (drop (call $output (i32.const 1024) (call $input_len (i32.const 1)))) (i32.const 0)';
  /** A service with the two callers; its answer is that of the last call. */
  const callersIn = async (env: Record<string, string>) => {
    const { link, s, sides, user } = await messengerWorld(t, {
      BOT_HTTP_MAX_BODY: String(15 * MIB),
      BOT_FILES_PLUGIN_QUOTA: '2000',
      ...env,
    });
    const ada = await user('ada');
    if (sides[0] !== undefined) await link(sides[0], ada);
    await s.install(watPlugin({ id: 'echo', imports: ['input_len', 'input_read', 'output'], handle: echo }));
    await s.install(watPlugin({ id: 'loops', handle: '(loop $l (br $l)) (i32.const 0)' }));
    await s.install(callerPlugin({ id: 'caller', requirements: REQUIREMENTS }), {
      place: 'Kazan',
      databases: { default: own.url },
      network: { private: ['127.0.0.1'] },
    });
    await s.install(callerPlugin({ id: 'mute' }));
    const filled = (args: Argument[]): Argument[] =>
      args.map(a => (a === '%user%' ? ada.id : typeof a === 'string' ? a.replace('%url%', base) : a));
    const last = async (plugin: string, name: string, args: Argument[], before: ScriptedCall[] = []) =>
      (await callHost(s, plugin, [...before, [name, ...filled(args)]])).at(-1);
    return { s, last };
  };
  const { last } = await callersIn({});
  // What must come to its deadline comes there soon; everything else has the time a busy machine may need.
  const hasty = await callersIn({ BOT_EXECUTION_TIMEOUT_MS: '800' });

  for (const f of HOST_FUNCTIONS) {
    const row = ROWS[f.name];
    if (row === undefined) continue;
    await t.test(f.name, async t => {
      if (row.gives === 'ends') await t.rejects(last('caller', f.name, row.allowed, row.before), { message: /^502 / });
      else {
        const allowed = await last('caller', f.name, row.allowed, row.before);
        t.ok(fits(allowed, row.gives), `allowed: ${allowed?.code} ${allowed?.text}`);
      }
      if (f.permission !== null) {
        const denied = await last('mute', f.name, row.allowed, row.before);
        t.same([denied?.code, denied?.text], [HOST_ERROR.denied, 'permission denied'], 'not permitted');
      }
      for (const [args, code] of row.wrong) {
        const answer = await last('caller', f.name, args, row.before);
        t.equal(answer?.code, code, `wrong: ${JSON.stringify(args).slice(0, 80)}: ${answer?.text}`);
        t.ok((answer?.text.length ?? 0) > 0, 'and says why');
      }
      for (const [k, kind] of f.parameters.entries()) {
        if (kind === 'i32' || kind === 'i64') continue;
        const answer = await last(
          'caller',
          f.name,
          row.allowed.map((a, n) => (n === k ? BAD_PAIR : a)),
          row.before,
        );
        t.same(
          [answer?.code, /memory/.test(answer?.text ?? '')],
          [invalid, true],
          `argument ${k} outside of the memory`,
        );
      }
      if (typeof row.tooLarge === 'string') t.comment(`nothing is too large: ${row.tooLarge}`);
      else {
        const [args, code] = row.tooLarge;
        t.equal((await last('caller', f.name, args, row.before))?.code, code, 'too large');
      }
      await slow(t, row, f.name);
    });
  }

  /** The deadline passes during the call. */
  async function slow(t: Pick<TAP, 'comment' | 'rejects' | 'ok' | 'equal'>, row: Row, name: string): Promise<void> {
    if (typeof row.slow === 'string') return t.comment(`never waits: ${row.slow}`);
    const { last, s } = hasty;
    if ('table' in row.slow) {
      const holder = openDatabase(s.databaseUrl, 1, () => {});
      const { table } = row.slow;
      await holder.withTransaction(async client => {
        await client.query(`LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`);
        await t.rejects(last('caller', name, row.allowed, row.before), { message: /^504 / }, 'the execution is ended');
      });
      await holder.close();
    } else {
      const { args, before } = row.slow;
      const answer = await last('caller', name, args, before).catch((e: Error) => ({ code: 504, text: e.message }));
      t.ok(answer?.code === HOST_ERROR.deadline || /^504 /.test(answer?.text ?? ''), `${answer?.code} ${answer?.text}`);
    }
    for (let k = 0; k < 100 && s.service.executor.inFlight > 0; k++) await new Promise(r => setTimeout(r, 10));
    t.equal(s.service.executor.inFlight, 0, 'and holds nothing');
    // On a busy machine a new thread may take longer than such a deadline.
    let next: CallAnswer | undefined;
    for (let k = 0; k < 10 && next === undefined; k++) {
      await s.admin('POST', '/plugins/caller/triggers/run/resume');
      next = await last('caller', 'host_info', []).catch(() => undefined);
    }
    t.ok(fits(next, 'positive'), 'the next one runs');
  }
});

t.test('the functions every plugin lives on refuse what lies outside of its memory, or is too large', async t => {
  const { s } = await messengerWorld(t);
  const probes = Object.entries(OWN).flatMap(([name, list]) =>
    list.map(([args, expected]) => ({ name, args, expected })),
  );
  const stores = probes.map((p, k) => `(i32.store (i32.const ${65_536 + 4 * k}) (call $${p.name} ${p.args}))`);
  await s.install(
    watPlugin({
      id: 'own',
      imports: Object.keys(OWN),
      memory: '200',
      handle: `${stores.join('\n')}
        (drop (call $respond (i32.const 200) (i32.const 0) (i32.const 0) (i32.const 65536) (i32.const ${4 * probes.length}))) (i32.const 0)`,
    }),
  );
  const answer = await fetch(`${s.base}/api/triggers/http/own/run`, { method: 'POST', body: 'body' });
  t.equal(answer.status, 200);
  const codes = Buffer.from(await answer.arrayBuffer());
  for (const [k, { args, expected, name }] of probes.entries()) {
    const code = codes.readInt32LE(4 * k);
    t.ok(expected === 'positive' ? code > 0 : code === expected, `${name} ${args}: ${code}`);
  }
});
