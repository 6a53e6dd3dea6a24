import { z } from 'zod';
import { rolesOf } from '../authz/command-access.ts';
import {
  type CommandSettings,
  changeCommandSettings,
  commandState,
  DEFAULT_COMMAND,
  loadCommandSettings,
} from '../authz/command-settings.ts';
import { appendRevision, type PolicyOwner } from '../authz/policy-revisions.ts';
import { commandRoleWarning } from '../authz/role-warnings.ts';
import { ServiceError } from '../base/errors.ts';
import { LIMITS } from '../base/limits.ts';
import type { Database } from '../db/database.ts';
import type { GraphSchema } from '../graph/graph-schema.ts';
import { jsonReply, type Request } from '../http/message.ts';
import { unknownPlugin } from '../plugins/install.ts';
import type { InstalledPlugin, PluginRegistry } from '../plugins/registry.ts';
import { parseBody } from './body.ts';
import {
  assertPolicy,
  policyText,
  policyWarnings,
  revisionsReply,
  revisionToRestore,
  storedPolicyProblems,
} from './policy-body.ts';
import { actorOf, type Caller, type Route } from './route.ts';

export type CommandsApiParts = { db: Database; registry: PluginRegistry; schema: GraphSchema };

/** A role by its name. */
export const roleName = z
  .string()
  .regex(/^[\p{L}\p{N}_.:-]{1,100}$/u, 'must be letters, digits, _ . : and -, at most 100');

const enabledBody = z.strictObject({ enabled: z.boolean() });
const policyBody = z.strictObject({ expression: policyText });
/** A key that is left out keeps its value; null or an empty list asks for no such role. */
const rolesBody = z.strictObject({
  system_role: roleName.nullable().optional(),
  global_roles: z.array(roleName).max(LIMITS.commandRolesMax).optional(),
  plugin_role: roleName.nullable().optional(),
});

const settingsJson = (pluginId: string, command: string, description: string, s: CommandSettings) => ({
  plugin_id: pluginId,
  command,
  description,
  ...commandState(s),
  policy_problems: storedPolicyProblems(s.policyExpression),
  open_to_everyone:
    s.enabled &&
    s.policyExpression === '' &&
    s.systemRole === null &&
    s.pluginRole === null &&
    s.globalRoles.length === 0,
});

/** Who may run a plugin's commands (docs/plugins.md "Upload and installation", docs/authorization.md "Commands", docs/messengers.md "Commands"). */
export function commandRoutes({ db, registry, schema }: CommandsApiParts): Route[] {
  const installed = (id: string): InstalledPlugin => {
    const plugin = registry.find(id);
    if (plugin === undefined) throw unknownPlugin(id);
    return plugin;
  };
  const commandsOf = (plugin: InstalledPlugin) => plugin.manifest.triggers.filter(t => t.type === 'messenger');
  const command = (plugin: InstalledPlugin, name: string) => {
    const all = commandsOf(plugin);
    const found = all.find(c => c.name === name);
    if (found === undefined)
      throw new ServiceError(
        'not_found',
        `plugin "${plugin.id}" has no command "${name}"; it has ${all.map(c => c.name).join(', ') || 'none'}`,
      );
    return found;
  };
  const change = async (
    id: string,
    name: string,
    what: Partial<CommandSettings>,
    { caller, request }: { caller: Caller; request: Request },
  ) => {
    const plugin = installed(id);
    const { description } = command(plugin, name);
    const by = actorOf(caller, request);
    const settings = await db.withTransaction(async client => {
      const changed = await changeCommandSettings(client, plugin.id, name, what, by);
      if (changed.policyChanged)
        await appendRevision(client, ownerOf(plugin.id, name), changed.settings.policyExpression, by);
      return changed.settings;
    });
    const warnings = await commandWarnings(plugin.id, settings);
    return jsonReply(200, { ...settingsJson(plugin.id, name, description, settings), warnings });
  };
  /** Roles that exist nowhere: no user may run such a command. */
  const commandWarnings = async (id: string, s: CommandSettings) => {
    const asked = rolesOf(id, s);
    const texts = await Promise.all(asked.map(role => commandRoleWarning(db, role)));
    const roles = texts.flatMap((message, k) => {
      const kind = asked[k]?.kind;
      return message === null ? [] : [{ pointer: kind === 'global' ? '/global_roles' : `/${kind}_role`, message }];
    });
    return [...roles, ...(await policyWarnings(db, s.policyExpression, '/expression'))];
  };
  const ownerOf = (pluginId: string, name: string): PolicyOwner => ({ pluginId, kind: 'command', name });
  const path = '/api/admin/plugins/:id/commands';

  return [
    {
      method: 'GET',
      path: `${path}/settings`,
      guard: 'admin',
      key: ['read', 'access'],
      async handle({ request }) {
        const plugin = installed(request.params.id!);
        const stored = await loadCommandSettings(db, plugin.id);
        return jsonReply(200, {
          items: commandsOf(plugin).map(c =>
            settingsJson(plugin.id, c.name, c.description, stored.get(c.name) ?? DEFAULT_COMMAND),
          ),
          next_cursor: null,
        });
      },
    },
    {
      method: 'PUT',
      path: `${path}/:cmd/enabled`,
      guard: 'admin_recent',
      key: ['access'],
      async handle({ caller, json, request }) {
        const { enabled } = parseBody(enabledBody, await json());
        return await change(request.params.id!, request.params.cmd!, { enabled }, { caller, request });
      },
    },
    {
      method: 'PUT',
      path: `${path}/:cmd/policy`,
      guard: 'admin_recent',
      key: ['access'],
      async handle({ caller, json, request }) {
        const { expression } = parseBody(policyBody, await json());
        assertPolicy(expression, schema, '/expression');
        return await change(
          request.params.id!,
          request.params.cmd!,
          { policyExpression: expression },
          { caller, request },
        );
      },
    },
    {
      method: 'PUT',
      path: `${path}/:cmd/roles`,
      guard: 'admin_recent',
      key: ['access'],
      async handle({ caller, json, request }) {
        const body = parseBody(rolesBody, await json());
        const roles = {
          ...(body.system_role === undefined ? {} : { systemRole: body.system_role }),
          ...(body.global_roles === undefined ? {} : { globalRoles: [...new Set(body.global_roles)] }),
          ...(body.plugin_role === undefined ? {} : { pluginRole: body.plugin_role }),
        };
        return await change(request.params.id!, request.params.cmd!, roles, { caller, request });
      },
    },
    {
      method: 'GET',
      path: `${path}/:cmd/policy/revisions`,
      guard: 'admin',
      key: ['read', 'access'],
      async handle({ request }) {
        const plugin = installed(request.params.id!);
        const { name } = command(plugin, request.params.cmd!);
        return await revisionsReply(db, ownerOf(plugin.id, name), request);
      },
    },
    {
      method: 'POST',
      path: `${path}/:cmd/policy/revisions/:revision/restore`,
      guard: 'admin_recent',
      key: ['access'],
      async handle({ caller, request }) {
        const plugin = installed(request.params.id!);
        const { name } = command(plugin, request.params.cmd!);
        const expression = await revisionToRestore(db, schema, ownerOf(plugin.id, name), request);
        return await change(plugin.id, name, { policyExpression: expression }, { caller, request });
      },
    },
  ];
}
