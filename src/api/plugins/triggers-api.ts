import { z } from 'zod';
import { appendRevision, type PolicyOwner } from '../../authz/policy-revisions.ts';
import { effectiveAccess } from '../../authz/trigger-access.ts';
import { ServiceError } from '../../base/errors.ts';
import type { Database } from '../../db/database.ts';
import type { GraphSchema } from '../../graph/graph-schema.ts';
import type { Request } from '../../http/message.ts';
import { changeFrontendOrigins, changeTriggerSettings } from '../../plugins/change-trigger-settings.ts';
import type { AcceptPublic } from '../../plugins/public-access.ts';
import type { InstalledPlugin, InstalledTrigger, PluginRegistry } from '../../plugins/registry.ts';
import { type SettingsChange, settingsState, type TriggerSettings } from '../../plugins/trigger-settings.ts';
import type { Quarantine } from '../../records/quarantine.ts';
import { acceptedOf, changeOf, confirmBody, origins, settingsBody } from '../access/access-body.ts';
import {
  assertPolicy,
  loadRevisions,
  policyProblem,
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
import { pluginId } from '../contract/fields.ts';
import { pageOf, wholePage } from '../contract/paging.ts';
import { idParam } from '../contract/params.ts';
import { noParameters, page } from '../contract/query.ts';
import type { Route } from '../contract/route.ts';
import { accessWord } from './access-review.ts';
import { httpMethod } from './manifest-schemas.ts';
import { checkRead, loadPlugin } from './plugin-detail.ts';

export type TriggersApiParts = {
  db: Database;
  registry: PluginRegistry;
  quarantine: Quarantine;
  schema: GraphSchema;
};

const triggerName = z.string().describe('Name of the HTTP trigger');

const settings = z
  .object({
    plugin_id: pluginId,
    trigger: triggerName,
    path: z.string().describe('Path in the manifest, below /api/triggers/http/<plugin id>'),
    methods: z.array(httpMethod),
    enabled: z.boolean(),
    allow_user_session: z.boolean().describe('Whether logged-in users may call'),
    allow_service_key: z.boolean().describe('Whether service keys may call'),
    policy_expression: z.string().describe('Empty for no policy'),
    frontend_origins: z.array(z.string()).nullable().describe("Null for those of the plugin's own setting"),
    record: z.boolean().describe('Whether executions are recorded, to run them again'),
    effective_origins: z.array(z.string()).describe('Origins of pages that may call'),
    effective_access: accessWord,
    policy_problems: z.array(policyProblem).describe('Why the policy denies every caller; empty when it is evaluated'),
  })
  .meta({ id: 'TriggerSettings' });

const changedSettings = settings
  .extend({ warnings: z.array(policyWarning).describe('Roles that no user has') })
  .meta({ id: 'ChangedTriggerSettings' });

const resumed = z.boolean().describe('Whether anything was suspended');

const path = '/api/admin/plugins/:id';

/** Access settings of triggers, frontend origins, suspensions (docs/access.md "Trigger settings", docs/plugins.md "Suspension"). */
export const triggers = resource('Triggers', 'Who may call the HTTP triggers of plugins.', {
  list: {
    method: 'GET',
    path: `${path}/triggers`,
    guard: 'admin',
    key: ['read', 'access'],
    summary: 'List the HTTP triggers of a plugin with their settings',
    query: noParameters,
    replies: { 200: pageOf(settings) },
    refusals: ['conflict'],
  },
  get: {
    method: 'GET',
    path: `${path}/triggers/:name/settings`,
    guard: 'admin',
    key: ['read', 'access'],
    summary: 'Read the settings of a trigger',
    hasTag: true,
    replies: { 200: settings },
    refusals: ['conflict'],
  },
  change: {
    method: 'PUT',
    path: `${path}/triggers/:name/settings`,
    // Changing who may call what is dangerous, and needs a recent password.
    guard: 'admin_recent',
    key: ['access'],
    summary: 'Change the settings of a trigger',
    description: 'A member that is left out keeps its value.',
    body: settingsBody,
    ifMatch: 'the settings',
    replies: { 200: changedSettings },
    refusals: ['conflict', 'confirmation_required'],
    example: { body: { allow_user_session: true, policy_expression: 'has_role("student")' } },
  },
  listRevisions: {
    method: 'GET',
    path: `${path}/triggers/:name/policy/revisions`,
    guard: 'admin',
    key: ['read', 'access'],
    summary: 'List what the policy of a trigger was',
    query: page,
    replies: { 200: revisionPage },
    refusals: ['conflict'],
  },
  restoreRevision: {
    method: 'POST',
    path: `${path}/triggers/:name/policy/revisions/:revision/restore`,
    guard: 'admin_recent',
    key: ['access'],
    summary: 'Set the policy of a trigger to what it was',
    params: { revision: idParam('revision') },
    body: confirmBody,
    ifMatch: 'the settings',
    replies: { 200: changedSettings },
    refusals: ['conflict', 'confirmation_required'],
    example: { body: { accept_public: false } },
  },
  setOrigins: {
    method: 'PUT',
    path: `${path}/origins`,
    guard: 'admin_recent',
    key: ['access'],
    summary: "Set the origins of pages that may call a plugin's triggers",
    description: 'A trigger with origins in its own settings keeps those.',
    body: z.strictObject({ origins }),
    ifMatch: 'the plugin',
    replies: { 200: z.object({ plugin_id: pluginId, origins: z.array(z.string()) }) },
    refusals: ['conflict'],
    example: { body: { origins: ['https://app.example.org'] } },
  },
  resume: {
    method: 'POST',
    path: `${path}/triggers/:name/resume`,
    guard: 'admin',
    key: ['operate'],
    summary: 'Resume a suspended trigger or command',
    replies: { 200: z.object({ plugin_id: pluginId, trigger: triggerName, resumed }) },
    refusals: ['conflict'],
  },
  resumePlugin: {
    method: 'POST',
    path: `${path}/resume`,
    guard: 'admin',
    key: ['operate'],
    summary: 'Resume a suspended plugin',
    description: 'A plugin is suspended when its version crashed the service.',
    replies: { 200: z.object({ plugin_id: pluginId, resumed }) },
    refusals: ['conflict'],
  },
});

const list: Handle<typeof triggers.list, TriggersApiParts> = async (parts, { params }) => {
  const plugin = await installed(parts, params.id);
  return { status: 200, json: wholePage([...plugin.triggers.values()].map(settingsJson)) };
};

const get: Handle<typeof triggers.get, TriggersApiParts> = async (parts, { params }) => {
  const trigger = await findTrigger(parts, params);
  return { status: 200, json: settingsJson(trigger), headers: [tagHeader(settingsState(trigger.settings))] };
};

const change: Handle<typeof triggers.change, TriggersApiParts> = async (parts, { body, caller, params, request }) => {
  const before = await findTrigger(parts, params);
  const wanted = await body();
  assertPolicy(wanted.policy_expression ?? '', parts.schema, '/policy_expression');
  const accepted = acceptedOf(wanted.accept_public);
  return await changeSettings(parts, before, changeOf(wanted), accepted, { caller, request });
};

const listRevisions: Handle<typeof triggers.listRevisions, TriggersApiParts> = async (parts, input) => {
  const of = ownerOf(await findTrigger(parts, input.params));
  return { status: 200, json: await loadRevisions(parts.db, of, input.query) };
};

const restoreRevision: Handle<typeof triggers.restoreRevision, TriggersApiParts> = async (
  parts,
  { body, caller, params, request },
) => {
  const before = await findTrigger(parts, params);
  const accepted = acceptedOf((await body()).accept_public);
  const policyExpression = await revisionToRestore(parts.db, parts.schema, ownerOf(before), params.revision);
  return await changeSettings(parts, before, { ...NO_CHANGE, policyExpression }, accepted, { caller, request });
};

const setOrigins: Handle<typeof triggers.setOrigins, TriggersApiParts> = async (
  parts,
  { body, caller, params, request },
) => {
  const { db, registry } = parts;
  const { id } = await installed(parts, params.id);
  const { origins } = await body();
  await db.withTransaction(client =>
    changeFrontendOrigins(client, id, origins, actorOf(caller, request), checkRead(request)),
  );
  await registry.reload(id);
  return { status: 200, json: { plugin_id: id, origins } };
};

const resume: Handle<typeof triggers.resume, TriggersApiParts> = async (parts, { caller, params, request }) => {
  const { id, manifest } = await installed(parts, params.id);
  const names = manifest.triggers.map(t => t.name);
  if (!names.includes(params.name))
    throw new ServiceError(
      'not_found',
      `plugin "${id}" has no trigger "${params.name}"; it has ${names.join(', ') || 'none'}`,
    );
  const resumed = await parts.quarantine.resume(id, params.name, actorOf(caller, request));
  return { status: 200, json: { plugin_id: id, trigger: params.name, resumed } };
};

const resumePlugin: Handle<typeof triggers.resumePlugin, TriggersApiParts> = async (
  parts,
  { caller, params, request },
) => {
  const { id } = await installed(parts, params.id);
  const resumed = await parts.quarantine.resume(id, '', actorOf(caller, request));
  return { status: 200, json: { plugin_id: id, resumed } };
};

export const triggerRoutes = (parts: TriggersApiParts): Route[] =>
  serve(triggers, parts, {
    list,
    get,
    change,
    listRevisions,
    restoreRevision,
    setOrigins,
    resume,
    resumePlugin,
  });

const NO_CHANGE: SettingsChange = {
  enabled: undefined,
  allowUserSession: undefined,
  allowServiceKey: undefined,
  policyExpression: undefined,
  frontendOrigins: undefined,
  record: undefined,
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
    record: s.record,
    effective_origins: [...t.origins],
    effective_access: effectiveAccess(s),
    policy_problems: storedPolicyProblems(s.policyExpression),
  };
}

async function installed({ db, registry }: TriggersApiParts, id: string): Promise<InstalledPlugin> {
  const plugin = registry.find(id);
  if (plugin !== undefined) return plugin;
  await loadPlugin(db, id);
  throw new ServiceError('conflict', `plugin "${id}" is uploaded but not installed; install it first`);
}

async function findTrigger(
  parts: TriggersApiParts,
  { id, name }: { id: string; name: string },
): Promise<InstalledTrigger> {
  const plugin = await installed(parts, id);
  const found = plugin.triggers.get(name);
  if (found === undefined)
    throw new ServiceError(
      'not_found',
      `plugin "${id}" has no HTTP trigger "${name}"; it has ${[...plugin.triggers.keys()].join(', ') || 'none'}`,
    );
  return found;
}

/** Changes the settings of a trigger, when they are still what the caller read, and shows all of them. */
async function changeSettings(
  parts: TriggersApiParts,
  before: InstalledTrigger,
  change: SettingsChange,
  accepted: AcceptPublic,
  { caller, request }: { caller: Caller; request: Request },
) {
  const { db, registry } = parts;
  const [id, name] = [before.plugin.id, before.trigger.name];
  const by = actorOf(caller, request);
  const check = (now: TriggerSettings): void =>
    checkIfMatch(request, `the settings of trigger "${name}"`, settingsState(now));
  const settings = await db.withTransaction(async client => {
    const changed = await changeTriggerSettings(client, id, before.trigger, change, accepted, by, check);
    if (changed.policyChanged) await appendRevision(client, ownerOf(before), changed.settings.policyExpression, by);
    return changed.settings;
  });
  await registry.reload(id);
  const trigger = await findTrigger(parts, { id, name });
  const warnings = await policyWarnings(db, trigger.settings.policyExpression, '/policy_expression');
  return {
    status: 200 as const,
    json: { ...settingsJson(trigger), warnings },
    // The tag of this change, not of what was read afterwards: another change may have come in between.
    headers: [tagHeader(settingsState(settings))],
  };
}
