import fs from 'node:fs';
import path from 'node:path';
import { messageOf, OperatorError } from '../base/errors.ts';
import { ask, type Remote, type RemoteFlags, shown } from './remote.ts';
import { table } from './table.ts';

/** `plugin ...`: the admin API of a service from a terminal or a CI job, through the client in `sdk/client`. */

export type InstallFlags = RemoteFlags & { configFile?: string; acceptPermissions?: boolean; acceptPublic?: boolean };

/** `plugin list`. @returns what to print */
export async function listPlugins({ host, json }: Remote): Promise<string> {
  const items = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const query: { limit: number; cursor?: string } = cursor === '' ? { limit: 200 } : { limit: 200, cursor };
    const page = await ask(() => host.GET('/api/admin/plugins', { params: { query } }));
    items.push(...page.items);
    cursor = page.next_cursor;
  }
  const rows = items.map(p => [p.id, p.version ?? '-', p.state, p.name ?? '']);
  return shown(json, items, table([['ID', 'VERSION', 'STATE', 'NAME'], ...rows]));
}

function readFile(file: string): Blob {
  try {
    return new Blob([fs.readFileSync(file)]);
  } catch (error) {
    throw new OperatorError(`${file} cannot be read: ${messageOf(error)}`);
  }
}

/** `plugin upload FILE`. @returns what to print: the key to install it by, and what it asks for */
export async function uploadPlugin({ host, json }: Remote, file: string, frontend?: string): Promise<string> {
  const form = new FormData();
  form.append('file', readFile(file), path.basename(file));
  if (frontend !== undefined) form.append('frontend', readFile(frontend), path.basename(frontend));
  const uploaded = await ask(() =>
    host.POST('/api/admin/plugins/upload', { body: form, bodySerializer: body => body }),
  );
  const lines = [
    `${uploaded.id} ${uploaded.version} is uploaded; nothing is installed yet`,
    `permissions: ${uploaded.permissions.join(', ') || 'none'}`,
    ...(uploaded.new_permissions.length === 0 ? [] : [`new permissions: ${uploaded.new_permissions.join(', ')}`]),
    ...uploaded.access.map(a => `trigger ${a.trigger}: ${a.methods.join(', ')} ${a.url}, ${a.effective_access}`),
    `install it: plugin-host plugin install ${uploaded.id} ${uploaded.wasm_key}`,
  ];
  return shown(json, uploaded, lines.join('\n'));
}

function configOf(file: string | undefined): Record<string, unknown> | undefined {
  if (file === undefined) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(fs.readFileSync(file, 'utf8'));
  } catch (error) {
    // The message of the parser quotes the file, which may hold secrets.
    const where =
      error instanceof SyntaxError ? (/at position \d+.*$/.exec(error.message)?.[0] ?? '') : messageOf(error);
    throw new OperatorError(`${file} is not JSON that can be read${where === '' ? '' : `: ${where}`}`);
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value };
  throw new OperatorError(`${file} must hold a JSON object with the configuration of the plugin`);
}

/** `plugin install ID WASM_KEY`. @returns what to print */
export async function installPlugin(remote: Remote, id: string, wasmKey: string, flags: InstallFlags): Promise<string> {
  const config = configOf(flags.configFile);
  const body = {
    wasm_key: wasmKey,
    ...(config === undefined ? {} : { config }),
    ...(flags.acceptPermissions === true ? { accept_permissions: true as const } : {}),
    ...(flags.acceptPublic === true ? { accept_public: true } : {}),
  };
  const params = { path: { id } };
  const installed = await ask(() => remote.host.POST('/api/admin/plugins/{id}/install', { params, body }));
  return shown(remote.json, installed, `${id} ${installed.version} is installed and ${installed.state}`);
}

/** `plugin rollback ID WASM_KEY`. @returns what to print */
export async function rollbackPlugin(
  remote: Remote,
  id: string,
  wasmKey: string,
  flags: InstallFlags,
): Promise<string> {
  const body = { wasm_key: wasmKey, ...(flags.acceptPublic === true ? { accept_public: true } : {}) };
  const params = { path: { id } };
  const back = await ask(() => remote.host.POST('/api/admin/plugins/{id}/rollback', { params, body }));
  return shown(remote.json, back, `${id} is ${back.version} again`);
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
