import { present } from '../../api/contract/query.ts';
import { OperatorError, UsageError } from '../../base/errors.ts';
import { LIMITS } from '../../base/limits.ts';
import { durationMs, isDuration } from '../../config/values.ts';
import { jsonText } from '../print/json-text.ts';
import { findAdminKeyId, findServiceKeyId, findUserId } from './find-named.ts';
import { expiryTime } from './given-time.ts';
import { type ListFlags, limitOf, page, short, when, wholeNumber } from './operator-commands.ts';
import { type Answer, ask, type Remote, type RemoteFlags, send, shown } from './remote.ts';

/** Who may what in a running service: relationships, policies, keys. */

type Relationship = {
  resource_type: string;
  resource_id: string;
  relation: string;
  subject_type: string;
  subject_id: string;
};

/** @throws UsageError when the text is no relationship */
export function relationshipOf(text: string): Relationship {
  const [, type, id, relation, subjectType, subject] = /^([^:#@]+):([^#@]+)#([^@]+)@([^:]+):(.+)$/.exec(text) ?? [];
  if (!type || !id || !relation || !subjectType || !subject)
    throw new UsageError(
      `${JSON.stringify(text)} is not a relationship like study_group:7#member@user:ext-1 (object#relation@subject)`,
    );
  return { resource_type: type, resource_id: id, relation, subject_type: subjectType, subject_id: subject };
}

/** `type:id`, or the type alone. */
function entityOf(option: string, text: string): { type: string; id: string | undefined } {
  const [, type, id] = /^([^:#@]+)(?::(.+))?$/s.exec(text) ?? [];
  if (type === undefined) throw new UsageError(`--${option} is ${JSON.stringify(text)}; it must be like faculty:3`);
  return { type, id };
}

const shownTuple = (r: Relationship & { subject_relation?: string | null }): string =>
  `${r.resource_type}:${r.resource_id}#${r.relation}@${r.subject_type}:${r.subject_id}${r.subject_relation ? `#${r.subject_relation}` : ''}`;

export type RelFlags = ListFlags & { object?: string; relation?: string; subject?: string };

/** `rel list`. @returns what to print */
export async function listRelationships(r: Remote, flags: RelFlags): Promise<string> {
  const object = flags.object === undefined ? undefined : entityOf('object', flags.object);
  const subject = flags.subject === undefined ? undefined : entityOf('subject', flags.subject);
  const query = present({
    limit: limitOf(flags),
    resource_type: object?.type,
    resource_id: object?.id,
    relation: flags.relation,
    subject_type: subject?.type,
    subject_id: subject?.id,
  });
  const answer = await ask(() => r.host.GET('/api/admin/relationships', { params: { query } }), {
    'query:resource_type': 'the type of --object',
    'query:relation': '--relation',
    'query:subject_type': 'the type of --subject',
  });
  const text = page(answer, [
    ['RELATIONSHIP', shownTuple],
    ['FROM', t => t.origin],
    ['SINCE', t => when(t.created_at)],
  ]);
  return shown(r.json, answer, text);
}

const delivered = (isDelivered: boolean): string =>
  isDelivered ? 'the graph store has it' : 'it waits in the outbox: plugin-host outbox list';

const TUPLE = {
  '/relationships/0/resource_type': 'the type of the object',
  '/relationships/0/resource_id': 'the id of the object',
  '/relationships/0/relation': 'the relation',
  '/relationships/0/subject_type': 'the type of the subject',
  '/relationships/0/subject_id': 'the id of the subject',
};

/** `rel add`. @returns what to print */
export async function addRelationship(r: Remote, text: string): Promise<string> {
  const body = { relationships: [relationshipOf(text)] };
  const answer = await ask(() => r.host.POST('/api/admin/relationships', { body }), TUPLE);
  return shown(r.json, answer, `added ${text}; ${delivered(answer.delivered)}`);
}

/** `rel remove`. @returns what to print */
export async function removeRelationship(r: Remote, text: string): Promise<string> {
  const body = { filter: relationshipOf(text) };
  const answer = await ask(() => r.host.DELETE('/api/admin/relationships', { body }));
  if (answer.deleted === 0) throw new OperatorError(`there is no relationship ${text}`);
  return shown(r.json, answer, `removed ${text}; ${delivered(answer.delivered)}`);
}

/** `policy check`. @returns what to print @throws OperatorError when the expression is not valid, and people read it */
export async function checkPolicy(r: Remote, expression: string): Promise<Answer> {
  const answer = await ask(() => r.host.POST('/api/admin/policies/check', { body: { expression } }));
  const lines = [
    ...answer.errors.map(e => `${e.position === null ? '' : `column ${e.position.column}: `}${e.message}`),
    ...answer.warnings.map(w => `warning: ${w.message}`),
  ];
  if (!answer.valid && r.json) return { text: jsonText(answer), exitCode: 1 };
  if (!answer.valid) throw new OperatorError(`the expression is not valid:\n  ${lines.join('\n  ')}`);
  return shown(r.json, answer, ['the expression is valid', ...lines].join('\n'));
}

/** `policy list`. @returns what to print: the access of each trigger and command of a plugin */
export async function listPolicies(r: Remote, id: string): Promise<string> {
  const params = { path: { id } };
  const triggers = await ask(() => r.host.GET('/api/admin/plugins/{id}/triggers', { params }));
  const commands = await ask(() => r.host.GET('/api/admin/plugins/{id}/commands/settings', { params }));
  const rows = [
    ...triggers.items.map(t => ({
      name: t.trigger,
      kind: 'http',
      access: t.effective_access,
      policy: t.policy_expression,
      wrong: t.policy_problems.length,
    })),
    ...commands.items.map(c => ({
      name: c.command,
      kind: 'command',
      access: c.enabled ? (c.open_to_everyone ? 'everyone' : 'restricted') : 'disabled',
      policy: c.policy_expression,
      wrong: c.policy_problems.length,
    })),
  ];
  const text = page({ items: rows }, [
    ['TRIGGER', t => t.name],
    ['KIND', t => t.kind],
    ['ACCESS', t => t.access],
    ['POLICY', t => `${short(t.policy, 80)}${t.wrong > 0 ? '  (does not compile: no caller gets in)' : ''}`],
  ]);
  return shown(r.json, { triggers: triggers.items, commands: commands.items }, text);
}

/** Calls of the API in what would change a decision, and the commands that make them. */
const COMMANDS: ReadonlyArray<[call: RegExp, command: string]> = [
  [/ \(POST \/api\/admin\/policies\/try shows every part\)/, ''],
  [/POST \/api\/admin\/plugins\/([^\s/]+)\/enable/, 'plugin-host plugin enable $1'],
  [
    /PUT \/api\/admin\/plugins\/(\S+)\/triggers\/(\S+)\/settings \{"enabled": true\}/,
    'plugin-host trigger set $1 $2 --enabled on',
  ],
  [
    /PUT \/api\/admin\/plugins\/(\S+)\/triggers\/(\S+)\/settings \{"allow_user_session": true\}/,
    'plugin-host trigger set $1 $2 --users on',
  ],
  [/PUT \/api\/admin\/plugins\/(\S+)\/triggers\/(\S+)\/settings/, 'plugin-host policy set $1 EXPRESSION --trigger $2'],
  [
    /PUT \/api\/admin\/plugins\/(\S+)\/commands\/(\S+)\/enabled \{"enabled": true\}/,
    'plugin-host command set $1 $2 --enabled on',
  ],
  [/PUT \/api\/admin\/plugins\/(\S+)\/commands\/(\S+)\/policy/, 'plugin-host policy set $1 EXPRESSION --command $2'],
  [/PUT \/api\/admin\/plugins\/(\S+)\/commands\/(\S+)\/roles/, 'plugin-host command set $1 $2 --help'],
  [
    /PUT \/api\/admin\/users\/(\d+)\/roles\/plugin\/([^\s/]+)\/([^\s,]+)/,
    'plugin-host role give user:$1 $3 --plugin $2',
  ],
  [/PUT \/api\/admin\/users\/(\d+)\/roles\/(\w+)\/([^\s,]+)/, 'plugin-host role give user:$1 $3 --kind $2'],
];

/** What the explanation of a decision says to change, as commands. */
export const asCommands = (text: string): string =>
  COMMANDS.reduce((said, [call, command]) => said.replace(call, command), text);

export type ExplainFlags = RemoteFlags & { trigger?: string; command?: string };

/** `policy explain`. @returns what to print: why a user may or may not */
export async function explainAccess(r: Remote, plugin: string, user: string, flags: ExplainFlags): Promise<string> {
  const { command, trigger } = flags;
  if ((command === undefined) === (trigger === undefined)) throw new UsageError('give --trigger or --command');
  const body = { user: await findUserId(r, user), plugin, ...present({ trigger, command }) };
  const answer = await ask(() => r.host.POST('/api/admin/access/explain', { body }));
  const mark = (holds: boolean | null): string => (holds === null ? '-' : holds ? 'yes' : 'NO');
  const lines = [
    `${answer.user.display_name} (user ${answer.user.id}) ${answer.allowed ? 'may' : 'may not'} call it: ${answer.status}`,
    page({ items: answer.steps }, [
      ['STEP', s => s.step],
      ['HOLDS', s => mark(s.holds)],
      ['DETAIL', s => s.detail],
    ]),
    ...answer.to_change.map(change => `to change it: ${asCommands(change)}`),
  ];
  return shown(r.json, answer, lines.join('\n'));
}

/** `key list`. @returns what to print */
export async function listKeys(r: Remote, flags: ListFlags & { administration?: boolean }): Promise<string> {
  const params = { query: { limit: limitOf(flags) } };
  if (flags.administration === true) {
    const answer = await ask(() => r.host.GET('/api/admin/keys', { params }));
    const text = page(answer, [
      ['ID', k => String(k.id)],
      ['NAME', k => k.name],
      ['SCOPES', k => k.scopes.join(' ')],
      ['EXPIRES', k => when(k.expires_at)],
      ['LAST USED', k => when(k.last_used_at)],
    ]);
    return shown(r.json, answer, text);
  }
  const answer = await ask(() => r.host.GET('/api/admin/service-keys', { params }));
  const text = page(answer, [
    ['ID', k => String(k.id)],
    ['NAME', k => k.name],
    ['SCOPES', k => k.scopes.map(s => `${s.plugin_id}:${s.trigger}`).join(' ')],
    ['EXPIRES', k => when(k.expires_at)],
    ['LAST USED', k => when(k.last_used_at)],
  ]);
  return shown(r.json, answer, text);
}

function scopeOf(text: string): { plugin_id: string; trigger: string } {
  const [, plugin_id, trigger] = /^([^:]+):(.+)$/.exec(text) ?? [];
  if (plugin_id === undefined || trigger === undefined)
    throw new UsageError(`--scope is ${JSON.stringify(text)}; it must be PLUGIN:TRIGGER, like hello:greet`);
  return { plugin_id, trigger };
}

/** `key create`: a service key. @returns what to print, with the key, which is shown once */
export async function createKey(
  r: Remote,
  name: string,
  flags: RemoteFlags & { scope: string[]; expires?: string; allowUnknown?: boolean },
): Promise<string> {
  if (flags.scope.length === 0) throw new UsageError('this command needs --scope PLUGIN:TRIGGER, like hello:greet');
  const expires = flags.expires === undefined ? undefined : (expiryTime(flags.expires)?.toISOString() ?? null);
  const body = {
    name,
    scopes: flags.scope.map(scopeOf),
    ...present({ expires_at: expires, allow_unknown: flags.allowUnknown }),
  };
  const answer = await ask(() => r.host.POST('/api/admin/service-keys', { body }), {
    'send "allow_unknown": true': 'give --allow-unknown',
  });
  const warnings = answer.warnings.map(w => `warning: ${w.message}`);
  return shown(r.json, answer, [answer.key, ...warnings].join('\n'));
}

/** `key rotate`. @returns what to print, with the new key */
export async function rotateKey(r: Remote, key: string, flags: RemoteFlags & { overlap?: string }): Promise<string> {
  const { overlap } = flags;
  const seconds =
    overlap === undefined
      ? undefined
      : wholeNumber(
          '--overlap',
          isDuration(overlap) ? String(Math.round(durationMs(overlap) / 1000)) : overlap,
          0,
          LIMITS.serviceKeyOverlapSecondsMax,
        );
  const params = { path: { key: await findServiceKeyId(r, key) } };
  const body = present({ overlap_seconds: seconds });
  const answer = await ask(() => r.host.POST('/api/admin/service-keys/{key}/rotate', { params, body }));
  return shown(r.json, answer, answer.key);
}

/** `key revoke`. @returns what to print */
export async function revokeKey(
  r: Remote,
  key: string,
  flags: RemoteFlags & { administration?: boolean },
): Promise<string> {
  const isAdministration = flags.administration === true;
  const params = { path: { key: await (isAdministration ? findAdminKeyId : findServiceKeyId)(r, key) } };
  await send(() =>
    isAdministration
      ? r.host.DELETE('/api/admin/keys/{key}', { params })
      : r.host.DELETE('/api/admin/service-keys/{key}', { params }),
  );
  return shown(r.json, { id: params.path.key, revoked: true }, `key ${key} is revoked`);
}
