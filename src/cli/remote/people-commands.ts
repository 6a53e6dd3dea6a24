import { present } from '../../api/contract/query.ts';
import { UsageError } from '../../base/errors.ts';
import { findUserId } from './find-named.ts';
import { choiceOf, type ListFlags, limitOf, members, page, when } from './operator-commands.ts';
import { ask, type Remote, type RemoteFlags, shown } from './remote.ts';

/** Users of a running service and their roles. */

/** `user list`. @returns what to print */
export async function listUsers(r: Remote, flags: ListFlags & { search?: string }): Promise<string> {
  const query = present({ limit: limitOf(flags), search: flags.search });
  const answer = await ask(() => r.host.GET('/api/admin/users', { params: { query } }));
  const text = page(answer, [
    ['ID', u => String(u.id)],
    ['NAME', u => u.display_name || '-'],
    ['EXTERNAL ID', u => u.external_id ?? '-'],
    ['ACCOUNT', u => u.idp_accounts_id ?? '-'],
    ['LOCALE', u => u.locale],
    ['SINCE', u => when(u.created_at)],
  ]);
  return shown(r.json, answer, text);
}

type HeldRole = { kind: string; role: string; plugin_id?: string; origin: string; granted_at: string };

const rolesTable = (items: readonly HeldRole[]): string =>
  page({ items }, [
    ['ROLE', h => (h.plugin_id === undefined ? h.role : `${h.plugin_id}/${h.role}`)],
    ['KIND', h => h.kind],
    ['FROM', h => h.origin],
    ['SINCE', h => when(h.granted_at)],
  ]);

/** `user show`. @returns what to print: the user, and the roles of the user */
export async function showUser(r: Remote, text: string): Promise<string> {
  const params = { path: { user: await findUserId(r, text) } };
  const user = await ask(() => r.host.GET('/api/admin/users/{user}', { params }));
  const roles = await ask(() => r.host.GET('/api/admin/users/{user}/roles', { params }));
  return shown(r.json, { ...user, roles: roles.items }, `${members(user)}\n\n${rolesTable(roles.items)}`);
}

export type UserFlags = RemoteFlags & { name?: string; externalId?: string; account?: string; locale?: string };

const LOCALES = ['ru', 'en'] as const;

/** The options as members of a user, as the API takes them. */
const givenUser = ({ account, externalId, locale, name }: UserFlags) =>
  present({
    display_name: name,
    external_id: externalId,
    idp_accounts_id: account,
    locale: choiceOf('locale', LOCALES, locale),
  });

/** Words of the API, as they are written here. */
const USER_OPTIONS = { display_name: '--name', external_id: '--external-id', idp_accounts_id: '--account' };

/** `user add`. @returns what to print */
export async function addUser(r: Remote, flags: UserFlags): Promise<string> {
  const body = givenUser(flags);
  if (Object.keys(body).length === 0) throw new UsageError('a user needs --name, --external-id or --account');
  const added = await ask(() => r.host.POST('/api/admin/users', { body }), USER_OPTIONS);
  return shown(r.json, added, `user:${added.id} is added`);
}

/** `user set`. @returns what to print */
export async function changeUser(r: Remote, text: string, flags: UserFlags): Promise<string> {
  const body = givenUser(flags);
  if (Object.keys(body).length === 0)
    throw new UsageError('there is nothing to change: give --name, --external-id, --account or --locale');
  const params = { path: { user: await findUserId(r, text) } };
  const changed = await ask(() => r.host.PATCH('/api/admin/users/{user}', { params, body }), USER_OPTIONS);
  return shown(r.json, changed, `user:${changed.id} is changed`);
}

/** `role list`. @returns what to print */
export async function listRoles(r: Remote): Promise<string> {
  const answer = await ask(() => r.host.GET('/api/admin/roles'));
  const text = page(answer, [
    ['ROLE', h => h.role],
    ['USERS', h => String(h.holders)],
    ['FROM', h => (h.imported ? 'import' : 'manual')],
  ]);
  return shown(r.json, answer, text);
}

/** `role users`. @returns what to print: who has a role of the database */
export async function listRoleUsers(r: Remote, role: string, flags: ListFlags): Promise<string> {
  const params = { path: { role }, query: { limit: limitOf(flags) } };
  const answer = await ask(() => r.host.GET('/api/admin/roles/{role}/users', { params }));
  const text = page(answer, [
    ['USER', h => `user:${h.user}`],
    ['NAME', h => h.display_name],
    ['FROM', h => h.origin],
    ['SINCE', h => when(h.granted_at)],
    ['BY', h => h.granted_by ?? ''],
  ]);
  return shown(r.json, answer, text);
}

export type RoleFlags = RemoteFlags & { kind?: string; plugin?: string };

const KINDS = ['database', 'system', 'global'] as const;

/** `role give` and `role take`. @returns what to print */
export async function changeRole(
  r: Remote,
  text: string,
  role: string,
  given: boolean,
  flags: RoleFlags,
): Promise<string> {
  const { kind, plugin } = flags;
  if (kind !== undefined && plugin !== undefined)
    throw new UsageError('a role of a plugin has no other kind: give --kind or --plugin');
  const of = choiceOf('kind', KINDS, kind) ?? 'database';
  const user = await findUserId(r, text);
  const answer = await ask(() => {
    if (plugin !== undefined) {
      const params = { path: { user, plugin, role } };
      return given
        ? r.host.PUT('/api/admin/users/{user}/roles/plugin/{plugin}/{role}', { params })
        : r.host.DELETE('/api/admin/users/{user}/roles/plugin/{plugin}/{role}', { params });
    }
    const params = { path: { user, kind: of, role } };
    return given
      ? r.host.PUT('/api/admin/users/{user}/roles/{kind}/{role}', { params })
      : r.host.DELETE('/api/admin/users/{user}/roles/{kind}/{role}', { params });
  });
  const what = `user:${user} ${given ? 'has' : 'no longer has'} the ${answer.kind} role ${role}`;
  const before = answer.changed ? '' : given ? ' already' : ', and had not';
  const warnings = answer.warnings.map(w => `warning: ${w.message}`);
  return shown(r.json, answer, [`${what}${before}`, ...warnings].join('\n'));
}
