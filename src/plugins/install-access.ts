import type { Actor, AuditState } from '../audit/audit-log.ts';
import { type FieldError, ServiceError } from '../base/errors.ts';
import { didYouMean } from '../base/nearest-name.ts';
import type { Queryable } from '../db/database.ts';
import { saveTriggerSettings } from './change-trigger-settings.ts';
import { type HttpTrigger, httpTriggersOf, type Manifest, type SuggestedAccess } from './manifest.ts';
import { type AcceptPublic, becomingPublic, type PublicUrls, type TriggerAccess } from './public-access.ts';
import {
  changedSettings,
  DEFAULT_SETTINGS,
  loadTriggerSettings,
  type SettingsChange,
  settingsState,
  type TriggerSettings,
} from './trigger-settings.ts';

/** The access part of an installation request: who may call the triggers. */
export type AccessRequest = {
  /** Settings by trigger name; a member that is absent keeps its stored value, or the default for a new trigger. */
  triggers: ReadonlyMap<string, SettingsChange>;
  /** Whether new triggers start with the access the manifest suggests. */
  acceptSuggested: boolean;
  acceptPublic: AcceptPublic;
  /** Confirms what else the installation widens: all of it, or these. */
  acceptWidening: true | readonly string[];
};

/** An installation that sets and confirms nothing: new triggers are for logged-in users. */
export const DEFAULT_ACCESS: Readonly<AccessRequest> = {
  triggers: new Map(),
  acceptSuggested: false,
  acceptPublic: [],
  acceptWidening: [],
};

/** Checks and stores policies of triggers; part of the feature that evaluates them. */
export type TriggerPolicies = {
  /** @throws ServiceError when a policy is not valid */
  check(expression: string, pointer: string): void;
  /** Stores a revision of a policy, inside the caller's transaction. */
  changed(client: Queryable, pluginId: string, trigger: string, expression: string, by: Actor): Promise<void>;
};

/** The differences in triggers between two versions of a plugin. */
export type TriggerChanges = { added: string[]; removed: string[]; before: AuditState; after: AuditState };

/** The settings that a suggestion of the manifest means. */
export const suggestedSettings = (a: SuggestedAccess): TriggerSettings => ({
  ...DEFAULT_SETTINGS,
  allowUserSession: a.users,
  allowServiceKey: a.service_keys,
  policyExpression: a.policy,
});

type Planned = { trigger: HttpTrigger; stored: TriggerSettings | undefined; settings: TriggerSettings };

/** Who may call each HTTP trigger before and after an installation. */
export type AccessPlan = {
  before: TriggerAccess;
  after: readonly Planned[];
  public: PublicUrls[];
};

/**
 * Plans who may call each HTTP trigger of a version. Triggers with settings keep them; new triggers start with the default, an accepted
 * suggestion, or the settings of the request.
 *
 * @param versions with the manifest of the version installed before
 * @throws ServiceError `validation_failed` for an unknown trigger or a policy
 */
export async function planAccess(
  client: Queryable,
  pluginId: string,
  versions: { before: Manifest | undefined; after: Manifest },
  request: AccessRequest,
  policies: TriggerPolicies,
): Promise<AccessPlan> {
  const stored = await loadTriggerSettings(client, pluginId);
  const triggers = httpTriggersOf(versions.after);
  assertKnown(request.triggers.keys(), triggers);
  const after = triggers.map(t => plan(t, stored.get(t.name), request, policies));
  const before = accessOfTriggers(versions.before, stored);
  return { before, after, public: becomingPublic(pluginId, before, after) };
}

/** The triggers of a manifest, if there is one, with their stored settings. */
export const accessOfTriggers = (
  manifest: Manifest | undefined,
  stored: ReadonlyMap<string, TriggerSettings>,
): TriggerAccess =>
  (manifest === undefined ? [] : httpTriggersOf(manifest)).map(trigger => ({
    trigger,
    settings: stored.get(trigger.name) ?? DEFAULT_SETTINGS,
  }));

/** Stores what was planned, inside the transaction that installs the version. */
export async function saveAccess(
  client: Queryable,
  pluginId: string,
  versions: { before: Manifest | undefined; after: Manifest },
  { after: planned }: AccessPlan,
  request: AccessRequest,
  policies: TriggerPolicies,
  by: Actor,
): Promise<TriggerChanges> {
  const [names, formerNames] = [versions.after, versions.before].map(m => new Set(m?.triggers.map(t => t.name)));
  const changes: TriggerChanges = {
    added: [...(names ?? [])].filter(name => formerNames?.has(name) !== true),
    removed: [...(formerNames ?? [])].filter(name => names?.has(name) !== true),
    before: {},
    after: {},
  };
  const states: Record<'before' | 'after', Record<string, AuditState>> = { before: {}, after: {} };
  for (const { settings, stored: was, trigger } of planned) {
    if (was !== undefined && !request.triggers.has(trigger.name)) continue;
    await saveTriggerSettings(client, pluginId, trigger.name, settings);
    if (settings.policyExpression !== (was?.policyExpression ?? ''))
      await policies.changed(client, pluginId, trigger.name, settings.policyExpression, by);
    if (was !== undefined) states.before[trigger.name] = settingsState(was);
    states.after[trigger.name] = settingsState(settings);
  }
  return {
    ...changes,
    before: Object.keys(states.before).length === 0 ? {} : { triggers: states.before },
    after: Object.keys(states.after).length === 0 ? {} : { triggers: states.after },
  };
}

function assertKnown(names: Iterable<string>, triggers: readonly HttpTrigger[]): void {
  const known = triggers.map(t => t.name);
  const errors: FieldError[] = [...names]
    .filter(name => !known.includes(name))
    .map(
      (name): FieldError => ({
        pointer: `/triggers/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`,
        message: `this version has no HTTP trigger "${name}"${didYouMean(name, known) || `; it has ${known.join(', ') || 'none'}`}`,
        code: 'not_found',
      }),
    );
  if (errors.length > 0) throw new ServiceError('validation_failed', errors.map(e => e.message).join('; '), { errors });
}

function plan(
  trigger: HttpTrigger,
  stored: TriggerSettings | undefined,
  request: AccessRequest,
  policies: TriggerPolicies,
): Planned {
  const change = request.triggers.get(trigger.name);
  const isSuggested = stored === undefined && request.acceptSuggested && trigger.access !== undefined;
  const start = stored ?? (isSuggested && trigger.access ? suggestedSettings(trigger.access) : DEFAULT_SETTINGS);
  const settings = change === undefined ? start : changedSettings(start, change);
  if (change?.policyExpression !== undefined)
    policies.check(settings.policyExpression, `/triggers/${trigger.name}/policy_expression`);
  else if (isSuggested) policies.check(settings.policyExpression, '/accept_suggested_access');
  return { trigger, stored, settings };
}
