import { spawn, spawnSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import t from 'tap';
import { type BackupManifest, macOf } from '../../src/cli/local/backup-manifest.ts';
import { type Database, openDatabase } from '../../src/db/database.ts';
import { EMBEDDED_ROLE, grantServiceRole } from '../../src/db/service-role.ts';
import { BARE_ENV } from '../support/bare-env.ts';
import { MAIN, type Ran, runCommand } from '../support/commands.ts';
import { makeEmptyDatabase } from '../support/database.ts';
import { filesWorld } from '../support/files.ts';
import { startGraphStore } from '../support/graph.ts';
import { type Answer, type Json, request, startTestService } from '../support/service.ts';
import { databaseWay } from '../support/store-way.ts';
import { until } from '../support/until.ts';

/** `backup` of a service that runs, and `restore` on another machine. */

const ROOT = process.env.TEST_DIRECTORY ?? '/tmp';
const folder = (name: string): string => fs.mkdtempSync(path.join(ROOT, `${name}-`));

const key = randomBytes(32).toString('base64');
const { spicedb } = await startGraphStore(t);
const GRAPH = { BOT_SPICEDB_ENDPOINT: spicedb.endpoint, BOT_SPICEDB_TOKEN: 'any', BOT_SPICEDB_TLS: 'false' };
const world = await filesWorld(t, { ...GRAPH, BOT_SECRETS_KEY: key });
const { db, s } = world;
const env = { BOT_DATABASE_URL: s.databaseUrl, BOT_DATA_DIR: s.directory, BOT_SECRETS_KEY: key };

/** A test that begins ends by itself at the first assertion that is not in a part of it. */
function made({ status, text }: Answer): void {
  if (status !== 201) throw new Error(`${status} ${text}`);
}

const ada = await world.user('ada');
const hello = new Uint8Array(Buffer.from('hello'));
const fileId = await ada.give(hello);
// The plugin notes it in its key-value store.
made(await ada.post('/api/triggers/http/filebox/files', { file_id: fileId }));
const tuple = {
  resource_type: 'faculty',
  resource_id: '3',
  relation: 'dean',
  subject_type: 'user',
  subject_id: 'ext-1',
};
made(await s.admin('POST', '/relationships', { relationships: [tuple] }));

/** Everything below a folder. */
const filesBelow = (at: string): string[] =>
  fs.readdirSync(at, { recursive: true, encoding: 'utf8' }).map(name => path.join(at, name));

/** Every row of every table, to compare two databases. */
async function contents(of: Database): Promise<Map<string, string>> {
  const { rows } = await of.query<{ name: string }>(
    "SELECT relname AS name FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition AND relname NOT IN ('host_processes', 'schema_migrations')",
  );
  const all = new Map<string, string>();
  for (const { name } of rows) {
    const found = await of.query<{ row: string }>(`SELECT to_jsonb(x)::text AS row FROM ${name} x ORDER BY 1`);
    all.set(name, found.rows.map(r => r.row).join('\n'));
  }
  return all;
}

const directory = path.join(folder('backup'), 'b');

/** Writes a page of contents as who has the key would. */
function writeManifest(at: string, manifest: unknown): void {
  const contents = manifest as BackupManifest;
  const signed = { ...contents, mac: macOf(contents, Buffer.from(key, 'base64')) };
  fs.writeFileSync(path.join(at, 'backup.json'), JSON.stringify(signed));
}

t.test('a backup of a service that runs holds every table at one moment, and the files', async t => {
  // What is committed while tables are copied is in none of them, wherever the copy stands.
  await db.query('CREATE TABLE a_first (a int); CREATE TABLE m_held (a int); CREATE TABLE z_last (a int)');
  // An upload under way.
  fs.writeFileSync(path.join(s.directory, 'files', 'half.part'), 'ha');
  let copying: Promise<Ran> | undefined;
  await db.withTransaction(async client => {
    await client.query('LOCK TABLE m_held IN ACCESS EXCLUSIVE MODE');
    copying = runCommand(['backup', directory], env);
    const waiting = "SELECT FROM pg_locks WHERE relation = 'm_held'::regclass AND NOT granted";
    for (let k = 0; ((await db.query(waiting)).rowCount ?? 0) === 0; k++) {
      if (k === 600) throw new Error('the backup does not come to the table');
      await sleep(50);
    }
    await client.query('INSERT INTO a_first VALUES (1); INSERT INTO z_last VALUES (1)');
  });
  const written = await copying;
  t.match(
    written,
    { code: 0, out: /^\S+: \d+ rows of \d+ tables; 1 files of users\nkeep secrets\.key as well/ },
    written?.err ?? '',
  );
  const manifest = JSON.parse(fs.readFileSync(path.join(directory, 'backup.json'), 'utf8')) as Json;
  const rowsOf = (name: string): unknown => (manifest.tables as Json[]).find(x => x.name === name)?.rows;
  t.same([rowsOf('a_first'), rowsOf('z_last')], [0, 0], 'both rows of a transaction, or none');
  const copied = fs.readdirSync(path.join(directory, 'files'), { recursive: true, encoding: 'utf8' });
  t.same(
    copied.filter(name => name.endsWith('.part')),
    [],
  );
  t.equal(fs.statSync(path.join(directory, 'tables')).mode & 0o077, 0, 'other accounts do not read it');
  t.match(await runCommand(['backup', directory], env), { code: 1, err: /is there already; name another folder/ });
  await db.query('DROP TABLE a_first, m_held, z_last');
  fs.rmSync(path.join(s.directory, 'files', 'half.part'));
});

t.test('a backup that is stopped by a signal leaves nothing', async t => {
  const place = folder('stopped');
  await db.query('CREATE TABLE m_held (a int)');
  await db.withTransaction(async client => {
    await client.query('LOCK TABLE m_held IN ACCESS EXCLUSIVE MODE');
    const child = spawn(process.execPath, [MAIN, 'backup', path.join(place, 'b')], { env: { ...BARE_ENV, ...env } });
    const ended = once(child, 'exit');
    await until(() => fs.readdirSync(place).length > 0);
    child.kill('SIGTERM');
    t.same(await ended, [143, null]);
  });
  t.same(fs.readdirSync(place), []);
  await db.query('DROP TABLE m_held');
});

t.test('it is restored on another machine: the same rows, the same answers, rights included', async t => {
  // The service notes last uses, activity and the like now and then: a backup during which nothing was noted is compared.
  let before: Map<string, string>;
  let isQuiet: boolean;
  do {
    fs.rmSync(directory, { recursive: true, force: true });
    before = await contents(db);
    t.equal((await runCommand(['backup', directory, '--json'], env)).code, 0);
    isQuiet = isDeepStrictEqual(await contents(db), before);
  } while (!isQuiet);
  const target = await makeEmptyDatabase();
  t.teardown(() => target.drop());
  const data = folder('restored');
  const there = { BOT_DATABASE_URL: target.url, BOT_DATA_DIR: data, BOT_SECRETS_KEY: key };
  const restored = await runCommand(['restore', directory, '--keep-credentials'], there);
  t.match(restored, { code: 0, out: /^restored \d+ rows and 1 files of 20\S+; start the service\n$/ }, restored.err);
  const copy = openDatabase(target.url, 2, () => {});
  t.teardown(() => copy.close());
  const after = await contents(copy);
  for (const [table, rows] of before)
    if (!['sessions', 'execution_records'].includes(table)) t.equal(after.get(table), rows, table);
  await grantServiceRole(copy, EMBEDDED_ROLE);
  const again = await startTestService(
    { ...GRAPH, BOT_SECRETS_KEY: key, BOT_DATA_DIR: data },
    { ...s, databaseUrl: target.url },
  );
  t.teardown(() => again.stop());
  t.match((await again.admin('GET', '/plugins')).json, { items: [{ id: 'filebox', state: 'enabled' }] });
  const sum = await request(`${again.base}/api/triggers/http/filebox/files/${fileId}/checksum`, {
    headers: ada.headers,
  });
  t.match(sum, { status: 200, text: /"offset":5,"state":"\d+","eof":true/ }, 'plugin, token and file are there');
  const listed = await again.admin('GET', '/relationships?resource_type=faculty&resource_id=3');
  t.match(listed.json, { items: [{ relation: 'dean', subject_id: 'ext-1' }] });
  const made = await again.admin('POST', '/users', { display_name: 'New' });
  t.equal(made.status, 201, 'sequences go on where they were');
  t.match(await runCommand(['restore', directory], there), { code: 1, err: /holds files already|is not empty/ });
});

t.test('a damaged backup, another key, and a database that is not empty change nothing', async t => {
  const target = await makeEmptyDatabase();
  t.teardown(() => target.drop());
  const copy = openDatabase(target.url, 1, () => {});
  t.teardown(() => copy.close());
  const isEmpty = async (): Promise<boolean> =>
    (await copy.query("SELECT 1 FROM pg_class WHERE relnamespace = 'public'::regnamespace LIMIT 1")).rowCount === 0;
  const there = (): Record<string, string> => ({
    BOT_DATABASE_URL: target.url,
    BOT_DATA_DIR: folder('r'),
    BOT_SECRETS_KEY: key,
  });
  const damaged = path.join(folder('damaged'), 'b');
  fs.cpSync(directory, damaged, { recursive: true });
  const file = path.join(damaged, 'tables', 'plugins.copy.gz');
  const whole = fs.readFileSync(file);
  fs.writeFileSync(file, whole.subarray(0, -1));
  t.match(await runCommand(['restore', damaged], there()), {
    code: 1,
    err: /damaged: \S+plugins\.copy\.gz has changed/,
  });
  fs.rmSync(file);
  t.match(await runCommand(['restore', damaged], there()), {
    code: 1,
    err: /damaged: \S+plugins\.copy\.gz cannot be read/,
  });
  fs.writeFileSync(file, whole);
  fs.rmSync(path.join(damaged, 'files'), { recursive: true });
  t.match(await runCommand(['restore', damaged], there()), {
    code: 1,
    err: /files has 0 files with 0 bytes, and had 1 with 5/,
  });
  fs.rmSync(path.join(damaged, 'backup.json'));
  t.match(await runCommand(['restore', damaged], there()), { code: 1, err: /is no backup: it has no backup\.json/ });

  const manifest = JSON.parse(fs.readFileSync(path.join(directory, 'backup.json'), 'utf8')) as Json & {
    migrations: Json[];
  };
  fs.cpSync(directory, damaged, { recursive: true });
  manifest.migrations.push({ name: '999_later.sql', sha256: 'x' });
  fs.writeFileSync(path.join(damaged, 'backup.json'), JSON.stringify(manifest));
  t.match(await runCommand(['restore', damaged], there()), {
    code: 1,
    err: /migration 999_later\.sql, which this release does not know/,
  });

  const other = { ...there(), BOT_SECRETS_KEY: randomBytes(32).toString('base64') };
  t.match(await runCommand(['restore', directory], other), { code: 1, err: /another secrets\.key/ });
  t.ok(await isEmpty(), 'nothing was written');
  t.match(await runCommand(['restore', directory], { ...there(), BOT_DATABASE_URL: s.databaseUrl }), {
    code: 1,
    err: /not empty/,
  });

  // A row that breaks a tie fails at the end of the transaction: nothing of it stays.
  const broken = path.join(folder('broken'), 'b');
  fs.cpSync(directory, broken, { recursive: true });
  const { gzipSync } = await import('node:zlib');
  const empty = gzipSync('');
  fs.writeFileSync(path.join(broken, 'tables', 'plugins.copy.gz'), empty);
  const changed = JSON.parse(fs.readFileSync(path.join(broken, 'backup.json'), 'utf8')) as Json & { tables: Json[] };
  for (const table of changed.tables)
    if (table.name === 'plugins') table.sha256 = createHash('sha256').update(empty).digest('hex');
  writeManifest(broken, changed);
  const target2 = there();
  t.match(await runCommand(['restore', broken], target2), {
    code: 1,
    err: /could not be restored: .*violates foreign key/,
  });
  t.ok(await isEmpty());
  t.notOk(fs.existsSync(path.join(target2.BOT_DATA_DIR ?? '', 'files')), 'a folder that was not there is not there');

  // Folders that were there stay, also one of a name the backup has.
  const kept = there();
  const files = path.join(kept.BOT_DATA_DIR ?? '', 'files');
  const names = [...fs.readdirSync(path.join(directory, 'files')), 'lost+found', 'other'];
  for (const name of names) fs.mkdirSync(path.join(files, name, 'below'), { recursive: true });
  const { ino } = fs.statSync(files);
  t.match(await runCommand(['restore', broken], kept), { code: 1, err: /violates foreign key/ });
  t.same(fs.readdirSync(files).sort(), names.sort());
  for (const name of names) t.same(fs.readdirSync(path.join(files, name)), ['below']);
  t.equal(fs.statSync(files).ino, ino);
  t.match(await runCommand(['restore', directory], kept), { code: 0, out: /^restored \d+ rows and 1 files/ });
  t.equal(fs.statSync(files).ino, ino, 'it is the same folder, which may be a mount point');
  t.same(fs.readdirSync(files).sort(), names.sort(), 'and what was needed on the way is gone');
});

/** Mounts something on a folder; false where this account, or this machine, may not. */
function mount(...args: string[]): boolean {
  const { status } = spawnSync('mount', args);
  if (status === 0) t.teardown(() => spawnSync('umount', args.slice(-1)));
  return status === 0;
}

for (const kind of ['a file system of its own', 'a folder of elsewhere'])
  t.test(`files are restored into a mount point: ${kind}`, async t => {
    const data = folder('mounted');
    const files = path.join(data, 'files');
    fs.mkdirSync(files);
    const args =
      kind === 'a folder of elsewhere' ? ['--bind', folder('bound'), files] : ['-t', 'tmpfs', 'tmpfs', files];
    if (!mount(...args)) return t.pass('this account mounts nothing here');
    const target = await makeEmptyDatabase();
    t.teardown(() => target.drop());
    const there = { BOT_DATABASE_URL: target.url, BOT_DATA_DIR: data, BOT_SECRETS_KEY: key };
    const restored = await runCommand(['restore', directory, '--json'], there);
    t.equal(restored.code, 0, restored.err);
    t.match(JSON.parse(restored.out), { files: 1 });
    const found = fs.readdirSync(files, { recursive: true, withFileTypes: true }).filter(e => e.isFile());
    t.same(
      found.map(e => fs.readFileSync(path.join(e.parentPath, e.name), 'utf8')),
      ['hello'],
    );
    t.match(await runCommand(['restore', directory], there), { code: 1, err: /holds files already/ });
  });

t.test(
  'a backup takes files that come and go, those on the disk although there is S3, and leaves what others wrote',
  async t => {
    const uploads = path.join(s.directory, 'files', 'churn', 'uploads');
    fs.mkdirSync(uploads, { recursive: true });
    let churning = true;
    const churn = (async () => {
      for (let k = 0; churning; k++) {
        for (let n = 0; n < 50; n++) fs.writeFileSync(path.join(uploads, `${k}-${n}`), 'x');
        await new Promise(r => setImmediate(r));
        for (let n = 0; n < 50; n++) fs.rmSync(path.join(uploads, `${k}-${n}`));
        await new Promise(r => setImmediate(r));
      }
    })();
    const to = path.join(folder('churned'), 'b');
    fs.mkdirSync(`${to}.part`);
    fs.writeFileSync(path.join(`${to}.part`, 'important'), '');
    fs.symlinkSync('/etc/passwd', path.join(uploads, '..', 'link'));
    const S3 = {
      BOT_S3_BUCKET: 'b',
      BOT_S3_ENDPOINT: 'http://127.0.0.1:1',
      BOT_S3_ACCESS_KEY_ID: 'k',
      BOT_S3_SECRET_ACCESS_KEY: 's',
    };
    const written = await runCommand(['backup', to], { ...env, ...S3 });
    churning = false;
    await churn;
    t.match(written, { code: 0, out: /; [1-9]\d* files of users; back up the bucket as well/ }, written.err);
    t.ok(fs.existsSync(path.join(`${to}.part`, 'important')), 'a folder of that name is not ours');
    const copied = fs.readdirSync(path.join(to, 'files'), { recursive: true, encoding: 'utf8' });
    t.notOk(
      copied.some(f => f.endsWith('link')),
      'a link is not followed',
    );
    fs.rmSync(path.join(uploads, '..'), { recursive: true });
  },
);

t.test('a place for a backup that is none is refused in words', async t => {
  const data = folder('data');
  const linked = `${data}-link`;
  fs.symlinkSync(data, linked);
  const at = { ...env, BOT_DATA_DIR: data };
  const file = path.join(folder('place'), 'file');
  fs.writeFileSync(file, '');
  for (const inside of [data, path.join(data, 'b'), path.join(data, 'no', 'such'), path.join(linked, 'b')])
    t.match(await runCommand(['backup', inside], at), {
      code: 2,
      err: `${inside} lies in the data directory ${data}, with`,
    });
  const outer = path.join(folder('outer'), 'b');
  t.match(await runCommand(['backup', outer], { ...env, BOT_DATA_DIR: path.join(outer, 'data') }), {
    code: 2,
    err: `${outer} holds the data directory`,
  });
  t.match(await runCommand(['backup', '/nowhere/at/all'], at), {
    code: 1,
    err: /the folder \/nowhere\/at is not there, in which all would be made; make it first, like: install -d .*\/nowhere\/at\n$/,
  });
  t.match(await runCommand(['backup', path.join(file, 'b')], at), {
    code: 1,
    err: `${file} is a file; name a place in a folder`,
  });
  t.match(await runCommand(['restore', '/nowhere'], at), {
    code: 1,
    err: /there is no folder \/nowhere: name one that backup/,
  });
  t.match(await runCommand(['person', 'export', 'e1', '/nowhere/x'], at), {
    code: 1,
    err: /the folder \/nowhere is not there/,
  });
  t.match(await runCommand(['support-bundle', '/nowhere/x'], at), {
    code: 1,
    err: /the folder \/nowhere is not there/,
  });
  t.same(fs.readdirSync(data), [], 'nothing was made');
});

t.test('a database that does not answer or refuses is one line, in every command', async t => {
  const refused = s.databaseUrl.replace(/\/\/[^@]*@/, '//no_such_role:x@');
  const key = ['admin', 'key', '--email', 'a@b', '--name', 'x', '--scope', 'read'];
  for (const args of [key, ['migrate', 'status'], ['migrate', 'up'], ['backup', path.join(folder('x'), 'b')]]) {
    const away = { BOT_DATABASE_URL: 'postgresql://u:p@127.0.0.1:1/x', BOT_DATA_DIR: folder('away') };
    t.match(
      await runCommand(args, away),
      { code: 1, out: '', err: /^plugin-host: the database does not answer: .*\n$/ },
      args.join(' '),
    );
    t.match(
      await runCommand(args, { ...away, BOT_DATABASE_URL: refused }),
      {
        code: 1,
        err: /^plugin-host: the database refuses the connection: .*; correct role, password or name in .*\n$/,
      },
      args.join(' '),
    );
  }
});

// Another account cannot make a directory of a third one.
const notRoot = process.getuid?.() === 0 ? false : 'needs root';
t.test('a command of root runs as the account that owns the data directory', { skip: notRoot }, async t => {
  const target = await makeEmptyDatabase();
  // The account may not use the socket of the tests' server.
  const way = await databaseWay(target.url);
  t.teardown(async () => {
    way.close();
    await target.drop();
  });
  const data = folder('owned');
  const copy = folder('copy');
  const credentials = folder('credentials');
  fs.cpSync(directory, copy, { recursive: true });
  fs.writeFileSync(path.join(credentials, 'database.url'), way.url, { mode: 0o600 });
  for (const one of [data, copy, ...filesBelow(copy)]) fs.chownSync(one, 1, 1);
  const there = { CREDENTIALS_DIRECTORY: credentials, BOT_DATA_DIR: data, BOT_SECRETS_KEY: key };
  const restored = await runCommand(['restore', copy], there);
  t.match(restored, { code: 0, err: '', out: /restored \d+ rows and 1 files/ });
  const owners = filesBelow(data).map(file => fs.statSync(file).uid);
  t.same([...new Set(owners)], [1], 'all of it is that of the account');
  t.equal((await runCommand(['restore', copy], there)).code, 1, 'and so is the code it ends with');

  const file = path.join(folder('configuration'), 'host.yaml');
  fs.writeFileSync(file, `data: { dir: ${data} }\n`, { mode: 0o600 });
  fs.chmodSync(data, 0o500);
  const looked = await runCommand(['doctor', '--config', file], { CREDENTIALS_DIRECTORY: credentials });
  t.match(looked, { code: 1, out: /^failed +data directory .*daemon/m }, 'root could write there, the service cannot');
  t.match(looked.out, /^ok +database {2}/m, 'what root alone reads was read before');
});

t.test('a backup that was changed is refused: a file of a user, its sum, the page of contents', async t => {
  const target = await makeEmptyDatabase();
  t.teardown(() => target.drop());
  const there = { BOT_DATABASE_URL: target.url, BOT_DATA_DIR: folder('r'), BOT_SECRETS_KEY: key };
  const forged = path.join(folder('forged'), 'b');
  fs.cpSync(directory, forged, { recursive: true });
  const [sum = '', name = ''] = fs.readFileSync(path.join(forged, 'files.sha256'), 'utf8').trim().split('  ');
  t.match(name, /^files\/\w+\/ready\//);
  fs.writeFileSync(path.join(forged, name), 'jello');
  t.match(await runCommand(['restore', forged], there), { code: 1, err: /damaged: \S+ready\S+ has changed/ });
  const other = createHash('sha256').update('jello').digest('hex');
  fs.writeFileSync(path.join(forged, 'files.sha256'), `${other}  ${name}\n`);
  t.match(await runCommand(['restore', forged], there), { code: 1, err: /damaged: \S+files\.sha256 has changed/ });
  const page = path.join(forged, 'backup.json');
  const manifest = JSON.parse(fs.readFileSync(page, 'utf8')) as BackupManifest;
  const sums = createHash('sha256').update(`${other}  ${name}\n`).digest('hex');
  const contents = { ...manifest, files: manifest.files === null ? null : { ...manifest.files, sums_sha256: sums } };
  for (const forgery of [contents, { ...contents, mac: null }, { ...contents, mac: null, secrets_fingerprint: null }]) {
    fs.writeFileSync(page, JSON.stringify(forgery));
    t.match(await runCommand(['restore', forged], there), {
      code: 1,
      err: /not made under secrets\.key of this machine/,
    });
  }
  t.not(sum, other);
});

t.test('a restore ends sessions, tokens and keys of then, some of which may have been revoked since', async t => {
  const target = await makeEmptyDatabase();
  t.teardown(() => target.drop());
  const scope = { plugin_id: 'filebox', trigger: 'files' };
  made(await s.admin('POST', '/service-keys', { name: 'k', scopes: [scope] }));
  const [known = { at: null }] = (
    await db.query<{ at: Date | null }>(
      `INSERT INTO admin_credentials (global_user_id, email, password_hash)
       SELECT min(id), 'ada@uni.example', '!' FROM global_users RETURNING passwordless_after AS at`,
    )
  ).rows;
  const later = path.join(folder('later'), 'b');
  t.equal((await runCommand(['backup', later], env)).code, 0);
  await db.query('DELETE FROM admin_credentials');
  const there = { BOT_DATABASE_URL: target.url, BOT_DATA_DIR: folder('r'), BOT_SECRETS_KEY: key };
  const restored = await runCommand(['restore', later], there);
  t.match(restored, {
    code: 0,
    out: /\nended, .*: \d+ sessions, 1 user tokens, 1 service keys, 0 administration keys;/,
  });
  const copy = openDatabase(target.url, 1, () => {});
  t.teardown(() => copy.close());
  const { rows } = await copy.query<{ open: number }>(
    `SELECT (SELECT count(*) FROM sessions)::int + (SELECT count(*) FROM user_tokens WHERE expires_at > now())::int
       + (SELECT count(*) FROM service_keys WHERE expires_at IS NULL OR expires_at > now())::int AS open`,
  );
  t.same(rows, [{ open: 0 }]);
  const after = await copy.query('SELECT 1 FROM admin_credentials WHERE passwordless_after > $1', [known.at]);
  t.equal(after.rowCount, 1, 'no browser of before logs in without the password');
});

t.test('a backup without files that the database names fails', async t => {
  const elsewhere = { ...env, BOT_DATA_DIR: folder('elsewhere') };
  t.match(await runCommand(['backup', path.join(folder('lost'), 'b')], elsewhere), {
    code: 1,
    err: /1 of 1 files that the database names are not below \S+\/files, ready\/\S+ among them: is data\.dir/,
  });
});

t.test('a backup whose list of tables or migrations was changed is refused', async t => {
  const changed = path.join(folder('changed'), 'b');
  fs.cpSync(directory, changed, { recursive: true });
  const text = fs.readFileSync(path.join(changed, 'backup.json'), 'utf8');
  type Manifest = Json & { tables: Array<Json & { columns: string[] }>; migrations: Json[] };
  const target = await makeEmptyDatabase();
  t.teardown(() => target.drop());
  const there = { BOT_DATABASE_URL: target.url, BOT_DATA_DIR: folder('r'), BOT_SECRETS_KEY: key };
  const cases: Array<[change: (manifest: Manifest) => unknown, refusal: RegExp]> = [
    [m => m.tables.splice(0, 1), /does not have the tables and columns of its release: \w+\n/],
    [m => m.tables.push({ ...m.tables[0], name: 'later', columns: ['a'] }), /of its release: later\n/],
    [m => m.tables[0]?.columns.pop(), /damaged: backup\.json does not have the tables and columns/],
    [m => Object.assign(m.migrations[0] ?? {}, { sha256: 'x' }), /migration \S+, which this release does not know/],
  ];
  const [table] = (JSON.parse(text) as Manifest).tables;
  fs.copyFileSync(
    path.join(changed, 'tables', `${table?.name}.copy.gz`),
    path.join(changed, 'tables', 'later.copy.gz'),
  );
  for (const [change, refusal] of cases) {
    const manifest = JSON.parse(text) as Manifest;
    change(manifest);
    writeManifest(changed, manifest);
    t.match(await runCommand(['restore', changed], there), { code: 1, err: refusal });
  }
});

t.test('the embedded database is backed up and restored as well', async t => {
  const data = folder('embedded');
  const restored = await runCommand(['restore', directory, '--keep-credentials'], {
    BOT_DATA_DIR: data,
    BOT_SECRETS_KEY: key,
  });
  t.match(restored, { code: 0, out: /^restored / }, restored.err);
  const states = await runCommand(['migrate', 'status', '--json'], { BOT_DATA_DIR: data });
  t.match(states, { code: 0, err: '' }, 'it is started for the answer');
  t.match(JSON.parse(states.out), { items: [{ name: '001_schema.sql', state: 'applied' }] });
  const again = path.join(folder('again'), 'b');
  const made = await runCommand(['backup', again, '--json'], { BOT_DATA_DIR: data, BOT_SECRETS_KEY: key });
  t.equal(made.code, 0, made.err);
  const rowsOf = (at: string): Json =>
    Object.fromEntries(
      ((JSON.parse(fs.readFileSync(path.join(at, 'backup.json'), 'utf8')) as Json).tables as Json[]).map(x => [
        String(x.name),
        x.rows ?? 0,
      ]),
    );
  t.same(rowsOf(again), rowsOf(directory));
});
