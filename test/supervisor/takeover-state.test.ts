import fs from 'node:fs';
import t from 'tap';
import { readTakeover, type TakeoverState, writeTakeover } from '../../src/supervisor/handover/takeover-state.ts';

/** What one program of the supervisor hands to the next (docs/ARCHITECTURE.md "Processes and threads"). */

const STATE: TakeoverState = {
  format: 1,
  failure: null,
  entry: 'src/main.ts',
  from: { node: 'node', entry: 'src/main.ts' },
  given: {},
  effective: { BOT_SECRETS_KEY: 'secret' },
  origins: {
    given: { file: 'host.yaml', sources: {} },
    effective: { file: 'host.yaml', sources: { 'secrets.key': 'credential' } },
  },
  setupToken: 'token',
  isSetupMode: false,
  rolePassword: 'password',
  lock: null,
  client: null,
  group: {
    hostId: 1,
    ended: 0,
    processes: [],
    slots: { members: [], owners: [], tables: {} },
    strikes: [],
  },
  postgres: null,
  spicedb: [],
};

t.test('the state, which holds secrets, has no name and is readable by no other account', t => {
  const directory = t.testdir({});
  const old = process.umask(0);
  t.teardown(() => process.umask(old));
  const opened = writeTakeover(STATE, directory);
  const { mode, nlink } = fs.fstatSync(opened);
  t.equal((mode & 0o777).toString(8), '600');
  t.equal(nlink, 0);
  t.same(fs.readdirSync(directory), []);
  t.same(readTakeover(opened), STATE);
  t.throws(() => fs.fstatSync(opened), { code: 'EBADF' }, 'it is closed once it is read');
  t.end();
});
