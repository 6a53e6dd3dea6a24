import { type ChildProcess, spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { type Database, openDatabase } from '../src/db/database.ts';
import { CHANGES_STALE_MS } from '../src/db/notifications.ts';
import { GraphStore } from '../src/graph/graph-store.ts';
import type { Tuple } from '../src/graph/tuple.ts';
import { addUserToken, revokeUserToken } from '../src/identity/user-tokens.ts';
import { addUser } from '../src/identity/users.ts';
import { startPostgres } from '../src/supervisor/stores/embedded-postgres.ts';
import { startEmbeddedSpicedb } from '../src/supervisor/stores/embedded-spicedb.ts';
import { TOKEN } from '../test/support/service.ts';
import { shiftTimes } from '../test/support/shift-times.ts';
import { signalDescendant } from '../test/support/signals.ts';
import { type DatabaseWay, databaseWay } from '../test/support/store-way.ts';
import { watPlugin } from '../test/support/wat.ts';

/** Three hosts of one database and one graph store, each on a way of its own that can be frozen. */
type StaleHost = { name: string; base: string; process: ChildProcess; way: DatabaseWay };

const KINDS = ['plugin', 'settings', 'token', 'graph'] as const;
const FAULTS = [
  'none',
  'stopped',
  'frozen',
  'clock back',
  'clock forward',
  'database restored',
  'store restored',
] as const;
type Kind = (typeof KINDS)[number];
type Fault = (typeof FAULTS)[number];

/** What came of one round: answers given too late, and how many were asked. */
export type StaleRound = { kind: Kind; fault: Fault; asked: number; late: number; lastMs: number; recoveredMs: number };

const pause = (ms: number): Promise<void> => new Promise(resolve => setTimeout(resolve, ms));
const HOSTS = 3;
const DAY = 86_400;
const ROLE = { resource_type: 'system_role', resource_id: 'boss', relation: 'member', subject_id: 'e1' };
const BY = { kind: 'command_line', userId: null, name: 'endure', requestId: 'endure', address: '' } as const;
/** How long hosts are asked after a revocation; a frozen way is mended before its end. */
const WATCHED_MS = 11_000;

async function startHost(name: string, directory: string, url: string, endpoint: string): Promise<StaleHost> {
  const way = await databaseWay(url);
  const child = spawn(process.execPath, [path.resolve(import.meta.dirname, '../test/support/service-process.ts')], {
    env: {
      PATH: process.env.PATH,
      BOT_HTTP_PORT: '0',
      BOT_DATA_DIR: directory,
      BOT_DATABASE_URL: `${way.url}?application_name=${name}`,
      BOT_DATABASE_POOL_SIZE: '10',
      BOT_EXECUTION_LANES: '2',
      BOT_SPICEDB_ENDPOINT: endpoint,
      BOT_SPICEDB_TOKEN: 'any',
      BOT_SPICEDB_TLS: 'false',
      BOT_LOG_LEVEL: 'error',
      TEST_LOG: process.env.TEST_LOG ?? 'silent',
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const port = await new Promise<string>((resolve, reject) => {
    let text = '';
    child.stdout.on('data', (c: Buffer) => {
      text += c.toString();
      const found = /^(\d+)$/m.exec(text)?.[1];
      if (found !== undefined) resolve(found);
    });
    child.once('exit', code => reject(new Error(`${name} ended with ${code}`)));
  });
  return { name, base: `http://127.0.0.1:${port}`, process: child, way };
}

/**
 * Rights are given and taken back on three hosts while something fails; every host is asked all the time.
 *
 * @param next random numbers below n
 * @param told one round is over
 */
export async function staleAnswers(
  directory: string,
  rounds: number,
  next: (n: number) => number,
  told: (round: StaleRound) => void,
): Promise<void> {
  fs.mkdirSync(directory, { recursive: true, mode: 0o711 });
  const postgres = await startPostgres({
    directory: path.join(directory, 'pg'),
    progress: () => {},
    settings: { fsync: 'off', synchronous_commit: 'off', max_connections: '200' },
  });
  const spicedb = await startEmbeddedSpicedb(path.join(directory, 'g'));
  const store = new GraphStore({ endpoint: spicedb.endpoint, token: 'any', tls: false });
  const server = openDatabase(postgres.url.replace('/plugin_host?', '/postgres?'), 1, () => {});
  const hosts: StaleHost[] = [];
  try {
    const data = path.join(directory, 'data');
    for (let k = 0; k < HOSTS; k++) hosts.push(await startHost(`stale_${k}`, data, postgres.url, spicedb.endpoint));
    const world = new World(postgres.url, server, store, hosts);
    await world.install();
    for (let round = 0; round < rounds; round++)
      told(await world.round(KINDS[next(KINDS.length)] ?? 'plugin', FAULTS[round % FAULTS.length] ?? 'none', next));
    await world.close();
  } finally {
    for (const host of hosts) {
      host.way.mend();
      host.process.kill('SIGKILL');
      host.way.close();
    }
    store.close();
    await server.close();
    await spicedb.stop();
    await postgres.stop();
  }
}

class World {
  readonly #url: string;
  readonly #server: Database;
  readonly #store: GraphStore;
  readonly #hosts: readonly StaleHost[];
  #db: Database;
  #user = 0;
  #token = { id: 0, text: '' };

  constructor(url: string, server: Database, store: GraphStore, hosts: readonly StaleHost[]) {
    this.#url = url;
    this.#server = server;
    this.#store = store;
    this.#hosts = hosts;
    this.#db = openDatabase(url, 2, () => {});
  }

  async #admin(host: StaleHost, method: string, where: string, body?: object): Promise<number> {
    const r = await fetch(`${host.base}/api/admin${where}`, {
      method,
      headers: {
        authorization: `Bearer ${TOKEN}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(10_000),
    });
    await r.arrayBuffer();
    return r.status;
  }

  /** Done when a host answered it; whether a request whose answer was lost was done is found out by doing it again. */
  async #must(host: StaleHost, method: string, where: string, body?: object): Promise<void> {
    for (let k = 0; k < 300; k++) {
      const status = await this.#admin(host, method, where, body).catch(() => 0);
      if (status >= 200 && status < 300) return;
      await pause(100);
    }
    throw new Error(`${method} ${where} is never answered by ${host.name}`);
  }

  async install(): Promise<void> {
    const [first] = this.#hosts as [StaleHost];
    const bytes = watPlugin({
      id: 'desk',
      imports: ['respond'],
      triggers: [{ name: 'run', type: 'http', path: '/run', methods: ['GET'] }],
      handle: `(drop (call $respond (i32.const 200) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))) (i32.const 0)`,
    });
    const form = new FormData();
    form.append('file', new Blob([new Uint8Array(bytes)]), 'p.wasm');
    const headers = { authorization: `Bearer ${TOKEN}` };
    const upload = await fetch(`${first.base}/api/admin/plugins/upload`, { method: 'POST', headers, body: form });
    const { wasm_key } = (await upload.json()) as { wasm_key: string };
    await this.#must(first, 'POST', '/plugins/desk/install', { wasm_key, config: {} });
    await this.#must(first, 'PUT', '/plugins/desk/triggers/run/settings', {
      enabled: true,
      allow_user_session: true,
      policy_expression: 'check("is_member", "system_role", "boss")',
    });
    this.#user = (await addUser(this.#db, { displayName: 'Ada', externalId: 'e1' })).id;
    await this.#newToken();
  }

  async #newToken(): Promise<void> {
    const made = await addUserToken(this.#db, 'pht_', { userId: this.#user, name: 'n', expiresAt: null });
    this.#token = { id: made.token.id, text: made.text };
  }

  async #ask(host: StaleHost): Promise<number> {
    try {
      const r = await fetch(`${host.base}/api/triggers/http/desk/run`, {
        headers: { authorization: `Bearer ${this.#token.text}` },
        signal: AbortSignal.timeout(8000),
      });
      await r.arrayBuffer();
      return r.status;
    } catch {
      return 0;
    }
  }

  /** All hosts let the caller in. @returns how long that took */
  async #allIn(): Promise<number> {
    const since = performance.now();
    for (;;) {
      const all = await Promise.all(this.#hosts.map(h => this.#ask(h)));
      if (all.every(status => status === 200)) return performance.now() - since;
      if (performance.now() - since > 90_000) throw new Error(`the hosts answer ${all.join(', ')}`);
      await pause(100);
    }
  }

  async #give(kind: Kind, by: StaleHost): Promise<void> {
    if (kind === 'plugin') await this.#must(by, 'POST', '/plugins/desk/enable');
    if (kind === 'settings') await this.#setTrigger(by, true);
    if (kind === 'token') await this.#newToken();
    await this.#must(by, 'POST', '/relationships', ROLE);
  }

  #setTrigger(by: StaleHost, enabled: boolean): Promise<void> {
    return this.#must(by, 'PUT', '/plugins/desk/triggers/run/settings', { enabled });
  }

  async #take(kind: Kind, by: StaleHost): Promise<void> {
    if (kind === 'plugin') await this.#must(by, 'POST', '/plugins/desk/disable');
    if (kind === 'settings') await this.#setTrigger(by, false);
    if (kind === 'token') await revokeUserToken(this.#db, this.#user, this.#token.id, BY);
    if (kind === 'graph') await this.#must(by, 'DELETE', '/relationships', ROLE);
  }

  /** What the store holds, marks and fence as well. */
  async #everything(): Promise<Tuple[]> {
    return [
      ...(await this.#store.read({ resourceType: 'system_role' })),
      ...(await this.#store.read({ resourceType: 'outbox_fence' })),
    ];
  }

  async #stopListeners(host: StaleHost): Promise<number[]> {
    const { rows } = await this.#db.query<{ pid: number }>(
      `SELECT pid FROM pg_stat_activity WHERE application_name = $1 AND state = 'idle'
         AND (query LIKE 'LISTEN %' OR query LIKE 'SELECT pg_notify($1, $2)%')`,
      [host.name],
    );
    for (const { pid } of rows) signalDescendant(pid, 'SIGSTOP');
    return rows.map(r => r.pid);
  }

  /** Puts the database back to what a backup holds, with every host running. */
  async #restoreDatabase(backup: string): Promise<void> {
    for (const host of this.#hosts) host.way.cut();
    await this.#db.close();
    await this.#server.query('DROP DATABASE plugin_host WITH (FORCE)');
    await this.#server.query(`CREATE DATABASE plugin_host TEMPLATE ${backup}`);
    this.#db = openDatabase(this.#url, 2, () => {});
    for (const host of this.#hosts) host.way.mend();
  }

  async #backup(): Promise<string> {
    const name = `backup_${Math.round(performance.now())}`;
    await this.#db.close();
    for (let k = 0; ; k++)
      try {
        await this.#server.query(
          "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'plugin_host'",
        );
        await this.#server.query(`CREATE DATABASE ${name} TEMPLATE plugin_host`);
        break;
      } catch (error) {
        // A host came back in between.
        if (k > 200) throw error;
      }
    this.#db = openDatabase(this.#url, 2, () => {});
    return name;
  }

  async round(kind: Kind, fault: Fault, next: (n: number) => number): Promise<StaleRound> {
    const victim = this.#hosts[next(HOSTS)] as StaleHost;
    const healthy = this.#hosts.filter(h => h !== victim)[next(HOSTS - 1)] as StaleHost;
    const taken = fault === 'database restored' ? 'graph' : kind;
    await this.#give(kind, healthy);
    await this.#allIn();
    let backup = '';
    let earlier: Tuple[] = [];
    if (fault === 'database restored') {
      // The right is given after the backup: the restore takes it back.
      await this.#must(healthy, 'DELETE', '/relationships', ROLE);
      backup = await this.#backup();
      await this.#must(healthy, 'POST', '/relationships', ROLE);
      await this.#allIn();
    }
    if (fault === 'store restored') earlier = await this.#everything();
    const stopped = fault === 'stopped' ? await this.#stopListeners(victim) : [];
    if (fault === 'frozen') victim.way.freeze();
    if (fault === 'clock back') await shiftTimes(this.#db, ['public', 'pgboss'], DAY);
    if (fault === 'clock forward') await shiftTimes(this.#db, ['public', 'pgboss'], -DAY);

    if (fault === 'database restored') await this.#restoreDatabase(backup);
    else await this.#take(taken, healthy);
    let takenAt = performance.now();
    if (fault === 'store restored' && taken === 'graph') {
      for (const tuple of await this.#everything()) await this.#store.write([{ operation: 'delete', tuple }]);
      await this.#store.write(earlier.map(tuple => ({ operation: 'touch', tuple })));
      takenAt = performance.now();
    }
    const result = await this.#watch(takenAt, victim, fault);
    for (const pid of stopped) signalDescendant(pid, 'SIGCONT');
    // Everything works again: nothing of the fault stays behind.
    const since = performance.now();
    await this.#give(kind, victim);
    if (taken !== kind) await this.#give(taken, victim);
    await this.#allIn();
    if (backup !== '') await this.#server.query(`DROP DATABASE ${backup} WITH (FORCE)`);
    return { kind: taken, fault, ...result, recoveredMs: performance.now() - since };
  }

  /**
   * Asks all hosts until the time is up. An answer is late when it was asked for more than five seconds after the right
   * was taken.
   */
  async #watch(
    takenAt: number,
    victim: StaleHost,
    fault: Fault,
  ): Promise<{ asked: number; late: number; lastMs: number }> {
    let [asked, late, lastMs] = [0, 0, 0];
    const until = takenAt + WATCHED_MS;
    const mending = setTimeout(() => fault === 'frozen' && victim.way.mend(), WATCHED_MS * 0.7);
    const watcher = async (host: StaleHost): Promise<void> => {
      while (performance.now() < until) {
        const sentAt = performance.now();
        const status = await this.#ask(host);
        asked++;
        if (status === 200) {
          lastMs = Math.max(lastMs, sentAt - takenAt);
          if (sentAt > takenAt + CHANGES_STALE_MS) late++;
        }
        await pause(20);
      }
    };
    await Promise.all(this.#hosts.map(watcher));
    clearTimeout(mending);
    victim.way.mend();
    return { asked, late, lastMs };
  }

  async close(): Promise<void> {
    await this.#db.close();
  }
}
