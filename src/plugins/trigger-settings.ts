import type { AuditState } from '../audit/audit-log.ts';
import type { Queryable } from '../db/database.ts';
import { findRows } from '../db/rows.ts';

/**
 * Access settings of one HTTP trigger (docs/access.md "Trigger settings"). `frontendOrigins` null inherits the
 * plugin's.
 */
export type TriggerSettings = {
  enabled: boolean;
  allowUserSession: boolean;
  allowServiceKey: boolean;
  policyExpression: string;
  frontendOrigins: string[] | null;
  /** Whether executions are recorded, to run them again (docs/plugins.md "Recordings"). */
  record: boolean;
};

/** Settings of a new trigger: every logged-in user may call it (docs/RATIONALE.md "Access to a new trigger"). */
export const DEFAULT_SETTINGS: Readonly<TriggerSettings> = {
  enabled: true,
  allowUserSession: true,
  allowServiceKey: false,
  policyExpression: '',
  frontendOrigins: null,
  record: false,
};

/** The settings of a row `s` of `plugin_trigger_settings`, as one value. */
export const SETTINGS_JSON = `jsonb_build_object('enabled', s.enabled, 'allowUserSession', s.allow_user_session,
  'allowServiceKey', s.allow_service_key, 'policyExpression', s.policy_expression, 'frontendOrigins', s.frontend_origins,
  'record', s.record)`;

/** Stored settings of a plugin's triggers by name. */
export async function loadTriggerSettings(db: Queryable, pluginId: string): Promise<Map<string, TriggerSettings>> {
  const rows = await findRows<{ triggerName: string; settings: TriggerSettings }>(
    db,
    `SELECT s.trigger_name, ${SETTINGS_JSON} AS settings FROM plugin_trigger_settings s WHERE s.plugin_id = $1`,
    [pluginId],
  );
  return new Map(rows.map(r => [r.triggerName, r.settings]));
}

/** A change of settings; an undefined member keeps its stored value. */
export type SettingsChange = { [K in keyof TriggerSettings]: TriggerSettings[K] | undefined };

/** Settings with a change applied to them. */
export const changedSettings = (before: TriggerSettings, change: SettingsChange): TriggerSettings => ({
  enabled: change.enabled ?? before.enabled,
  allowUserSession: change.allowUserSession ?? before.allowUserSession,
  allowServiceKey: change.allowServiceKey ?? before.allowServiceKey,
  policyExpression: change.policyExpression ?? before.policyExpression,
  frontendOrigins: change.frontendOrigins === undefined ? before.frontendOrigins : change.frontendOrigins,
  record: change.record ?? before.record,
});

/** Settings under their names in the API and in the audit log. */
export const settingsState = (s: TriggerSettings): AuditState => ({
  enabled: s.enabled,
  allow_user_session: s.allowUserSession,
  allow_service_key: s.allowServiceKey,
  policy_expression: s.policyExpression,
  frontend_origins: s.frontendOrigins,
  record: s.record,
});
