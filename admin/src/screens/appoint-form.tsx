import { Button, Group, Stack, Text, TextInput } from '@mantine/core';
import { useForm } from '@mantine/form';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api } from '../api/client.ts';
import { ApiProblem } from '../api/problem.ts';
import { LinkAnchor } from '../parts/links.tsx';
import { notifyDone, ProblemAlert } from '../parts/problem.tsx';
import { type MayDo, RolesField, sentRoles } from '../parts/roles-field.tsx';
import { useLeaveQuestion } from '../parts/use-leave-question.ts';
import { UserPicker } from '../parts/user-picker.tsx';
import { problemOf } from './roles-form.tsx';

/** Makes a person who is known an administrator. The temporary password goes to the address alone. */
export function AppointForm({ onCancel, onDone }: { onDone: () => void; onCancel: () => void }) {
  const { t } = useTranslation();
  const queries = useQueryClient();
  const [error, setError] = useState<unknown>(null);
  const form = useForm<{ user: number | null; email: string; may: MayDo }>({
    initialValues: { user: null, email: '', may: { roles: [], plugins: null } },
    validate: { may: may => problemOf(may, t) },
  });
  const saved = useLeaveQuestion(form.isDirty(), t('common.leaveText'));
  const submit = form.onSubmit(async ({ email, may, user }) => {
    setError(null);
    try {
      const body = { global_user_id: user ?? 0, email: email.trim(), ...sentRoles(may) };
      answered(await api.POST('/api/admin/admins', { body }));
      await queries.invalidateQueries({ queryKey: ['admins'] });
      notifyDone(t('admins.appointed', { email: body.email }));
      saved();
      onDone();
    } catch (problem) {
      setError(problem);
      const fields = problem instanceof ApiProblem ? problem.fields : {};
      if (Object.keys(fields).length > 0)
        form.setErrors({
          user: fields.global_user_id,
          email: fields.email,
          may: fields.roles ?? fields.plugins,
        });
    }
  });
  return (
    <form onSubmit={submit}>
      <Stack>
        <div>
          <UserPicker
            label={t('admins.person')}
            required
            value={form.values.user}
            onChange={user => form.setFieldValue('user', user)}
            error={form.errors.user}
          />
          <LinkAnchor to="/admin/people" search={{ add: '1' }} size="xs">
            {t('admins.personMissing')}
          </LinkAnchor>
        </div>
        <TextInput
          label={t('admins.email')}
          type="email"
          autoComplete="off"
          required
          {...form.getInputProps('email')}
        />
        <RolesField value={form.values.may} onChange={may => form.setFieldValue('may', may)} error={form.errors.may} />
        <Text size="sm" c="dimmed">
          {t('admins.appointText')}
        </Text>
        {error !== null && <ProblemAlert error={error} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={onCancel}>
            {t('common.cancel')}
          </Button>
          <Button type="submit" loading={form.submitting} disabled={form.values.user === null}>
            {t('admins.appointGo')}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
