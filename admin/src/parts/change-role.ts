import { notifications } from '@mantine/notifications';
import { useQueryClient } from '@tanstack/react-query';
import type { TFunction } from 'i18next';
import { answered, api, type Schemas } from '../api/client.ts';

export const ROLE_KINDS = ['database', 'system', 'global', 'plugin'] as const;
export type RoleKind = (typeof ROLE_KINDS)[number];
/** A role; `plugin` is null but for those of a plugin. */
export type NamedRole = { kind: RoleKind; role: string; plugin: string | null };

/** Gives a person a role or takes it, and reads what follows from it again. */
export function useChangeRole(): (user: number, role: NamedRole, give: boolean) => Promise<Schemas['UserRoleChange']> {
  const queries = useQueryClient();
  return async (user, { kind, plugin, role }, give) => {
    const ofPlugin = { params: { path: { user, plugin: plugin ?? '', role } } };
    const named = { params: { path: { user, kind: kind === 'plugin' ? 'database' : kind, role } } } as const;
    const pluginPath = '/api/admin/users/{user}/roles/plugin/{plugin}/{role}';
    const path = '/api/admin/users/{user}/roles/{kind}/{role}';
    const change =
      kind === 'plugin'
        ? answered(await (give ? api.PUT(pluginPath, ofPlugin) : api.DELETE(pluginPath, ofPlugin)))
        : answered(await (give ? api.PUT(path, named) : api.DELETE(path, named)));
    await Promise.all([
      queries.invalidateQueries({ queryKey: ['users', 'roles', user] }),
      queries.invalidateQueries({ queryKey: ['roles'] }),
      queries.invalidateQueries({ queryKey: ['relationships'] }),
    ]);
    return change;
  };
}

/** Says that a role was given, with what may be odd about it. */
export function notifyGiven(t: TFunction, role: string, { delivered, warnings }: Schemas['UserRoleChange']): void {
  const notes = [...warnings.map(w => w.message), ...(delivered ? [] : [t('personRoles.notDelivered')])];
  notifications.show({
    color: warnings.length > 0 ? 'orange' : 'teal',
    title: t(warnings.length > 0 ? 'personRoles.givenWarn' : 'personRoles.given', { role }),
    message: notes.join(' '),
    ...(warnings.length > 0 ? { autoClose: 15_000 } : {}),
  });
}
