import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { writeNewFile } from '../../src/base/write-new-file.ts';
import { loadConfig } from '../../src/config/load.ts';
import { makeAnnouncer } from '../../src/supervisor/announce.ts';
import { dropTo } from '../../src/supervisor/children/unprivileged.ts';
import { LOCK_FILE, lockDataDirectory } from '../../src/supervisor/handover/data-lock.ts';
import { takePort } from '../support/ports.ts';
import { request } from '../support/service.ts';
import { signalDescendant } from '../support/signals.ts';
import { gone, processesOf, ROOT, start, startProgram } from '../support/started-service.ts';
import { until } from '../support/until.ts';

/** Every file below a directory the service itself writes at start, with its time of change. */
function filesOf(directory: string): string[] {
  return (
    fs
      .readdirSync(directory, { recursive: true, encoding: 'utf8' })
      // What V8 compiled is shared with the services of other tests (`shareCache`).
      .filter(f => !/^(postgres|cache\/compiled)\//.test(f))
      .map(f => `${f} ${fs.lstatSync(path.join(directory, f)).mtimeMs}`)
      .sort()
  );
}

const procFile = (pid: string, name: string): string => fs.readFileSync(`/proc/${pid}/${name}`, 'latin1');

const postmaster = (directory: string): string =>
  fs.readFileSync(path.join(directory, 'postgres', 'postmaster.pid'), 'utf8');

t.test('a data directory is locked for as long as its process lives', t => {
  const directory = t.testdir();
  const first = lockDataDirectory(directory, 'serve');
  t.equal(first.state, 'held');
  t.match(lockDataDirectory(directory, 'serve'), { state: 'taken', by: { pid: process.pid, command: 'serve' } });
  if (first.state === 'held') first.release();
  // A note of a process that is gone says nothing.
  fs.writeFileSync(path.join(directory, LOCK_FILE), JSON.stringify({ pid: 1, host: 'x', command: 'serve' }));
  t.equal(lockDataDirectory(directory, 'command').state, 'held');
  t.end();
});

t.test('npm start: JSON lines, ready with its sample, alone on its directory, ended in order by SIGTERM', async t => {
  const directory = fs.mkdtempSync(path.join(ROOT, 'alone-'));
  const port = String(await takePort());
  const run = startProgram('npm', ['start', '--silent'], directory, { BOT_HTTP_PORT: port });
  t.teardown(() => run.child.kill('SIGTERM'));
  const base = `http://127.0.0.1:${port}`;
  const answer = (where: string) => request(`${base}${where}`).catch(() => null);
  await until(async () => (await answer('/readyz'))?.status === 200);
  t.match(
    await answer('/api/triggers/http/hello/greet?name=world'),
    { status: 200, json: { message: 'Hello, world!' } },
    'ready on a first start means that the sample answers',
  );
  const [, supervisor = ''] = await run.until(/"pid":(\d+)/);
  await run.until(/graph store was filled/);

  if (process.getuid?.() === 0) {
    const account = spawnSync('id', ['-u', 'plugin-host'], { encoding: 'utf8' }).stdout.trim();
    // Some containers keep the right to raise limits from root.
    const mayLimit = spawnSync('prlimit', ['--nice=20:20', 'true']).status === 0;
    const running = processesOf(directory).filter(p => /main\.ts\0(serving|spicedb)\0/.test(procFile(p, 'cmdline')));
    t.ok(running.length >= 2);
    for (const p of running) {
      t.match(procFile(p, 'status'), new RegExp(`^Uid:\\t${account}\\t${account}\\t${account}\\t${account}$`, 'm'));
      t.match(procFile(p, 'status'), /^CapEff:\t0+$/m, 'without a capability');
      if (mayLimit)
        t.match(procFile(p, 'limits'), /^Max nice priority +20 +20/m, 'lowered priorities can be raised again');
    }
    t.throws(
      () => execFileSync('cat', [path.join(directory, 'postgres.password')], { uid: Number(account), stdio: 'pipe' }),
      'what runs plugins cannot read the password of the owner',
    );
  }
  const before = filesOf(directory);
  const server = postmaster(directory);
  for (const other of [port, String(await takePort())]) {
    const second = start(directory, { BOT_HTTP_PORT: other });
    t.equal(await second.exited, 1);
    t.match(second.output(), new RegExp(`in use by process ${supervisor} \\(plugin-host serve\\)`));
  }
  t.same(filesOf(directory), before, 'the second one touched nothing');
  t.equal(postmaster(directory), server, 'the database of the first runs on');
  t.ok(fs.existsSync(path.join(directory, 'spicedb.endpoint')));
  t.equal((await answer('/readyz'))?.status, 200);

  const lines = run.stdout().trim().split('\n');
  const said = lines.map(line => JSON.parse(line) as Record<string, unknown>);
  t.ok(said.every(line => typeof line.msg === 'string'));
  const token = /setup token: (\S+) /.exec(run.stdout())?.[1];
  t.match(
    said.find(line => String(line.msg).startsWith('plugin host is ready')),
    {
      url: base,
      setup_token: token,
      setup_link: `${base.replace('127.0.0.1', 'localhost')}/admin/#token=${token}`,
      try_it: /^curl /,
    },
  );

  // As systemd and a terminal do it: the signal comes to npm and to the service, and npm passes its own on.
  run.child.kill('SIGTERM');
  signalDescendant(Number(supervisor), 'SIGTERM');
  await run.exited;
  t.ok(await gone(directory), `nothing is left running: ${processesOf(directory)}`);
  t.match(run.output(), /SIGTERM: stopping/);
  t.match(run.output(), /"why":"SIGTERM"[\s\S]*"stopped"\}\s*$/, 'ended in order');
  t.notMatch(run.output(), /stopping at once/);
  // Services of other tests write there as well.
  const compiled = fs.readdirSync(path.join(directory, 'cache', 'compiled'), { recursive: true });
  t.ok(compiled.length > 100, 'what was compiled is kept for the next start');

  const again = start(directory, { BOT_HTTP_PORT: port });
  t.teardown(() => again.child.kill('SIGKILL'));
  await again.until(/plugin host is ready/);
  again.child.kill('SIGKILL');
  await again.exited;
  const lock = lockDataDirectory(directory, 'serve');
  t.equal(lock.state, 'held', 'a killed supervisor leaves no lock');
  if (lock.state === 'held') lock.release();
  t.ok(await gone(directory));
});

t.test('a terminal gets a banner for people', t => {
  let shown = '';
  const out = {
    isTTY: true,
    write(text: string) {
      shown += text;
      return true;
    },
  };
  makeAnnouncer(loadConfig(null, {}), true, out).ready(8080, 'tok');
  t.match(shown, /plugin host is ready: http:\/\/127.0.0.1:8080\n {2}setup token: tok\n/);
  t.match(shown, /try it: {6}curl 'http:\/\/127.0.0.1:8080\/api\/triggers\/http\/hello\/greet\?name=world'\n/);
  t.end();
});

t.test('if the account cannot read the program or the data, the service starts as root and names the path', t => {
  const warned: string[] = [];
  const tell = { progress() {}, warn: (text: string) => void warned.push(text) };
  const closed = path.join(fs.mkdtempSync(path.join(ROOT, 'closed-')), 'below');
  fs.mkdirSync(path.join(closed, 'data'), { recursive: true });
  const account = dropTo(path.join(closed, 'data'), tell);
  t.equal(account, null);
  if (process.getuid?.() === 0) {
    t.match(warned[0], `cannot read ${closed}; put the program and its data where every account can read them`);
    t.equal(fs.statSync(path.join(closed, 'data')).uid, 0, 'nothing is handed over');
  } else t.same(warned, []);
  t.end();
});

t.test('links that the account puts into the data directory do not redirect writes of root', t => {
  if (process.getuid?.() !== 0) return t.end();
  const warned: string[] = [];
  const tell = { progress() {}, warn: (text: string) => void warned.push(text) };
  const outside = fs.mkdtempSync(path.join(ROOT, 'outside-'));
  const directory = fs.mkdtempSync(path.join(ROOT, 'planted-'));
  const target = path.join(outside, 'target');
  fs.writeFileSync(target, 'as it was', { mode: 0o600 });
  fs.mkdirSync(path.join(directory, 'modules'));
  fs.writeFileSync(path.join(directory, 'modules', 'm.wasm'), '');
  fs.symlinkSync(target, path.join(directory, 'modules', 'link'));
  fs.linkSync(target, path.join(directory, 'second-name'));
  fs.symlinkSync(outside, path.join(directory, 'folder'));
  // What belongs to a third account, under a name of its own choice.
  fs.writeFileSync(path.join(directory, 'pw'), 'of the database');
  fs.chownSync(path.join(directory, 'pw'), 12_345, 12_345);

  const account = dropTo(directory, tell);
  t.same(warned, []);
  const ownerOf = (at: string): number => fs.lstatSync(at).uid;
  t.equal(ownerOf(path.join(directory, 'modules', 'm.wasm')), account?.uid, 'what root has made is handed over');
  t.equal(ownerOf(target), 0, 'no link is followed, symbolic or not');
  t.equal(ownerOf(outside), 0);
  t.equal(ownerOf(path.join(directory, 'pw')), 12_345, 'what belongs to others stays theirs');
  const top = fs.statSync(directory);
  t.same([top.uid, top.gid, top.mode & 0o7777], [0, account?.gid, 0o1771], 'the top stays with root, and is sticky');
  const as = (command: string, ...args: string[]): number | null =>
    spawnSync(command, args, { uid: account?.uid ?? 0, gid: account?.gid ?? 0, cwd: '/' }).status;
  t.equal(as('touch', path.join(directory, 'new')), 0, 'the account makes entries of its own');
  t.not(as('mv', path.join(directory, 'pw'), path.join(directory, 'mine')), 0, 'and renames no other');

  // Files the supervisor writes there are made new.
  fs.symlinkSync(target, path.join(directory, 'endpoint'));
  writeNewFile(path.join(directory, 'endpoint'), 'new', 0o600);
  t.equal(fs.readFileSync(target, 'utf8'), 'as it was');
  t.equal(fs.readFileSync(path.join(directory, 'endpoint'), 'utf8'), 'new');
  fs.symlinkSync(target, path.join(directory, LOCK_FILE));
  t.throws(() => lockDataDirectory(directory, 'serve'), { code: 'ELOOP' }, 'a lock that is a link is refused');
  t.end();
});

t.test('an embedded PostgreSQL that ends is started again, one at a time and where it was', async t => {
  // The path of a socket in it would be too long, so that the server listens on a port.
  const directory = fs.mkdtempSync(path.join(ROOT, 'long-'.repeat(16)));
  const port = String(await takePort());
  // What a start has left that was killed while it made the cluster.
  fs.mkdirSync(path.join(directory, 'postgres.new'), { recursive: true });
  fs.writeFileSync(path.join(directory, 'postgres.new', 'PG_VERSION'), '17\n');
  const run = start(directory, { BOT_HTTP_PORT: port });
  const stopped = async (): Promise<void> => {
    run.child.kill('SIGTERM');
    await run.exited;
  };
  t.teardown(stopped);
  await run.until(/is ready/);
  t.notOk(fs.existsSync(path.join(directory, 'postgres.new')));
  const pidAndPort = (): [pid: number, port: string] => {
    if (!fs.existsSync(path.join(directory, 'postgres', 'postmaster.pid'))) return [0, ''];
    const lines = postmaster(directory).split('\n');
    return [Number(lines[0]), lines[3] ?? ''];
  };
  const isReady = () =>
    request(`http://127.0.0.1:${port}/readyz`).then(
      answer => answer.status === 200,
      () => false,
    );
  const [first, place] = pidAndPort();
  let last = first;
  // The second one ends before its database is prepared.
  for (let k = 0; k < 2; k++) {
    signalDescendant(last, 'SIGKILL');
    await until(() => ![0, last].includes(pidAndPort()[0]));
    [last] = pidAndPort();
  }
  await until(isReady);
  const [now] = pidAndPort();
  for (let k = 0; k < 30; k++) {
    t.same(pidAndPort(), [now, place]);
    await new Promise(r => setTimeout(r, 100));
  }
  await stopped();
  const foreign = fs.mkdtempSync(path.join(ROOT, 'foreign-'));
  fs.mkdirSync(path.join(foreign, 'postgres'));
  fs.writeFileSync(path.join(foreign, 'postgres', 'notes.txt'), 'notes');
  const kept = start(foreign, { BOT_HTTP_PORT: port });
  t.equal(await kept.exited, 1);
  t.match(kept.output(), /cannot have its files in .*postgres: .*; it must be absent or empty/);
  t.same(fs.readdirSync(path.join(foreign, 'postgres')), ['notes.txt']);
  fs.writeFileSync(path.join(directory, 'postgres.password'), 'of another cluster\n');
  const refused = start(directory, { BOT_HTTP_PORT: port });
  t.equal(await refused.exited, 1);
  t.match(
    refused.output(),
    /PostgreSQL refuses the password in .*postgres\.password: put back the file that belongs to/,
  );
});
