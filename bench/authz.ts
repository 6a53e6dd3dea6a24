import { compilePolicy, type PolicySubject, passPolicy } from '../src/authz/policy.ts';
import { type Database, openDatabase } from '../src/db/database.ts';
import { readGraphSchema } from '../src/graph/graph-schema.ts';
import type { Tuple } from '../src/graph/tuple.ts';
import { appendGraphChanges, type GraphChange } from '../src/outbox/append.ts';
import type { Caller } from './caller.ts';
import { closedLoop } from './load.ts';
import { add, median } from './report.ts';

const GREET = '/api/triggers/http/hello/greet';
const schema = readGraphSchema();

const ROLES_AND_GROUPS = 'has_any_role("a", "editor") && user.locale == "ru" && "g1" in user.groups';
const ONE_CHECK = `${ROLES_AND_GROUPS} && check("view_all", "study_group", "g1")`;

/** Evaluations alone, in this process. */
export function evaluations(): void {
  const subject: PolicySubject = {
    kind: 'user',
    user: {
      id: 7n,
      external_id: 'bench',
      groups: ['g1', 'g2', 'g3'],
      roles: ['editor'],
      primary_channel: '',
      locale: 'ru',
      nationality_type: '',
      funding_type: '',
      education_form: '',
    },
    roles: new Set(['editor']),
  };
  const policy = compilePolicy(ROLES_AND_GROUPS);
  const times: number[] = [];
  for (let round = 0; round < 7; round++) {
    const n = 100_000;
    const at = performance.now();
    for (let k = 0; k < n; k++) passPolicy(policy, subject, new Map());
    times.push(((performance.now() - at) * 1000) / n);
  }
  const us = median(times);
  add('policy on roles and groups, alone', `${us.toFixed(2)} us`, `${Math.round(1e6 / us)} evaluations/s`);
}

const tuple = (group: string, user: string): Tuple => ({
  resourceType: 'study_group',
  resourceId: group,
  relation: 'member',
  subjectType: 'user',
  subjectId: user,
  subjectRelation: '',
});

/** What a policy costs the sample trigger. */
export async function policies(port: number, { bearer, post, userId }: Caller, rounds: number, seconds: number) {
  const ok = async (answer: Promise<Response>): Promise<void> => {
    const r = await answer;
    if (!r.ok) throw new Error(await r.text());
  };
  await ok(post(`/api/admin/users/${userId}`, { external_id: 'bench' }, 'PATCH'));
  await ok(post(`/api/admin/users/${userId}/roles/database/editor`, {}, 'PUT'));
  const related = (relation: string) => ({
    resource_type: 'study_group',
    resource_id: 'g1',
    relation,
    subject_id: 'bench',
  });
  await ok(post('/api/admin/relationships', { relationships: [related('member'), related('teacher')] }));
  const set = (policy_expression: string) =>
    ok(
      post('/api/admin/plugins/hello/triggers/greet/settings', { allow_user_session: true, policy_expression }, 'PUT'),
    );
  const ratios: number[][] = [[], []];
  let failed = 0;
  for (let k = 0; k < rounds; k++) {
    await set('');
    const none = await closedLoop(port, GREET, 64, seconds, bearer);
    for (const [i, policy] of [ROLES_AND_GROUPS, ONE_CHECK].entries()) {
      await set(policy);
      const load = await closedLoop(port, GREET, 64, seconds, bearer);
      failed += load.failed;
      ratios[i]?.push(load.perSecond / none.perSecond);
    }
  }
  await set('');
  const [roles, check] = ratios.map(median);
  add('with a policy on roles and groups / without', (roles ?? 0).toFixed(2), {
    atLeast: 0.95,
    aim: 1,
    also: `failed ${failed}`,
  });
  add('with one graph check besides / without', (check ?? 0).toFixed(2), { atLeast: 0.85, aim: 0.95 });
}

const ENTRIES = 5000;

/** From commit to the graph store: how many entries a second, and how long one takes while triggers are called. */
export async function outbox(port: number, databaseUrl: string, seconds: number): Promise<void> {
  const db = openDatabase(databaseUrl, 2, () => {});
  try {
    await rate(db, 'TOUCH', k => [{ operation: 'TOUCH', tuples: [tuple(`b${k % 500}`, `s${k}`)] }]);
    await rate(db, 'REPLACE', k => [
      {
        operation: 'REPLACE',
        filter: { resourceType: 'study_group', resourceId: `b${k}`, relation: 'parent' },
        tuples: [{ ...tuple(`b${k}`, ''), relation: 'parent', subjectType: 'stream', subjectId: `t${k % 50}` }],
      },
    ]);
    await rate(db, 'student moves', k => [
      {
        operation: 'DELETE_BY_SUBJECT',
        filter: { resourceType: 'study_group', relation: 'member', subjectType: 'user', subjectId: `s${k}` },
      },
      { operation: 'TOUCH', tuples: [tuple(`b${(k + 1) % 500}`, `s${k}`)] },
    ]);
    await lag(db, port, seconds);
  } finally {
    await db.close();
  }
}

async function rate(db: Database, name: string, changesOf: (k: number) => GraphChange[]): Promise<void> {
  const changes = Array.from({ length: ENTRIES }, (_, k) => changesOf(k)).flat();
  const at = performance.now();
  const last = await db.withTransaction(client => appendGraphChanges(client, schema, 'import', changes));
  const committed = performance.now();
  await delivered(db, last.lastId);
  const appended = committed - at;
  const ms = performance.now() - committed;
  add(
    `outbox: ${name}, entries/s delivered`,
    `${Math.round((changes.length / ms) * 1000)}/s`,
    `appended ${Math.round((changes.length / appended) * 1000)}/s`,
  );
}

/** Waits until an entry of the outbox and those before it are in the graph store. */
export async function delivered(db: Database, lastId: number): Promise<void> {
  for (;;) {
    const { rows } = await db.query<{ waits: boolean }>(
      'SELECT EXISTS (SELECT FROM authz_outbox WHERE id <= $1 AND processed_at IS NULL AND dead_at IS NULL) AS waits',
      [lastId],
    );
    if (rows[0]?.waits === false) return;
    await new Promise(resolve => setTimeout(resolve, 5));
  }
}

async function lag(db: Database, port: number, seconds: number): Promise<void> {
  const load = closedLoop(port, GREET, 16, seconds * 2);
  const until = performance.now() + seconds * 2000;
  let lastId = 0;
  let firstId = 0;
  for (let k = 0; performance.now() < until; k++) {
    const done = await db.withTransaction(client =>
      appendGraphChanges(client, schema, 'manual', [{ operation: 'TOUCH', tuples: [tuple('lag', `l${k}`)] }]),
    );
    if (firstId === 0) firstId = done.firstId;
    lastId = done.lastId;
    await new Promise(resolve => setTimeout(resolve, 5));
  }
  await load;
  await delivered(db, lastId);
  const { rows } = await db.query<{ p50: number; p99: number; n: string }>(
    `SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY ms) AS p50, percentile_cont(0.99) WITHIN GROUP (ORDER BY ms) AS p99, count(*) AS n
     FROM (SELECT extract(epoch FROM processed_at - created_at)::float8 * 1000 AS ms FROM authz_outbox WHERE id BETWEEN $1 AND $2) d`,
    [firstId, lastId],
  );
  const r = rows[0];
  add(
    'lag from commit to graph next to 16 clients of a trigger: p50, p99',
    `${r?.p50.toFixed(1)} ms`,
    `${r?.p99.toFixed(1)} ms, ${r?.n} changes`,
  );
}
