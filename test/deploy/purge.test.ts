import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import t, { type Test } from 'tap';

/**
 * What `apt purge plugin-host` does with the data, by the script of the package and the debconf of this machine, on a database of answers
 * and in folders of the test's own.
 */

const DEBIAN = path.resolve(import.meta.dirname, '../../deploy/debian');
const DATA = 'var/lib/plugin-host';
const KEY = `${DATA}/secrets.key`;
const CREDENTIAL = 'etc/credstore/plugin-host.smtp.password';
const VARIABLES = ['etc/default/plugin-host', 'etc/default/plugin-host-second'];
const OTHERS = 'etc/credstore/other.smtp.password';
const RELEASE = 'usr/lib/plugin-host/current';
const skip = fs.existsSync('/usr/share/debconf/confmodule') ? false : 'needs debconf';

/** Purges. @param answer what the administrator has answered; null for a machine on which nothing can be asked */
function purge(
  t: Test,
  answer: 'true' | 'false' | null,
): { said: string; code: number | null; left(file: string): boolean } {
  const root = t.testdir({});
  for (const file of [KEY, CREDENTIAL, ...VARIABLES, OTHERS, RELEASE, 'etc/plugin-host/second.yaml']) {
    fs.mkdirSync(path.dirname(path.join(root, file)), { recursive: true });
    fs.writeFileSync(path.join(root, file), 'x');
  }
  const conf = path.join(root, 'debconf.conf');
  const databases = ['config', 'templates'].map(
    name => `Name: ${name}\nDriver: File\nMode: 600\nFilename: ${root}/${name}.dat\n`,
  );
  fs.writeFileSync(conf, `Config: config\nTemplates: templates\n\n${databases.join('\n')}`);
  const env = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', DEBCONF_SYSTEMRC: conf, DEBIAN_FRONTEND: 'noninteractive' };
  const run = (command: string, args: string[], input = '') =>
    spawnSync(command, args, { env, input, encoding: 'utf8', timeout: 60_000 });
  run('debconf-loadtemplate', ['plugin-host', path.join(DEBIAN, 'templates')]);
  if (answer !== null) run('debconf-set-selections', [], `plugin-host plugin-host/purge_data boolean ${answer}\n`);
  // Named as dpkg has it, by which debconf knows the package.
  const script = path.join(root, 'plugin-host.postrm');
  const text = fs.readFileSync(path.join(DEBIAN, 'postrm'), 'utf8');
  const moved = text.replace(/ (\/(?:var|usr|etc)\/\S*(?:plugin-host|credstore))/g, ` ${root}$1`);
  if (/ \/(?:var|etc|usr\/lib)\//.test(moved)) throw new Error('the script would remove files of this machine');
  fs.writeFileSync(script, moved, { mode: 0o755 });
  const { status, stderr } = run(script, ['purge']);
  return { said: stderr, code: status, left: file => fs.existsSync(path.join(root, file)) };
}

t.test('a purge takes the releases, and keeps the data unless the administrator wants it gone', { skip }, async t => {
  for (const answer of ['false', null] as const) {
    const kept = purge(t, answer);
    t.equal(kept.code, 0, kept.said);
    t.match(kept.said, /kept .*\/var\/lib\/plugin-host/);
    t.ok([KEY, CREDENTIAL, ...VARIABLES, OTHERS].every(kept.left));
    t.notOk(kept.left(RELEASE));
  }
  const gone = purge(t, 'true');
  t.equal(gone.code, 0, gone.said);
  t.notOk([DATA, CREDENTIAL, ...VARIABLES, RELEASE, 'etc/plugin-host'].some(gone.left));
  t.ok(gone.left(OTHERS), 'credentials of other programs stay');
});
