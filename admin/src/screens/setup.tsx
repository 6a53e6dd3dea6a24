import {
  Alert,
  Box,
  Button,
  Card,
  Code,
  PasswordInput,
  SimpleGrid,
  Stack,
  Text,
  TextInput,
  Title,
} from '@mantine/core';
import { useForm } from '@mantine/form';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api } from '../api/client.ts';
import { ApiProblem } from '../api/problem.ts';
import { readiness } from '../api/readiness.ts';
import { useNewSession, useSession } from '../app/session.ts';
import { Checks } from '../parts/checks.tsx';
import { Doctor } from '../parts/doctor.tsx';
import { LinkButton } from '../parts/links.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { Page } from '../parts/page.tsx';
import { ProblemAlert } from '../parts/problem.tsx';
import { currentLanguage } from '../texts/index.ts';
import { MailTest } from './system-mail.tsx';

const REFRESH_MS = 5_000;

/** The first start: what the service needs, looked at while one waits, and the first administrator. */
export default function Setup() {
  const { t } = useTranslation();
  const session = useSession();
  const checks = useQuery({ queryKey: ['readiness'], queryFn: readiness, refetchInterval: REFRESH_MS });
  const isDone = session.data?.setup_mode === false;
  return (
    <Page title={t('setup.title')} about={isDone ? undefined : t('setup.about')}>
      <SimpleGrid cols={{ base: 1, md: 2 }}>
        <Card withBorder>
          <Title order={2} size="h4" mb="sm">
            {t('setup.admin')}
          </Title>
          {isDone ? <Done /> : <FirstAdministrator />}
        </Card>
        <Card withBorder>
          <Title order={2} size="h4" mb="sm">
            {t('setup.checks')}
          </Title>
          <Stack gap="sm">
            <Loaded query={checks}>{data => <Checks checks={data.checks} />}</Loaded>
            <div>
              <Text size="sm" fw={500} mb={4}>
                {t('system.mail')}
              </Text>
              <Text size="xs" c="dimmed" mb={4}>
                {t('setup.mailAbout')}
              </Text>
              <MailTest isOptional />
            </div>
            <div>
              <Text size="sm" fw={500}>
                {t('setup.address')}
              </Text>
              <Code>{location.origin}</Code>
              <Text size="xs" c="dimmed" mt={4}>
                {t('setup.addressAbout')}
              </Text>
              <Box mt="xs">
                <Doctor only="public address" label={t('setup.addressLook')} />
              </Box>
            </div>
          </Stack>
        </Card>
      </SimpleGrid>
    </Page>
  );
}

/** Where to go on once there is an administrator. */
function Done() {
  const { t } = useTranslation();
  return (
    <Alert color="teal">
      <Stack gap="sm" align="flex-start">
        <Text size="sm">{t('setup.done')}</Text>
        <LinkButton to="/admin/" size="xs">
          {t('setup.goOn')}
        </LinkButton>
      </Stack>
    </Alert>
  );
}

function FirstAdministrator() {
  const { t } = useTranslation();
  const begin = useNewSession();
  const go = useNavigate();
  const [error, setError] = useState<unknown>(null);
  const form = useForm({
    initialValues: { name: '', email: '', password: '', again: '' },
    validate: { again: (again, all) => (again === all.password ? null : t('password.differ')) },
  });
  // A refusal is of what was sent before.
  const submit = form.onSubmit(
    async ({ email, name, password }) => {
      setError(null);
      try {
        const body = { email, password, locale: currentLanguage(), ...(name === '' ? {} : { name }) };
        answered(await api.POST('/api/admin/auth/setup', { body }));
        await begin();
        await go({ to: '/admin/' });
      } catch (problem) {
        setError(problem);
        if (problem instanceof ApiProblem) form.setErrors(problem.fields);
      }
    },
    () => setError(null),
  );
  return (
    <form onSubmit={submit}>
      <Stack>
        <TextInput
          label={t('setup.name')}
          description={t('setup.nameAbout')}
          autoComplete="name"
          autoFocus
          {...form.getInputProps('name')}
        />
        <TextInput
          label={t('login.email')}
          description={t('setup.emailAbout')}
          type="email"
          autoComplete="username"
          required
          {...form.getInputProps('email')}
        />
        <PasswordInput
          label={t('login.password')}
          description={t('password.rule')}
          autoComplete="new-password"
          required
          {...form.getInputProps('password')}
        />
        <PasswordInput label={t('setup.again')} autoComplete="new-password" required {...form.getInputProps('again')} />
        <ProblemAlert error={error} />
        <Button type="submit" loading={form.submitting}>
          {t('setup.submit')}
        </Button>
      </Stack>
    </form>
  );
}
