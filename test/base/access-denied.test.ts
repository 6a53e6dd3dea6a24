import fs from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { accessDenied, accountName } from '../../src/base/access-denied.ts';
import { fileProblem } from '../../src/base/file-problem.ts';
import { lockForCommand } from '../../src/cli/local/lock-for-command.ts';

/** Accounts of every Debian, and their groups. */
const [BIN, DAEMON] = [2, 1];

/** Does something as another account, which root alone can. */
function asBin<T>(work: () => T): T {
  if (process.getuid?.() !== 0) return work();
  process.setegid?.(BIN);
  process.seteuid?.(BIN);
  try {
    return work();
  } finally {
    process.seteuid?.(0);
    process.setegid?.(0);
  }
}

function caught(work: () => unknown): unknown {
  try {
    work();
    return null;
  } catch (error) {
    return error;
  }
}

t.test('a refusal of the system names the file, the account and what to do', t => {
  const said = asBin(() => accessDenied(caught(() => fs.readFileSync('/etc/shadow'))));
  t.match(said, /^the account \S+ may not use \/etc\/shadow, which belongs to root: run the command as the account of/);
  t.match(said, /like sudo plugin-host \.\.\.$/);
  const wrapped = new Error('it failed', { cause: asBin(() => caught(() => fs.readFileSync('/etc/shadow'))) });
  t.equal(
    asBin(() => fileProblem(wrapped)),
    said,
  );
  t.match(
    asBin(() => accessDenied(wrapped, '/etc/shadow', 'copy it')),
    /belongs to root: copy it$/,
  );
  for (const other of [new Error('no'), caught(() => fs.readFileSync('/nowhere')), 'text', null])
    t.equal(accessDenied(other), null);
  t.equal(accountName(0), 'root');
  t.equal(accountName(4_000_000), '#4000000');
  t.end();
});

if (process.getuid?.() === 0)
  t.test('the folder that is closed is named, and the account that may enter it', t => {
    const directory = fs.mkdtempSync(path.join(process.env.TEST_DIRECTORY ?? '/tmp', 'denied-'));
    fs.chmodSync(directory, 0o755);
    const data = path.join(directory, 'data');
    fs.mkdirSync(data, { mode: 0o700 });
    fs.chownSync(data, DAEMON, DAEMON);
    const lock = path.join(data, 'supervisor.lock');
    t.equal(
      asBin(() => accessDenied(caught(() => lockForCommand(data, 'command')))),
      `the account bin may not use ${lock}, because ${data} belongs to daemon: run the command as the account of the service, like sudo -u daemon plugin-host ...`,
    );
    const shared = path.join(directory, 'config.yaml');
    fs.writeFileSync(shared, '', { mode: 0o640 });
    fs.chownSync(shared, 0, DAEMON);
    t.match(
      asBin(() => accessDenied(caught(() => fs.readFileSync(shared)))),
      /belongs to root and the group daemon: run the command as .*, like sudo -u daemon plugin-host/,
    );
    const own = path.join(directory, 'own');
    fs.writeFileSync(own, '', { mode: 0o000 });
    fs.chownSync(own, BIN, BIN);
    t.match(
      asBin(() => accessDenied(caught(() => fs.readFileSync(own)))),
      /own, which belongs to bin and has the mode 000: change it with chmod$/,
    );
    t.end();
  });
