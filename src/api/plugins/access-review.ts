import { z } from 'zod';
import { EFFECTIVE_ACCESS, effectiveAccess } from '../../authz/trigger-access.ts';
import type { GraphSchema } from '../../graph/graph-schema.ts';
import { suggestedSettings } from '../../plugins/install-access.ts';
import { httpTriggersOf, type Manifest, suggestedAccess } from '../../plugins/manifest.ts';
import { urlOf } from '../../plugins/public-access.ts';
import { DEFAULT_SETTINGS, type TriggerSettings } from '../../plugins/trigger-settings.ts';
import { policyProblem, policyProblems } from '../access/policy-body.ts';
import { httpMethod } from './manifest-schemas.ts';

/** Who may call a trigger, in one word. */
export const accessWord = z.enum(EFFECTIVE_ACCESS).meta({
  id: 'EffectiveAccess',
  description:
    'Who may call: every client (public), users, service keys, or either of the two; no client while the trigger is disabled, or has a policy but admits neither users nor service keys',
});

export const triggerReview = z
  .object({
    trigger: z.string(),
    methods: z.array(httpMethod),
    url: z.string().describe('Path at which it is called'),
    new: z.boolean().describe('Whether no settings are stored for it, from this version or an earlier one'),
    effective_access: accessWord,
    has_policy: z.boolean().describe('Whether a policy decides as well'),
    suggested: suggestedAccess
      .safeExtend({
        effective_access: accessWord,
        policy_problems: z.array(policyProblem).describe('Why the suggested policy could not be saved'),
      })
      .nullable()
      .describe('What the author suggests instead; an installation follows it with accept_suggested_access'),
  })
  .meta({ id: 'TriggerReview' });

/**
 * Who may call each HTTP trigger of an uploaded version if it is installed as it is, and what its author suggests instead.
 *
 * @param stored settings of the plugin's triggers, also of those that an earlier version had
 */
export function accessReview(manifest: Manifest, stored: ReadonlyMap<string, TriggerSettings>, schema: GraphSchema) {
  return httpTriggersOf(manifest).map(t => {
    const now = stored.get(t.name);
    return {
      trigger: t.name,
      methods: t.methods,
      url: urlOf(manifest.id, t),
      new: now === undefined,
      effective_access: effectiveAccess(now ?? DEFAULT_SETTINGS),
      has_policy: (now ?? DEFAULT_SETTINGS).policyExpression !== '',
      suggested:
        t.access === undefined
          ? null
          : {
              ...t.access,
              effective_access: effectiveAccess(suggestedSettings(t.access)),
              policy_problems: policyProblems(t.access.policy, schema),
            },
    };
  });
}
