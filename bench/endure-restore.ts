import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { systemAccount } from '../src/supervisor/children/unprivileged.ts';
import { startEmbeddedSpicedb } from '../src/supervisor/stores/embedded-spicedb.ts';
import { makeCaller } from './caller.ts';
import { installFilebox, makeSource, transfer } from './files.ts';
import { startHost } from './host.ts';

const MAIN = path.resolve(import.meta.dirname, '../src/main.ts');
const KEEPER = {
  resource_type: 'plugin_role',
  resource_id: 'filebox/keeper',
  relation: 'member',
  subject_id: 'e1',
};

type Ask = (where: string, body?: object, method?: string) => Promise<Record<string, unknown>>;

/** Waits until the graph store is filled. */
async function ready(port: number): Promise<void> {
  let last = '';
  for (let k = 0; k < 600; k++) {
    const answer = await fetch(`http://127.0.0.1:${port}/readyz`);
    last = await answer.text();
    if ((JSON.parse(last) as { status: string }).status === 'ready') return;
    await sleep(100);
  }
  throw new Error(`the service is not ready a minute after its start: ${last}`);
}

/**
 * A backup is made, the plugin is uninstalled and its right taken back, and the backup is restored. The graph store is one that
 * outlives the service, so it holds what came after the backup until the service fills it again.
 *
 * @returns what is wrong; nothing when the plugin is as it was
 */
export async function restoreAfterUninstall(directory: string): Promise<string[]> {
  fs.mkdirSync(directory, { recursive: true });
  // A supervisor of root serves as this account, which must reach the store.
  const account = process.getuid?.() === 0 ? systemAccount('plugin-host', () => {}) : null;
  const spicedb = await startEmbeddedSpicedb(path.join(directory, 'spicedb'), account);
  const env = {
    BOT_SPICEDB_ENDPOINT: spicedb.endpoint,
    BOT_SPICEDB_TOKEN: 'any',
    BOT_SPICEDB_TLS: 'false',
    BOT_SECRETS_KEY: randomBytes(32).toString('base64'),
  };
  const wrong: string[] = [];
  const data = path.join(directory, 'data');
  const backup = path.join(directory, 'backup');
  const source = await makeSource(directory, 3 * 1024 * 1024);
  const command = (...words: string[]) =>
    promisify(execFile)(process.execPath, [MAIN, ...words], {
      env: { PATH: process.env.PATH, BOT_DATA_DIR: data, ...env },
    });
  let host = await startHost(directory, env);
  try {
    await ready(host.port);
    const caller = await makeCaller(host.port);
    const ask: Ask = async (where, body, method = 'POST') => {
      const answer = await fetch(`http://127.0.0.1:${host.port}/api/admin${where}`, {
        method,
        headers: { 'content-type': 'application/json', cookie: caller.cookie },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await answer.text();
      if (!answer.ok) throw new Error(`${method} ${where}: ${answer.status} ${text}`);
      return text === '' ? {} : JSON.parse(text);
    };
    const mayKeep = async (): Promise<boolean> => {
      const { resource_id, resource_type, subject_id } = KEEPER;
      const question = new URLSearchParams({ resource_type, resource_id, permission: 'is_member', user: subject_id });
      return (await ask(`/relationships/lookup?${question}`, undefined, 'GET')).allowed === true;
    };
    await installFilebox(host.port, caller);
    await ask(`/users/${caller.userId}`, { external_id: 'e1' }, 'PATCH');
    await ask('/relationships', KEEPER);
    const policy_expression = 'is_member("plugin_role", "filebox/keeper")';
    for (const name of ['files', 'checksum', 'link'])
      await ask(`/plugins/filebox/triggers/${name}/settings`, { allow_user_session: true, policy_expression }, 'PUT');
    await transfer(host.port, caller, source);
    await command('backup', backup);

    await ask('/plugins/filebox', undefined, 'DELETE');
    await ask('/relationships', KEEPER, 'DELETE');
    if (await mayKeep()) wrong.push('the right is there after it was taken back');
    const gone = await transfer(host.port, caller, source).then(
      () => 'the uninstalled plugin answers',
      () => null,
    );
    if (gone !== null) wrong.push(gone);
    await host.stop();
    fs.renameSync(data, `${data}.after`);
    await command('restore', backup, '--keep-credentials');
    host = await startHost(directory, env);
    await ready(host.port);
    if (!(await mayKeep())) wrong.push('the right of the backup is missing in the graph');
    const failure = await transfer(host.port, caller, source).then(
      () => null,
      (error: unknown) => String(error),
    );
    if (failure !== null) wrong.push(failure);
    const { extra_count, missing_count } = await ask('/authz/drift', undefined, 'GET');
    if (extra_count !== 0 || missing_count !== 0) wrong.push(`drift: ${missing_count} missing, ${extra_count} extra`);
  } finally {
    await host.stop();
    await spicedb.stop();
  }
  return wrong;
}
