import { type Actor, appendAudit } from '../audit/audit-log.ts';
import type { Queryable } from '../db/database.ts';
import { holdPlugin, unknownPlugin } from '../db/held-rows.ts';
import { type CheckRead, findInstalled } from './check-read.ts';
import type { HttpTrigger } from './manifest.ts';
import { lockPlugin, notifyChanged, setFrontendOrigins } from './plugin-store.ts';
import { type AcceptPublic, becomingPublic } from './public-access.ts';
import {
  changedSettings,
  DEFAULT_SETTINGS,
  loadTriggerSettings,
  type SettingsChange,
  settingsState,
  type TriggerSettings,
} from './trigger-settings.ts';
import { requireConfirmed } from './widening.ts';

/**
 * Changes settings inside the caller's transaction. Locks the plugin's row first, so that no concurrent change is lost.
 *
 * @returns the new settings, and whether the policy has changed
 * @throws ServiceError `confirmation_required` if the trigger would become public and the request does not accept that
 */
export async function changeTriggerSettings(
  client: Queryable,
  pluginId: string,
  trigger: HttpTrigger,
  change: SettingsChange,
  acceptPublic: AcceptPublic,
  by: Actor,
  check: (before: TriggerSettings) => void = () => {},
): Promise<{ settings: TriggerSettings; policyChanged: boolean }> {
  await holdPlugin(client, pluginId);
  const before = (await loadTriggerSettings(client, pluginId)).get(trigger.name) ?? DEFAULT_SETTINGS;
  check(before);
  const s = changedSettings(before, change);
  const becoming = becomingPublic(pluginId, [{ trigger, settings: before }], [{ trigger, settings: s }]);
  requireConfirmed(acceptPublic === true ? [] : becoming.filter(p => !acceptPublic.includes(p.trigger)), []);
  await saveTriggerSettings(client, pluginId, trigger.name, s);
  await appendAudit(client, by, {
    action: 'trigger.settings',
    objectType: 'trigger',
    objectId: `${pluginId}/${trigger.name}`,
    before: settingsState(before),
    after: settingsState(s),
  });
  return { settings: s, policyChanged: s.policyExpression !== before.policyExpression };
}

/** Sets the origins that a plugin's triggers inherit, inside the caller's transaction. */
export async function changeFrontendOrigins(
  client: Queryable,
  pluginId: string,
  origins: string[],
  by: Actor,
  checkRead: CheckRead = () => {},
): Promise<void> {
  const plugin = await lockPlugin(client, pluginId);
  if (plugin === undefined) throw unknownPlugin(pluginId);
  checkRead(plugin, await findInstalled(client, plugin));
  await setFrontendOrigins(client, pluginId, origins);
  await appendAudit(client, by, {
    action: 'plugin.origins',
    objectType: 'plugin',
    objectId: pluginId,
    before: { frontend_origins: plugin.frontendOrigins },
    after: { frontend_origins: origins },
  });
}

/** Stores the settings of a trigger inside the caller's transaction. */
export async function saveTriggerSettings(
  client: Queryable,
  pluginId: string,
  trigger: string,
  s: TriggerSettings,
): Promise<void> {
  await client.query(
    `INSERT INTO plugin_trigger_settings
       (plugin_id, trigger_name, enabled, allow_user_session, allow_service_key, policy_expression, frontend_origins, record)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
     ON CONFLICT (plugin_id, trigger_name) DO UPDATE SET enabled = EXCLUDED.enabled, allow_user_session = EXCLUDED.allow_user_session,
       allow_service_key = EXCLUDED.allow_service_key, policy_expression = EXCLUDED.policy_expression,
       frontend_origins = EXCLUDED.frontend_origins, record = EXCLUDED.record, updated_at = now()`,
    [
      pluginId,
      trigger,
      s.enabled,
      s.allowUserSession,
      s.allowServiceKey,
      s.policyExpression,
      s.frontendOrigins,
      s.record,
    ],
  );
  await notifyChanged(client, pluginId);
}
