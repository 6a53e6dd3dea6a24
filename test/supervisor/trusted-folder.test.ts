import fs from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { assertNoForeignLink, makeTrustedFolder } from '../../src/supervisor/children/trusted-folder.ts';

/** What root writes lies in folders of root's (docs/SECURITY.md "A supervisor that runs as root"). */
const isRoot = process.getuid?.() === 0;
const OTHER_ACCOUNT = 65_534;

t.test('a folder that is there and our own stays as it is', t => {
  const folder = path.join(t.testdir({}), 'built');
  makeTrustedFolder(folder);
  fs.writeFileSync(path.join(folder, 'a'), 'a');
  makeTrustedFolder(folder);
  t.equal(fs.readFileSync(path.join(folder, 'a'), 'utf8'), 'a');
  t.equal(fs.statSync(folder).mode & 0o777, 0o755);
  t.end();
});

t.test('a link, a file, and a folder that others may write to are put aside, and nothing behind them changes', t => {
  const top = t.testdir({ elsewhere: { kept: 'kept' } });
  const folder = path.join(top, 'built');
  const plant: Array<() => void> = [
    () => fs.symlinkSync(path.join(top, 'elsewhere'), folder),
    () => fs.writeFileSync(folder, 'a file'),
    () => {
      fs.mkdirSync(folder);
      fs.chmodSync(folder, 0o777);
    },
    ...(isRoot
      ? [
          () => {
            fs.mkdirSync(folder);
            fs.chownSync(folder, OTHER_ACCOUNT, OTHER_ACCOUNT);
          },
        ]
      : []),
  ];
  for (const put of plant) {
    put();
    makeTrustedFolder(folder);
    const stat = fs.lstatSync(folder);
    t.ok(stat.isDirectory());
    t.equal(stat.uid, process.getuid?.());
    t.equal(stat.mode & 0o022, 0);
    t.same(fs.readdirSync(folder), []);
    fs.rmdirSync(folder);
  }
  t.same(fs.readdirSync(path.join(top, 'elsewhere')), ['kept']);
  t.end();
});

t.test('root follows links of its own alone', { skip: isRoot ? false : 'needs root' }, t => {
  const top = t.testdir({ elsewhere: {} });
  const at = path.join(top, 'postgres');
  assertNoForeignLink(at);
  fs.symlinkSync(path.join(top, 'elsewhere'), at);
  assertNoForeignLink(at);
  fs.lchownSync(at, OTHER_ACCOUNT, OTHER_ACCOUNT);
  t.throws(() => assertNoForeignLink(at), /postgres is a link that the account 65534 has made: remove it/);
  t.end();
});
