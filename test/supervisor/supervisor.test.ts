import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import t from 'tap';
import { takePort } from '../support/ports.ts';
import { type Json, publicAccess, request } from '../support/service.ts';
import { signalDescendant } from '../support/signals.ts';
import { childPid, gone, processesOf, ROOT, start } from '../support/started-service.ts';
import { until } from '../support/until.ts';
import { assemble, hostImports, manifestOf, withManifest } from '../support/wat.ts';

/** Uploads and installs a plugin in a service whose setup token is `tok`. */
async function install(base: string, id: string, bytes: Uint8Array): Promise<void> {
  const headers = { authorization: 'Bearer tok' };
  const form = new FormData();
  form.append('file', new Blob([new Uint8Array(bytes)]), 'plugin.wasm');
  const uploaded = await request(`${base}/api/admin/plugins/upload`, { method: 'POST', headers, body: form });
  const installed = await request(`${base}/api/admin/plugins/${id}/install`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify({ wasm_key: uploaded.json.wasm_key, ...publicAccess(uploaded.json) }),
  });
  if (installed.status !== 200) throw new Error(`install ${id}: ${uploaded.text} ${installed.text}`);
}

t.test('the first start builds the sample, prints a curl line that works, and the second finds its data', async t => {
  const directory = fs.mkdtempSync(path.join(ROOT, 'start-'));
  const port = String(await takePort());
  const first = start(directory, { BOT_HTTP_PORT: port }, ['serve', '--sample'], true);
  t.teardown(() => first.child.kill('SIGKILL'));
  const [, url = ''] = await first.until(/try it:\s+curl '(\S+)'/);
  const [, token = ''] = await first.until(/setup token: (\S+)/);
  t.match(
    first.output(),
    /building the sample plugin[\s\S]*initialising the embedded PostgreSQL[\s\S]*starting the serving process/,
    'a line for each slow step',
  );
  t.match(first.output(), new RegExp(`setup link:\\s+http://localhost:${port}/admin/#token=${token}`));
  t.match((await request(url)).json, { message: 'Hello, world!' });
  const authorization = `Bearer ${token}`;
  t.match((await request(`http://127.0.0.1:${port}/api/admin/plugins`, { headers: { authorization } })).json, {
    items: [{ id: 'hello', state: 'enabled' }],
  });
  // The graph store is filled right after the start.
  const health = async (): Promise<Json> => (await request(`http://127.0.0.1:${port}/readyz`)).json;
  await until(async () => (await health()).status !== 'degraded');
  t.match(await health(), { status: 'ready' });
  t.match((await request(`http://127.0.0.1:${port}/healthz`)).json, { status: 'alive' });
  await request(`http://127.0.0.1:${port}/api/admin/plugins/hello/origins`, {
    method: 'PUT',
    headers: { authorization, 'content-type': 'application/json' },
    body: '{"origins":["https://kept.example"]}',
  });
  first.child.kill('SIGINT');
  t.equal(await first.exited, 0);
  t.match(first.output(), /SIGINT: stopping[\s\S]*stopped/);
  t.ok(await gone(directory), 'no child is left');

  const second = start(directory, { BOT_HTTP_PORT: port }, ['serve', '--sample']);
  t.teardown(() => second.child.kill('SIGKILL'));
  await second.until(/setup token: (\S+)/);
  const [, again = ''] = /setup token: (\S+)/.exec(second.output()) ?? [];
  t.notMatch(second.output(), /building|initialising/);
  t.match(
    (
      await request(`http://127.0.0.1:${port}/api/admin/plugins/hello`, {
        headers: { authorization: `Bearer ${again}` },
      })
    ).json,
    { frontend_origins: ['https://kept.example'] },
  );
  // Killed outright: the serving process and PostgreSQL notice and end by themselves.
  second.child.kill('SIGKILL');
  t.ok(
    await gone(directory),
    `no child survives the supervisor: ${processesOf(directory).map(p => fs.readFileSync(`/proc/${p}/cmdline`, 'latin1'))}`,
  );
});

t.test('kill -9 of the serving process under load: it answers again, and what was acknowledged is there', async t => {
  const directory = fs.mkdtempSync(path.join(ROOT, 'kill-'));
  const port = String(await takePort());
  const run = start(directory, { BOT_HTTP_PORT: port, BOT_ADMIN_SETUP_TOKEN: 'tok' });
  t.teardown(async () => {
    run.child.kill('SIGTERM');
    await run.exited;
  });
  await run.until(/is ready/);
  const base = `http://127.0.0.1:${port}`;
  // Stores the body under itself and answers it: an answer is an acknowledgement.
  const keeper = (id: string): Uint8Array =>
    withManifest(
      assemble(`(module ${hostImports('respond', 'input_len', 'input_read', 'kv_set', 'kv_list', 'result_read')}
      (memory (export "memory") 4)
      (func (export "plugin_handle") (result i32) (local $n i32)
        (local.set $n (call $input_len (i32.const 1)))
        (drop (call $input_read (i32.const 1) (i32.const 1024) (local.get $n)))
        (if (i32.ne (call $kv_set (i32.const 1024) (local.get $n) (i32.const 1024) (local.get $n) (i32.const 0)) (i32.const 0)) (then (return (i32.const -1))))
        (drop (call $respond (i32.const 200) (i32.const 0) (i32.const 0) (i32.const 1024) (local.get $n)))
        (i32.const 0)))`),
      manifestOf({ id, requirements: [{ kind: 'kv' }] }),
    );
  // One plugin, which runs at every kill: an operator who kills the process suspends nothing.
  await install(base, 'keeper', keeper('keeper'));

  const acknowledged: string[] = [];
  let over = false;
  const downs: number[] = [];
  let n = 0;
  const client = async (): Promise<void> => {
    while (!over) {
      const key = `k${n++}`;
      try {
        const a = await request(`${base}/api/triggers/http/keeper/run`, { method: 'POST', body: key });
        if (a.status === 200 && a.text === key) acknowledged.push(key);
      } catch {
        await new Promise(r => setTimeout(r, 10));
      }
    }
  };
  const clients = Array.from({ length: 8 }, client);
  for (let k = 0; k < 4; k++) {
    const target = acknowledged.length + 50;
    for (const end = Date.now() + 10_000; acknowledged.length < target && Date.now() < end; )
      await new Promise(r => setTimeout(r, 5));
    t.ok(acknowledged.length >= target, 'the plugin is under load');
    const pid = childPid(run.child.pid, 'serving');
    signalDescendant(pid, 'SIGKILL');
    const at = performance.now();
    const answers = (): Promise<boolean> =>
      request(`${base}/healthz`).then(
        a => a.status === 200,
        () => false,
      );
    for (const end = Date.now() + 15_000; !(await answers()) && Date.now() < end; )
      await new Promise(r => setTimeout(r, 5));
    downs.push(performance.now() - at);
  }
  t.match(await request(`${base}/api/admin/plugins/keeper`, { headers: { authorization: 'Bearer tok' } }), {
    status: 200,
    json: { quarantine: [] },
  });
  over = true;
  await Promise.all(clients);
  t.comment(`answered again after ${downs.map(d => `${Math.round(d)} ms`).join(', ')}`);
  const { openDatabase } = await import('../../src/db/database.ts');
  const password = fs.readFileSync(path.join(directory, 'postgres.password'), 'utf8').trim();
  const db = openDatabase(
    `postgresql://plugin_host:${password}@localhost:5432/plugin_host?host=${encodeURIComponent(path.join(directory, 'postgres-run'))}`,
    1,
    () => {},
  );
  const { rows } = await db.query<{ key: string }>("SELECT key FROM plugin_kv WHERE plugin_id = 'keeper'");
  await db.close();
  const stored = new Set(rows.map(r => r.key));
  t.same(
    acknowledged.filter(k => !stored.has(k)),
    [],
    `all of ${acknowledged.length} acknowledged writes are there`,
  );
});

t.test(
  'the embedded graph store is filled from the database whenever it starts: kill -9 of it, of the serving process, a restart',
  async t => {
    const directory = fs.mkdtempSync(path.join(ROOT, 'graph-'));
    const port = String(await takePort());
    const env = { BOT_HTTP_PORT: port, BOT_ADMIN_SETUP_TOKEN: 'tok' };
    let run = start(directory, env);
    t.teardown(() => run.child.kill('SIGKILL'));
    const api = (method: string, where: string, body?: unknown) =>
      request(`http://127.0.0.1:${port}/api/admin${where}`, {
        method,
        headers: { authorization: 'Bearer tok', 'content-type': 'application/json' },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }).catch(() => null);
    const dean = { resource_type: 'faculty', resource_id: 'f', relation: 'dean', subject_id: 'e1' };
    const lookup = () => api('GET', '/relationships/lookup?resource_type=faculty&permission=admin&user=e1');
    /** The first answer that is none of "not yet". */
    const answer = async () => {
      for (;;) {
        const a = await lookup();
        if (a !== null && a.status !== 503) return a.json.items;
        await new Promise(r => setTimeout(r, 20));
      }
    };
    /** Gives a faculty its dean; on a busy machine the answer does not wait until the store has it. */
    const appoint = async (faculty: string): Promise<void> => {
      t.match(await api('POST', '/relationships', { ...dean, resource_id: faculty }), { status: 201 });
      await until(async () => JSON.stringify(await answer()).includes(`"${faculty}"`));
    };
    await run.until(/plugin host is ready/);
    t.same(await answer(), []);
    await appoint('f');
    const found = [{ resource_type: 'faculty', resource_id: 'f' }];
    t.same(await answer(), found);

    const drift = start(directory, {}, ['authz', 'drift', '--json']);
    t.equal(await drift.exited, 0, drift.output());
    t.match(
      JSON.parse(drift.stdout()),
      { missing: [], extra: [], compared: 1 },
      'the command line compares this store',
    );

    const supervisor = run.child.pid;
    signalDescendant(childPid(supervisor, 'spicedb'), 'SIGKILL');
    await run.until(/embedded SpiceDB ended/);
    t.same(await answer(), found, 'the next store has everything before it is asked');
    const store = childPid(supervisor, 'spicedb');
    signalDescendant(childPid(supervisor, 'serving'), 'SIGKILL');
    await run.until(/the serving process ended/);
    t.same(await answer(), found);
    t.equal(childPid(supervisor, 'spicedb'), store, 'a store outlives the serving process');
    await appoint('g');
    run.child.kill('SIGINT');
    t.equal(await run.exited, 0);
    t.ok(await gone(directory), 'no child is left');

    run = start(directory, env);
    await run.until(/plugin host is ready/);
    t.same(await answer(), [...found, { resource_type: 'faculty', resource_id: 'g' }]);
    run.child.kill('SIGINT');
    t.equal(await run.exited, 0);
  },
);

t.test('a plugin version that was running at two crashes in a row is suspended, with the reason', async t => {
  const directory = fs.mkdtempSync(path.join(ROOT, 'crash-'));
  const port = String(await takePort());
  const run = start(directory, { BOT_HTTP_PORT: port, BOT_ADMIN_SETUP_TOKEN: 'tok' });
  t.teardown(async () => {
    run.child.kill('SIGTERM');
    await run.exited;
  });
  await run.until(/is ready/);
  const base = `http://127.0.0.1:${port}`;
  const headers = { authorization: 'Bearer tok' };
  const put = async (id: string, handle: string): Promise<void> => {
    const module = assemble(
      `(module (memory (export "memory") 1) (func (export "plugin_handle") (result i32) ${handle} (i32.const 0)))`,
    );
    await install(base, id, withManifest(module, manifestOf({ id })));
  };
  await put('killer', '(loop $l (br $l))');
  await put('innocent', '');
  // The loop stands for a plugin that takes the process along: the process is killed while it runs.
  for (let k = 0; k < 2; k++) {
    for (
      let tries = 0;
      tries < 200 &&
      (await request(`${base}/api/triggers/http/innocent/run`).catch(() => ({ status: 0 }))).status !== 204;
      tries++
    )
      await new Promise(r => setTimeout(r, 20));
    // Where the supervisor reads which versions were running: killed before the killer's is there, the process would count against none.
    const noted = (): number[] => {
      const name = fs.readdirSync('/dev/shm').find(n => n.startsWith(`plugin-host-${run.child.pid}-`)) ?? '';
      const bytes = fs.readFileSync(path.join('/dev/shm', name));
      return [...new Int32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4)];
    };
    const before = new Set([0, ...noted()]);
    const asked = request(`${base}/api/triggers/http/killer/run`).catch(() => null);
    await until(() => !noted().every(version => before.has(version)));
    signalDescendant(childPid(run.child.pid, 'serving'), 'SIGSEGV');
    await asked;
    await run.until(new RegExp(`(ready again[\\s\\S]*){${k + 1}}`), 20_000);
  }
  t.match(
    run.output(),
    /version number \d+, which was running, is suspended: it ended 2 times within 10 minutes: SIGSEGV/,
  );
  t.match(await request(`${base}/api/triggers/http/killer/run`), {
    status: 503,
    json: { code: 'quarantined', detail: /crashed the service and is suspended for 3\d\d\d s/ },
  });
  t.equal((await request(`${base}/api/triggers/http/innocent/run`)).status, 204);
  t.match((await request(`${base}/api/admin/plugins/killer`, { headers })).json, {
    quarantine: [{ trigger: null, version_id: Number, cause: /was running when the serving process ended 2 times/ }],
  });
  await request(`${base}/api/admin/plugins/killer/resume`, { method: 'POST', headers });
  t.match((await request(`${base}/api/admin/plugins/killer`, { headers })).json, { quarantine: [] });
});

t.test('mistakes at start are one line that says what to do', async t => {
  const directory = fs.mkdtempSync(path.join(ROOT, 'bad-'));
  const fails = async (env: Record<string, string>, want: RegExp, args?: string[]): Promise<void> => {
    const run = start(directory, env, args);
    t.equal(await run.exited, args?.[0] === 'nonsense' ? 2 : 1, String(want));
    const lines = run
      .output()
      .split('\n')
      .filter(l => l.startsWith('plugin-host: '));
    t.equal(lines.length, 1, run.output());
    t.match(lines[0], want);
    t.notMatch(run.output(), /\n {4}at |"stack":/, 'no stack');
  };
  const taken = net.createServer().listen(0, '127.0.0.1');
  await new Promise(resolve => taken.once('listening', resolve));
  const address = taken.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  t.teardown(() => taken.close());
  await fails({ BOT_HTTP_PORT: String(port) }, /taken by another program.*http.port \(BOT_HTTP_PORT\)/);
  await fails({ BOT_DATA_DIR: '/proc/nothing' }, /data directory .* cannot be written.*BOT_DATA_DIR/);
  await fails({ BOT_DATA_DIR: '/dev/full' }, /data directory .*BOT_DATA_DIR/);
  await fails(
    { BOT_HTTP_PORT: '0', BOT_DATABASE_START_WAIT: '0s', BOT_DATABASE_URL: 'postgresql://u:hunter2@127.0.0.1:1/x' },
    /database at 127.0.0.1:1 does not answer.*BOT_DATABASE_URL/,
  );
  await fails({ BOT_HTTP_PORT: 'x' }, /BOT_HTTP_PORT/);
  await fails({ BOT_HTTP_HOST: '203.0.113.1', BOT_HTTP_PORT: '0' }, /is not an address of this machine.*BOT_HTTP_HOST/);
  await fails({ BOT_NONSENSE: '1' }, /unknown key "BOT_NONSENSE"/);
  await fails({}, /no command "nonsense"/, ['nonsense']);
  t.ok(await gone(directory));
});
