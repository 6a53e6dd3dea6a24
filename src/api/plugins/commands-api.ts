import { z } from 'zod';
import { rolesOf } from '../../authz/command-access.ts';
import {
  type CommandSettings,
  changeCommandSettings,
  commandState,
  DEFAULT_COMMAND,
  loadCommandSettings,
} from '../../authz/command-settings.ts';
import { appendRevision, type PolicyOwner } from '../../authz/policy-revisions.ts';
import { commandRoleWarning } from '../../authz/role-warnings.ts';
import { ServiceError } from '../../base/errors.ts';
import { LIMITS } from '../../base/limits.ts';
import type { Database } from '../../db/database.ts';
import { unknownPlugin } from '../../db/held-rows.ts';
import type { GraphSchema } from '../../graph/graph-schema.ts';
import type { Request } from '../../http/message.ts';
import type { MessengerTrigger } from '../../plugins/manifest.ts';
import type { InstalledPlugin, PluginRegistry } from '../../plugins/registry.ts';
import {
  assertPolicy,
  loadRevisions,
  policyProblem,
  policyText,
  policyWarning,
  policyWarnings,
  revisionPage,
  revisionToRestore,
  storedPolicyProblems,
} from '../access/policy-body.ts';
import { actorOf, type Caller } from '../contract/caller.ts';
import { resource } from '../contract/contract.ts';
import { type Handle, serve } from '../contract/endpoint.ts';
import { checkIfMatch, tagHeader } from '../contract/entity-tag.ts';
import { pluginId, roleName, warning } from '../contract/fields.ts';
import { pageOf, wholePage } from '../contract/paging.ts';
import { idParam } from '../contract/params.ts';
import { noParameters, page } from '../contract/query.ts';
import type { Route } from '../contract/route.ts';

export type CommandsApiParts = { db: Database; registry: PluginRegistry; schema: GraphSchema };

/** A key that is left out keeps its value; null or an empty list asks for no such role. */
const rolesBody = z.strictObject({
  system_role: roleName.nullable().optional(),
  global_roles: z.array(roleName).max(LIMITS.commandRolesMax).optional(),
  plugin_role: roleName.nullable().optional(),
});

const settings = z
  .object({
    plugin_id: pluginId,
    command: z.string().describe('The word users write'),
    description: z.string(),
    enabled: z.boolean(),
    policy_expression: z.string().describe('Empty for no policy'),
    system_role: z.string().nullable().describe('Null: no such role is asked for'),
    global_roles: z.array(z.string()),
    plugin_role: z.string().nullable(),
    record: z.boolean().describe('Whether executions are recorded, so that `plugin replay` can run them again'),
    policy_problems: z.array(policyProblem).describe('Why the policy denies every user; empty when it is evaluated'),
    open_to_everyone: z.boolean().describe('Whether it is enabled and asks for no role and no policy'),
  })
  .meta({ id: 'CommandSettings' });

const changedSettings = settings
  .extend({ warnings: z.array(z.union([policyWarning, warning])).describe('Roles that no user has') })
  .meta({ id: 'ChangedCommandSettings' });

const path = '/api/admin/plugins/:id/commands';
const change = {
  method: 'PUT',
  guard: 'admin_recent',
  key: ['access'],
  ifMatch: 'the settings',
  replies: { 200: changedSettings },
} as const;

/** Who may run a plugin's commands (docs/plugins.md "Upload and installation", docs/authorization.md "Commands", docs/messengers.md "Commands"). */
export const commands = resource('Commands', 'Who may run the messenger commands of plugins.', {
  list: {
    method: 'GET',
    path: `${path}/settings`,
    guard: 'admin',
    key: ['read', 'access'],
    summary: 'List the commands of a plugin with their settings',
    query: noParameters,
    replies: { 200: pageOf(settings) },
  },
  get: {
    method: 'GET',
    path: `${path}/:cmd/settings`,
    guard: 'admin',
    key: ['read', 'access'],
    summary: 'Read the settings of a command',
    hasTag: true,
    replies: { 200: settings },
  },
  setEnabled: {
    ...change,
    path: `${path}/:cmd/enabled`,
    summary: 'Enable or disable a command',
    body: z.strictObject({ enabled: z.boolean() }),
    example: { body: { enabled: false } },
  },
  setPolicy: {
    ...change,
    path: `${path}/:cmd/policy`,
    summary: 'Set the policy of a command',
    body: z.strictObject({ expression: policyText.describe('Empty for no policy') }),
    example: { body: { expression: 'has_role("student")' } },
  },
  setRoles: {
    ...change,
    path: `${path}/:cmd/roles`,
    summary: 'Set the roles that a command asks for',
    description: 'A member that is left out keeps its value; null or an empty list asks for no such role.',
    body: rolesBody,
    example: { body: { system_role: null, global_roles: ['teacher'], plugin_role: 'editor' } },
  },
  setRecord: {
    ...change,
    path: `${path}/:cmd/record`,
    summary: 'Record the executions of a command, or no longer',
    body: z.strictObject({ record: z.boolean() }),
    example: { body: { record: true } },
  },
  listRevisions: {
    method: 'GET',
    path: `${path}/:cmd/policy/revisions`,
    guard: 'admin',
    key: ['read', 'access'],
    summary: 'List what the policy of a command was',
    query: page,
    replies: { 200: revisionPage },
  },
  restoreRevision: {
    ...change,
    method: 'POST',
    path: `${path}/:cmd/policy/revisions/:revision/restore`,
    summary: 'Set the policy of a command to what it was',
    params: { revision: idParam('revision') },
    refusals: ['validation_failed'],
  },
});

const list: Handle<typeof commands.list, CommandsApiParts> = async ({ db, registry }, { params }) => {
  const plugin = installed(registry, params.id);
  const stored = await loadCommandSettings(db, plugin.id);
  const items = commandsOf(plugin).map(c =>
    settingsJson(plugin.id, c.name, c.description, stored.get(c.name) ?? DEFAULT_COMMAND),
  );
  return { status: 200, json: wholePage(items) };
};

const get: Handle<typeof commands.get, CommandsApiParts> = async ({ db, registry }, { params }) => {
  const plugin = installed(registry, params.id);
  const { description, name } = command(plugin, params.cmd);
  const s = (await loadCommandSettings(db, plugin.id)).get(name) ?? DEFAULT_COMMAND;
  return { status: 200, json: settingsJson(plugin.id, name, description, s), headers: [tagHeader(commandState(s))] };
};

const setEnabled: Handle<typeof commands.setEnabled, CommandsApiParts> = async (
  parts,
  { body, caller, params, request },
) => {
  const { enabled } = await body();
  return await changeSettings(parts, params, { enabled }, { caller, request });
};

const setPolicy: Handle<typeof commands.setPolicy, CommandsApiParts> = async (
  parts,
  { body, caller, params, request },
) => {
  const { expression } = await body();
  assertPolicy(expression, parts.schema, '/expression');
  return await changeSettings(parts, params, { policyExpression: expression }, { caller, request });
};

const setRoles: Handle<typeof commands.setRoles, CommandsApiParts> = async (
  parts,
  { body, caller, params, request },
) => {
  const { global_roles, plugin_role, system_role } = await body();
  const roles = {
    ...(system_role === undefined ? {} : { systemRole: system_role }),
    ...(global_roles === undefined ? {} : { globalRoles: [...new Set(global_roles)] }),
    ...(plugin_role === undefined ? {} : { pluginRole: plugin_role }),
  };
  return await changeSettings(parts, params, roles, { caller, request });
};

const setRecord: Handle<typeof commands.setRecord, CommandsApiParts> = async (
  parts,
  { body, caller, params, request },
) => {
  const { record } = await body();
  return await changeSettings(parts, params, { record }, { caller, request });
};

const listRevisions: Handle<typeof commands.listRevisions, CommandsApiParts> = async ({ db, registry }, input) => {
  const plugin = installed(registry, input.params.id);
  const { name } = command(plugin, input.params.cmd);
  return { status: 200, json: await loadRevisions(db, ownerOf(plugin.id, name), input.query) };
};

const restoreRevision: Handle<typeof commands.restoreRevision, CommandsApiParts> = async (
  parts,
  { caller, params, request },
) => {
  const { db, registry, schema } = parts;
  const plugin = installed(registry, params.id);
  const { name } = command(plugin, params.cmd);
  const policyExpression = await revisionToRestore(db, schema, ownerOf(plugin.id, name), params.revision);
  return await changeSettings(parts, params, { policyExpression }, { caller, request });
};

export const commandRoutes = (parts: CommandsApiParts): Route[] =>
  serve(commands, parts, { list, get, setEnabled, setPolicy, setRoles, setRecord, listRevisions, restoreRevision });

const settingsJson = (pluginId: string, command: string, description: string, s: CommandSettings) => ({
  plugin_id: pluginId,
  command,
  description,
  ...commandState(s),
  global_roles: [...s.globalRoles],
  policy_problems: storedPolicyProblems(s.policyExpression),
  open_to_everyone:
    s.enabled &&
    s.policyExpression === '' &&
    s.systemRole === null &&
    s.pluginRole === null &&
    s.globalRoles.length === 0,
});

function installed(registry: PluginRegistry, id: string): InstalledPlugin {
  const plugin = registry.find(id);
  if (plugin === undefined) throw unknownPlugin(id);
  return plugin;
}

const commandsOf = (plugin: InstalledPlugin): MessengerTrigger[] =>
  plugin.manifest.triggers.filter(t => t.type === 'messenger');

function command(plugin: InstalledPlugin, name: string): MessengerTrigger {
  const all = commandsOf(plugin);
  const found = all.find(c => c.name === name);
  if (found === undefined)
    throw new ServiceError(
      'not_found',
      `plugin "${plugin.id}" has no command "${name}"; it has ${all.map(c => c.name).join(', ') || 'none'}`,
    );
  return found;
}

const ownerOf = (pluginId: string, name: string): PolicyOwner => ({ pluginId, kind: 'command', name });

/** Changes the settings of a command, when they are still what the caller read, and shows all of them. */
async function changeSettings(
  { db, registry }: CommandsApiParts,
  { cmd, id }: { id: string; cmd: string },
  what: Partial<CommandSettings>,
  { caller, request }: { caller: Caller; request: Request },
) {
  const plugin = installed(registry, id);
  const { description } = command(plugin, cmd);
  const by = actorOf(caller, request);
  const check = (now: CommandSettings): void =>
    checkIfMatch(request, `the settings of command "${cmd}"`, commandState(now));
  const settings = await db.withTransaction(async client => {
    const changed = await changeCommandSettings(client, plugin.id, cmd, what, by, check);
    if (changed.policyChanged)
      await appendRevision(client, ownerOf(plugin.id, cmd), changed.settings.policyExpression, by);
    return changed.settings;
  });
  const warnings = await commandWarnings(db, plugin.id, settings);
  return {
    status: 200 as const,
    json: { ...settingsJson(plugin.id, cmd, description, settings), warnings },
    headers: [tagHeader(commandState(settings))],
  };
}

/** Roles that exist nowhere: no user may run such a command. */
async function commandWarnings(db: Database, id: string, s: CommandSettings) {
  const asked = rolesOf(id, s);
  const texts = await Promise.all(asked.map(role => commandRoleWarning(db, role)));
  const roles = texts.flatMap((message, k) => {
    const kind = asked[k]?.kind;
    return message === null ? [] : [{ pointer: kind === 'global' ? '/global_roles' : `/${kind}_role`, message }];
  });
  return [...roles, ...(await policyWarnings(db, s.policyExpression, '/expression'))];
}
