import { execFileSync, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { journalPrefix } from '../../src/base/log.ts';
import { ROWS, type Row } from '../../src/config/keys.ts';
import { openNotifySocket } from '../support/notify-socket.ts';
import { takePort } from '../support/ports.ts';
import { request } from '../support/service.ts';
import { signalDescendant } from '../support/signals.ts';
import { childPid, gone, ROOT, start } from '../support/started-service.ts';
import { until } from '../support/until.ts';

const DEPLOY = path.resolve(import.meta.dirname, '../../deploy');
const UNIT = fs.readFileSync(path.join(DEPLOY, 'plugin-host.service'), 'utf8');
const EXPOSURE_MAX = 2;

/** The values of a directive in the unit, in order. */
const valuesOf = (name: string): string[] =>
  UNIT.split('\n').flatMap(line => (line.startsWith(`${name}=`) ? [line.slice(name.length + 1)] : []));

t.test('systemd hears what the service does, when it is ready, that its loops turn and that it stops', async t => {
  const directory = fs.mkdtempSync(path.join(ROOT, 'notify-'));
  // An abstract name, as systemd in a container uses; its length does not depend on the directory.
  const notify = openNotifySocket(`@plugin-host-test-${randomBytes(8).toString('hex')}`);
  t.teardown(() => notify.close());
  const port = await takePort();
  const run = start(directory, {
    BOT_HTTP_PORT: String(port),
    NOTIFY_SOCKET: notify.path,
    WATCHDOG_USEC: '3000000',
  });
  t.teardown(() => run.child.kill('SIGKILL'));
  const has = (pattern: RegExp): boolean => notify.messages.some(m => pattern.test(m));
  const beats = (): number => notify.messages.filter(m => m === 'WATCHDOG=1').length;

  t.ok(await until(() => has(/^READY=1\nSTATUS=ready on port \d+$/)));
  t.equal((await request(`http://127.0.0.1:${port}/healthz`)).status, 200, 'ready: the port answers');
  t.ok(has(/^STATUS=starting the serving process$/), 'each step is a status');
  const before = beats();
  t.ok(await until(() => beats() >= before + 2), 'within three seconds there are several signs of life');

  const serving = childPid(run.child.pid, 'serving');
  const environment = fs.readFileSync(`/proc/${serving}/environ`, 'latin1');
  t.notMatch(environment, /NOTIFY_SOCKET|WATCHDOG_USEC/, 'children do not get the socket');

  signalDescendant(serving, 'SIGSTOP');
  t.ok(await until(() => has(new RegExp(`^STATUS=the serving process ${serving} has not answered for 20 s`))));
  t.ok(await until(() => has(/^STATUS=ready again on port/)), 'another one serves');
  t.equal((await request(`http://127.0.0.1:${port}/healthz`)).status, 200);
  const since = beats();
  t.ok(await until(() => beats() > since));

  run.child.kill('SIGTERM');
  t.equal(await run.exited, 0);
  t.ok(await until(() => has(/^STOPPING=1/)));
  t.ok(await gone(directory));
});

t.test('the watchdog of another process is not fed, and a socket that is gone costs a warning', async t => {
  const directory = fs.mkdtempSync(path.join(ROOT, 'notify-'));
  const missing = path.join(directory, 'missing.sock');
  const run = start(directory, {
    BOT_HTTP_PORT: String(await takePort()),
    NOTIFY_SOCKET: missing,
    WATCHDOG_USEC: '300000',
    WATCHDOG_PID: '1',
  });
  t.teardown(() => run.child.kill('SIGKILL'));
  await run.until(/plugin host is ready/);
  t.equal([...run.output().matchAll(/no message reaches systemd: errno 2\b/g)].length, 1, 'once');
  run.child.kill('SIGTERM');
  t.equal(await run.exited, 0);
});

t.test('a secret of the service comes from a credential, and a wrong name ends the start', async t => {
  const directory = fs.mkdtempSync(path.join(ROOT, 'credential-'));
  const credentials = path.join(directory, 'credentials');
  fs.mkdirSync(credentials);
  fs.writeFileSync(path.join(credentials, 'admin.setup_token'), 'tok-of-a-credential\n');
  const port = await takePort();
  const env = { BOT_HTTP_PORT: String(port), CREDENTIALS_DIRECTORY: credentials };
  const notify = openNotifySocket(`@plugin-host-test-${randomBytes(8).toString('hex')}`);
  t.teardown(() => notify.close());
  const watched = { ...env, NOTIFY_SOCKET: notify.path, WATCHDOG_USEC: '3600000000' };
  const run = start(path.join(directory, 'data'), watched);
  t.teardown(() => run.child.kill('SIGKILL'));
  await run.until(/plugin host is ready/);
  const headers = { authorization: 'Bearer tok-of-a-credential' };
  t.equal((await request(`http://127.0.0.1:${port}/api/admin/plugins`, { headers })).status, 200);
  const hidden = start(path.join(directory, 'data'), { ...env, CREDENTIALS_DIRECTORY: '/nowhere' }, ['reload']);
  t.equal(await hidden.exited, 0, `systemd 252 hides them from ExecReload=: ${hidden.output()}`);
  const beats = (): number => notify.messages.filter(m => m === 'WATCHDOG=1').length;
  t.ok(await until(() => beats() === 2), 'each program beats when it is ready, however soon it is reloaded again');
  t.equal((await request(`http://127.0.0.1:${port}/api/admin/plugins`, { headers })).status, 200);
  run.child.kill('SIGTERM');
  t.equal(await run.exited, 0);

  fs.writeFileSync(path.join(credentials, 'admin.setup_tokn'), 'x');
  const wrong = start(path.join(directory, 'data'), env);
  t.not(await wrong.exited, 0);
  t.match(wrong.output(), /unknown key "admin.setup_tokn"; did you mean "admin.setup_token"/);
});

t.test('lines carry their priority in the journal, and only there', async t => {
  const directory = t.testdir({});
  const scriptOf = (
    lines: string,
  ): string => `import { makeLog, standardOutput } from ${JSON.stringify(path.resolve(DEPLOY, '../src/base/log.ts'))};
    const log = makeLog('debug', standardOutput(process.env.JOURNAL_STREAM), '${lines}'); log.debug('d'); log.info('i'); log.warn('w'); log.error('e'); log.fatal('f');`;
  const write = (stream: (dev: number, ino: number) => string, lines = 'json'): string[] => {
    const file = path.join(directory, 'out');
    const fd = fs.openSync(file, 'w');
    const { dev, ino } = fs.fstatSync(fd);
    const env = { ...process.env, JOURNAL_STREAM: stream(dev, ino) };
    const flags = ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', scriptOf(lines)];
    execFileSync(process.execPath, flags, { env, stdio: ['ignore', fd, 'inherit'] });
    fs.closeSync(fd);
    return fs.readFileSync(file, 'utf8').trim().split('\n');
  };
  t.same(
    write((dev, ino) => `${dev}:${ino}`).map(line => line.slice(0, 4)),
    ['<7>{', '<6>{', '<4>{', '<3>{', '<3>{'],
  );
  t.ok(write((dev, ino) => `${dev}:${ino + 1}`).every(line => line.startsWith('{')));
  t.match(
    write((dev, ino) => `${dev}:${ino}`, 'pretty').map(line => line.replace(/\[[\d :.-]{23}\]/, '[time]')),
    ['<7>[time] DEBUG: d', '<6>[time] INFO: i', '<4>[time] WARN: w', '<3>[time] ERROR: e', '<3>[time] FATAL: f'],
    'log.format pretty',
  );
  t.same([10, 20, 30, 40, 50, 60].map(journalPrefix), ['<7>', '<7>', '<6>', '<4>', '<3>', '<3>']);
});

t.test('the unit gives the service every secret as a credential', async t => {
  const secrets = Object.entries<Row<unknown>>(ROWS).flatMap(([key, row]) => (row.secret === true ? [key] : []));
  t.ok(secrets.length > 10);
  t.same(valuesOf('LoadCredential').sort(), secrets.map(key => `${key}:plugin-host.${key}`).sort());
});

t.test('the unit leaves V8 and the lanes what they need', async t => {
  t.same([...valuesOf('MemoryDenyWriteExecute'), ...valuesOf('LimitAS')], []);
  t.same(valuesOf('SystemCallFilter'), ['@system-service @pkey', '~@privileged']);
  t.same(valuesOf('LimitNICE'), ['+0']);
  t.same([valuesOf('Type'), valuesOf('NotifyAccess'), valuesOf('WatchdogSec')], [['notify'], ['main'], ['30']]);
});

t.test('the unit of one of several instances differs in the names of its files alone', async t => {
  const template = fs.readFileSync(path.join(DEPLOY, 'plugin-host@.service'), 'utf8');
  const back = template
    .replaceAll('plugin-host.%i.', 'plugin-host.')
    .replaceAll('/etc/plugin-host/%i.yaml', '/etc/plugin-host/config.yaml')
    .replaceAll('/etc/default/plugin-host-%i', '/etc/default/plugin-host')
    .replaceAll('plugin-host/%i', 'plugin-host')
    .replaceAll('Plugin host %i', 'Plugin host');
  t.same(back.split('\n').slice(1), UNIT.split('\n').slice(1));
});

t.test('systemd finds nothing wrong with the units, and little that is exposed', async t => {
  if (spawnSync('systemd-analyze', ['--version']).error !== undefined) {
    // Debian's own systems have it; where it is missing, so is systemd.
    t.comment('systemd-analyze is not installed: the units were read by the tests above alone');
    t.notOk(fs.existsSync('/run/systemd/system'), 'a machine that runs systemd has systemd-analyze');
    return;
  }
  // A tree with what the units name, so that nothing of this machine is asked.
  const root = t.testdir({ usr: { bin: { 'plugin-host': '#!/bin/sh\n' } }, etc: { systemd: { system: {} } } });
  fs.chmodSync(path.join(root, 'usr/bin/plugin-host'), 0o755);
  for (const [unit, name] of [
    ['plugin-host.service', 'plugin-host.service'],
    ['plugin-host@.service', 'plugin-host@second.service'],
  ] as const) {
    const file = path.join(root, 'etc/systemd/system', unit);
    fs.copyFileSync(path.join(DEPLOY, unit), file);
    const verified = spawnSync(
      'systemd-analyze',
      ['verify', '--man=no', '--recursive-errors=no', `--root=${root}`, name],
      { encoding: 'utf8' },
    );
    t.same([verified.status, verified.stdout + verified.stderr], [0, ''], `${name} has no mistake`);
    const args = ['security', '--offline=yes', `--threshold=${EXPOSURE_MAX * 10}`, '--no-pager', file];
    const judged = spawnSync('systemd-analyze', args, { encoding: 'utf8' });
    const [, level = ''] = /Overall exposure level for \S+: ([\d.]+)/.exec(judged.stdout) ?? [];
    t.equal(judged.status, 0, judged.stderr);
    t.ok(level !== '' && Number(level) <= EXPOSURE_MAX, `${unit} is exposed by ${level}, at most ${EXPOSURE_MAX}`);
  }
  const broken = path.join(root, 'etc/systemd/system/plugin-host.service');
  fs.writeFileSync(broken, UNIT.replace('WatchdogSec=30', 'WatchdogSec=often'));
  const verified = spawnSync(
    'systemd-analyze',
    ['verify', '--man=no', '--recursive-errors=no', `--root=${root}`, broken],
    {
      encoding: 'utf8',
    },
  );
  t.match(verified.stderr, /plugin-host.service:\d+: .*often/, 'and it finds a mistake when there is one');
});
