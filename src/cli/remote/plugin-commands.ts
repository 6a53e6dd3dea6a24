import fs from 'node:fs';
import path from 'node:path';
import type { EffectiveAccess } from '../../authz/trigger-access.ts';
import { OperatorError } from '../../base/errors.ts';
import { fileProblem } from '../../base/file-problem.ts';
import { table } from '../print/table.ts';
import { allOf } from './find-named.ts';
import { page, when } from './operator-commands.ts';
import { ask, type Remote, type RemoteFlags, send, shown } from './remote.ts';

/** `plugin ...`: the admin API of a service from a terminal or a CI job, through the client in `sdk/client`. */

export type InstallFlags = RemoteFlags & {
  configFile?: string;
  acceptPermissions?: boolean;
  acceptSuggestedAccess?: boolean;
  acceptPublic?: boolean;
  acceptWidening?: boolean;
};

/** `plugin list`. @returns what to print */
export async function listPlugins({ host, json }: Remote): Promise<string> {
  const items = await allOf(query => host.GET('/api/admin/plugins', { params: { query } }));
  const rows = items.map(p => [p.id, p.version ?? '-', p.state, p.name ?? '']);
  return shown(json, { items }, table([['ID', 'VERSION', 'STATE', 'NAME'], ...rows]));
}

/** Sources of plugins, which are built first. */
const SOURCE = /\.(ts|js|go|rs|c|h)$/;

/** @throws OperatorError when it is the folder or a source of a plugin */
function assertBuilt(file: string): void {
  const isFolder = fs.existsSync(path.join(file, 'plugin-host.json'));
  if (!isFolder && !SOURCE.test(file)) return;
  const folder = isFolder ? file : path.dirname(file);
  throw new OperatorError(
    `${file} is not built: run plugin-host plugin build ${folder}, and upload the module that it names`,
  );
}

function readFile(file: string): Blob {
  try {
    return new Blob([fs.readFileSync(file)]);
  } catch (error) {
    throw new OperatorError(`${file} cannot be read: ${fileProblem(error)}`);
  }
}

type Signature = { state: 'none' | 'trusted' | 'unknown' | 'wrong'; key_id: string | null; signer: string | null };

/** Who signed a module, as far as it is known; only a trusted key says it. */
const SIGNED: Readonly<Record<Signature['state'], (s: Signature) => string>> = {
  none: () => '-',
  trusted: s => `${s.signer}`,
  unknown: s => `unknown key ${s.key_id}`,
  wrong: s => `wrong signature of ${s.signer}`,
};

/** Who signed a module; nothing for one that is not signed. */
function signatureLines(s: Signature): string[] {
  if (s.state === 'none') return [];
  if (s.state === 'unknown') return [`claims the key ${s.key_id}, which the service does not know`];
  return [s.state === 'trusted' ? `signed by ${SIGNED.trusted(s)}` : SIGNED.wrong(s)];
}

type Installable = {
  id: string;
  wasm_key: string;
  installed_version: string | null;
  new_permissions: readonly string[];
  requirements: ReadonlyArray<{
    kind: string;
    name?: string | undefined;
    description: string;
    config: ReadonlyArray<{ name: string; description: string; required: boolean }>;
  }>;
};

/** Values and databases that what is installed has; they stay with an upgrade. */
type Kept = { values: readonly string[]; databases: readonly string[] };

/** @returns null for a key that may not read it */
async function keptOf({ host }: Remote, id: string): Promise<Kept | null> {
  try {
    const { config, requirements } = await ask(() => host.GET('/api/admin/plugins/{id}', { params: { path: { id } } }));
    const databases = requirements.flatMap(r => (r.kind === 'sql' ? [r.name ?? 'default'] : []));
    return { values: config.filter(f => f.is_set).map(f => f.name), databases };
  } catch (error) {
    if (error instanceof OperatorError) return null;
    throw error;
  }
}

/** Whether the author suggests access for new triggers, and which of them would be public. */
type Suggested = { suggests: boolean; publicOnes: readonly string[] };

/** How it is installed, with what the installation will ask for. */
function installLines(uploaded: Installable, { suggests, publicOnes }: Suggested, kept: Kept | null): string[] {
  const { id, installed_version, new_permissions, requirements, wasm_key } = uploaded;
  const isFirst = installed_version === null;
  const asked = kept === null ? [] : requirements;
  const required = asked.flatMap(r => r.config).filter(f => f.required && !kept?.values.includes(f.name));
  const databases = asked.filter(r => r.kind === 'sql' && !kept?.databases.includes(r.name ?? 'default'));
  const hasConfig = required.length + databases.length > 0;
  const example = JSON.stringify({
    ...Object.fromEntries(required.map(({ name }) => [name, '...'])),
    ...(databases.length === 0
      ? {}
      : { databases: Object.fromEntries(databases.map(({ name }) => [name ?? 'default', 'postgres://...'])) }),
  });
  const command = [
    `plugin-host plugin install ${id} ${wasm_key}`,
    ...(hasConfig ? ['--config-file config.json'] : []),
    ...(isFirst || new_permissions.length === 0 ? [] : ['--accept-permissions']),
    ...(suggests ? ['--accept-suggested-access'] : []),
    ...(publicOnes.length === 0 ? [] : ['--accept-public']),
  ];
  return [
    ...required.map(({ description, name }) => `it needs the value ${name}: ${description}`),
    ...databases.map(({ description, name }) => `it needs the database ${name ?? 'default'}: ${description}`),
    ...(hasConfig ? [`write its values as JSON, ${example}, into a file, here config.json`] : []),
    ...publicOnes.map(url => `as suggested, everyone may call ${url}`),
    ...(publicOnes.length === 0 ? [] : ['--accept-public confirms that; without it nothing is installed']),
    `install it: ${command.join(' ')}`,
  ];
}

/** `plugin upload FILE`. @returns what to print: the key to install it by, and what it asks for */
export async function uploadPlugin(remote: Remote, file: string, frontend?: string): Promise<string> {
  const { host, json } = remote;
  assertBuilt(file);
  const form = new FormData();
  form.append('file', readFile(file), path.basename(file));
  if (frontend !== undefined) form.append('frontend', readFile(frontend), path.basename(frontend));
  const uploaded = await ask(() =>
    host.POST('/api/admin/plugins/upload', { body: form, bodySerializer: body => body }),
  );
  const { access, id, installed_version, is_installed, new_permissions, permissions, version } = uploaded;
  const stays = installed_version === null ? 'nothing is installed yet' : `${installed_version} stays installed`;
  const added = access.filter(a => a.new);
  const suggested = {
    suggests: added.some(a => a.suggested !== null),
    publicOnes: added.filter(a => a.suggested?.effective_access === 'public').map(a => a.url),
  };
  const kept = installed_version === null ? { values: [], databases: [] } : json ? null : await keptOf(remote, id);
  const lines = [
    `${id} ${version} is uploaded; ${is_installed ? 'it is what is installed already' : stays}`,
    ...signatureLines(uploaded.signature),
    `permissions: ${permissions.join(', ') || 'none'}`,
    ...(new_permissions.length === 0 ? [] : [`new permissions: ${new_permissions.join(', ')}`]),
    ...access.flatMap(a => [
      `trigger ${a.trigger}: ${a.methods.join(', ')} ${a.url}, ${accessText(a.effective_access, a.has_policy ? 'the policy that is set' : '')}${a.new ? '' : ', as it is set already'}`,
      ...(a.suggested === null ? [] : suggestionLines(a.suggested)),
    ]),
    ...uploaded.triggers.flatMap(t => (t.type === 'messenger' ? [`command /${t.name}`] : [])),
    ...(!is_installed && version === installed_version
      ? [`${version} is also the number of what is installed: raise it, so that the two can be told apart`]
      : []),
    ...(is_installed ? [] : installLines(uploaded, suggested, kept)),
  ];
  return shown(json, uploaded, lines.join('\n'));
}

const WHO: Readonly<Partial<Record<EffectiveAccess, string>>> = {
  disabled: 'disabled',
  public: 'for every caller, without a login',
  user: 'for users',
  service: 'for service keys',
  user_or_service: 'for users and service keys',
};

/** Who may call, in words: of the words of the API, the one that is left has a policy that is asked for no caller. */
export const accessText = (effective: EffectiveAccess, policy: string): string =>
  `${WHO[effective] ?? 'for no caller: neither users nor service keys are let in'}${policy === '' ? '' : `, with ${policy}`}`;

export const policyText = (expression: string): string => (expression === '' ? '' : `the policy ${expression}`);

type Suggestion = {
  effective_access: EffectiveAccess;
  policy: string;
  reason: string;
  policy_problems: ReadonlyArray<{ message: string }>;
};

const suggestionLines = ({ effective_access, policy, policy_problems, reason }: Suggestion): string[] => [
  `  its author suggests: ${accessText(effective_access, policyText(policy))} (${reason})`,
  ...policy_problems.map(p => `  this policy cannot be saved: ${p.message}`),
];

/** Who may call each trigger now, or why that is not known: a key that may only install may not read it. */
async function accessLines({ host }: Remote, id: string): Promise<string[]> {
  try {
    const { items } = await ask(() => host.GET('/api/admin/plugins/{id}/triggers', { params: { path: { id } } }));
    return items.map(t => `trigger ${t.trigger}: ${accessText(t.effective_access, policyText(t.policy_expression))}`);
  } catch (error) {
    if (error instanceof OperatorError) return [`who may call is not known: ${error.message}`];
    throw error;
  }
}

/** Words of the API, as they are written here. */
const INSTALL_OPTIONS = {
  'Send "accept_public": true': 'Add --accept-public',
  'Send "accept_widening": true': 'Add --accept-widening',
  'permissions the installed one does not have': 'permissions the installed one does not have (--accept-permissions)',
  'the configuration is not complete': 'the configuration is not complete (--config-file FILE, a JSON object)',
  'the configuration is wrong': 'the configuration is wrong (--config-file FILE, a JSON object)',
};

/** The configuration of a plugin in a JSON file. @throws OperatorError */
export function configOf(file: string | undefined): Record<string, unknown> | undefined {
  if (file === undefined) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(fs.readFileSync(file, 'utf8'));
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw new OperatorError(`${file} cannot be read: ${fileProblem(error)}`);
    // The message of the parser quotes the file, which may hold secrets.
    const where = /at position \d+.*$/.exec(error.message)?.[0] ?? '';
    throw new OperatorError(
      `${file} is not JSON that can be read${where === '' ? ': write an object like {"field": "value"}' : `: ${where}`}`,
    );
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value };
  throw new OperatorError(`${file} must hold a JSON object with the configuration of the plugin`);
}

const confirmed = (flags: InstallFlags) => ({
  ...(flags.acceptPublic === true ? { accept_public: true } : {}),
  ...(flags.acceptWidening === true ? { accept_widening: true } : {}),
});

const versionsOf = (r: Remote, id: string) =>
  allOf(query => r.host.GET('/api/admin/plugins/{id}/versions', { params: { path: { id }, query } }));

/** `plugin versions ID`. @returns what to print */
export async function listVersions(r: Remote, id: string): Promise<string> {
  const items = await versionsOf(r, id);
  const text = page({ items }, [
    ['VERSION', v => v.version],
    ['WASM_KEY', v => v.wasm_key],
    ['STATE', v => (v.installed ? 'installed' : v.installed_at === null ? 'uploaded' : 'was installed')],
    ['UPLOADED', v => when(v.uploaded_at)],
    ['FRONTEND', v => (v.frontend === null ? '-' : `${v.frontend.files} files`)],
    ['SIGNED BY', v => SIGNED[v.signature.state](v.signature)],
    ['PERMISSIONS', v => v.permissions.join(' ') || '-'],
  ]);
  return shown(r.json, { items }, text);
}

type Upload = { sha256: string; frontend: { sha256?: string; files: number } | null };

const isSameUpload = (a: Upload, b: Upload): boolean =>
  a.sha256 === b.sha256 && JSON.stringify(a.frontend) === JSON.stringify(b.frontend);

/** As the upload makes them; no version is written so. */
const WASM_KEY = /^[0-9a-f]{32}$/;

/**
 * The wasm_key of an upload, given by itself or as the version its author wrote.
 *
 * @param wasInstalled whether one that was installed before is meant
 * @throws OperatorError when no upload has this version, or several have
 */
async function wasmKeyOf(r: Remote, id: string, text: string, wasInstalled = false): Promise<string> {
  if (WASM_KEY.test(text)) return text;
  const versions = await versionsOf(r, id);
  const all = versions.filter(v => v.version === text);
  const once = wasInstalled ? all.filter(v => v.installed_at !== null && !v.installed) : all;
  if (wasInstalled && once.length === 0 && all.some(v => v.installed))
    throw new OperatorError(`${id} ${text} is what is installed; plugin-host plugin versions ${id} lists what was`);
  const found = once.length > 0 ? once : all;
  const [newest] = found;
  // One that was uploaded again is the same.
  if (newest !== undefined && found.every(v => isSameUpload(v, newest))) return newest.wasm_key;
  if (found.length > 1)
    throw new OperatorError(
      `${found.length} uploads of ${id} have the version ${text}: give the wasm_key of one, ${found.map(v => v.wasm_key).join(' or ')}`,
    );
  if (versions.length > 0)
    throw new OperatorError(
      `${id} has no uploaded version ${text}: it has ${[...new Set(versions.map(v => v.version))].join(', ')}`,
    );
  return text;
}

/** `plugin uninstall ID`. @returns what to print @throws OperatorError without --yes, saying what goes */
export async function uninstallPlugin(r: Remote, id: string, flags: RemoteFlags & { yes?: boolean }): Promise<string> {
  const params = { path: { id } };
  if (flags.yes !== true) {
    const { state, version } = await ask(() => r.host.GET('/api/admin/plugins/{id}', { params }));
    throw new OperatorError(
      `this uninstalls ${id}${version === null ? '' : ` ${version}`} (${state}) with its settings, keys and values; its versions are kept for a while. Say so with --yes`,
    );
  }
  await send(() => r.host.DELETE('/api/admin/plugins/{id}', { params }));
  return shown(r.json, { id, uninstalled: true }, `${id} is uninstalled`);
}

/** `plugin install ID WASM_KEY`. @returns what to print */
export async function installPlugin(remote: Remote, id: string, version: string, flags: InstallFlags): Promise<string> {
  const config = configOf(flags.configFile);
  const body = {
    wasm_key: await wasmKeyOf(remote, id, version),
    ...(config === undefined ? {} : { config }),
    ...(flags.acceptPermissions === true ? { accept_permissions: true as const } : {}),
    ...(flags.acceptSuggestedAccess === true ? { accept_suggested_access: true } : {}),
    ...confirmed(flags),
  };
  const params = { path: { id } };
  const installed = await ask(
    () => remote.host.POST('/api/admin/plugins/{id}/install', { params, body }),
    INSTALL_OPTIONS,
  );
  const lines = remote.json ? [] : await accessLines(remote, id);
  return shown(
    remote.json,
    installed,
    [`${id} ${installed.version} is installed and ${installed.state}`, ...lines].join('\n'),
  );
}

/** `plugin rollback ID WASM_KEY`. @returns what to print */
export async function rollbackPlugin(
  remote: Remote,
  id: string,
  version: string,
  flags: InstallFlags,
): Promise<string> {
  const body = { wasm_key: await wasmKeyOf(remote, id, version, true), ...confirmed(flags) };
  const params = { path: { id } };
  const back = await ask(() => remote.host.POST('/api/admin/plugins/{id}/rollback', { params, body }), INSTALL_OPTIONS);
  return shown(remote.json, back, `${id} is ${back.version} again, with the configuration it had then`);
}

/** `plugin enable ID`, `plugin disable ID`. @returns what to print */
export async function setPluginEnabled({ host, json }: Remote, id: string, enabled: boolean): Promise<string> {
  const params = { path: { id } };
  const changed = await ask(() =>
    enabled
      ? host.POST('/api/admin/plugins/{id}/enable', { params })
      : host.POST('/api/admin/plugins/{id}/disable', { params }),
  );
  return shown(json, changed, `${id} is ${changed.state}`);
}

/** `plugin resume ID [TRIGGER]`: lifts a suspension for all callers and hosts. @returns what to print */
export async function resumePlugin({ host, json }: Remote, id: string, trigger: string | undefined): Promise<string> {
  const answer = await ask(async () =>
    trigger === undefined
      ? await host.POST('/api/admin/plugins/{id}/resume', { params: { path: { id } } })
      : await host.POST('/api/admin/plugins/{id}/triggers/{name}/resume', { params: { path: { id, name: trigger } } }),
  );
  const what = trigger === undefined ? id : `${id} ${trigger}`;
  return shown(json, answer, answer.resumed ? `${what} is resumed` : `${what} was not suspended`);
}
