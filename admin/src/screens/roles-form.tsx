import { Button, Group, Stack, Text } from '@mantine/core';
import { useForm } from '@mantine/form';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api } from '../api/client.ts';
import { ApiProblem } from '../api/problem.ts';
import { useNewSession } from '../app/session.ts';
import { notifyDone, ProblemAlert } from '../parts/problem.tsx';
import { type MayDo, RolesField, sentRoles } from '../parts/roles-field.tsx';
import { useLeaveQuestion } from '../parts/use-leave-question.ts';
import type { Admin } from './administrators.tsx';

/** Changes what an administrator may do. */
export function RolesForm({ admin: a, isOwn, onDone }: { admin: Admin; isOwn: boolean; onDone: () => void }) {
  const { t } = useTranslation();
  const queries = useQueryClient();
  const begin = useNewSession();
  const [error, setError] = useState<unknown>(null);
  const form = useForm<{ may: MayDo }>({
    initialValues: { may: { roles: a.roles, plugins: a.plugins } },
    validate: { may: may => problemOf(may, t) },
  });
  const saved = useLeaveQuestion(form.isDirty(), t('common.leaveText'));
  const submit = form.onSubmit(async ({ may }) => {
    setError(null);
    try {
      const params = { path: { user: a.global_user_id } };
      answered(await api.PATCH('/api/admin/admins/{user}', { params, body: sentRoles(may) }));
      notifyDone(t('admins.rolesSaved', { name: a.display_name || a.email }));
      saved();
      onDone();
      await (isOwn ? begin() : queries.invalidateQueries({ queryKey: ['admins'] }));
    } catch (problem) {
      setError(problem);
      const { plugins, roles } = problem instanceof ApiProblem ? problem.fields : {};
      if ((roles ?? plugins) !== undefined) form.setErrors({ may: roles ?? plugins });
    }
  });
  return (
    <form onSubmit={submit}>
      <Stack>
        <RolesField value={form.values.may} onChange={may => form.setFieldValue('may', may)} error={form.errors.may} />
        <Text size="sm" c="dimmed">
          {t('admins.rolesAbout')}
        </Text>
        {error !== null && <ProblemAlert error={error} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={onDone}>
            {t('common.cancel')}
          </Button>
          <Button type="submit" loading={form.submitting}>
            {t('common.save')}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

/** What is missing in a choice of roles, in words. */
export function problemOf(
  may: MayDo,
  t: (key: 'admins.rolesMissing' | 'admins.pluginsMissing') => string,
): string | null {
  const { plugins, roles } = sentRoles(may);
  if (roles.length === 0) return t('admins.rolesMissing');
  return plugins?.length === 0 ? t('admins.pluginsMissing') : null;
}
