import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { erasePerson, findPersonOfUser } from '../../src/app/person-data.ts';
import { type Actor, appendAudit } from '../../src/audit/audit-log.ts';
import { openDatabase } from '../../src/db/database.ts';
import { readMigrations } from '../../src/db/migrate.ts';
import { eraseUser } from '../../src/identity/users.ts';
import { type ExecutionRecord, ExecutionRecords } from '../../src/records/execution-records.ts';
import { ENTITIES } from '../../src/university/entities.ts';
import { type Ran, runCommand } from '../support/commands.ts';
import { filesWorld } from '../support/files.ts';
import { startGraphStore } from '../support/graph.ts';
import { type Answer, type Json, request } from '../support/service.ts';

/** `person export` and `person erase`: everything the service holds of a person. */

const { spicedb } = await startGraphStore(t);
const KEY = 'import-key-of-the-test';
const { db, s, user } = await filesWorld(t, {
  BOT_SPICEDB_ENDPOINT: spicedb.endpoint,
  BOT_SPICEDB_TOKEN: 'any',
  BOT_SPICEDB_TLS: 'false',
  BOT_ADMIN_API_KEY: KEY,
});

const run = (...args: string[]): Promise<Ran> =>
  runCommand(['person', ...args], { BOT_DATABASE_URL: s.databaseUrl, BOT_DATA_DIR: s.directory });

async function batch(what: string, ...records: Json[]): Promise<void> {
  const answer: Answer = await request(`${s.base}/api/admin/university/${what}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify(records),
  });
  if (answer.status !== 200) throw new Error(`${what}: ${answer.status} ${answer.text}`);
}
await batch('faculties', { external_id: 'f1', name: 'Physics' });
await batch('persons', ...['e1', 'e2'].map(id => ({ external_id: id, last_name: `Name-${id}`, first_name: 'First' })));
await batch('admin-appointments', {
  external_id: 'a1',
  person_external_id: 'e1',
  object_type: 'faculty',
  object_external_id: 'f1',
  role: 'dean',
});

const ada = await user('Ada');
const other = await user('Other');
await db.query("UPDATE global_users SET external_id = NULL WHERE external_id = 'e1'");
await db.query('UPDATE global_users SET external_id = $2 WHERE id = $1', [ada.userId, 'e1']);
const fileId = await ada.give(new Uint8Array(Buffer.from('of Ada')));
await ada.post('/api/triggers/http/filebox/files', { file_id: fileId });
await db.query(
  `INSERT INTO messenger_accounts (channel, account_id, global_user_id, chat_id) VALUES ('VK', '77', $1, '77');`,
  [ada.userId],
);
await db.query(
  `INSERT INTO messenger_chats (channel, chat_id, is_private) VALUES ('VK', '77', true), ('VK', '78', true)`,
);
await db.query(
  `INSERT INTO messenger_updates (channel, update_id, chat_id, payload) VALUES ('VK', '1', '77', 'from Ada'), ('VK', '2', '78', 'x')`,
);
await db.query(
  `INSERT INTO outgoing_messages (channel, chat_id, source, user_id, message, request_id, urgent, state)
   VALUES ('VK', '77', 'notify_user', $1, '{"text": "to Ada", "files": []}', 'r', false, 'sent'), ('VK', '78', 'reply', NULL, '{"text": "x", "files": []}', 'r', false, 'sent'),
   ('VK', '77', 'reply', NULL, '{"text": "answer to Ada", "files": []}', 'r', false, 'sent')`,
  [ada.userId],
);
await batch('persons', { external_id: 'e1', last_name: '' }).catch(() => {});
await s.admin('POST', '/relationships', {
  relationships: [
    { resource_type: 'faculty', resource_id: 'f1', relation: 'staff', subject_type: 'user', subject_id: 'e1' },
  ],
});
const RECORDED = {
  format: 1,
  plugin_id: 'filebox',
  version: '1',
  trigger: 'files',
  event: 'of Ada',
  body: null,
  config: {},
  calls: [],
  outcome: { kind: 'ok', failure: '', status: 200, headers: '', body: '' },
};
await db.query(
  `INSERT INTO execution_records (request_id, plugin_id, version, trigger_name, principal, outcome, status, started_at, queue_wait_ms,
     run_ms, host_calls, peak_pages, failure, log, recording)
   VALUES ('of the log', 'filebox', '1', 'files', $1, 'ok', 200, now(), 1, 1, 1, 1, '', '[{"level":1,"text":"Ada"}]', $2)`,
  [`user:${ada.userId}`, JSON.stringify(RECORDED)],
);
for (const { userId } of [ada, other]) {
  const by = { kind: 'user' as const, userId, name: `of ${userId}`, requestId: '', address: '' };
  await appendAudit(db, by, { action: 'token.create', objectType: 'user', objectId: '1' });
  await db.query(
    "INSERT INTO idempotent_requests (caller, key, request_sha256, status, body) VALUES ($1, 'key', '', 200, $1)",
    [`user:${userId}`],
  );
}
const recorded = async (): Promise<number> =>
  (await db.query('SELECT 1 FROM execution_records WHERE principal = $1', [`user:${ada.userId}`])).rowCount ?? 0;
// That row, and the call of the trigger above, which is written later.
for (let k = 0; k < 200 && (await recorded()) < 2; k++) await sleep(50);

t.test('an export holds everything of the person, with the files, and no secret', async t => {
  const directory = t.testdir({});
  const file = path.join(directory, 'ada.tar.gz');
  const by: Actor = { kind: 'setup', userId: null, name: 'test', requestId: 'r', address: '' };
  for (const [{ userId }, name] of [
    [ada, 'Ada before'],
    [other, 'Other before'],
  ] as const)
    await appendAudit(db, by, {
      ...{ action: 'user.change', objectType: 'user', objectId: String(userId) },
      after: { display_name: name },
    });
  const made = await run('export', `user:${ada.userId}`, file);
  t.match(
    made,
    { code: 0, out: /everything the service holds of user \d+ \(e1\), with 1 files; plugins may hold more: filebox/ },
    made.err,
  );
  t.equal(fs.statSync(file).mode & 0o777, 0o600);
  execFileSync('tar', ['-xzf', file, '-C', directory]);
  const text = fs.readFileSync(path.join(directory, 'person.json'), 'utf8');
  t.match(JSON.parse(text), {
    user: { displayName: /Ada/ },
    university: { persons: [{ last_name: 'Name-e1' }], administrative_appointments: [{ role: 'dean' }] },
    relationships: [{ tuple: { subjectId: 'e1' } }, { tuple: { subjectId: 'e1' } }],
    tokens: [{ name: 'n' }],
    messenger_accounts: [{ chatId: '77' }],
    messages: [{ message: { text: 'answer to Ada' } }, { message: { text: 'to Ada' } }],
    incoming_messages: [{ payload: 'from Ada' }],
    files: [{ id: fileId }],
    executions: [{ pluginId: 'filebox' }, { pluginId: 'filebox' }],
    recordings: [{ recording: { event: 'of Ada' } }],
    audit: [{ action: 'token.create', actor: { name: `of ${ada.userId}` } }],
    requests: [{ body: `user:${ada.userId}` }],
  });
  const about: Json[] = JSON.parse(text).audit_about;
  const named = about.map(entry => [entry.objectType, entry.objectId, entry.after]);
  t.match(
    named,
    [['user', String(ada.userId), { display_name: 'Ada before' }]],
    'what others have done about the person',
  );
  t.notMatch(text, /sha256|secret|Name-e2|Other before/);
  t.equal(fs.readFileSync(path.join(directory, 'files', fileId, 'note.txt'), 'utf8'), 'of Ada');
  t.match(await run('export', 'e1', file), { code: 1, err: /is there already/ });
  t.match(await run('export', 'e9', path.join(directory, 'x')), {
    code: 1,
    err: /knows no person "e9": give an external id, or user:ID/,
  });
});

t.test('a number is an external id, and never taken for the id of a user', async t => {
  const number = String(ada.userId);
  const refused = await run('erase', number, '--yes');
  t.match(refused, {
    code: 1,
    err: new RegExp(`knows no person "${number}": for user ${number} .* say user:${number}`),
  });
  await batch('persons', { external_id: number, last_name: 'Same', first_name: 'Number' });
  t.match(await run('erase', number), {
    code: 1,
    err: new RegExp(`removes (person|user \\d+) \\(?${number}\\)? for good`),
  });
  t.match(await run('erase', number, '--yes'), {
    code: 0,
    out: new RegExp(`^(person|user \\d+) \\(?${number}\\)? is erased`),
  });
  t.equal((await db.query('SELECT 1 FROM global_users WHERE id = $1', [ada.userId])).rowCount, 1);
});

t.test('nothing is left of an export that cannot be written, and another release changes no schema', async t => {
  const directory = t.testdir({});
  const file = path.join(directory, 'x.tar.gz');
  const last = readMigrations().at(-1);
  if (last === undefined) throw new Error('there is no migration');
  await db.query('DELETE FROM schema_migrations WHERE number = $1', [last.number]);
  const refused = await run('export', 'e1', file);
  t.match(refused, { code: 1, err: new RegExp(`not migrated to this release yet \\(${last.name}`) });
  const row = [last.number, last.name, last.sha256, last.expands];
  await db.query('INSERT INTO schema_migrations (number, name, sha256, expands) VALUES ($1, $2, $3, $4)', row);
  t.same(fs.readdirSync(directory), []);
});

t.test('an administrator is not erased, and nothing is without --yes', async t => {
  t.match(await run('erase', 'e1'), { code: 1, err: /removes user \d+ \(e1\) for good; .* add --yes/ });
  await db.query(
    "INSERT INTO admin_credentials (global_user_id, email, password_hash) VALUES ($1, 'ada@x.example', '')",
    [ada.userId],
  );
  t.match(await run('erase', 'e1', '--yes'), { code: 1, err: /is an administrator: end the appointment first/ });
  await db.query('DELETE FROM admin_credentials');
  t.equal((await db.query("SELECT 1 FROM persons WHERE external_id = 'e1'")).rowCount, 1);
});

t.test('erasing takes everything away, rights and graph included, and leaves others alone', async t => {
  const call = () => ada.ask('GET', '/api/triggers/http/filebox/files');
  t.equal((await call()).status, 200);
  const erased = await run('erase', 'e1', '--yes');
  t.match(
    erased,
    {
      code: 0,
      out: /^user \d+ \(e1\) is erased\n[\s\S]*files: 1\n[\s\S]*audit log made nameless: \d+[\s\S]*entries of the audit log stay until retention\.audit, without name[\s\S]*entries of the outbox name the external id for/,
    },
    erased.err,
  );
  for (let k = 0; k < 100 && (await call()).status !== 401; k++) await sleep(50);
  t.equal((await call()).status, 401, 'the token ends on the running service');
  const { rows } = await db.query<{ table: string; column: string }>(
    `SELECT table_name AS table, column_name AS column FROM information_schema.columns
     WHERE table_schema = 'public' AND column_name IN ('global_user_id', 'user_id', 'person_external_id')`,
  );
  t.ok(rows.length > 8);
  for (const { column, table } of rows) {
    if (table === 'file_usage') continue;
    const value = column === 'person_external_id' ? 'e1' : String(ada.userId);
    t.equal(
      (await db.query(`SELECT 1 FROM ${table} WHERE ${column}::text = $1`, [value])).rowCount,
      0,
      `${table}.${column}`,
    );
  }
  t.equal(ENTITIES.filter(e => 'person_external_id' in e.fields).length, 5, 'the tables that name persons');
  t.equal(await recorded(), 0);
  t.match((await db.query("SELECT principal, log FROM execution_records WHERE request_id = 'of the log'")).rows, [
    { principal: 'erased', log: [] },
  ]);
  const left = async (text: string): Promise<number> => (await db.query(text)).rowCount ?? 0;
  t.equal(await left("SELECT 1 FROM persons WHERE external_id = 'e1'"), 0);
  t.equal(await left("SELECT 1 FROM persons WHERE external_id = 'e2'"), 1);
  t.equal(await left("SELECT 1 FROM messenger_updates WHERE payload LIKE '%Ada%'"), 0);
  t.equal(await left('SELECT 1 FROM messenger_updates'), 1);
  t.equal(await left('SELECT 1 FROM outgoing_messages'), 1);
  t.equal(await left("SELECT 1 FROM university_import_errors WHERE external_id = 'e1'"), 0);
  t.equal(await left("SELECT 1 FROM authz_tuples WHERE subject_id = 'e1'"), 0, 'imported, and given by hand');
  t.equal(await left(`SELECT 1 FROM idempotent_requests WHERE caller = 'user:${ada.userId}'`), 0);
  t.equal(await left(`SELECT 1 FROM idempotent_requests WHERE caller = 'user:${other.userId}'`), 1);
  t.equal(await left(`SELECT 1 FROM global_users WHERE id = ${other.userId}`), 1);
  const said = await db.query<{ text: string }>("SELECT string_agg(l::text, '\n') AS text FROM audit_log l");
  t.notMatch(said.rows[0]?.text, new RegExp(`of ${ada.userId}\\b|@user:e1\\b|Ada`));
  for (let k = 0; k < 100 && (await left('SELECT 1 FROM authz_outbox WHERE processed_at IS NULL')) > 0; k++)
    await sleep(50);
  t.equal(await left('SELECT 1 FROM authz_outbox WHERE processed_at IS NULL'), 0, 'the graph store has it');
  const audit = await s.admin('GET', '/audit?action=person.erase');
  t.match((audit.json.items as Json[])[0], { object_id: String(ada.userId), after: { files: 1, relationships: 2 } });
  t.match(await run('erase', 'e1', '--yes'), { code: 1, err: /knows no person "e1"/ });
});

const BY = { kind: 'command_line' as const, userId: null, name: 'test', requestId: '', address: '' };
const RECORD: Omit<ExecutionRecord, 'recording'> = {
  requestId: '',
  traceId: '',
  pluginId: 'filebox',
  version: '1.0.0',
  trigger: 'files',
  principal: 'public',
  outcome: 'ok',
  status: 200,
  startedAt: new Date(),
  queueWaitMs: 0,
  runMs: 0,
  hostCalls: 0,
  peakPages: 1,
  failure: '',
  log: [{ level: 2, text: 'of a user' }],
  decision: { allowed: true },
};
const RECORDING = { bytes: 1, pack: () => Buffer.from('of a user') };

/** Until a number of connections to the database of the test wait for a lock. */
async function untilWaiting(count: number): Promise<void> {
  const waiting = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
  for (let k = 0; ((await db.query(waiting)).rowCount ?? 0) < count; k++) {
    if (k === 400) throw new Error(`fewer than ${count} connections wait for a lock`);
    await sleep(50);
  }
}

t.test('a record of an execution names no user who is erased while it is written, or before', async t => {
  const own = openDatabase(s.databaseUrl, 3, () => {});
  t.teardown(() => own.close());
  const records = new ExecutionRecords(own, error => t.fail(String(error)));
  const write = async (requestId: string, ...users: number[]): Promise<void> => {
    for (const id of users) records.append({ ...RECORD, requestId, principal: `user:${id}` }, RECORDING);
    await records.flush();
  };
  const stored = async (requestId: string): Promise<unknown[]> =>
    (
      await db.query(
        'SELECT principal, log, decision, recording FROM execution_records WHERE request_id = $1 ORDER BY id',
        [requestId],
      )
    ).rows;
  const nameless = { principal: 'erased', log: [], decision: null, recording: null };
  const erase = async (id: number): Promise<void> => {
    const person = await findPersonOfUser(own, id);
    if (person === undefined) throw new Error(`there is no user ${id}`);
    await erasePerson(own, person, BY);
  };

  const [before, during, after] = [await user('Before'), await user('During'), await user('After')];
  await erase(before.userId);
  await write('before', before.userId, other.userId);
  t.match(await stored('before'), [nameless, { principal: `user:${other.userId}`, log: [{ text: 'of a user' }] }]);

  let writing = Promise.resolve();
  await db.withTransaction(async client => {
    await eraseUser(client, during.userId);
    writing = write('during', during.userId);
    await untilWaiting(1);
  });
  await writing;
  t.match(await stored('during'), [nameless], 'the erasure was first');

  await db.query(
    `CREATE FUNCTION held() RETURNS trigger LANGUAGE plpgsql AS
       $$ BEGIN PERFORM pg_advisory_xact_lock(77); RETURN NEW; END $$;
     CREATE TRIGGER held BEFORE INSERT ON execution_records FOR EACH ROW EXECUTE FUNCTION held()`,
  );
  let erasing = Promise.resolve();
  await db.withTransaction(async client => {
    await client.query('SELECT pg_advisory_xact_lock(77)');
    writing = write('after', after.userId);
    await untilWaiting(1);
    erasing = erase(after.userId);
    await untilWaiting(2);
  });
  await Promise.all([writing, erasing]);
  t.match(await stored('after'), [nameless], 'the record was first');
});
