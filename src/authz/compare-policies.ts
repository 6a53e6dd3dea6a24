import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Queryable } from '../db/database.ts';
import type { Graph } from '../graph/graph.ts';
import { PermittedUsers } from './permitted-users.ts';
import type { Policies, PolicyVerdict } from './policies.ts';
import { type NamedSubject, readSubjects } from './read-subjects.ts';

/** Users decided together; other requests run in between. */
const AT_ONCE = 50;

export type PolicyComparison = {
  /** Users whose access was decided by both policies. */
  examined: number;
  /** Users the new policy admits and the old one does not, and the other way round. */
  gains: NamedSubject[];
  loses: NamedSubject[];
  /** Users for whom one of the policies could not be decided now. */
  undecided: number;
  /** The last user looked at, where there may be more. */
  nextAbove: number | null;
};

/** Without a policy every user is admitted. */
const decide = async (
  policies: Policies,
  source: string,
  subject: NamedSubject,
  permitted: PermittedUsers,
): Promise<PolicyVerdict['kind']> =>
  source === '' ? 'allowed' : (await policies.decideFor(source, subject.context, c => permitted.check(c))).kind;

/**
 * Which users gain or lose access when a policy takes the place of another one. Looks at users in the order of their
 * ids, and may be asked to go on where it has stopped.
 *
 * @param before the policy as it is; empty for none
 * @param after the policy as it would be; empty for none
 * @param part users with ids above `above`, at most `limit` of them
 * @param untilMs when to stop (monotonic clock); at least some users are looked at
 */
export async function comparePolicies(
  { db, graph, policies }: { db: Queryable; graph: Pick<Graph, 'check' | 'lookupUsers'>; policies: Policies },
  { after, before }: { before: string; after: string },
  part: { above: number; limit: number },
  untilMs: number,
): Promise<PolicyComparison> {
  const subjects = await readSubjects(db, part);
  const result: PolicyComparison = { examined: 0, gains: [], loses: [], undecided: 0, nextAbove: null };
  const permitted = new PermittedUsers(graph);
  let seen = 0;
  while (seen < subjects.length && (seen === 0 || performance.now() < untilMs)) {
    const some = subjects.slice(seen, seen + AT_ONCE);
    const verdicts = await Promise.all(
      some.map(async s => {
        const [old, fresh] = await Promise.all([before, after].map(p => decide(policies, p, s, permitted)));
        return [s, old, fresh] as const;
      }),
    );
    for (const [subject, old, fresh] of verdicts) {
      if (old === 'unavailable' || fresh === 'unavailable') {
        result.undecided++;
        continue;
      }
      result.examined++;
      if (old !== 'allowed' && fresh === 'allowed') result.gains.push(subject);
      if (old === 'allowed' && fresh !== 'allowed') result.loses.push(subject);
    }
    seen += some.length;
    await nextTurn();
  }
  const isWhole = seen === subjects.length && subjects.length < part.limit;
  result.nextAbove = isWhole ? null : (subjects[seen - 1]?.id ?? null);
  return result;
}
