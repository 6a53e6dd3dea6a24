import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Database, openDatabase } from '../src/db/database.ts';
import { CHANGES_STALE_MS } from '../src/db/notifications.ts';
import { addUserToken } from '../src/identity/user-tokens.ts';
import { addUser } from '../src/identity/users.ts';
import { startPostgres } from '../src/supervisor/stores/embedded-postgres.ts';
import { startEmbeddedSpicedb } from '../src/supervisor/stores/embedded-spicedb.ts';
import { callerPlugin, callHost, type ScriptedCall } from '../test/support/caller.ts';
import { startTelegram, TELEGRAM_SECRET, telegramUpdate } from '../test/support/messengers.ts';
import { signalDescendant } from '../test/support/signals.ts';
import { type Subscriber, startSubscriber } from '../test/support/subscriber.ts';
import { makeUniversity, PATHS } from '../test/support/university.ts';
import { SOURCE_TOKEN, startUniversitySource } from '../test/support/university-source.ts';
import { watPlugin } from '../test/support/wat.ts';
import { makeNetwork, type Network, passOn } from './namespaces.ts';

/** Three hosts in network namespaces, each killed and cut off in turn, under requests, events, messages and an import. */

const FAULTS = ['killed', 'no database', 'no graph', 'no network'] as const;
type Fault = (typeof FAULTS)[number];

export type HostsRound = {
  victim: string;
  fault: Fault;
  /** Work that it alone did before. */
  duties: readonly string[];
  /** Longest waits for what began while the fault lasted, ms: the work of one host at a time. */
  eventMs: number;
  messageMs: number;
  pullMs: number;
  /** From a grant on another host to the first caller it lets in there. */
  grantMs: number;
  /** Requests to the hosts that are well, and those that failed. */
  asked: number;
  failed: string[];
  /** Callers let in more than five seconds after their right was taken. */
  late: number;
  /** From the end of the fault until the victim does everything again. */
  backMs: number;
};

export type HostsFigures = {
  writes: number;
  lostWrites: number;
  events: number;
  lostEvents: number;
  messages: number;
  lostMessages: number;
  imports: number;
  lostImports: string[];
  drift: string;
};

const HOSTS = ['ph1', 'ph2', 'ph3'] as const;
const TOKEN = 'endure-setup-token';
const API_KEY = 'endure-api-key-of-the-import';
const FAULT_MS = 14_000;
const TAKEN_OVER_MS = 5000;
const ROLE = { resource_type: 'system_role', resource_id: 'boss', relation: 'member', subject_id: 'e1' };

type HostProcess = { name: string; address: string; base: string; child: ChildProcess | null };
type World = {
  network: Network;
  hosts: HostProcess[];
  db: Database;
  ports: { database: number; graph: number };
  env: Record<string, string>;
  directory: string;
};

const FAKETIME = '/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1';

/** A clock that is a minute ahead, where libfaketime is installed. */
const anotherClock = (): Record<string, string> =>
  fs.existsSync(FAKETIME) ? { LD_PRELOAD: FAKETIME, FAKETIME: '+60s', FAKETIME_DONT_FAKE_MONOTONIC: '1' } : {};

async function startHost(w: World, host: HostProcess): Promise<void> {
  const main = path.resolve(import.meta.dirname, '../src/main.ts');
  const [command, args] = w.network.on(host.name, [process.execPath, main, 'serve']);
  const child = spawn(command, args, {
    env: {
      PATH: process.env.PATH,
      BOT_HTTP_HOST: host.address,
      BOT_HTTP_PORT: '8080',
      BOT_DATA_DIR: path.join(w.directory, host.name),
      BOT_EXECUTION_LANES: '2',
      ...(host.name === HOSTS[2] ? anotherClock() : {}),
      ...w.env,
    },
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  host.child = child;
  await new Promise<void>((resolve, reject) => {
    let text = '';
    child.stdout.on('data', (c: Buffer) => {
      text += c.toString();
      if (text.includes('is ready')) resolve();
      text = text.slice(-1000);
    });
    child.once('exit', code => reject(new Error(`${host.name} ended with ${code}: ${text}`)));
  });
}

function kill(host: HostProcess): void {
  const pid = host.child?.pid;
  host.child = null;
  if (pid === undefined) return;
  // Its children are in groups of their own.
  const all = [pid];
  for (const p of all)
    try {
      const tasks = fs.readFileSync(`/proc/${p}/task/${p}/children`, 'latin1');
      all.push(...tasks.split(' ').filter(Boolean).map(Number));
    } catch {
      // It has ended.
    }
  for (const p of all)
    try {
      signalDescendant(p, 'SIGKILL');
    } catch {
      // It has ended.
    }
}

async function ask(url: string, init: RequestInit = {}, ms = 8000): Promise<{ status: number; text: string }> {
  try {
    const r = await fetch(url, { ...init, signal: AbortSignal.timeout(ms) });
    return { status: r.status, text: await r.text() };
  } catch (error) {
    return { status: 0, text: String(error) };
  }
}

const admin = (host: HostProcess, method: string, where: string, body?: unknown, token = TOKEN) =>
  ask(`${host.base}/api/admin${where}`, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });

async function must(host: HostProcess, method: string, where: string, body?: unknown): Promise<string> {
  for (let k = 0, last = ''; ; k++) {
    const { status, text } = await admin(host, method, where, body);
    if (status >= 200 && status < 300) return text;
    last = `${status} ${text.slice(0, 200)}`;
    if (k === 100) throw new Error(`${method} ${where} on ${host.name}: ${last}`);
    await sleep(100);
  }
}

async function install(host: HostProcess, bytes: Uint8Array): Promise<void> {
  const form = new FormData();
  form.append('file', new Blob([new Uint8Array(bytes)]), 'p.wasm');
  const headers = { authorization: `Bearer ${TOKEN}` };
  const uploaded = await ask(`${host.base}/api/admin/plugins/upload`, { method: 'POST', headers, body: form });
  const { access, id, wasm_key } = JSON.parse(uploaded.text);
  const fresh = access.map((a: { trigger: string }) => [a.trigger, { allow_user_session: false }]);
  const triggers = Object.fromEntries(fresh);
  await must(host, 'POST', `/plugins/${id}/install`, { wasm_key, config: {}, triggers, accept_public: true });
}

/** What goes on all the time, on every host that answers. */
class Traffic {
  readonly #w: World;
  readonly #subscriber: Subscriber;
  readonly #shown: () => ReadonlyArray<{ text: string; at: number }>;
  readonly #token: string;
  #going = true;
  /** Hosts that are asked to change something, and must not fail. */
  well: HostProcess[];
  asked = 0;
  failed: string[] = [];
  late = 0;
  /** When the right was taken, and no caller may be let in; null while it is held. */
  takenAt: number | null = null;
  grantMs = 0;
  readonly writes: string[] = [];
  readonly published = new Map<string, number>();
  readonly sent = new Map<string, number>();
  readonly seen = new Map<string, number>();
  imports = 0;
  readonly lostImports: string[] = [];

  constructor(
    w: World,
    token: string,
    subscriber: Subscriber,
    shown: () => ReadonlyArray<{ text: string; at: number }>,
  ) {
    this.#w = w;
    this.#token = token;
    this.#subscriber = subscriber;
    this.#shown = shown;
    this.well = w.hosts;
  }

  /** Begins. @returns ends it, and resolves when nothing is under way */
  start(): () => Promise<void> {
    const all = [
      ...this.#w.hosts.flatMap(h => [this.#write(h), this.#enter(h)]),
      this.#message(),
      this.#right(),
      this.#import(),
    ];
    let watching = true;
    const watched = this.#watch(() => watching);
    return async () => {
      this.#going = false;
      await Promise.all(all);
      // What was asked last is still on its way.
      await sleep(5000);
      watching = false;
      await watched;
    };
  }

  #count(host: HostProcess, was: boolean, ok: boolean, what: string): void {
    // A request counts when its host was well from its beginning to its end.
    if (!was || !this.well.includes(host)) return;
    this.asked++;
    if (!ok) this.failed.push(`${host.name} ${what}`);
  }

  /** A value and an event, in one execution. */
  async #write(host: HostProcess): Promise<void> {
    for (let k = 0; this.#going; k++) {
      const key = `${host.name}-${k}`;
      const calls: ScriptedCall[] = [
        ['kv_set', key, key, 0],
        ['event_publish', 'written', JSON.stringify({ key })],
      ];
      const was = this.well.includes(host);
      try {
        const [set, event] = await Promise.race([
          callHost(host, 'desk', calls),
          sleep(8000).then(() => {
            throw new Error('no answer within 8 s');
          }),
        ]);
        if (set?.code === 0) this.writes.push(key);
        if (event?.code === 0) this.published.set(key, performance.now());
        this.#count(
          host,
          was,
          set?.code === 0 && event?.code === 0,
          `write ${set?.code} ${event?.code} ${event?.text}`,
        );
      } catch (error) {
        this.#count(host, was, false, `write ${String(error)}`);
      }
      await sleep(50);
    }
  }

  /** A caller whose right comes and goes. */
  async #enter(host: HostProcess): Promise<void> {
    const headers = { authorization: `Bearer ${this.#token}` };
    while (this.#going) {
      const at = performance.now();
      const was = this.well.includes(host);
      const { status, text } = await ask(`${host.base}/api/triggers/http/gate/run`, { headers });
      const { takenAt } = this;
      if (status === 200 && takenAt !== null && at > takenAt + CHANGES_STALE_MS) this.late++;
      this.#count(host, was, status === 200 || status === 403, `enter ${status} ${text.slice(0, 200)}`);
      await sleep(30);
    }
  }

  async #message(): Promise<void> {
    for (let k = 1; this.#going; k++) {
      const host = this.well[k % this.well.length] as HostProcess;
      const was = this.well.includes(host);
      const update = telegramUpdate(k, `/word${k}x`, { from: 1000 + k, chat: 1000 + k, language: 'en' });
      const headers = { 'content-type': 'application/json', 'x-telegram-bot-api-secret-token': TELEGRAM_SECRET };
      const init = { method: 'POST', headers, body: JSON.stringify(update) };
      const { status, text } = await ask(`${host.base}/api/messengers/telegram`, init);
      if (status === 200) this.sent.set(`word${k}x`, performance.now());
      this.#count(host, was, status === 200, `message ${status} ${text.slice(0, 200)}`);
      await sleep(150);
    }
  }

  /** Grants the right, waits until it counts, takes it, waits until it must not count any more. */
  async #right(): Promise<void> {
    while (this.#going) {
      const host = this.well[Math.floor(Math.random() * this.well.length)] as HostProcess;
      const headers = { authorization: `Bearer ${this.#token}` };
      const at = performance.now();
      if ((await admin(host, 'POST', '/relationships', ROLE)).status > 299) continue;
      this.takenAt = null;
      while (this.#going && (await ask(`${host.base}/api/triggers/http/gate/run`, { headers })).status !== 200)
        await sleep(20);
      this.grantMs = Math.max(this.grantMs, performance.now() - at);
      await sleep(500);
      const taker = this.well[Math.floor(Math.random() * this.well.length)] as HostProcess;
      while (this.#going && (await admin(taker, 'DELETE', '/relationships', ROLE)).status > 299) await sleep(100);
      this.takenAt = performance.now();
      await sleep(CHANGES_STALE_MS + 2000);
      this.takenAt = null;
    }
  }

  /** The same university again and again, each time with one more change to every person and position. */
  async #import(): Promise<void> {
    const university = makeUniversity({ seed: 1, groups: 10, students: 150, teachers: 20 });
    for (let n = 1; this.#going; n++) {
      for (const person of university.persons) person.middle_name = `n${n}`;
      for (const [k, position] of university['student-positions'].entries())
        position.group_external_id = `ИС-${(k + n) % 10}`;
      for (const list of PATHS) {
        if (list === 'courses' || list === 'semesters') continue;
        for (let k = n; this.#going; k++) {
          const host = this.well[k % this.well.length] as HostProcess;
          if ((await admin(host, 'POST', `/university/${list}`, university[list], API_KEY)).status === 200) break;
          await sleep(100);
        }
        if (!this.#going) return;
      }
      const { rows } = await this.#w.db.query<{ n: string }>(
        'SELECT count(*) AS n FROM persons WHERE middle_name <> $1',
        [`n${n}`],
      );
      if (rows[0]?.n !== '0') this.lostImports.push(`${rows[0]?.n} of import ${n}`);
      this.imports = n;
      await sleep(200);
    }
  }

  /** Notes when events and messages come. */
  async #watch(isGoing: () => boolean): Promise<void> {
    let [events, messages] = [0, 0];
    while (isGoing()) {
      const now = performance.now();
      for (; events < this.#subscriber.taken.length; events++)
        this.seen.set(String(this.#subscriber.taken[events]?.data.key), now);
      const shown = this.#shown();
      for (; messages < shown.length; messages++)
        this.seen.set(/word\d+x/.exec(shown[messages]?.text ?? '')?.[0] ?? '', now);
      await sleep(20);
    }
  }

  /** The longest wait of what began in a time. */
  longest(begun: ReadonlyMap<string, number>, from: number, to: number): number {
    let most = 0;
    for (const [key, at] of begun)
      if (at >= from && at < to) most = Math.max(most, (this.seen.get(key) ?? performance.now()) - at);
    return most;
  }

  async lost(begun: ReadonlyMap<string, number>): Promise<number> {
    return [...begun.keys()].filter(key => !this.seen.has(key)).length;
  }
}

async function makeWorld(w: Omit<World, 'hosts'>): Promise<World> {
  const hosts = HOSTS.map(name => {
    const address = w.network.addHost(name);
    return { name, address, base: `http://${address}:8080`, child: null };
  });
  const world: World = { ...w, hosts };
  for (const host of hosts) await startHost(world, host);
  return world;
}

const isBack = async (host: HostProcess, headers: Record<string, string>): Promise<boolean> => {
  const { status } = await ask(`${host.base}/api/triggers/http/gate/run`, { headers }, 2000);
  return (status === 200 || status === 403) && (await ask(`${host.base}/readyz`, {}, 2000)).status === 200;
};

async function dutiesOf(w: World): Promise<Map<HostProcess, string[]>> {
  const { items } = JSON.parse(await must(w.hosts[0] as HostProcess, 'GET', '/hosts'));
  const serving = items.filter((h: { state: string }) => h.state === 'serving');
  return new Map(
    w.hosts.map(h => [h, serving.find((i: { address: string }) => i.address.startsWith(h.address))?.duties]),
  );
}

/** One fault of one host, and what the others make of it. */
async function round(
  w: World,
  traffic: Traffic,
  pulls: () => number,
  { fault, victim }: { victim: HostProcess; fault: Fault },
  duties: readonly string[],
  token: string,
): Promise<HostsRound> {
  const headers = { authorization: `Bearer ${token}` };
  await sleep(3000);
  traffic.well = w.hosts.filter(h => h !== victim);
  // What the victim is asked now may be answered by the fault.
  await sleep(500);
  Object.assign(traffic, { asked: 0, failed: [], late: 0, grantMs: 0 });
  const from = performance.now();
  if (fault === 'killed') kill(victim);
  if (fault === 'no database') w.network.cut(victim.name, [w.ports.database]);
  if (fault === 'no graph') w.network.cut(victim.name, [w.ports.graph]);
  if (fault === 'no network') w.network.cut(victim.name, null);
  let [pullMs, lastPulls, lastAt] = [0, pulls(), from];
  while (performance.now() < from + FAULT_MS) {
    await sleep(20);
    const now = performance.now();
    if (pulls() !== lastPulls) [lastPulls, lastAt] = [pulls(), now];
    pullMs = Math.max(pullMs, now - lastAt);
  }
  const to = performance.now();
  w.network.mend();
  if (fault === 'killed') await startHost(w, victim);
  while (!(await isBack(victim, headers))) {
    if (performance.now() > to + 60_000) throw new Error(`${victim.name} does not come back after: ${fault}`);
    await sleep(50);
  }
  const backMs = performance.now() - to;
  const { asked, failed, grantMs, late } = traffic;
  traffic.well = w.hosts;
  await sleep(2000);
  return {
    victim: victim.name,
    fault,
    duties,
    eventMs: traffic.longest(traffic.published, from, to),
    messageMs: traffic.longest(traffic.sent, from, to),
    pullMs,
    grantMs,
    asked,
    failed,
    late,
    backMs,
  };
}

/** Whether a round was as it must be: duties are taken over within five seconds, what takes them up has a second more. */
export const isRight = (r: HostsRound): boolean =>
  r.failed.length === 0 &&
  r.late === 0 &&
  Math.max(r.eventMs, r.messageMs, r.grantMs) < TAKEN_OVER_MS + 1000 &&
  // A pull comes every second.
  r.pullMs < TAKEN_OVER_MS + 2000;

/**
 * Cuts off and kills three hosts in turn, for so many rounds.
 *
 * @param told one round is over
 */
export async function hostsApart(
  directory: string,
  rounds: number,
  told: (round: HostsRound) => void,
): Promise<HostsFigures> {
  fs.mkdirSync(directory, { recursive: true, mode: 0o711 });
  const ends: Array<() => unknown> = [];
  const t = { teardown: (end: () => unknown) => void ends.unshift(end) };
  try {
    const network = makeNetwork();
    t.teardown(() => network.close());
    const start = () =>
      startPostgres({
        directory: path.join(directory, 'pg'),
        progress: () => {},
        settings: { listen_addresses: network.gateway, max_connections: '200' },
      });
    // Its first start makes the file in which hosts of the network are let in.
    await (await start()).stop();
    fs.appendFileSync(path.join(directory, 'pg/pg_hba.conf'), 'host all all 10.77.0.0/24 scram-sha-256\n');
    const postgres = await start();
    t.teardown(() => postgres.stop());
    const spicedb = await startEmbeddedSpicedb(path.join(directory, 'g'));
    t.teardown(() => spicedb.stop());
    const graph = await passOn(network.gateway, spicedb.endpoint.replace('unix:', ''));
    t.teardown(() => graph.close());
    const outside = async (address: string): Promise<string> => {
      const url = new URL(address);
      const passed = await passOn(network.gateway, Number(url.port));
      t.teardown(() => passed.close());
      return `http://${network.gateway}:${passed.port}${url.pathname}${url.search}`.replace(/\/$/, '');
    };
    const telegram = await startTelegram(t);
    const subscriber = await startSubscriber(t);
    const all = makeUniversity({ seed: 1, groups: 10, students: 150, teachers: 20 });
    // The lists that are pulled are not those that are imported.
    const source = await startUniversitySource({ courses: all.courses, semesters: all.semesters } as typeof all);
    source.etags = false;
    t.teardown(() => source.close());
    const database = new URL(postgres.url);
    database.hostname = network.gateway;
    database.searchParams.delete('host');
    const db = openDatabase(postgres.url, 2, () => {});
    t.teardown(() => db.close());
    const w = await makeWorld({
      network,
      db,
      directory,
      ports: { database: 5432, graph: graph.port },
      env: {
        ...telegram.env(),
        BOT_DATABASE_URL: database.href,
        BOT_DATABASE_POOL_SIZE: '10',
        BOT_SPICEDB_ENDPOINT: `${network.gateway}:${graph.port}`,
        BOT_SPICEDB_TOKEN: 'any',
        BOT_SPICEDB_TLS: 'false',
        BOT_ADMIN_SETUP_TOKEN: TOKEN,
        BOT_ADMIN_API_KEY: API_KEY,
        BOT_SECRETS_KEY: randomBytes(32).toString('base64'),
        BOT_EVENTS_PRIVATE_RANGES: '10.77.0.0/24',
        BOT_MESSENGERS_TELEGRAM_API_URL: await outside(telegram.base),
        BOT_UNIVERSITY_SYNC_ENABLED: 'true',
        BOT_UNIVERSITY_SYNC_INTERVAL: '1s',
        BOT_UNIVERSITY_SYNC_BASE_URL: await outside(source.url),
        BOT_UNIVERSITY_SYNC_TOKEN: SOURCE_TOKEN,
        BOT_LOG_LEVEL: process.env.ENDURE_LOG ?? 'silent',
      },
    });
    t.teardown(() => w.hosts.forEach(kill));
    const [first] = w.hosts as [HostProcess];
    await install(first, callerPlugin({ id: 'desk', requirements: [{ kind: 'kv' }, { kind: 'events' }] }));
    await install(first, watPlugin({ id: 'gate', imports: ['respond'], handle: RESPOND }));
    await must(first, 'PUT', '/plugins/gate/triggers/run/settings', {
      allow_user_session: true,
      policy_expression: 'check("is_member", "system_role", "boss")',
    });
    const made = JSON.parse(
      await must(first, 'POST', '/events/subscriptions', { name: 'endure', url: await outside(subscriber.url) }),
    );
    subscriber.secret = made.secret;
    const user = await addUser(db, { displayName: 'Ada', externalId: 'e1' });
    const { text: token } = await addUserToken(db, 'pht_', { userId: user.id, name: 'n', expiresAt: null });
    const traffic = new Traffic(w, token, subscriber, () => telegram.shown);
    const stop = traffic.start();
    const pulls = (): number => source.log.filter(line => line.startsWith('courses')).length;
    const left = FAULTS.flatMap(fault => w.hosts.map(victim => ({ victim, fault, isDone: false })));
    for (let n = 0; n < rounds; n++) {
      // Of what was not tried yet, the host that has the most to hand over.
      const duties = await dutiesOf(w);
      const open = left.filter(l => !l.isDone);
      const most = open.toSorted(
        (a, b) => (duties.get(b.victim)?.length ?? 0) - (duties.get(a.victim)?.length ?? 0),
      )[0];
      if (most === undefined) break;
      most.isDone = true;
      told(await round(w, traffic, pulls, most, duties.get(most.victim) ?? [], token));
    }
    await sleep(1000);
    await stop();
    return await figuresOf(w, traffic);
  } finally {
    for (const end of ends) await end();
  }
}

const RESPOND =
  '(drop (call $respond (i32.const 200) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))) (i32.const 0)';

async function figuresOf(w: World, traffic: Traffic): Promise<HostsFigures> {
  const { rows } = await w.db.query<{ key: string }>("SELECT key FROM plugin_kv WHERE plugin_id = 'desk'");
  const kept = new Set(rows.map(r => r.key));
  const drift = await must(w.hosts[0] as HostProcess, 'GET', '/authz/drift');
  const { extra, missing } = JSON.parse(drift);
  return {
    writes: traffic.writes.length,
    lostWrites: traffic.writes.filter(key => !kept.has(key)).length,
    events: traffic.published.size,
    lostEvents: await traffic.lost(traffic.published),
    messages: traffic.sent.size,
    lostMessages: await traffic.lost(traffic.sent),
    imports: traffic.imports,
    lostImports: traffic.lostImports,
    drift: extra.length + missing.length === 0 ? '' : drift.slice(0, 500),
  };
}
