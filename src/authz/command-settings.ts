import { type Actor, type AuditState, appendAudit } from '../audit/audit-log.ts';
import { type BoundedCache, boundedCache } from '../base/bounded-cache.ts';
import { LIMITS } from '../base/limits.ts';
import type { Queryable } from '../db/database.ts';
import { holdPlugin } from '../db/held-rows.ts';
import { findRows } from '../db/rows.ts';

/** Channel on which hosts of one database tell each other that a command's settings changed; the payload names it. */
export const COMMAND_CHANGED = 'command_changed';

/** Who may run a command (docs/authorization.md "Commands"), and what is kept of it. Null: no role of this kind is required. */
export type CommandSettings = {
  enabled: boolean;
  policyExpression: string;
  systemRole: string | null;
  globalRoles: readonly string[];
  pluginRole: string | null;
  /** Whether its executions are recorded. */
  record: boolean;
};

/** The settings of a command without stored ones: open to everyone (docs/authorization.md "Commands"). */
export const DEFAULT_COMMAND: Readonly<CommandSettings> = {
  enabled: true,
  policyExpression: '',
  systemRole: null,
  globalRoles: [],
  pluginRole: null,
  record: false,
};

/** What protects a command, in words; empty when every user may run it. */
export function guardText(s: CommandSettings): string {
  const roles = [
    ...(s.systemRole === null ? [] : [s.systemRole]),
    ...s.globalRoles,
    ...(s.pluginRole === null ? [] : [s.pluginRole]),
  ];
  return [
    ...(roles.length === 0 ? [] : [`the role ${roles.join(' and ')}`]),
    ...(s.policyExpression === '' ? [] : [`the policy ${s.policyExpression}`]),
  ].join(' and ');
}

/** Stored settings of a plugin's commands by name. */
export async function loadCommandSettings(db: Queryable, pluginId: string): Promise<Map<string, CommandSettings>> {
  const rows = await findRows<CommandSettings & { command: string }>(
    db,
    `SELECT command, enabled, policy_expression, system_role, global_roles, plugin_role, record
     FROM plugin_command_settings WHERE plugin_id = $1`,
    [pluginId],
  );
  return new Map(rows.map(({ command, ...settings }) => [command, settings]));
}

/**
 * Changes settings inside the caller's transaction; absent members keep their stored values.
 *
 * @returns the new settings, and whether the policy has changed
 */
export async function changeCommandSettings(
  client: Queryable,
  pluginId: string,
  command: string,
  change: Partial<CommandSettings>,
  by: Actor,
  check: (before: CommandSettings) => void = () => {},
): Promise<{ settings: CommandSettings; policyChanged: boolean }> {
  await holdPlugin(client, pluginId);
  const before = (await loadCommandSettings(client, pluginId)).get(command) ?? DEFAULT_COMMAND;
  check(before);
  const s: CommandSettings = { ...before, ...change };
  await client.query(
    `INSERT INTO plugin_command_settings (plugin_id, command, enabled, policy_expression, system_role, global_roles, plugin_role, record)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
     ON CONFLICT (plugin_id, command) DO UPDATE SET enabled = EXCLUDED.enabled, policy_expression = EXCLUDED.policy_expression,
       system_role = EXCLUDED.system_role, global_roles = EXCLUDED.global_roles, plugin_role = EXCLUDED.plugin_role, record = EXCLUDED.record,
       updated_at = now()`,
    [pluginId, command, s.enabled, s.policyExpression, s.systemRole, s.globalRoles, s.pluginRole, s.record],
  );
  await appendAudit(client, by, {
    action: 'command.settings',
    objectType: 'command',
    objectId: `${pluginId}/${command}`,
    before: commandState(before),
    after: commandState(s),
  });
  await client.query('SELECT pg_notify($1, $2)', [COMMAND_CHANGED, cacheKey(pluginId, command)]);
  return { settings: s, policyChanged: s.policyExpression !== before.policyExpression };
}

/** Settings with the names used in the API and in the audit log. */
export const commandState = (s: CommandSettings) =>
  ({
    enabled: s.enabled,
    policy_expression: s.policyExpression,
    system_role: s.systemRole,
    global_roles: s.globalRoles,
    plugin_role: s.pluginRole,
    record: s.record,
  }) satisfies AuditState;

const cacheKey = (pluginId: string, command: string): string => `${pluginId}/${command}`;

/** Caches settings for 60 s by plugin and command (docs/authorization.md "Caches"). */
export class CommandSettingsCache {
  readonly #db: Queryable;
  readonly #cache: BoundedCache<string, CommandSettings>;
  #changes = 0;

  constructor(db: Queryable, now: () => number) {
    this.#db = db;
    this.#cache = boundedCache({ max: LIMITS.commandSettingsMax, ttlMs: LIMITS.commandSettingsMs, now });
  }

  async find(pluginId: string, command: string): Promise<CommandSettings> {
    const key = cacheKey(pluginId, command);
    const known = this.#cache.get(key);
    if (known !== undefined) return known;
    const changes = this.#changes;
    const settings = (await loadCommandSettings(this.#db, pluginId)).get(command) ?? DEFAULT_COMMAND;
    if (changes === this.#changes) this.#cache.set(key, settings);
    return settings;
  }

  /** @param name payload of a notification on `COMMAND_CHANGED`; null forgets the settings of every command */
  invalidateCommandPolicy(name: string | null): void {
    this.#changes++;
    if (name === null) this.#cache.clear();
    else this.#cache.delete(name);
  }
}
