import { Button, PasswordInput, Stack, Text } from '@mantine/core';
import { useForm } from '@mantine/form';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api } from '../api/client.ts';
import { ApiProblem } from '../api/problem.ts';
import { useNewSession } from '../app/session.ts';
import { notifyDone, ProblemAlert } from '../parts/problem.tsx';

/** The change of one's own password. A temporary one opens nothing before it is changed. */
export default function NewPassword({ isTemporary = false }: { isTemporary?: boolean }) {
  const { t } = useTranslation();
  const begin = useNewSession();
  const [error, setError] = useState<unknown>(null);
  const form = useForm({
    initialValues: { current_password: '', new_password: '', again: '' },
    validate: { again: (again, all) => (again === all.new_password ? null : t('password.differ')) },
  });
  const submit = form.onSubmit(async ({ current_password, new_password }) => {
    setError(null);
    try {
      answered(await api.PUT('/api/admin/auth/password', { body: { current_password, new_password } }));
      form.reset();
      notifyDone(t('password.done'));
      await begin();
    } catch (problem) {
      setError(problem);
      if (problem instanceof ApiProblem) form.setErrors(problem.fields);
    }
  });
  return (
    <form onSubmit={submit}>
      <Stack>
        <Text size="sm" c="dimmed">
          {t(isTemporary ? 'password.temporary' : 'password.about')}
        </Text>
        <PasswordInput
          label={t(isTemporary ? 'password.currentTemporary' : 'password.current')}
          autoComplete="current-password"
          required
          {...form.getInputProps('current_password')}
        />
        <PasswordInput
          label={t('password.new')}
          description={t('password.rule')}
          autoComplete="new-password"
          required
          {...form.getInputProps('new_password')}
        />
        <PasswordInput
          label={t('password.again')}
          autoComplete="new-password"
          required
          {...form.getInputProps('again')}
        />
        <ProblemAlert error={error} />
        <Button type="submit" loading={form.submitting}>
          {t('password.submit')}
        </Button>
      </Stack>
    </form>
  );
}
