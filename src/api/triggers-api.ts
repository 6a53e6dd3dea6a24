import { z } from 'zod';
import type { Actor } from '../audit/audit-log.ts';
import { appendRevision, type PolicyOwner } from '../authz/policy-revisions.ts';
import { effectiveAccess } from '../authz/trigger-access.ts';
import { ServiceError } from '../base/errors.ts';
import type { Database } from '../db/database.ts';
import type { GraphSchema } from '../graph/graph-schema.ts';
import { jsonReply, type Reply } from '../http/message.ts';
import { changeFrontendOrigins, changeTriggerSettings } from '../plugins/change-trigger-settings.ts';
import { unknownPlugin } from '../plugins/install.ts';
import { findPlugin } from '../plugins/plugin-store.ts';
import type { AcceptPublic } from '../plugins/public-access.ts';
import type { InstalledPlugin, InstalledTrigger, PluginRegistry } from '../plugins/registry.ts';
import type { SettingsChange } from '../plugins/trigger-settings.ts';
import type { Quarantine } from '../records/quarantine.ts';
import { acceptedOf, changeOf, confirmationOf, origins, settingsBody } from './access-body.ts';
import { parseBody } from './body.ts';
import {
  assertPolicy,
  policyWarnings,
  revisionsReply,
  revisionToRestore,
  storedPolicyProblems,
} from './policy-body.ts';
import { type AdminGuard, actorOf, type KeyNeed, type Route } from './route.ts';

export type TriggersApiParts = {
  db: Database;
  registry: PluginRegistry;
  quarantine: Quarantine;
  schema: GraphSchema;
};

const originsBody = z.strictObject({ origins });

const NO_CHANGE: SettingsChange = {
  enabled: undefined,
  allowUserSession: undefined,
  allowServiceKey: undefined,
  policyExpression: undefined,
  frontendOrigins: undefined,
};

const ownerOf = ({ plugin, trigger }: InstalledTrigger): PolicyOwner => ({
  pluginId: plugin.id,
  kind: 'trigger',
  name: trigger.name,
});

function settingsJson(t: InstalledTrigger) {
  const s = t.settings;
  return {
    plugin_id: t.plugin.id,
    trigger: t.trigger.name,
    path: t.trigger.path,
    methods: t.trigger.methods,
    enabled: s.enabled,
    allow_user_session: s.allowUserSession,
    allow_service_key: s.allowServiceKey,
    policy_expression: s.policyExpression,
    frontend_origins: s.frontendOrigins,
    effective_origins: [...t.origins],
    effective_access: effectiveAccess(s),
    policy_problems: storedPolicyProblems(s.policyExpression),
  };
}

/** Access settings of triggers, frontend origins, suspensions (docs/access.md "Trigger settings", docs/plugins.md "Suspension"). */
export function triggerRoutes(parts: TriggersApiParts): Route[] {
  const { db, quarantine, registry, schema } = parts;
  const installed = async (id: string): Promise<InstalledPlugin> => {
    const plugin = registry.find(id);
    if (plugin !== undefined) return plugin;
    if ((await findPlugin(db, id)) === undefined) throw unknownPlugin(id);
    throw new ServiceError('conflict', `plugin "${id}" is uploaded but not installed; install it first`);
  };
  const trigger = async (id: string, name: string): Promise<InstalledTrigger> => {
    const plugin = await installed(id);
    const found = plugin.triggers.get(name);
    if (found === undefined)
      throw new ServiceError(
        'not_found',
        `plugin "${id}" has no HTTP trigger "${name}"; it has ${[...plugin.triggers.keys()].join(', ') || 'none'}`,
      );
    return found;
  };
  const changeSettings = async (
    before: InstalledTrigger,
    change: SettingsChange,
    accepted: AcceptPublic,
    by: Actor,
  ): Promise<Reply> => {
    const [id, name] = [before.plugin.id, before.trigger.name];
    await db.withTransaction(async client => {
      const changed = await changeTriggerSettings(client, id, before.trigger, change, accepted, by);
      if (changed.policyChanged) await appendRevision(client, ownerOf(before), changed.settings.policyExpression, by);
    });
    await registry.reload(id);
    const shown = settingsJson(await trigger(id, name));
    const warnings = await policyWarnings(db, shown.policy_expression, '/policy_expression');
    return jsonReply(200, { ...shown, warnings });
  };
  const row =
    (guard: AdminGuard) =>
    (method: string, path: string, key: KeyNeed, handle: Route['handle']): Route => ({
      method,
      path: `/api/admin/plugins/:id${path}`,
      guard,
      key,
      handle,
    });
  /** Who may call what is a dangerous thing to change, and wants a recent password. */
  const [admin, recent] = [row('admin'), row('admin_recent')];

  return [
    admin('GET', '/triggers', ['read', 'access'], async ({ request }) => {
      const plugin = await installed(request.params.id!);
      return jsonReply(200, { items: [...plugin.triggers.values()].map(settingsJson), next_cursor: null });
    }),
    admin('GET', '/triggers/:name/settings', ['read', 'access'], async ({ request }) =>
      jsonReply(200, settingsJson(await trigger(request.params.id!, request.params.name!))),
    ),
    recent('PUT', '/triggers/:name/settings', ['access'], async ({ caller, json, request }) => {
      const before = await trigger(request.params.id!, request.params.name!);
      const body = parseBody(settingsBody, await json());
      assertPolicy(body.policy_expression ?? '', schema, '/policy_expression');
      const by = actorOf(caller, request);
      return await changeSettings(before, changeOf(body), acceptedOf(body.accept_public), by);
    }),
    admin('GET', '/triggers/:name/policy/revisions', ['read', 'access'], async ({ request }) =>
      revisionsReply(db, ownerOf(await trigger(request.params.id!, request.params.name!)), request),
    ),
    recent(
      'POST',
      '/triggers/:name/policy/revisions/:revision/restore',
      ['access'],
      async ({ caller, json, request }) => {
        const before = await trigger(request.params.id!, request.params.name!);
        const accepted = await confirmationOf(request, json);
        const policyExpression = await revisionToRestore(db, schema, ownerOf(before), request);
        return await changeSettings(before, { ...NO_CHANGE, policyExpression }, accepted, actorOf(caller, request));
      },
    ),
    recent('PUT', '/origins', ['access'], async ({ caller, json, request }) => {
      const plugin = await installed(request.params.id!);
      const body = parseBody(originsBody, await json());
      await db.withTransaction(client =>
        changeFrontendOrigins(client, plugin.id, body.origins, actorOf(caller, request)),
      );
      await registry.reload(plugin.id);
      return jsonReply(200, { plugin_id: plugin.id, origins: body.origins });
    }),
    admin('POST', '/triggers/:name/resume', ['operate'], async ({ caller, request }) => {
      const t = await trigger(request.params.id!, request.params.name!);
      return jsonReply(200, {
        plugin_id: t.plugin.id,
        trigger: t.trigger.name,
        resumed: await quarantine.resume(t.plugin.id, t.trigger.name, actorOf(caller, request)),
      });
    }),
    admin('POST', '/resume', ['operate'], async ({ caller, request }) => {
      const plugin = await installed(request.params.id!);
      const resumed = await quarantine.resume(plugin.id, '', actorOf(caller, request));
      return jsonReply(200, { plugin_id: plugin.id, resumed });
    }),
  ];
}
