import { notifications } from '@mantine/notifications';
import { useQueryClient } from '@tanstack/react-query';
import type { TFunction } from 'i18next';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import { confirmed } from '../api/questions.ts';
import { notifyDone, notifyProblem } from './problem.tsx';

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
    queries.removeQueries({ queryKey: ['why'] });
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

/** Takes a role from a person, once that is confirmed, and says what became of it. */
export function useTakeRole(): (
  person: { id: number; name: string },
  role: NamedRole,
  origin: 'import' | 'manual',
) => Promise<void> {
  const { t } = useTranslation();
  const change = useChangeRole();
  return async ({ id, name }, role, origin) => {
    const text = origin === 'import' ? 'personRoles.takeImportText' : 'personRoles.takeText';
    const words = { name, role: role.role };
    const question = { title: t('personRoles.take'), text: t(text, words), action: t('personRoles.take') };
    if (!(await confirmed({ ...question, isDangerous: true }))) return;
    try {
      await change(id, role, false);
      notifyDone(t('personRoles.taken', words));
    } catch (problem) {
      notifyProblem(problem);
    }
  };
}
