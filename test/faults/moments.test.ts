import path from 'node:path';
import t from 'tap';
import type { Actor } from '../../src/audit/audit-log.ts';
import { changeCommandSettings, DEFAULT_COMMAND } from '../../src/authz/command-settings.ts';
import { changeGraphRole } from '../../src/authz/graph-roles.ts';
import { makeClient, openDatabase } from '../../src/db/database.ts';
import { Files } from '../../src/files/files.ts';
import { readGraphSchema } from '../../src/graph/graph-schema.ts';
import { fileHandlers } from '../../src/host/files.ts';
import { HostArguments, HostCall, type PermittedCall } from '../../src/host/host-functions.ts';
import { addCredentials } from '../../src/identity/admin-accounts.ts';
import { grantUserRole } from '../../src/identity/user-roles.ts';
import { addUser } from '../../src/identity/users.ts';
import { changeFrontendOrigins } from '../../src/plugins/change-trigger-settings.ts';
import { ModuleContents } from '../../src/plugins/module-contents.ts';
import { openModuleStorage } from '../../src/plugins/module-storage.ts';
import { PluginRegistry } from '../../src/plugins/registry.ts';
import { compileFailure } from '../../src/plugins/trial-compile.ts';
import { upgradeModules } from '../../src/plugins/upgrade-modules.ts';
import { ExecutionCounts } from '../../src/records/execution-counts.ts';
import { ExecutionRecords } from '../../src/records/execution-records.ts';
import { makeDatabase } from '../support/database.ts';
import { startTestService } from '../support/service.ts';
import { respondText, watPlugin } from '../support/wat.ts';

/** What happens in an unlucky moment: an answer that comes late, a disk that is full, a row that is going. */

const BY: Actor = { kind: 'setup', userId: null, name: 'test', requestId: 'r', address: '127.0.0.1' };
type Scope = { teardown(fn: () => unknown): void };

async function openOwn(t: Scope) {
  const database = await makeDatabase();
  const db = openDatabase(database.url, 4, () => {});
  t.teardown(async () => {
    await db.close();
    await database.drop();
  });
  return { db, url: database.url };
}

/** An installed plugin as the database answers it. */
function installedRow(allowUserSession: boolean) {
  const trigger = { name: 'run', type: 'http', description: '', path: '/run', methods: ['GET'] };
  const row = {
    ...{ id: 1, plugin_id: 'p', version: '1', wasm_key: 'k', sha256: 's', size: 1, findings: [], permissions: [] },
    manifest: { abi: 5, id: 'p', name: 'P', version: '1', requirements: [], triggers: [trigger] },
    ...{ config: {}, secrets: null, network: { hosts: [], private: [] }, frontend: null, signature: null },
    runnable: { sha256: 'r', memoryPages: { min: 1, max: 1 }, overwritten: [], format: 5 },
    ...{ uploaded_at: new Date(), installed_at: new Date(), created_at: new Date(), updated_at: new Date() },
    ...{ enabled: true, installed_version_id: 1, frontend_origins: [], frontend_access: 'public', html_trusted: false },
    settings: {
      run: {
        ...{ enabled: true, allowUserSession, allowServiceKey: false, policyExpression: '' },
        ...{ frontendOrigins: null, record: false },
      },
    },
  };
  return { fields: Object.keys(row).map(name => ({ name })), rows: [Object.values(row)] };
}

/** A registry whose answers of the database the test gives, in the order they were asked for. */
function heldRegistry() {
  const asked: Array<{ give(allow: boolean): void; fail(): void }> = [];
  const query = () =>
    new Promise((resolve, reject) => {
      asked.push({ give: allow => resolve(installedRow(allow)), fail: () => reject(new Error('connection timeout')) });
    });
  const none = () => Promise.reject(new Error('there is no module'));
  const registry = new PluginRegistry({
    db: { query } as never,
    box: {} as never,
    storage: { readRunnable: none } as never,
    ownOrigin: () => null,
    compiledBytesMax: 1e9,
  });
  const next = async (k: number) => {
    for (let turns = 0; turns < 1000; turns++) {
      const one = asked[k];
      if (one !== undefined) return one;
      await new Promise(r => setImmediate(r));
    }
    throw new Error(`the database was not asked a ${k + 1}th time`);
  };
  const letsUsersIn = () => registry.find('p')?.triggers.get('run')?.settings.allowUserSession;
  return { registry, next, letsUsersIn };
}

t.test('an answer that was asked for before all plugins were read again brings back no revoked access', async t => {
  const { letsUsersIn, next, registry } = heldRegistry();
  const reload = registry.reload('p');
  const before = await next(0);
  const all = registry.loadAll(() => {});
  (await next(1)).give(false);
  before.give(true);
  await reload;
  (await next(2)).give(false);
  await all;
  t.equal(letsUsersIn(), false);
});

t.test('nor does a reload that fails while all plugins are read again', async t => {
  const { letsUsersIn, next, registry } = heldRegistry();
  const first = registry.loadAll(() => {});
  (await next(0)).give(true);
  await first;
  const all = registry.loadAll(() => {});
  const reload = registry.reload('p').catch(() => {});
  (await next(2)).fail();
  await reload;
  (await next(1)).give(false);
  (await next(3)).give(false);
  await all;
  t.equal(letsUsersIn(), false);
});

t.test('records of executions wait while the disk of the database is full, also those written one by one', async t => {
  let full = true;
  let refusesOne = false;
  const stored: number[] = [];
  const fault = (code: string) => Object.assign(new Error(code), { code, severity: 'ERROR' });
  const db = {
    query(_text: string, [ids]: unknown[][]) {
      if (full) return Promise.reject(fault('53100'));
      // A batch that is refused is written one by one, and the disk is full again in the middle of that.
      if (refusesOne && (ids?.length ?? 0) > 1) return Promise.reject(fault('22001'));
      if (refusesOne && stored.length === 3) {
        full = true;
        return Promise.reject(fault('53100'));
      }
      stored.push(ids?.length ?? 0);
      return Promise.resolve({ rows: [], rowCount: 0 });
    },
  };
  let lost = 0;
  const records = new ExecutionRecords(db as never, (_error, count) => {
    lost += count;
  });
  const append = (k: number): void =>
    records.append({
      ...{ requestId: `r${k}`, traceId: '', pluginId: 'p', version: '1', trigger: 'run', principal: 'public' },
      ...{ outcome: 'trapped', status: 502, startedAt: new Date(), queueWaitMs: 0, runMs: 1, hostCalls: 0 },
      ...{ peakPages: 1, failure: 'x', log: [], decision: null },
    });
  const sum = (): number => stored.reduce((a, b) => a + b, 0);
  for (let k = 0; k < 300; k++) append(k);
  await records.flush();
  full = false;
  await records.flush();
  t.same([sum(), lost], [300, 0]);
  stored.length = 0;
  refusesOne = true;
  for (let k = 0; k < 10; k++) append(k);
  await records.flush();
  t.equal(sum(), 3);
  [full, refusesOne] = [false, false];
  await records.flush();
  t.same([sum(), lost], [10, 0]);
  await records.close();
});

t.test('a file that is stored when the execution has ended is removed: no plugin knows its id', async t => {
  const { db } = await openOwn(t);
  await db.query("INSERT INTO plugins (id) VALUES ('p')");
  const removed: string[] = [];
  const written = Promise.withResolvers<void>();
  const s3 = {
    kind: 's3',
    write: () => written.promise.then(() => 'a "e"'),
    remove: (file: { id: string }) => Promise.resolve(void removed.push(file.id)),
  };
  const files = new Files({
    ...{ db, disk: {} as never, s3: s3 as never, uploadBytesMax: 1e9, uploadSeconds: 3600, directLinks: true },
    quotas: { userBytes: 1e9, userFiles: 1000, pluginBytes: 1e9 },
    onError: error => t.fail(String(error)),
  });
  const call = new HostCall({
    plugin: { id: 'p', permissions: new Set(['file']) } as never,
    ...{ requestId: 'r', trigger: 'run', kind: 'http', principal: null, caller: 'c' },
    ...{ deadline: performance.now() + 60_000, callers: [], message: null },
  }) as PermittedCall;
  const order = '{"name":"a.txt","mime_type":"text/plain","file_type":"document"}';
  const stored = fileHandlers(files, () => '').file_store(call, new HostArguments([order, Buffer.from('hello')]));
  call.end('killed');
  written.resolve();
  await stored;
  t.equal(removed.length, 1);
  t.same((await db.query("SELECT id FROM files WHERE state = 'ready'")).rows, []);
});

t.test('a host that is overloaded while it brings a stored module up to date refuses no module', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  const body = {
    imports: ['respond'],
    body: '(data (i32.const 64) "ok")',
    handle: `${respondText(64, 2)} (i32.const 0)`,
  };
  await s.install(watPlugin({ id: 'older', ...body }));
  const db = openDatabase(s.databaseUrl, 4, () => {});
  t.teardown(() => db.close());
  await db.query("UPDATE plugin_versions SET runnable = runnable - 'format'");
  const storage = openModuleStorage(path.join(s.directory, 'modules'), new ModuleContents(db));
  const ending = { code: null, signal: 'SIGKILL', output: '', text: '', overMemory: false, late: true } as const;
  const problems: Array<string | null> = [];
  const upgrade = (trials: Array<() => string | null>): Promise<void> =>
    upgradeModules(
      {
        ...{ db, storage, trialStart: () => Promise.reject(new Error('it has no start')) },
        trialCompile: () => Promise.resolve().then(() => (trials.shift() ?? (() => null))()),
      },
      (_version, problem) => problems.push(problem),
    );
  const busy = (): string => compileFailure(ending, 2);
  await upgrade([busy, busy]);
  t.match(problems, [/this host is overloaded; try again/]);
  t.match((await db.query("SELECT runnable ->> 'refused' AS refused FROM plugin_versions")).rows, [{ refused: null }]);
  problems.length = 0;
  await upgrade([busy]);
  t.same(problems, [null], 'the second time, alone, it compiles');
  for (const text of ['sh: 1: Cannot fork', ''])
    t.throws(() => compileFailure({ ...ending, late: false, text }, 2), { code: 'unavailable' });
  t.match(compileFailure({ ...ending, late: false, signal: 'SIGSEGV' }, 2), /SIGSEGV/, 'a crash is the module’s');
});

t.test('what is given to a user or a plugin that is going waits for the end, and is refused', async t => {
  const { db, url } = await openOwn(t);
  const schema = readGraphSchema();
  const gone = makeClient(url);
  await gone.connect();
  t.teardown(() => gone.end());
  let id = 0;
  const user = () => ({ id, externalId: `e-${id}` });
  const rows: Array<[string, string, () => Promise<unknown>]> = [
    ['global_users', 'a role', () => grantUserRole(db, id, 'editor', BY)],
    [
      'global_users',
      'a role of the graph',
      () => changeGraphRole(db, schema, user(), { kind: 'global', role: 'x' }, true, BY),
    ],
    [
      'global_users',
      'an appointment',
      () => db.withTransaction(c => addCredentials(c, { id, email: 'a@uni.example' })),
    ],
    [
      'plugins',
      'a role of the plugin',
      () => changeGraphRole(db, schema, user(), { kind: 'plugin', pluginId: 'p', role: 'x' }, true, BY),
    ],
    ['plugins', 'origins', () => db.withTransaction(c => changeFrontendOrigins(c, 'p', [], BY))],
    [
      'plugins',
      'settings of a command',
      () => db.withTransaction(c => changeCommandSettings(c, 'p', 'c', DEFAULT_COMMAND, BY)),
    ],
  ];
  for (const [table, what, give] of rows) {
    id = (await addUser(db, { displayName: what, externalId: `e-${id + 1}` })).id;
    await db.query('UPDATE global_users SET external_id = $2 WHERE id = $1', [id, `e-${id}`]);
    await db.query("INSERT INTO plugins (id) VALUES ('p') ON CONFLICT DO NOTHING");
    await gone.query('BEGIN');
    await gone.query(`DELETE FROM ${table} WHERE id = $1`, [table === 'plugins' ? 'p' : id]);
    let isDone = false;
    const given = give()
      .then(
        () => 'given',
        (error: unknown) => Reflect.get(error as object, 'code'),
      )
      .finally(() => {
        isDone = true;
      });
    while (!isDone) {
      const { rows: waits } = await gone.query(
        "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()",
      );
      if (waits.length > 0) break;
    }
    await gone.query('COMMIT');
    t.match(await given, what === 'an appointment' ? 'validation_failed' : 'not_found', what);
  }
  t.same((await db.query("SELECT action FROM audit_log WHERE action NOT LIKE 'user.%'")).rows, []);
});

t.test('names of functions that a plugin calls use up no series of metrics', async t => {
  const counts = new ExecutionCounts();
  const ended = { kind: 'ok', queueWaitMs: 0, runMs: 1 } as const;
  for (let k = 0; k < 600; k++) counts.add('loud', `call:f${k}`, ended);
  counts.add('payments', 'checkout', ended);
  const [executions] = counts.metrics();
  t.same(
    executions?.values.map(({ labels, value }) => [labels.plugin, labels.trigger, value]),
    [
      ['loud', 'call', 600],
      ['payments', 'checkout', 1],
    ],
  );
});

t.test('an exit with code 0 hides neither a failure nor an answer that was refused', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  const parts = {
    imports: ['respond', 'fail'],
    moreImports: '(import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))',
    body: '(data (i32.const 64) "{\\"Content-Length\\":\\"5\\"}") (data (i32.const 128) "lost my data")',
  };
  const exit = '(call $exit (i32.const 0)) (i32.const 0)';
  const refused = '(drop (call $respond (i32.const 200) (i32.const 64) (i32.const 22) (i32.const 0) (i32.const 0)))';
  const failed = '(drop (call $fail (i32.const 128) (i32.const 12)))';
  for (const [id, handle, expected] of [
    ['returns', `${refused} (i32.const 0)`, { status: 502, json: { code: 'plugin_response_invalid' } }],
    ['exits', `${refused} ${exit}`, { status: 502, json: { code: 'plugin_response_invalid' } }],
    ['fails', `${failed} ${exit}`, { status: 502, json: { code: 'plugin_error' } }],
    ['ends', exit, { status: 204 }],
  ] as const) {
    await s.install(watPlugin({ ...parts, id, handle }));
    t.match(await s.trigger(`${id}/run`), expected, id);
  }
});
