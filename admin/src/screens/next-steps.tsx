import { Card, Group, Stack, Text, ThemeIcon, Title } from '@mantine/core';
import { IconCheck, IconPuzzle, IconUsers } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api } from '../api/client.ts';
import { useRefusal } from '../app/may.tsx';
import { useSession } from '../app/session.ts';
import { LinkButton } from '../parts/links.tsx';

const STEPS = { plugin: IconPuzzle, people: IconUsers } as const;

/** What a new service lacks: a plugin, and people who call it. Nothing is shown once both are there. */
export function NextSteps() {
  const { t } = useTranslation();
  const session = useSession();
  const mayReadPeople = useRefusal()('people') === null;
  const query = useQuery({
    queryKey: ['plugins', 'users', 'first'],
    queryFn: () => loadProgress(mayReadPeople),
    enabled: session.data !== undefined,
  });
  if (query.data === undefined || session.data?.setup_mode === true) return null;
  const { hasPeople, hasPlugin } = query.data;
  if (hasPeople && hasPlugin) return null;
  return (
    <Card withBorder component="section" aria-label={t('nextSteps.title')}>
      <Title order={2} size="h4" mb="sm">
        {t('nextSteps.title')}
      </Title>
      <Stack gap="md">
        <Step name="plugin" isDone={hasPlugin}>
          <LinkButton to="/admin/plugins/upload">{t('plugins.upload')}</LinkButton>
        </Step>
        <Step name="people" isDone={hasPeople}>
          <LinkButton to="/admin/university" variant={hasPlugin ? 'filled' : 'default'}>
            {t('people.import')}
          </LinkButton>
          <LinkButton to="/admin/people" search={{ add: '1' }} variant="default">
            {t('people.add')}
          </LinkButton>
        </Step>
      </Stack>
    </Card>
  );
}

function Step({ children, isDone, name }: { name: keyof typeof STEPS; isDone: boolean; children: ReactNode }) {
  const { t } = useTranslation();
  const Sign = isDone ? IconCheck : STEPS[name];
  return (
    <Group justify="space-between" align="center" gap="sm">
      <Group gap="sm" wrap="nowrap" align="flex-start" style={{ flex: '1 1 20rem' }}>
        <ThemeIcon size={36} radius="xl" variant="light" color={isDone ? 'teal' : undefined}>
          <Sign size={20} aria-hidden />
        </ThemeIcon>
        <div>
          <Text fw={600}>{t(isDone ? `nextSteps.${name}.done` : `nextSteps.${name}.title`)}</Text>
          {!isDone && (
            <Text size="sm" c="dimmed">
              {t(`nextSteps.${name}.about`)}
            </Text>
          )}
        </div>
      </Group>
      {!isDone && <Group gap="xs">{children}</Group>}
    </Group>
  );
}

/** Administrators are known as people, too: only others count. Without the right to read people none are asked for. */
async function loadProgress(mayReadPeople: boolean): Promise<{ hasPlugin: boolean; hasPeople: boolean }> {
  const plugins = answered(await api.GET('/api/admin/plugins', { params: { query: { limit: 1 } } }));
  const hasPlugin = plugins.items.length > 0;
  if (!mayReadPeople) return { hasPlugin, hasPeople: true };
  const [users, admins] = await Promise.all([
    api.GET('/api/admin/users', { params: { query: { limit: 200 } } }).then(answered),
    api.GET('/api/admin/admins', { params: { query: { limit: 200 } } }).then(answered),
  ]);
  const administrators = new Set(admins.items.map(a => a.global_user_id));
  return { hasPlugin, hasPeople: users.items.some(u => !administrators.has(u.id)) };
}
