import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { serviceVersion } from '../../src/base/version.ts';
import { openDatabase } from '../../src/db/database.ts';
import { ModuleContents } from '../../src/plugins/module-contents.ts';
import { openModuleStorage } from '../../src/plugins/module-storage.ts';
import { shareModules } from '../../src/plugins/share-modules.ts';
import { type Json, publicAccess, request, startTestService } from '../support/service.ts';
import { watPlugin } from '../support/wat.ts';
import { rawZip } from '../support/zip.ts';

/** Hosts that have the database in common, and no folder. */

const directories: string[] = [];
const directory = (): string => {
  const made = fs.mkdtempSync(path.join(process.env.TEST_DIRECTORY ?? '/tmp', 'several-hosts-'));
  directories.push(made);
  return made;
};
const env = { BOT_SECRETS_KEY: randomBytes(32).toString('base64') };
const first = await startTestService({ ...env, BOT_DATA_DIR: directory() });
const second = await startTestService({ ...env, BOT_DATA_DIR: directory() }, first);
const db = openDatabase(first.databaseUrl, 2, () => {});
t.teardown(async () => {
  await second.stop();
  await db.close();
  await first.stop();
});

const module = (version: string): Uint8Array =>
  watPlugin({
    id: 'near',
    version,
    handle: '(i32.const 0)',
    triggers: [{ name: 'go', type: 'http', path: '/go', methods: ['GET'] }],
  });

async function deliver(version: string): Promise<string> {
  const form = new FormData();
  form.append('file', new Blob([new Uint8Array(module(version))]), 'near.wasm');
  form.append(
    'frontend',
    new Blob([new Uint8Array(rawZip([{ name: 'index.html', data: Buffer.from(`<p>${version}</p>`) }]))]),
    'f.zip',
  );
  const headers = { authorization: 'Bearer test-setup-token' };
  const uploaded = await request(`${first.base}/api/admin/plugins/upload`, { method: 'POST', headers, body: form });
  t.equal(uploaded.status, 201, uploaded.text);
  const body = { wasm_key: uploaded.json.wasm_key, config: {}, ...publicAccess(uploaded.json) } as Json;
  const installed = await first.admin('POST', '/plugins/near/install', body);
  t.equal(installed.status, 200, installed.text);
  return String(uploaded.json.wasm_key);
}

const stored = async (): Promise<number> => (await db.query('SELECT 1 FROM stored_contents')).rowCount ?? 0;

t.test('a plugin installed on one host answers on another that has no folder in common', async t => {
  const key = await deliver('1.0.0');
  await t.resolves(second.service.heard());
  t.match(await second.trigger('near/go'), { status: 204 }, 'its module comes from the database');
  const page = await request(`${second.base}/plugins/near/app/`);
  t.match(page, { status: 200, text: '<p>1.0.0</p>' });
  t.ok(fs.existsSync(path.join(directories[1] ?? '', 'modules', `${key}.run${runFormat(key)}.wasm`)), 'and is kept');
  t.equal(await stored(), 3, 'upload, rewritten module and frontend');
});

/** The format is part of the name of the file. */
function runFormat(key: string): string {
  const file = fs.readdirSync(path.join(directories[0] ?? '', 'modules')).find(f => f.startsWith(`${key}.run`));
  return /\.run(\d+)\.wasm$/.exec(file ?? '')?.[1] ?? '';
}

t.test('what a release of before has left on one host alone is stored for all', async t => {
  const contents = new ModuleContents(db);
  const storage = openModuleStorage(path.join(directories[0] ?? '', 'modules'), contents);
  await db.query('DELETE FROM stored_contents');
  const elsewhere = openModuleStorage(directory(), contents);
  t.equal(
    await shareModules(db, contents, elsewhere),
    0,
    'a host without the files leaves it to the one that has them',
  );
  t.equal(await shareModules(db, contents, storage), 1);
  t.equal(await stored(), 3);
  t.equal(await shareModules(db, contents, storage), 0, 'once');
});

t.test('a module that is damaged on the disk of a host comes from the database again', async t => {
  const storage = openModuleStorage(directory(), new ModuleContents(db));
  const { rows } = await db.query<{ sha256: string }>("SELECT runnable ->> 'sha256' AS sha256 FROM plugin_versions");
  const sha256 = rows[0]?.sha256 ?? '';
  const { length } = await storage.readRunnable('key', sha256);
  for (const damaged of ['', 'other bytes']) {
    fs.writeFileSync(storage.runnablePath('key'), damaged);
    t.equal((await storage.readRunnable('key', sha256)).length, length);
    t.equal(fs.statSync(storage.runnablePath('key')).size, length, 'and stays');
  }
});

t.test('bytes that are not those that were checked are neither stored nor run', async t => {
  const contents = new ModuleContents(db);
  const file = path.join(directory(), 'changed');
  fs.writeFileSync(file, 'other bytes');
  await t.rejects(
    db.withTransaction(client => contents.put(client, file, 'a'.repeat(64))),
    /changed has changed since it was checked/,
  );
  t.same(await contents.missing(['a'.repeat(64)]), new Set(['a'.repeat(64)]), 'nothing of them stays');
  const { rows } = await db.query<{ sha256: string }>("SELECT runnable ->> 'sha256' AS sha256 FROM plugin_versions");
  const sha256 = rows[0]?.sha256 ?? '';
  await db.query("UPDATE stored_content_parts SET bytes = bytes || '\\x00' WHERE sha256 = $1", [sha256]);
  const other = openModuleStorage(directory(), contents);
  await t.rejects(other.readRunnable('key', sha256), /the database holds other bytes/);
});

t.test('what no version names goes, and what one names stays', async t => {
  const contents = new ModuleContents(db);
  await db.query("INSERT INTO stored_contents (sha256, size, stored_at) VALUES ('old', 0, now() - interval '2 hours')");
  await db.query("INSERT INTO stored_contents (sha256, size) VALUES ('new', 0)");
  await db.query("UPDATE stored_contents SET stored_at = now() - interval '2 hours' WHERE sha256 NOT IN ('new')");
  t.equal(await contents.removeOrphans(), 1, 'an upload that is about to become a version is left alone');
  t.same([...(await contents.missing(['old', 'new']))], ['old']);
  await second.admin('DELETE', '/plugins/near');
  t.equal(await contents.removeOrphans(), 0, 'an uninstalled version keeps its bytes');
});

t.test('every host is listed with its release and its load, and one that falls silent is seen', async t => {
  const hosts = async (): Promise<Json[]> => (await first.admin('GET', '/hosts')).json.items as Json[];
  t.match(await hosts(), [
    { state: 'serving', processes: [{ pid: process.pid, load: { lanes: Number, executions_in_flight: 0 } }] },
    { state: 'serving', versions: [serviceVersion()] },
  ]);
  await db.query(
    `INSERT INTO host_processes (host_id, pid, host_name, address, version, started_at, seen_at, load, duties)
     SELECT 7, 1, 'lost', '192.0.2.1:80', '0.0.1', now() - interval '1 hour', now() - interval '6 s', load, '{outbox_delivery}'
     FROM host_processes LIMIT 1`,
  );
  t.match((await hosts())[0], { name: 'lost', state: 'silent', duties: [], versions: ['0.0.1'] }, 'it has no duty now');
  await db.query("UPDATE host_processes SET seen_at = now() + interval '1 day' WHERE host_id = 7");
  for (let k = 0; k < 200; k++) {
    const { rowCount } = await db.query(
      "SELECT 1 FROM host_processes WHERE host_id = 7 AND seen_at > now() + interval '5 s'",
    );
    if (rowCount === 0) break;
    await new Promise(r => setTimeout(r, 50));
  }
  const { rows } = await db.query<{ ahead: boolean }>(
    'SELECT seen_at > now() AS ahead FROM host_processes WHERE host_id = 7',
  );
  t.same(rows, [{ ahead: false }], 'a clock that was set back keeps no host alive');
});

t.test('a host that ends in order is not missed', async t => {
  const third = await startTestService({ ...env, BOT_DATA_DIR: directory() }, first);
  const count = async (): Promise<number> =>
    (await db.query('SELECT 1 FROM host_processes WHERE host_id <> 7')).rowCount ?? 0;
  for (let k = 0; k < 100 && (await count()) < 3; k++) await new Promise(r => setTimeout(r, 50));
  t.equal(await count(), 3);
  await third.stop();
  t.equal(await count(), 2);
});

t.test('queues of background work are listed with what waits and what failed', async t => {
  const { json } = await first.admin('GET', '/jobs');
  const queues = json.items as Json[];
  t.match(
    queues.find(q => q.name === 'outbox_deliver'),
    { waiting: Number, active: Number, failed: 0, last_error: null },
  );
  t.notOk(queues.some(q => String(q.name).endsWith('_dead')));
});

t.test('a host that is gone for good is forgotten, and one that serves is not', async t => {
  await db.query(
    `INSERT INTO host_processes (host_id, pid, host_name, address, version, started_at, load, duties, seen_at)
     SELECT 77, 1, 'gone', 'x:1', '0', now(), load, '{}', now() - interval '1 hour' FROM host_processes LIMIT 1`,
  );
  const listed = (await first.admin('GET', '/hosts')).json.items as Json[];
  const serving = listed.find(h => h.state === 'serving');
  t.equal(listed.find(h => h.name === 'gone')?.state, 'silent');
  t.match(await first.admin('DELETE', `/hosts/${serving?.id}`), {
    status: 409,
    json: { detail: /serves: only silent/ },
  });
  t.equal((await first.admin('DELETE', '/hosts/77')).status, 204);
  t.equal((await first.admin('DELETE', '/hosts/77')).status, 404);
  t.equal((await first.admin('DELETE', '/hosts/x')).status, 404);
  t.match((await first.admin('GET', '/audit?action=host.forget')).json.items, [{ object_id: '77' }]);
});
