import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { progressLine, syncOnce } from '../../src/cli/local/sync-commands.ts';
import { loadConfig } from '../../src/config/load.ts';
import { openDatabase } from '../../src/db/database.ts';
import { BARE_ENV } from '../support/bare-env.ts';
import { makeDatabase } from '../support/database.ts';
import { random } from '../support/graph.ts';
import { dump, makeUniversity, PATHS } from '../support/university.ts';
import { SOURCE_TOKEN, startUniversitySource } from '../support/university-source.ts';

const MAIN = path.resolve(import.meta.dirname, '../../src/main.ts');

type Scope = { teardown(fn: () => unknown): void; testdir(): string };

async function world(t: Scope) {
  const source = await startUniversitySource(makeUniversity({ seed: 5, groups: 20, students: 600, teachers: 40 }));
  t.teardown(() => source.close());
  const database = await makeDatabase();
  t.teardown(() => database.drop());
  const directory = t.testdir();
  const env = {
    BOT_DATABASE_URL: database.url,
    BOT_DATA_DIR: path.join(directory, 'data'),
    BOT_UNIVERSITY_SYNC_BASE_URL: source.url,
    BOT_UNIVERSITY_SYNC_TOKEN: SOURCE_TOKEN,
    BOT_UNIVERSITY_SYNC_RETRY_WAIT: '5ms',
  };
  const db = openDatabase(database.url, 2, () => {});
  t.teardown(() => db.close());
  const start = (...args: string[]) => {
    const child = spawn(process.execPath, [MAIN, 'sync', 'once', ...args], {
      env: { ...BARE_ENV, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let [out, err] = ['', ''];
    child.stdout.on('data', part => (out += part));
    child.stderr.on('data', part => (err += part));
    const ended = once(child, 'close').then(([code]) => ({ code: code as number | null, out, err }));
    return { child, ended };
  };
  return { source, env, db, directory, start };
}

t.test('sync once pulls, shows what it does, and says how it went', async t => {
  const { db, env, source, start } = await world(t);
  const first = await start().ended;
  t.equal(first.code, 0, first.err);
  t.match(first.out, /^import 1 succeeded: \d+ created, 0 updated, 0 made inactive, 0 failed\n$/);
  t.match(first.err, /^person {15}\[#{30}\] 640\/640 {2}succeeded$/m);
  t.equal(first.err.trim().split('\n').length, PATHS.length, 'a line for each type');
  const { rows } = await db.query(
    "SELECT actor_kind, object_id, after FROM audit_log WHERE action = 'university.pull'",
  );
  t.same(rows, [{ actor_kind: 'command_line', object_id: '1', after: { release_brake: [] } }]);
  source.faults.set('courses', { kind: 'status', status: 403 });
  const second = await start('--json').ended;
  t.equal(second.code, 1);
  t.match(JSON.parse(second.out), {
    state: 'partial',
    types: [
      { type: 'person', state: 'unchanged' },
      { type: 'course', state: 'failed' },
    ],
  });
  t.match(await start('--release-brake', 'pigeon').ended, {
    code: 2,
    err: /--release-brake is "pigeon"; it must be one of person, /,
  });
  const nowhere = { ...env, BOT_UNIVERSITY_SYNC_BASE_URL: '' };
  await t.rejects(syncOnce(loadConfig(null, nowhere), [], false, { write() {} }), {
    name: 'CommandError',
    message: /set university_sync.base_url/,
  });
  // On a terminal the line grows in its place.
  let screen = '';
  await syncOnce(loadConfig(null, env), [], false, { isTTY: true, write: text => (screen += text) });
  t.match(screen, /\r\u001b\[Kperson {15}unchanged\n/);
  t.match(
    progressLine({ type: 'person', importId: 1, of: 10, total: 5, success: 4, failed: 1, state: 'running' }),
    /\[#{15} {15}\] 5\/10, 1 failed$/,
  );
});

t.test('kill -9 in the middle of a pull: the next one completes it', async t => {
  const seed = Number(process.env.KILL_SEED ?? Math.floor(Math.random() * 2 ** 31));
  t.comment(`seed ${seed}, KILL_SEED=${seed} repeats it`);
  const rnd = random(seed);
  const { db, directory, source, start } = await world(t);
  const states: string[] = [];
  for (let k = 0; k < 6; k++) {
    // When this list has been asked for, and a moment later.
    const at = PATHS[Math.floor(rnd() * PATHS.length)]!;
    source.log.length = 0;
    const { child, ended } = start();
    while (child.exitCode === null && !source.log.some(line => line.startsWith(`${at} `)))
      await new Promise(resolve => setTimeout(resolve, 2));
    await new Promise(resolve => setTimeout(resolve, rnd() * 60));
    child.kill('SIGKILL');
    await ended;
    const { rows } = await db.query<{ state: string }>('SELECT state FROM university_imports ORDER BY id DESC LIMIT 1');
    states.push(String(rows[0]?.state));
  }
  t.ok(states.includes('running'), `what a kill leaves: ${states.join()}`);
  const last = await start().ended;
  t.equal(last.code, 0, last.out + last.err);
  const { rows } = await db.query("SELECT 1 FROM university_imports WHERE state = 'running'");
  t.equal(rows.length, 0, 'none is left behind in the log');
  t.same(fs.readdirSync(path.join(directory, 'data/university')), [], 'nor on disk');
  const fresh = await world(t);
  fresh.source.university = source.university;
  await fresh.start().ended;
  const [is, should] = [await dump(db), await dump(fresh.db)];
  for (const name of Object.keys(should)) t.same(is[name], should[name], name);
});
