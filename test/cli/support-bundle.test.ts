import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { openDatabase } from '../../src/db/database.ts';
import { BARE_ENV } from '../support/bare-env.ts';
import { startTestService, TOKEN } from '../support/service.ts';
import { watPlugin } from '../support/wat.ts';

const MAIN = path.resolve(import.meta.dirname, '../../src/main.ts');

t.test('the bundle holds configuration, queues, hosts and failures, and no secret', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  await s.install(watPlugin({ id: 'greeter', version: '1.0.0', handle: '(i32.const 0)' }));
  const db = openDatabase(s.databaseUrl, 1, () => {});
  await db.query(
    `INSERT INTO execution_records (request_id, plugin_id, version, trigger_name, principal, outcome, status, started_at, queue_wait_ms,
       run_ms, host_calls, peak_pages, failure, log)
     VALUES ('request-1', 'greeter', '1.0.0', 'greet', 'public', 'trapped', 502, now(), 1, 2, 3, 4, 'unreachable, says ada@uni.example at https://u:word@x.example/', '[{"level":2,"text":"confidential-line"}]')`,
  );
  await db.close();
  const directory = t.testdir({});
  const file = path.join(directory, 'bundle.tar.gz');
  const env = {
    ...BARE_ENV,
    BOT_DATABASE_URL: s.databaseUrl,
    BOT_DATA_DIR: path.join(directory, 'data'),
    BOT_ADMIN_API_KEY: 'a-secret-of-the-configuration',
    BOT_SMTP_PASSWORD: 'another-secret',
  };
  const made = spawnSync(process.execPath, [MAIN, 'support-bundle', file], { env, encoding: 'utf8' });
  t.match(made, { status: 0, stdout: /bundle\.tar\.gz: look through it before you pass it on\n$/ }, made.stderr);
  t.equal(fs.statSync(file).mode & 0o777, 0o600);
  execFileSync('tar', ['-xzf', file, '-C', directory]);
  const names = fs.readdirSync(path.join(directory, 'bundle'));
  const read = (name: string): string => fs.readFileSync(path.join(directory, 'bundle', name), 'utf8');
  const listed = [...read('README.txt').matchAll(/^(\w+\.(?:json|txt)) /gm)].map(m => m[1] ?? '');
  t.same([...listed, 'README.txt'].sort(), names.sort(), 'the page in it names every file');
  for (const name of names)
    for (const secret of ['a-secret-of-the-configuration', 'another-secret', 'confidential-line', s.databaseUrl])
      t.notOk(read(name).includes(secret), `${name} holds no ${secret}`);
  t.match(JSON.parse(read('configuration.json')), [] as unknown[]);
  t.match(read('configuration.json'), /"key": "smtp\.password",\s+"value": "\(hidden\)"/);
  t.match(JSON.parse(read('database.json')), { migrations: Array, tables: Array });
  t.match(JSON.parse(read('queues.json')), { outbox: { dead: 0 }, jobs: Array, imports: [] });
  t.match(JSON.parse(read('hosts.json')), [{ pid: process.pid }]);
  t.match(JSON.parse(read('failures.json')), [
    { requestId: 'request-1', failure: 'unreachable, says hidden@example.invalid at https://(hidden)@x.example/' },
  ]);
  t.match(JSON.parse(read('doctor.json')), [{ state: /ok|failed|warning/ }]);

  const again = spawnSync(process.execPath, [MAIN, 'support-bundle', file], { env, encoding: 'utf8' });
  t.match(again, { status: 1, stderr: /is there already; name another file/ });
});

t.test('a running service gives the same bundle to administrators, without what only the machine knows', async t => {
  const s = await startTestService({ BOT_ADMIN_API_KEY: 'a-secret-of-the-configuration' });
  t.teardown(() => s.stop());
  const answer = await fetch(`${s.base}/api/admin/support-bundle`, { headers: { authorization: `Bearer ${TOKEN}` } });
  t.equal(answer.status, 200);
  t.match(answer.headers.get('content-disposition'), /^attachment; filename="plugin-host-support-[\dT-]+\.tar\.gz"$/);
  t.equal(answer.headers.get('cache-control'), 'no-store');
  const directory = t.testdir({});
  const file = path.join(directory, 'bundle.tar.gz');
  fs.writeFileSync(file, new Uint8Array(await answer.arrayBuffer()));
  execFileSync('tar', ['-xzf', file, '-C', directory]);
  const [folder = ''] = fs.readdirSync(directory).filter(name => name.startsWith('plugin-host-support-'));
  const names = fs.readdirSync(path.join(directory, folder));
  t.same(names.sort(), [
    ...['README.txt', 'configuration.json', 'database.json', 'failures.json', 'hosts.json', 'queues.json'],
    ...['suspensions.json', 'versions.json'],
  ]);
  for (const name of names)
    t.notMatch(fs.readFileSync(path.join(directory, folder, name), 'utf8'), /a-secret-of-the-configuration/, name);
  t.equal((await fetch(`${s.base}/api/admin/support-bundle`)).status, 401);
});

t.test('what cannot be read is said in its place, and the rest is packed', async t => {
  const directory = t.testdir({});
  const file = path.join(directory, 'b.tar.gz');
  const env = {
    ...BARE_ENV,
    BOT_DATABASE_URL: 'postgresql://u@127.0.0.1:1/x',
    BOT_DATA_DIR: path.join(directory, 'd'),
  };
  const made = spawnSync(process.execPath, [MAIN, 'support-bundle', file], { env, encoding: 'utf8' });
  t.equal(made.status, 0, made.stderr);
  execFileSync('tar', ['-xzf', file, '-C', directory]);
  t.match(JSON.parse(fs.readFileSync(path.join(directory, 'b', 'hosts.json'), 'utf8')), { problem: /ECONNREFUSED/ });
  t.match(fs.readFileSync(path.join(directory, 'b', 'metrics.txt'), 'utf8'), /metrics\.port is not set/);
});
