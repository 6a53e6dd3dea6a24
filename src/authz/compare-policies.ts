import type { Policies, PolicyVerdict } from './policies.ts';

/** Users looked at together. */
const AT_ONCE = 8;

export type PolicyComparison = {
  /** Users whose access was decided by both policies. */
  examined: number;
  /** Users the new policy admits and the old one does not, and the other way round. */
  gains: number[];
  loses: number[];
  /** Users for whom one of the policies could not be decided now. */
  undecided: number;
};

/** Without a policy every user is admitted. */
const decide = async (policies: Policies, source: string, userId: number): Promise<PolicyVerdict['kind']> =>
  source === '' ? 'allowed' : (await policies.decide(source, { kind: 'user', userId })).kind;

/**
 * Which of these users gain or lose access when a policy takes the place of another one.
 *
 * @param before the policy as it is; empty for none
 * @param after the policy as it would be; empty for none
 * @param untilMs when to stop (monotonic clock); users after it are not examined
 */
export async function comparePolicies(
  policies: Policies,
  before: string,
  after: string,
  users: readonly number[],
  untilMs: number,
): Promise<PolicyComparison> {
  const result: PolicyComparison = { examined: 0, gains: [], loses: [], undecided: 0 };
  for (let k = 0; k < users.length && performance.now() < untilMs; k += AT_ONCE) {
    const some = users.slice(k, k + AT_ONCE);
    const verdicts = await Promise.all(
      some.map(async id => [id, await decide(policies, before, id), await decide(policies, after, id)] as const),
    );
    for (const [id, old, fresh] of verdicts) {
      if (old === 'unavailable' || fresh === 'unavailable') {
        result.undecided++;
        continue;
      }
      result.examined++;
      if (old !== 'allowed' && fresh === 'allowed') result.gains.push(id);
      if (old === 'allowed' && fresh !== 'allowed') result.loses.push(id);
    }
  }
  return result;
}
