import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Queryable } from '../db/database.ts';
import type { Graph } from '../graph/graph.ts';
import { PermittedUsers } from './permitted-users.ts';
import type { Policies, PolicyVerdict } from './policies.ts';
import { mayReadGroups } from './policy.ts';
import { nameSubjects, type Part, readSubjects, type Subject, type SubjectName } from './read-subjects.ts';

/** Users decided together; other requests run in between. */
const AT_ONCE = 50;

export type PolicyComparison = {
  /** Users whose access was decided by both policies. */
  examined: number;
  /** Users the new policy admits and the old one does not, and the other way round. */
  gains: SubjectName[];
  loses: SubjectName[];
  /** Users for whom one of the policies could not be decided now. */
  undecided: number;
  /** The last user looked at, where there may be more. */
  nextAbove: number | null;
};

type Kind = PolicyVerdict['kind'];

/** Without a policy every user is admitted. */
function decide(
  policies: Policies,
  source: string,
  { context }: Subject,
  permitted: PermittedUsers,
): Kind | Promise<Kind> {
  if (source === '') return 'allowed';
  const verdict = policies.decideFor(source, context, permitted);
  return verdict instanceof Promise ? verdict.then(v => v.kind) : verdict.kind;
}

const isDecided = (kind: Kind | Promise<Kind>): kind is Kind => !(kind instanceof Promise);

/** Verdicts of which most are no promises; those that are ask the graph together. */
const settled = (kinds: ReadonlyArray<Kind | Promise<Kind>>): readonly Kind[] | Promise<Kind[]> =>
  kinds.every(isDecided) ? kinds : Promise.all(kinds);

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
  part: Part,
  untilMs: number,
): Promise<PolicyComparison> {
  const subjects = await readSubjects(db, part, mayReadGroups(before) || mayReadGroups(after));
  const [gains, loses]: [number[], number[]] = [[], []];
  const permitted = new PermittedUsers(graph);
  let [examined, undecided, seen] = [0, 0, 0];
  while (seen < subjects.length && (seen === 0 || performance.now() < untilMs)) {
    const some = subjects.slice(seen, seen + AT_ONCE);
    const [was, is] = [before, after].map(policy => some.map(s => decide(policies, policy, s, permitted)));
    const [wasKinds, isKinds] = await Promise.all([settled(was ?? []), settled(is ?? [])]);
    for (const [k, { id }] of some.entries()) {
      const [wasKind, isKind] = [wasKinds[k], isKinds[k]];
      if (wasKind === 'unavailable' || isKind === 'unavailable') {
        undecided++;
        continue;
      }
      examined++;
      if (isKind === 'allowed' && wasKind !== 'allowed') gains.push(id);
      if (wasKind === 'allowed' && isKind !== 'allowed') loses.push(id);
    }
    seen += some.length;
    await nextTurn();
  }
  const named = new Map((await nameSubjects(db, [...gains, ...loses])).map(s => [s.id, s]));
  const namesOf = (ids: readonly number[]): SubjectName[] => ids.flatMap(id => named.get(id) ?? []);
  const isWhole = seen === subjects.length && subjects.length < part.limit;
  const nextAbove = isWhole ? null : (subjects[seen - 1]?.id ?? null);
  return { examined, gains: namesOf(gains), loses: namesOf(loses), undecided, nextAbove };
}
