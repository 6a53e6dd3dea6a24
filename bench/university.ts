import http from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { type Database, openDatabase } from '../src/db/database.ts';
import { makeUniversity, PATHS, type Rec, type Sizes, type University } from '../test/support/university.ts';
import { admin, embeddedDatabaseUrl, memoryMb, servingPid, startHost } from './host.ts';
import { openLoop } from './load.ts';
import { add, median } from './report.ts';

const GREET = '/api/triggers/http/hello/greet?name=world';
const KEY = 'key-of-the-benchmark';
const RATE = 500;

/** Answers whole lists that were made into bytes before, so that it costs the measuring process nothing. */
async function serve(u: University): Promise<{ url: string; close(): void }> {
  const bodies = new Map(PATHS.map(p => [`/${p}`, Buffer.from(JSON.stringify(u[p]))]));
  const server = http.createServer((request, response) => {
    const body = bodies.get(request.url ?? '');
    response.writeHead(body === undefined ? 404 : 200, { 'Content-Type': 'application/json' });
    response.end(body);
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

type Run = {
  state: string;
  types: Array<{
    type: string;
    total: number;
    created: number;
    updated: number;
    started_at: string;
    finished_at: string;
  }>;
};

export type PullFigures = {
  records: number;
  seconds: number;
  /** Records a second of each type. */
  perType: Map<string, number>;
  run: Run;
  /** From the end of the pull until the graph store had all of it. */
  lagSeconds: number;
  p99: number;
  memoryMb: number;
  outboxEntries: number;
};

async function delivered(db: Database): Promise<void> {
  for (;;) {
    const { rows } = await db.query<{ waits: boolean }>(
      'SELECT EXISTS (SELECT FROM authz_outbox WHERE processed_at IS NULL AND dead_at IS NULL) AS waits',
    );
    if (rows[0]?.waits === false) return;
    await new Promise(resolve => setTimeout(resolve, 20));
  }
}

/** One pull next to 500 requests a second. */
async function pullOnce(port: number, pid: number, db: Database): Promise<PullFigures> {
  const before = await db.query<{ n: string }>('SELECT count(*) AS n FROM authz_outbox');
  let done = false;
  let memory = 0;
  const tails: number[] = [];
  const at = performance.now();
  const begun = (await (await admin(port, 'POST', '/university/pull')).json()) as { id: number };
  let run: Run = { state: 'running', types: [] };
  const watch = (async () => {
    while (!done) {
      tails.push((await openLoop(port, GREET, RATE, 1)).p99);
      memory = Math.max(memory, memoryMb(pid));
    }
  })();
  while (run.state === 'running') {
    await new Promise(resolve => setTimeout(resolve, 50));
    run = (await (await admin(port, 'GET', `/university/imports/${begun.id}`)).json()) as Run;
  }
  const seconds = (performance.now() - at) / 1000;
  await delivered(db);
  const lagSeconds = (performance.now() - at) / 1000 - seconds;
  done = true;
  await watch;
  const after = await db.query<{ n: string }>('SELECT count(*) AS n FROM authz_outbox');
  const perType = new Map(
    run.types.map(t => [t.type, t.total / ((Date.parse(t.finished_at) - Date.parse(t.started_at)) / 1000)]),
  );
  return {
    records: run.types.reduce((n, t) => n + t.total, 0),
    seconds,
    perType,
    run,
    lagSeconds,
    p99: median(tails),
    memoryMb: memory,
    outboxEntries: Number(after.rows[0]?.n) - Number(before.rows[0]?.n),
  };
}

async function batch(port: number, where: string, records: readonly Rec[]): Promise<number> {
  const body = JSON.stringify(records);
  const at = performance.now();
  const answer = await fetch(`http://127.0.0.1:${port}/api/admin/university/${where}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    body,
  });
  if (answer.status !== 200) throw new Error(`${where}: ${answer.status} ${await answer.text()}`);
  await answer.arrayBuffer();
  return records.length / ((performance.now() - at) / 1000);
}

export type UniversityFigures = {
  first: PullFigures;
  second: PullFigures;
  quietP99: number;
  checks: string[];
  memoryBefore: number;
};

/** Who sees whom, asked of the graph; what is not as it should be. */
async function spotChecks(port: number, u: University): Promise<string[]> {
  const wrong: string[] = [];
  const sees = async (user: unknown, permission: string, type: string, id: unknown): Promise<boolean> => {
    const query = new URLSearchParams({ resource_type: type, permission, user: String(user), resource_id: String(id) });
    const answer = await admin(port, 'GET', `/relationships/lookup?${query}`);
    const json = (await answer.json()) as { allowed?: boolean };
    if (answer.status !== 200) throw new Error(JSON.stringify(json));
    return json.allowed === true;
  };
  const expect = async (what: string, is: Promise<boolean>, should: boolean): Promise<void> => {
    if ((await is) !== should) wrong.push(`${what} should be ${should}`);
  };
  const by = (list: Rec[]): Map<unknown, Rec> => new Map(list.map(r => [r.external_id, r]));
  const [groups, streams, programs, departments] = [by(u.groups), by(u.streams), by(u.programs), by(u.departments)];
  const deans = new Map(u['admin-appointments'].filter(a => a.role === 'dean').map(a => [a.object_external_id, a]));
  for (let k = 0; k < 20; k++) {
    const position = u['student-positions'][Math.floor((k * u['student-positions'].length) / 20)]!;
    const group = position.group_external_id;
    const stream = groups.get(group)?.stream_external_id;
    const faculty = departments.get(
      programs.get(streams.get(stream)?.program_external_id)?.department_external_id,
    )?.faculty_external_id;
    const studies = position.status !== 'expelled';
    await expect(
      `${position.person_external_id} in ${group}`,
      sees(position.person_external_id, 'view_own_data', 'study_group', group),
      studies,
    );
    await expect(
      `dean of ${faculty} sees ${group}`,
      sees(deans.get(faculty)?.person_external_id, 'view_all', 'study_group', group),
      true,
    );
    const stranger = u['teaching-assignments'].find(
      a =>
        a.stream_external_id !== stream &&
        !u['teaching-assignments'].some(
          b => b.person_external_id === a.person_external_id && b.stream_external_id === stream,
        ) &&
        !u['admin-appointments'].some(b => b.person_external_id === a.person_external_id),
    );
    await expect(
      `teacher ${stranger?.person_external_id} of another stream`,
      sees(stranger?.person_external_id, 'view_all', 'study_group', group),
      false,
    );
  }
  return wrong;
}

/** A university pulled into an empty database, and again; then the graph is asked. */
export async function pullUniversity(directory: string, sizes: Sizes): Promise<UniversityFigures> {
  const u = makeUniversity(sizes);
  const source = await serve(u);
  const host = await startHost(directory, { BOT_UNIVERSITY_SYNC_BASE_URL: source.url, BOT_ADMIN_API_KEY: KEY });
  const db = openDatabase(embeddedDatabaseUrl(host.data), 2, () => {});
  try {
    const pid = servingPid(host);
    await openLoop(host.port, GREET, RATE, 2);
    const quiet: number[] = [];
    for (let k = 0; k < 5; k++) quiet.push((await openLoop(host.port, GREET, RATE, 1)).p99);
    const memoryBefore = memoryMb(pid);
    const first = await pullOnce(host.port, pid, db);
    const second = await pullOnce(host.port, pid, db);
    return { first, second, quietP99: median(quiet), checks: await spotChecks(host.port, u), memoryBefore };
  } finally {
    await db.close();
    await host.stop();
    source.close();
  }
}

/** Rows of the benchmark. */
export async function university(directory: string): Promise<void> {
  const sizes: Sizes = { seed: 1, groups: 400, students: 6000, teachers: 300 };
  const pulled = await pullUniversity(path.join(directory, 'pulled'), sizes);
  if (pulled.checks.length > 0) throw new Error(pulled.checks.join('; '));
  const { first, quietP99, second } = pulled;
  add(
    `pull of ${first.records} records into an empty database`,
    `${Math.round(first.records / first.seconds)}/s`,
    `graph ${first.lagSeconds.toFixed(1)} s behind its end`,
  );
  add(
    'the same again, nothing changed',
    `${Math.round(second.records / second.seconds)}/s`,
    `${second.outboxEntries} entries`,
  );
  add(
    'p99 of triggers at 500/s during the first pull / quiet',
    `${(first.p99 / quietP99).toFixed(1)} x`,
    'aim at most 2 x',
  );
  const u = makeUniversity(sizes);
  const host = await startHost(path.join(directory, 'batch'), { BOT_ADMIN_API_KEY: KEY });
  try {
    for (const where of PATHS) {
      const rate = [await batch(host.port, where, u[where]), await batch(host.port, where, u[where])];
      const type = where.replace('-', ' ');
      if (u[where].length >= 200)
        add(
          `batch of ${u[where].length} ${type}, first and repeated`,
          `${rate.map(r => Math.round(r)).join(', ')}/s`,
          `pull ${rateOf(first, where)}, ${rateOf(second, where)}/s`,
        );
    }
  } finally {
    await host.stop();
  }
}

const TYPES = [
  'person',
  'course',
  'semester',
  'faculty',
  'department',
  'program',
  'stream',
  'group',
  'subgroup',
  'teacher_position',
  'student_position',
  'student_subgroup',
  'teaching_assignment',
  'admin_appointment',
];
const rateOf = (figures: PullFigures, where: (typeof PATHS)[number]): number =>
  Math.round(figures.perType.get(TYPES[PATHS.indexOf(where)]!) ?? 0);

/** One batch of very many records: what it takes of memory. */
export async function largeBatch(
  directory: string,
  count: number,
): Promise<{ before: number; most: number; perSecond: number }> {
  const host = await startHost(directory, { BOT_ADMIN_API_KEY: KEY });
  try {
    const pid = servingPid(host);
    const { persons } = makeUniversity({ seed: 2, groups: 1, students: 200, teachers: 1 });
    await batch(host.port, 'persons', persons);
    const records = Array.from({ length: count }, (_, k) => ({
      ...persons[k % persons.length]!,
      external_id: `L${k}`,
      idp_account_id: null,
    }));
    const before = memoryMb(pid);
    let most = before;
    const timer = setInterval(() => {
      most = Math.max(most, memoryMb(pid));
    }, 50);
    const perSecond = await batch(host.port, 'persons', records);
    clearInterval(timer);
    return { before, most, perSecond };
  } finally {
    await host.stop();
  }
}
