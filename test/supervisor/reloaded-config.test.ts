import path from 'node:path';
import t from 'tap';
import { loadConfig } from '../../src/config/load.ts';
import { changedKeys, pendingConfig, reloadedConfig } from '../../src/supervisor/handover/reloaded-config.ts';

const URL = 'postgresql://service:s@db.example/host';
const OWNER = 'postgresql://owner:o@db.example/host';

t.test("serving processes never get the owner's password, whatever a reload finds", async t => {
  const given = loadConfig(null, { BOT_DATABASE_URL: URL, BOT_DATABASE_OWNER_URL: OWNER });
  const effective = loadConfig(null, { BOT_DATABASE_URL: URL });
  const next = loadConfig(null, { BOT_DATABASE_URL: `${URL}2`, BOT_DATABASE_OWNER_URL: `${OWNER}2` });
  const { values } = reloadedConfig(given, next, effective);
  t.equal(values['database.url'], `${URL}2`);
  t.equal(values['database.owner_url'], '');
  t.same(changedKeys(given, next), ['database.url', 'database.owner_url']);
});

t.test(
  'what the supervisor found out at start stays, and a change from or to an embedded database is refused',
  async t => {
    const given = loadConfig(null, { BOT_HTTP_PORT: '0' });
    const effective = loadConfig(null, { BOT_HTTP_PORT: '4711', BOT_DATABASE_URL: 'postgresql://found/out' });
    const { values } = reloadedConfig(
      given,
      loadConfig(null, { BOT_HTTP_PORT: '0', BOT_HTTP_MAX_BODY: '77' }),
      effective,
    );
    t.match(values, { 'http.port': 4711, 'database.url': 'postgresql://found/out', 'http.max_body': 77 });
    for (const [env, key] of [
      [{ BOT_HTTP_PORT: '0', BOT_DATABASE_URL: URL }, 'database.url'],
      [{ BOT_HTTP_PORT: '0', BOT_SPICEDB_ENDPOINT: 'h:1' }, 'spicedb.endpoint'],
      [{ BOT_HTTP_PORT: '1' }, 'http.port'],
    ] as const)
      t.throws(() => reloadedConfig(given, loadConfig(null, env), effective), new RegExp(`${key} has another value`));
  },
);

t.test('what pages say of a mistake has no words of the file that may be a secret in the wrong place', t => {
  const given = loadConfig(null, {});
  for (const text of [
    'smtp:\n  password: *hunter2\n',
    'smtp:\n  password: |hunter2\n',
    'smtp:\n  password: "hunter2\n',
    'smtp:\n  hunter2: 1\n',
    'smtp: hunter2\n',
    'smtp:\n  port: hunter2\n',
    'hunter2: 1\n',
    'hunter2\n',
  ]) {
    const file = path.join(t.testdir({ 'host.yaml': text }), 'host.yaml');
    const { changed, problem } = pendingConfig(given, () => loadConfig(file, {}));
    t.same(changed, []);
    t.match(problem, file, text);
    t.notMatch(problem, 'hunter2', text);
  }
  const near = path.join(t.testdir({ 'host.yaml': 'smtp:\n  pasword: x\n' }), 'host.yaml');
  t.match(pendingConfig(given, () => loadConfig(near, {})).problem, /unknown key "smtp\.pasword"; did you mean/);
  t.end();
});
