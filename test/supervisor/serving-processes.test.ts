import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import t from 'tap';
import { takePort } from '../support/ports.ts';
import { publicAccess, request } from '../support/service.ts';
import { signalDescendant } from '../support/signals.ts';
import { mostAtOnce, spanOf, watchedSleeper } from '../support/sleepers.ts';
import { gone, processesOf, ROOT, type Run, start } from '../support/started-service.ts';
import { until } from '../support/until.ts';
import { respondText, watPlugin } from '../support/wat.ts';

const TOKEN = 'tok';
const AUTHORIZED = { authorization: `Bearer ${TOKEN}` };

type Reply = { status: number; body: Buffer; headers: http.IncomingHttpHeaders };

/** A connection of a client to one of the serving processes: it stays open, and takes one request at a time. */
class Connection {
  readonly #agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  readonly #port: number;
  /** The port of the client. */
  localPort = 0;

  constructor(port: number) {
    this.#port = port;
  }

  async ask(where: string, headers: Record<string, string> = {}): Promise<Reply> {
    const asked = http.get({ host: '127.0.0.1', port: this.#port, path: where, agent: this.#agent, headers });
    asked.on('socket', socket => {
      const note = (): void => {
        this.localPort = socket.localPort ?? 0;
      };
      if (socket.connecting) socket.once('connect', note);
      else note();
    });
    const [answer]: [http.IncomingMessage] = (await once(asked, 'response')) as [http.IncomingMessage];
    const parts: Buffer[] = [];
    for await (const part of answer) parts.push(part as Buffer);
    return { status: answer.statusCode ?? 0, body: Buffer.concat(parts), headers: answer.headers };
  }

  close(): void {
    this.#agent.destroy();
  }
}

/** The process that has the other end of a connection, among some. */
function processOf(connection: Connection, port: number, pids: readonly number[]): number | undefined {
  const hex = (n: number): string => n.toString(16).toUpperCase().padStart(4, '0');
  const line = fs
    .readFileSync('/proc/net/tcp', 'utf8')
    .split('\n')
    .find(l => l.includes(`:${hex(port)} 0100007F:${hex(connection.localPort)} `));
  const inode = line?.trim().split(/\s+/)[9] ?? '';
  const has = (pid: number): boolean =>
    fs.readdirSync(`/proc/${pid}/fd`).some(fd => {
      try {
        return fs.readlinkSync(`/proc/${pid}/fd/${fd}`) === `socket:[${inode}]`;
      } catch {
        return false;
      }
    });
  return pids.find(has);
}

/** The serving processes that listen on a port. */
function listeners(directory: string, port: number): number[] {
  const hex = port.toString(16).toUpperCase().padStart(4, '0');
  const inodes = new Set(
    fs
      .readFileSync('/proc/net/tcp', 'utf8')
      .split('\n')
      .map(l => l.trim().split(/\s+/))
      .filter(f => f[1]?.endsWith(`:${hex}`) && f[3] === '0A')
      .map(f => `socket:[${f[9]}]`),
  );
  return processesOf(directory)
    .map(Number)
    .filter(pid => {
      try {
        return fs.readdirSync(`/proc/${pid}/fd`).some(fd => {
          try {
            return inodes.has(fs.readlinkSync(`/proc/${pid}/fd/${fd}`));
          } catch {
            return false;
          }
        });
      } catch {
        return false;
      }
    })
    .sort((a, b) => a - b);
}

async function install(base: string, bytes: Uint8Array): Promise<void> {
  const form = new FormData();
  form.append('file', new Blob([new Uint8Array(bytes)]), 'plugin.wasm');
  const uploaded = await request(`${base}/api/admin/plugins/upload`, {
    method: 'POST',
    headers: AUTHORIZED,
    body: form,
  });
  const { id } = uploaded.json;
  const installed = await request(`${base}/api/admin/plugins/${id}/install`, {
    method: 'POST',
    headers: { ...AUTHORIZED, 'content-type': 'application/json' },
    body: JSON.stringify({ wasm_key: uploaded.json.wasm_key, ...publicAccess(uploaded.json) }),
  });
  if (installed.status !== 200) throw new Error(`install ${id}: ${uploaded.text} ${installed.text}`);
}

type Test = { teardown(fn: () => unknown): void };

type World = {
  run: Run;
  base: string;
  port: number;
  directory: string;
  processes(): number[];
  /** Closes all connections that `connect` made. */
  disconnect(): void;
  /** New connections to each serving process, at least so many; closes those made before. */
  connect(each: number): Promise<Map<number, Connection[]>>;
};

/** A service with some serving processes, as an operator starts it. */
async function world(t: Test, processes: number, takeOver = '0s'): Promise<World> {
  const directory = fs.mkdtempSync(path.join(ROOT, 'processes-'));
  const port = await takePort();
  const run = start(directory, {
    BOT_HTTP_PORT: String(port),
    BOT_ADMIN_SETUP_TOKEN: TOKEN,
    BOT_SERVING_PROCESSES: String(processes),
    BOT_EXECUTION_LANES: '16',
    BOT_HTTP_TRUSTED_PROXIES: '127.0.0.1',
    BOT_SERVING_TAKE_OVER: takeOver,
  });
  const open: Connection[] = [];
  t.teardown(async () => {
    self.disconnect();
    run.child.kill('SIGTERM');
    await run.exited;
    if (!(await gone(directory))) throw new Error('a process is left');
  });
  await run.until(/is ready/);
  const self: World = {
    run,
    port,
    directory,
    base: `http://127.0.0.1:${port}`,
    processes: () => listeners(directory, port),
    disconnect() {
      for (const c of open.splice(0)) c.close();
    },
    async connect(each) {
      self.disconnect();
      const pids = self.processes();
      const byPid = new Map<number, Connection[]>(pids.map(pid => [pid, []]));
      for (let k = 0; k < 400 && [...byPid.values()].some(c => c.length < each); k++) {
        const connection = new Connection(port);
        open.push(connection);
        await connection.ask('/healthz');
        const pid = processOf(connection, port, pids);
        if (pid !== undefined) byPid.get(pid)?.push(connection);
      }
      return byPid;
    },
  };
  return self;
}

const caller = (k: number): Record<string, string> => ({ 'x-forwarded-for': `203.0.113.${k + 1}` });

t.test('two serving processes on one port', async t => {
  // A reload leads clients over as it does for an operator.
  const w = await world(t, 2, '2s');
  t.equal(w.processes().length, 2);

  t.test('a plugin installed through one answers on both, and so does its removal', async t => {
    await install(
      w.base,
      watPlugin({ id: 'both', imports: ['respond'], handle: `${respondText(64, 2)} (i32.const 0)` }),
    );
    const connections = [...(await w.connect(2)).values()].flat();
    for (const c of connections) t.equal((await c.ask('/api/triggers/http/both/run')).status, 200);
    await request(`${w.base}/api/admin/plugins/both`, { method: 'DELETE', headers: AUTHORIZED });
    t.ok(
      await until(async () => {
        const statuses = await Promise.all(connections.map(c => c.ask('/api/triggers/http/both/run')));
        return statuses.every(a => a.status === 404);
      }, 5000),
    );
  });

  t.test('eight executions of a plugin run at once, wherever their connections lead; one caller has seven', async t => {
    await install(w.base, watchedSleeper('sleeper', 300));
    const byPid = await w.connect(12);
    const [one = [], two = []] = [...byPid.values()].map(c => c.slice(0, 12));
    const spans = async (connections: Connection[], of: (k: number) => Record<string, string>) => {
      const answers = await Promise.all(connections.map((c, k) => c.ask('/api/triggers/http/sleeper/run', of(k))));
      t.same([...new Set(answers.map(a => a.status))], [200]);
      return answers.map(a => spanOf(a.body));
    };
    t.equal(mostAtOnce(await spans(one, caller)), 8, 'all of them in one process');
    t.equal(mostAtOnce(await spans(two, caller)), 8, 'then in the other');
    t.equal(mostAtOnce(await spans([...one, ...two], caller)), 8, 'then in both');
    t.equal(mostAtOnce(await spans([...one, ...two], () => caller(0))), 7, 'one caller');
    t.equal(mostAtOnce(await spans(one, () => caller(0))), 7);
  });

  t.test('failures on both count together: the trigger is suspended everywhere', async t => {
    await install(w.base, watPlugin({ id: 'trapper', handle: 'unreachable' }));
    const [[one], [two]] = [...(await w.connect(1)).values()] as [Connection[], Connection[]];
    if (one === undefined || two === undefined) throw new Error('no connections');
    const ask = async (c: Connection, k: number) => (await c.ask('/api/triggers/http/trapper/run', caller(k))).status;
    t.equal(await ask(one, 1), 502);
    t.equal(await ask(two, 1), 502);
    t.equal(await ask(one, 2), 502);
    // The failure counted by the other process may still be on its way; these callers have failed before.
    t.ok(await until(async () => (await ask(one, 1)) === 503 && (await ask(two, 2)) === 503, 3000));
    t.same([await ask(one, 3), await ask(two, 4)], [503, 503], 'for callers who did not fail, too');
    const suspensions = async () =>
      (await request(`${w.base}/api/admin/plugins/trapper`, { headers: AUTHORIZED })).json.quarantine;
    t.match(await suspensions(), [{ trigger: 'run', callers: 2 }]);
    await request(`${w.base}/api/admin/plugins/trapper/triggers/run/resume`, { method: 'POST', headers: AUTHORIZED });
    t.ok(await until(async () => (await ask(one, 5)) === 502 && (await ask(two, 6)) === 502, 3000), 'resumed on both');
  });

  t.test('failures of one caller on both suspend the trigger for this caller on both', async t => {
    await install(w.base, watPlugin({ id: 'trapper2', handle: 'unreachable' }));
    const [[one], [two]] = [...(await w.connect(1)).values()] as [Connection[], Connection[]];
    if (one === undefined || two === undefined) throw new Error('no connections');
    const ask = async (c: Connection, k: number) => (await c.ask('/api/triggers/http/trapper2/run', caller(k))).status;
    t.same([await ask(one, 1), await ask(two, 1), await ask(one, 1)], [502, 502, 502]);
    t.ok(await until(async () => (await ask(one, 1)) === 503 && (await ask(two, 1)) === 503, 3000));
    t.equal(await ask(two, 2), 502, 'others are not concerned');
  });

  t.test('one embedded graph store answers for both', async t => {
    const role = { resource_type: 'system_role', resource_id: 'boss', relation: 'member', subject_id: 'e1' };
    const written = await request(`${w.base}/api/admin/relationships`, {
      method: 'POST',
      headers: { ...AUTHORIZED, 'content-type': 'application/json' },
      body: JSON.stringify(role),
    });
    t.match(written.json, { delivered: true });
    const where = '/api/admin/relationships/lookup?resource_type=system_role&permission=is_member&user=e1';
    for (const c of [...(await w.connect(2)).values()].flat()) {
      const found = await c.ask(where, AUTHORIZED);
      t.match(JSON.parse(found.body.toString()), { items: [{ resource_type: 'system_role', resource_id: 'boss' }] });
    }
  });

  t.test('kill -9 of one under load fails only the requests on its connections', async t => {
    await install(w.base, watchedSleeper('napper', 5));
    const byPid = await w.connect(6);
    const [killed] = byPid.keys();
    if (killed === undefined) throw new Error('no serving process has a connection');
    const failed = new Map<number, number>();
    const served = new Map<number, number>();
    const count = (of: Map<number, number>, pid: number): void => void of.set(pid, (of.get(pid) ?? 0) + 1);
    let over = false;
    const clients = [...byPid].flatMap(([pid, connections]) =>
      connections.slice(0, 6).map(async (c, k) => {
        while (!over) {
          try {
            count((await c.ask('/api/triggers/http/napper/run', caller(k))).status === 200 ? served : failed, pid);
          } catch {
            count(failed, pid);
            // What it opens now leads to any process.
            return;
          }
        }
      }),
    );
    await until(() => [...byPid.keys()].every(pid => (served.get(pid) ?? 0) > 50));
    signalDescendant(killed, 'SIGKILL');
    const after = [...served.entries()].find(([pid]) => pid !== killed)?.[1] ?? 0;
    await until(() => [...served.entries()].some(([pid, n]) => pid !== killed && n > after + 200));
    over = true;
    await Promise.all(clients);
    const lost = failed.get(killed) ?? 0;
    t.ok(lost > 0 && lost <= 6, `${lost} of its six connections had a request under way`);
    t.same([...failed.keys()], [killed], 'and no other failed');
    t.ok(
      await until(() => w.processes().length === 2 && !w.processes().includes(killed)),
      'another one takes its place',
    );
    const fresh = await w.connect(12);
    const connections = [...fresh.values()].flatMap(c => c.slice(0, 12));
    /** How many of as many requests ran at once. */
    const atOnce = async (): Promise<number> =>
      mostAtOnce(
        await Promise.all(
          connections.map(async (c, k) => spanOf((await c.ask('/api/triggers/http/sleeper/run', caller(k))).body)),
        ),
      );
    // A busy machine may start the last of eight when the first is over: then they are asked again.
    const rounds: number[] = [];
    await until(async () => rounds.push(await atOnce()) > 0 && rounds.at(-1) === 8);
    t.equal(rounds.at(-1), 8, 'and has its slots');
    t.ok(
      rounds.every(n => n <= 8),
      'and no more',
    );
  });

  t.test('a reload replaces both, and refuses and fails no request', async t => {
    w.disconnect();
    const before = w.processes();
    const problems: string[] = [];
    let asked = 0;
    let over = false;
    const client = async (k: number): Promise<void> => {
      let connection = new Connection(w.port);
      while (!over) {
        try {
          const { headers, status } = await connection.ask('/api/triggers/http/napper/run', caller(k));
          if (status !== 200) problems.push(`status ${status}`);
          asked++;
          // Half of the clients open a connection for each request.
          if (k % 2 === 0 || headers.connection === 'close') {
            connection.close();
            connection = new Connection(w.port);
          }
        } catch (error) {
          problems.push(String(error));
        }
      }
      connection.close();
    };
    const clients = Array.from({ length: 12 }, (_, k) => client(k));
    await until(() => asked > 200);
    const reload = start(w.directory, { BOT_HTTP_PORT: String(w.port) }, ['reload']);
    t.equal(await reload.exited, 0, reload.output());
    t.match(
      reload.output(),
      /serving process 1 of 2[\s\S]*serving process 2 of 2[\s\S]*all serving processes were replaced/,
    );
    const then = asked;
    await until(() => asked > then + 200);
    over = true;
    await Promise.all(clients);
    t.same(problems, [], `of ${asked} requests`);
    const now = w.processes();
    t.equal(now.length, 2);
    t.notOk(
      now.some(pid => before.includes(pid)),
      'other processes',
    );
  });
});

t.test('what happens while one process replaces another', async t => {
  const w = await world(t, 2);
  const reload = (): Run => start(w.directory, { BOT_HTTP_PORT: String(w.port) }, ['reload']);
  await install(w.base, watchedSleeper('sleeper', 4000));

  t.test('a new process that is killed while the old one still answers is started again', async t => {
    const byPid = await w.connect(1);
    const before = [...byPid.keys()];
    // Requests under way keep both old processes.
    const asked = [...byPid.values()].map(([c], k) => c?.ask('/api/triggers/http/sleeper/run', caller(k)));
    const run = reload();
    const added = (): number[] => w.processes().filter(pid => !before.includes(pid));
    t.ok(await until(() => added().length === 1));
    const [fresh = -1] = added();
    // It has taken over when the old process does not listen any more.
    t.ok(await until(() => w.processes().length === 2 && w.processes().filter(p => before.includes(p)).length === 1));
    signalDescendant(fresh, 'SIGKILL');
    t.ok(await until(() => w.processes().length === 2 && !w.processes().includes(fresh)), 'both places are taken');
    t.same(
      (await Promise.all(asked)).map(a => a?.status),
      [200, 200],
    );
    w.disconnect();
    t.equal(await run.exited, 0, run.output());
    t.ok(await until(() => w.processes().length === 2 && !w.processes().some(pid => before.includes(pid))));
  });

  t.test('streams of events end, and their clients come back to the new processes', async t => {
    let opened = 0;
    let over = false;
    const streams: http.IncomingMessage[] = [];
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    const watching = (async () => {
      while (!over) {
        const asked = http.get({ port: w.port, path: '/api/admin/events/stream', headers: AUTHORIZED, agent });
        const [answer] = (await once(asked, 'response')) as [http.IncomingMessage];
        streams.push(answer);
        opened++;
        for await (const _ of answer);
      }
    })().catch(() => {});
    t.ok(await until(() => opened === 1));
    t.equal(await reload().exited, 0);
    t.ok(opened > 1);
    t.ok(streams[0]?.complete, 'it was ended, and not cut off when the longest wait for clients was over');
    over = true;
    for (const stream of streams) stream.destroy();
    agent.destroy();
    await watching;
  });
});

t.test('a reload reads the configuration again', async t => {
  const directory = fs.mkdtempSync(path.join(ROOT, 'reload-'));
  const port = await takePort();
  const file = path.join(directory, 'host.yaml');
  const password = path.join(directory, 'key');
  const env = { BOT_CONFIG: file, BOT_ADMIN_API_KEY_FILE: password, BOT_SERVING_PROCESSES: '2' };
  const configure = (maxBody: number, more = ''): void =>
    fs.writeFileSync(file, `http:\n  port: ${port}\n  max_body: ${maxBody}\nadmin:\n  setup_token: ${TOKEN}\n${more}`);
  configure(100);
  fs.writeFileSync(password, 'first-key-of-the-import\n');
  const data = path.join(directory, 'data');
  const run = start(data, env);
  t.teardown(async () => {
    run.child.kill('SIGTERM');
    await run.exited;
  });
  await run.until(/is ready/);
  const base = `http://127.0.0.1:${port}`;
  await install(base, watPlugin({ id: 'reads', imports: ['respond'], handle: `${respondText(64, 2)} (i32.const 0)` }));
  const status = async (bytes: number): Promise<number> =>
    (await request(`${base}/api/triggers/http/reads/run`, { method: 'POST', body: 'x'.repeat(bytes) })).status;
  const imports = async (key: string): Promise<number> =>
    (
      await request(`${base}/api/admin/university/persons?dry_run=1`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: '[]',
      })
    ).status;
  /** What the administration pages say of a reload to come, whichever process answers. */
  const pending = async (): Promise<unknown> => {
    for (;;) {
      const { json } = await request(`${base}/api/admin/config`, { headers: AUTHORIZED });
      // A busy supervisor did not answer in time.
      if (json.pending !== null) return json.pending;
    }
  };
  const attention = async (): Promise<unknown[]> => {
    for (;;) {
      const { items } = (await request(`${base}/api/admin/attention`, { headers: AUTHORIZED })).json;
      if (Array.isArray(items) && items.length > 0) return items;
    }
  };
  t.equal(await status(150), 413);
  t.equal(await imports('first-key-of-the-import'), 200);
  t.same(await pending(), { changed: [], restart: [], problem: null });

  configure(200);
  fs.writeFileSync(password, 'second-key-of-the-import\n');
  t.same(await pending(), { changed: ['http.max_body', 'admin.api_key'], restart: [], problem: null });
  t.match(await attention(), [{ kind: 'config_changed', count: 2, detail: 'http.max_body, admin.api_key' }]);
  const good = start(data, env, ['reload']);
  t.equal(await good.exited, 0, good.output());
  t.match(good.output(), /changed in the configuration: http\.max_body, admin\.api_key/);
  for (let k = 0; k < 6; k++) t.equal(await status(150), 200, 'each process has it');
  for (let k = 0; k < 6; k++) t.equal(await imports('first-key-of-the-import'), 401);
  t.equal(await imports('second-key-of-the-import'), 200);

  const pids = listeners(data, port);
  configure(300, 'serving:\n  proceses: 3\n');
  t.match(await attention(), [{ kind: 'config_wrong', severity: 'bad', detail: /unknown key "serving\.proceses"/ }]);
  const wrong = start(data, { BOT_HTTP_PORT: String(port) }, ['reload']);
  t.equal(await wrong.exited, 1);
  t.match(wrong.output(), /host\.yaml: unknown key "serving\.proceses"; did you mean "serving\.processes"/);
  const other = path.join(directory, 'other.yaml');
  fs.writeFileSync(other, `http:\n  port: ${port}\n`);
  const elsewhere = start(data, {}, ['reload', '--config', other]);
  t.equal(await elsewhere.exited, 1);
  t.match(elsewhere.output(), `it was started with ${file}, and --config or BOT_CONFIG names ${other}: leave that out`);
  configure(300, 'spicedb:\n  recycle_mb: 900\n');
  t.match(await pending(), {
    changed: ['spicedb.recycle_mb', 'http.max_body'].sort(),
    restart: ['spicedb.recycle_mb'],
  });
  const bound = start(data, env, ['reload']);
  t.equal(await bound.exited, 1);
  t.match(bound.output(), /spicedb\.recycle_mb has another value now, which a restart of the service alone can apply/);
  t.same(listeners(data, port), pids, 'no process was replaced');
  t.equal(await status(250), 413, 'and what serves is as before');
  configure(300);
  const last = start(data, env, ['reload']);
  t.equal(await last.exited, 0, last.output());
  t.equal(await status(250), 200);
});

t.test('a reload without a running service says what to do', async t => {
  const directory = fs.mkdtempSync(path.join(ROOT, 'no-service-'));
  const run = start(directory, {}, ['reload']);
  t.equal(await run.exited, 1);
  t.match(run.output(), /cannot be reached: no service runs there; start one with plugin-host serve/);
});
