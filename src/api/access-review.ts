import { effectiveAccess } from '../authz/trigger-access.ts';
import type { GraphSchema } from '../graph/graph-schema.ts';
import { suggestedSettings } from '../plugins/install-access.ts';
import { httpTriggersOf, type Manifest } from '../plugins/manifest.ts';
import { urlOf } from '../plugins/public-access.ts';
import type { InstalledPlugin } from '../plugins/registry.ts';
import { DEFAULT_SETTINGS } from '../plugins/trigger-settings.ts';
import { policyProblems } from './policy-body.ts';

/**
 * Who may call each HTTP trigger of an uploaded version if it is installed as it is, and what its author suggests instead.
 *
 * @param live the plugin as it is installed now
 */
export function accessReview(manifest: Manifest, live: InstalledPlugin | undefined, schema: GraphSchema) {
  return httpTriggersOf(manifest).map(t => {
    const now = live?.triggers.get(t.name)?.settings;
    return {
      trigger: t.name,
      methods: t.methods,
      url: urlOf(manifest.id, t),
      new: now === undefined,
      effective_access: effectiveAccess(now ?? DEFAULT_SETTINGS),
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
