import { openDatabase } from '../src/db/database.ts';
import { readGraphSchema } from '../src/graph/graph-schema.ts';
import type { Tuple } from '../src/graph/tuple.ts';
import { appendGraphChanges } from '../src/outbox/append.ts';
import { delivered } from './authz.ts';
import { admin } from './host.ts';
import { closedLoop } from './load.ts';
import { add, median } from './report.ts';
import { GREET } from './throughput.ts';

const PEOPLE = 30_000;
const TUPLES_EACH = 500;
const GROUP_SIZE = 30;
/** Comparisons in one load of ten seconds: what one takes is less than two such loads differ by themselves. */
const TIMES = 5;

const POLICIES: ReadonlyArray<[what: string, before: string, after: string]> = [
  ['attributes and roles', 'has_role("teacher")', 'has_role("teacher") || user.locale == "ru"'],
  ['groups', '"g1" in user.groups', '"g1" in user.groups || "g2" in user.groups'],
  ['one check each', 'check("view_all", "study_group", "g1")', 'check("view_own_data", "study_group", "g1")'],
];

const student = (n: number): Tuple => ({
  ...{ resourceType: 'study_group', resourceId: `g${Math.floor(n / GROUP_SIZE)}`, relation: 'member' },
  ...{ subjectType: 'user', subjectId: `rehearsed-${n}`, subjectRelation: '' },
});

/** Students in groups, in the database and in the graph. */
async function fill(databaseUrl: string): Promise<void> {
  const db = openDatabase(databaseUrl, 1, () => {});
  const schema = readGraphSchema();
  try {
    await db.query(
      `INSERT INTO global_users (external_id, display_name, locale)
       SELECT 'rehearsed-' || n, 'Person ' || n, 'ru' FROM generate_series(0, $1::int - 1) n`,
      [PEOPLE],
    );
    for (let n = 0; n < PEOPLE; n += TUPLES_EACH) {
      const tuples = Array.from({ length: TUPLES_EACH }, (_, k) => student(n + k));
      const { lastId } = await db.withTransaction(client =>
        appendGraphChanges(client, schema, 'manual', [{ operation: 'TOUCH', tuples }]),
      );
      await delivered(db, lastId);
    }
    await db.query('ANALYZE');
  } finally {
    await db.close();
  }
}

/** Goes over all users. @returns how many there were */
async function compareAll(port: number, before: string, after: string): Promise<number> {
  let seen = 0;
  for (let cursor: string | null = ''; cursor !== null; ) {
    const where: { cursor?: string } = cursor === '' ? {} : { cursor };
    const answer = await admin(port, 'POST', '/policies/compare', { before, after, limit: 5000, ...where });
    if (answer.status !== 200) throw new Error(await answer.text());
    const part = (await answer.json()) as { examined: number; undecided: number; next_cursor: string | null };
    if (part.undecided > 0) throw new Error(`${part.undecided} users are undecided`);
    seen += part.examined;
    cursor = part.next_cursor;
  }
  return seen;
}

/** How long a comparison of two policies takes for all users, next to load, and what it takes from the load. */
export async function rehearsal(port: number, databaseUrl: string, rounds: number): Promise<void> {
  await fill(databaseUrl);
  for (const [what, before, after] of POLICIES) {
    const alone: number[] = [];
    const during: number[] = [];
    const times: number[] = [];
    for (let round = 0; round < rounds; round++) {
      alone.push((await closedLoop(port, GREET, 64, 10)).perSecond);
      // The whole of the load counts: the comparison takes part of its time.
      const load = closedLoop(port, GREET, 64, 10);
      for (let k = 0; k < TIMES; k++) {
        const began = performance.now();
        const users = await compareAll(port, before, after);
        times.push((performance.now() - began) / 1000);
        if (users < PEOPLE) throw new Error(`${users} users were looked at`);
      }
      during.push((await load).perSecond);
    }
    add(`${PEOPLE} users, ${what}: time next to load`, `${median(times).toFixed(1)} s`, {
      atMost: 10,
      aim: 5,
      unit: 's',
    });
    const kept = 1 - (1 - median(during.map((b, k) => b / (alone[k] ?? b)))) / TIMES;
    add(`${PEOPLE} users, ${what}: rate of the sample in ten seconds with one`, kept.toFixed(3), {
      atLeast: 0.95,
      aim: 0.98,
    });
  }
}
