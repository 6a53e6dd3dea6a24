import { present } from '../../api/contract/query.ts';
import { OperatorError, UsageError } from '../../base/errors.ts';
import { page, short } from './operator-commands.ts';
import { accessText, policyText } from './plugin-commands.ts';
import { ask, type Options, type Remote, type RemoteFlags, shown } from './remote.ts';

/** Settings of triggers and commands of a running service: who may call them, and by which policy. */

const SWITCH = ['on', 'off'] as const;

/** @throws UsageError when an option is neither on nor off */
function switchOf(option: string, text: string | undefined): boolean | undefined {
  if (text === undefined) return undefined;
  if (text !== 'on' && text !== 'off')
    throw new UsageError(`--${option} is ${JSON.stringify(text)}; it must be ${SWITCH.join(' or ')}`);
  return text === 'on';
}

const onOff = (isOn: boolean): string => (isOn ? 'on' : 'off');

const recordText = ({ record }: { record: boolean }): string => (record ? ', its executions are recorded' : '');

/** Words of the API, as they are written here. */
const SETTING_OPTIONS: Options = { 'Send "accept_public": true': 'Add --accept-public' };

type Suggested = {
  users: boolean;
  service_keys: boolean;
  policy: string;
  public: boolean;
  reason: string;
};

/** What the author of the installed version suggests, by trigger. */
async function suggestionsOf(r: Remote, id: string): Promise<ReadonlyMap<string, Suggested>> {
  const { installed } = await ask(() => r.host.GET('/api/admin/plugins/{id}', { params: { path: { id } } }));
  if (installed === null) return new Map();
  const params = { path: { id, key: installed.wasm_key } };
  const { access } = await ask(() => r.host.GET('/api/admin/plugins/{id}/versions/{key}', { params }));
  return new Map(access.flatMap(a => (a.suggested === null ? [] : [[a.trigger, a.suggested] as const])));
}

function suggestionText(s: Suggested | undefined): string {
  if (s === undefined) return '-';
  const who = s.public ? 'public' : [s.users ? 'users' : '', s.service_keys ? 'service keys' : ''].filter(Boolean);
  const policy = s.policy === '' ? '' : `, ${short(s.policy, 40)}`;
  return `${typeof who === 'string' ? who : who.join(' and ') || 'no caller'}${policy} (${short(s.reason, 50)})`;
}

/** `trigger list`. @returns what to print: the settings of each HTTP trigger, and what its author suggests */
export async function listTriggers(r: Remote, id: string): Promise<string> {
  // A key that may set access need not be one that may read plugins.
  const suggested = await suggestionsOf(r, id).catch((error: unknown) => {
    if (error instanceof OperatorError) return new Map<string, Suggested>();
    throw error;
  });
  const { items } = await ask(() => r.host.GET('/api/admin/plugins/{id}/triggers', { params: { path: { id } } }));
  const text = page({ items }, [
    ['TRIGGER', t => t.trigger],
    ['METHODS', t => t.methods.join(' ')],
    ['PATH', t => t.path],
    ['ENABLED', t => onOff(t.enabled)],
    ['USERS', t => onOff(t.allow_user_session)],
    ['SERVICE KEYS', t => onOff(t.allow_service_key)],
    ['RECORD', t => onOff(t.record)],
    ['ACCESS', t => t.effective_access],
    ['POLICY', t => short(t.policy_expression, 60)],
    ['ITS AUTHOR SUGGESTS', t => suggestionText(suggested.get(t.trigger))],
  ]);
  const listed = items.map(t => ({ ...t, suggested: suggested.get(t.trigger) ?? null }));
  return shown(r.json, { items: listed }, text);
}

export type TriggerFlags = RemoteFlags & {
  enabled?: string;
  users?: string;
  serviceKeys?: string;
  policy?: string;
  record?: string;
  suggested?: boolean;
  acceptPublic?: boolean;
};

async function suggestedSettings(r: Remote, id: string, trigger: string) {
  const s = (await suggestionsOf(r, id)).get(trigger);
  if (s === undefined) throw new OperatorError(`the author of ${id} suggests nothing for the trigger ${trigger}`);
  return { allow_user_session: s.users, allow_service_key: s.service_keys, policy_expression: s.policy };
}

/** `trigger set`: all changes in one step. @returns what to print @throws UsageError when there is nothing to change */
export async function setTrigger(r: Remote, id: string, name: string, flags: TriggerFlags): Promise<string> {
  const { acceptPublic, enabled, policy, record, serviceKeys, suggested, users } = flags;
  const given = present({
    enabled: switchOf('enabled', enabled),
    allow_user_session: switchOf('users', users),
    allow_service_key: switchOf('service-keys', serviceKeys),
    policy_expression: policy,
    record: switchOf('record', record),
  });
  if (suggested !== true && Object.keys(given).length === 0)
    throw new UsageError(
      'there is nothing to set: give --enabled, --users, --service-keys, --policy, --record or --suggested',
    );
  const body = {
    ...(suggested === true ? await suggestedSettings(r, id, name) : {}),
    ...given,
    ...(acceptPublic === true ? { accept_public: true } : {}),
  };
  const params = { path: { id, name } };
  const set = await ask(
    () => r.host.PUT('/api/admin/plugins/{id}/triggers/{name}/settings', { params, body }),
    SETTING_OPTIONS,
  );
  const lines = [
    `${id} ${name}: ${accessText(set.effective_access, policyText(set.policy_expression))}${recordText(set)}`,
    ...set.warnings.map(w => `warning: ${w.message}`),
  ];
  return shown(r.json, set, lines.join('\n'));
}

/** `command list`. @returns what to print: the settings of each command */
export async function listCommands(r: Remote, id: string): Promise<string> {
  const params = { path: { id } };
  const answer = await ask(() => r.host.GET('/api/admin/plugins/{id}/commands/settings', { params }));
  const text = page(answer, [
    ['COMMAND', c => c.command],
    ['ENABLED', c => onOff(c.enabled)],
    ['RECORD', c => onOff(c.record)],
    ['SYSTEM ROLE', c => c.system_role ?? '-'],
    ['GLOBAL ROLES', c => c.global_roles.join(' ') || '-'],
    ['PLUGIN ROLE', c => c.plugin_role ?? '-'],
    ['POLICY', c => short(c.policy_expression, 60)],
  ]);
  return shown(r.json, answer, text);
}

export type CommandFlags = RemoteFlags & {
  enabled?: string;
  policy?: string;
  record?: string;
  systemRole?: string;
  globalRole: string[];
  pluginRole?: string;
};

const NO_ROLE = 'none';
const roleOf = (text: string | undefined): string | null | undefined => (text === NO_ROLE ? null : text);

/** The one change that the options of `command set` ask for; the API takes each by itself. */
function commandChange(r: Remote, path: { id: string; cmd: string }, flags: CommandFlags) {
  const { globalRole, pluginRole, policy, record, systemRole } = flags;
  const params = { path };
  const enabled = switchOf('enabled', flags.enabled);
  const recorded = switchOf('record', record);
  const roles = present({
    system_role: roleOf(systemRole),
    plugin_role: roleOf(pluginRole),
    global_roles: globalRole.length === 0 ? undefined : globalRole.filter(role => role !== NO_ROLE),
  });
  const asked = [
    enabled === undefined
      ? null
      : () => r.host.PUT('/api/admin/plugins/{id}/commands/{cmd}/enabled', { params, body: { enabled } }),
    policy === undefined
      ? null
      : () => r.host.PUT('/api/admin/plugins/{id}/commands/{cmd}/policy', { params, body: { expression: policy } }),
    recorded === undefined
      ? null
      : () => r.host.PUT('/api/admin/plugins/{id}/commands/{cmd}/record', { params, body: { record: recorded } }),
    Object.keys(roles).length === 0
      ? null
      : () => r.host.PUT('/api/admin/plugins/{id}/commands/{cmd}/roles', { params, body: roles }),
  ].filter(change => change !== null);
  const [change] = asked;
  if (change === undefined || asked.length > 1)
    throw new UsageError(
      `${asked.length === 0 ? 'there is nothing to set' : 'these are several changes, each of which may fail'}: give --enabled, --policy, --record, or roles (--system-role, --global-role, --plugin-role)`,
    );
  return change;
}

/** `command set`. @returns what to print @throws UsageError unless the options are one change */
export async function setCommand(r: Remote, id: string, cmd: string, flags: CommandFlags): Promise<string> {
  const set = await ask(commandChange(r, { id, cmd }, flags));
  const open = set.open_to_everyone ? 'open to everyone' : 'restricted';
  const lines = [
    `${id} /${cmd}: ${set.enabled ? open : 'disabled'}${recordText(set)}`,
    ...set.warnings.map(w => `warning: ${w.message}`),
  ];
  return shown(r.json, set, lines.join('\n'));
}

export type PolicyTarget = RemoteFlags & { trigger?: string; command?: string; acceptPublic?: boolean };

/** `policy set` and `policy remove`. @param expression empty to remove it @returns what to print */
export async function setPolicy(r: Remote, id: string, expression: string, flags: PolicyTarget): Promise<string> {
  const { acceptPublic, command, trigger } = flags;
  if (command !== undefined && trigger === undefined)
    return setCommand(r, id, command, { ...flags, policy: expression, globalRole: [] });
  if (trigger === undefined || command !== undefined) throw new UsageError('give --trigger or --command');
  return setTrigger(r, id, trigger, { ...flags, ...present({ acceptPublic }), policy: expression });
}
