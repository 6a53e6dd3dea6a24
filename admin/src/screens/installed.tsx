import { Alert, Group, Stack } from '@mantine/core';
import { IconCheck } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { answered, api } from '../api/client.ts';
import { LinkButton } from '../parts/links.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { UnheldRoles } from '../parts/role-field.tsx';
import { TryTrigger } from '../parts/try-trigger.tsx';
import { Section } from './review.tsx';

/** The end of an installation: it runs, and can be called right here. */
export function Installed({ id }: { id: string }) {
  const { t } = useTranslation();
  const plugin = useQuery({
    queryKey: ['plugins', id],
    queryFn: async () => answered(await api.GET('/api/admin/plugins/{id}', { params: { path: { id } } })),
  });
  const triggers = useQuery({
    queryKey: ['plugins', id, 'triggers'],
    queryFn: async () => answered(await api.GET('/api/admin/plugins/{id}/triggers', { params: { path: { id } } })),
  });
  return (
    <Loaded query={plugin}>
      {p => (
        <Stack>
          <Alert
            color="teal"
            icon={<IconCheck aria-hidden />}
            title={t('installed.title', { name: p.name ?? p.id, version: p.version })}
          >
            {t('installed.about')}
          </Alert>
          <UnheldRoles policies={triggers.data?.items.map(s => s.policy_expression) ?? []} />
          {p.triggers.some(x => x.type === 'http') && (
            <Section title={t('installed.call')}>
              <TryTrigger pluginId={id} triggers={p.triggers} />
            </Section>
          )}
          <Group justify="flex-end">
            <LinkButton variant="default" to="/admin/plugins/$id" params={{ id }} search={{ tab: 'access' }}>
              {t('installed.access')}
            </LinkButton>
            <LinkButton variant="default" to="/admin/plugins/$id" params={{ id }}>
              {t('installed.open')}
            </LinkButton>
          </Group>
        </Stack>
      )}
    </Loaded>
  );
}
