import { readPrincipal, userText } from '../base/principal.ts';
import type { Queryable } from '../db/database.ts';
import type { Graph } from '../graph/graph.ts';
import { PermittedUsers } from './permitted-users.ts';
import type { Policies, PolicyVerdict } from './policies.ts';
import { mayReadGroups } from './policy.ts';
import { readSubjects, type Subject } from './read-subjects.ts';

const AT_ONCE = 50;

/** Who called a trigger or a command, as records have it. */
export type RecordedCaller = {
  /** `user:<id>`, `service:<id>` or `public`. */
  principal: string;
  /** Calls that were let in, and those the policy refused. */
  admitted: number;
  refused: number;
};

/** A caller whose recorded calls a policy would have decided otherwise; `userId` is null for keys and callers without a login. */
export type OtherwiseDecided = { principal: string; calls: number; userId: number | null };

export type Rehearsal = {
  /** Callers and calls that were decided again. */
  callers: number;
  calls: number;
  /** Refused then and admitted by the policy, and the other way round. */
  wouldAdmit: OtherwiseDecided[];
  wouldRefuse: OtherwiseDecided[];
  /** Callers that could not be decided now, or that are not there any more. */
  undecided: number;
};

type Caller = RecordedCaller & { subject: Subject | null };

/**
 * Decides recorded calls again by a policy, with what is known of their callers today.
 *
 * @param source the policy; empty for none
 * @param untilMs when to stop (monotonic clock); callers after it count as undecided
 */
export async function rehearsePolicy(
  { db, graph, policies }: { db: Queryable; graph: Pick<Graph, 'check' | 'lookupUsers'>; policies: Policies },
  source: string,
  recorded: readonly RecordedCaller[],
  untilMs: number,
): Promise<Rehearsal> {
  const result: Rehearsal = { callers: 0, calls: 0, wouldAdmit: [], wouldRefuse: [], undecided: 0 };
  const permitted = new PermittedUsers(graph);
  const withGroups = mayReadGroups(source);
  for (let k = 0; k < recorded.length; k += AT_ONCE) {
    const some = recorded.slice(k, k + AT_ONCE);
    if (performance.now() >= untilMs) {
      result.undecided += recorded.length - k;
      break;
    }
    const ids = some.map(c => readPrincipal(c.principal)).flatMap(p => (p?.kind === 'user' ? p.userId : []));
    const subjects = new Map((await readSubjects(db, { ids }, withGroups)).map(s => [userText(s.id), s]));
    const callers = some.map((c): Caller => ({ ...c, subject: subjects.get(c.principal) ?? null }));
    const verdicts = await Promise.all(
      callers.map(async c => [c, await decide(policies, source, c, permitted)] as const),
    );
    for (const [caller, verdict] of verdicts) note(result, caller, verdict);
  }
  return result;
}

/** @returns null for a user who is not there any more */
async function decide(
  policies: Policies,
  source: string,
  { principal, subject }: Caller,
  permitted: PermittedUsers,
): Promise<PolicyVerdict['kind'] | null> {
  if (source === '') return 'allowed';
  if (subject !== null) return (await policies.decideFor(source, subject.context, permitted)).kind;
  const recorded = readPrincipal(principal);
  // A policy asks for a login.
  if (recorded === null) return 'denied';
  return recorded?.kind === 'service' ? (await policies.decide(source, recorded)).kind : null;
}

function note(result: Rehearsal, { admitted, principal, refused, subject }: Caller, verdict: string | null): void {
  if (verdict === null || verdict === 'unavailable') {
    result.undecided++;
    return;
  }
  result.callers++;
  result.calls += admitted + refused;
  const userId = subject?.id ?? null;
  if (verdict === 'allowed' && refused > 0) result.wouldAdmit.push({ principal, calls: refused, userId });
  if (verdict !== 'allowed' && admitted > 0) result.wouldRefuse.push({ principal, calls: admitted, userId });
}
