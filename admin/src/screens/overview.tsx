import { Card, SimpleGrid, Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api } from '../api/client.ts';
import { Away, refusingFor, useReadiness } from '../parts/away.tsx';
import { Checks } from '../parts/checks.tsx';
import { LinkAnchor } from '../parts/links.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { Page } from '../parts/page.tsx';
import { type BadgeKind, StateBadge } from '../parts/state-badge.tsx';
import { When } from '../parts/time.tsx';
import { Activity } from './activity.tsx';
import { Attention } from './attention.tsx';
import { NextSteps } from './next-steps.tsx';

const REFRESH_MS = 15_000;

/** What needs attention first; then what is going on. */
export default function Overview() {
  const { t } = useTranslation();
  const { data } = useReadiness();
  const missing = refusingFor(data);
  // Everything below would only say so once more.
  if (missing !== null)
    return (
      <Page title={t('nav.overview')}>
        <Away missing={missing} />
      </Page>
    );
  return (
    <Page title={t('nav.overview')}>
      <NextSteps />
      <Attention />
      <Activity />
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <Health />
        <Hosts />
      </SimpleGrid>
    </Page>
  );
}

function Fact(props: { title: string; to: string; kind: BadgeKind; state: string; children?: ReactNode }) {
  const { children, kind, state, title, to } = props;
  return (
    <Card withBorder>
      <Stack mb="xs" gap={6} align="flex-start">
        <Title order={2} size="h5">
          <LinkAnchor to={to} inherit c="inherit">
            {title}
          </LinkAnchor>
        </Title>
        <StateBadge kind={kind} label={state} />
      </Stack>
      <Stack gap={4} fz="sm">
        {children}
      </Stack>
    </Card>
  );
}

function Hosts() {
  const { t } = useTranslation();
  const query = useQuery({
    queryKey: ['hosts'],
    queryFn: async () => answered(await api.GET('/api/admin/hosts')),
    refetchInterval: REFRESH_MS,
  });
  return (
    <Loaded query={query}>
      {({ items }) => {
        const silent = items.filter(h => h.state === 'silent').length;
        return (
          <Fact
            title={t('overview.hosts')}
            to="/admin/system"
            kind={silent > 0 ? 'bad' : 'good'}
            state={
              silent > 0 ? t('overview.silent', { count: silent }) : t('overview.serving', { count: items.length })
            }
          >
            {items.map(h => (
              <Text key={h.id} size="sm">
                {h.name} · {h.versions.join(', ')} · {t('overview.since')} <When at={h.started_at} />
              </Text>
            ))}
          </Fact>
        );
      }}
    </Loaded>
  );
}

function Health() {
  const { t } = useTranslation();
  const query = useReadiness();
  return (
    <Loaded query={query}>
      {({ checks, status }) => (
        <Fact
          title={t('overview.health')}
          to="/admin/system"
          kind={status === 'ready' ? 'good' : status === 'degraded' ? 'warn' : 'bad'}
          state={t(`health.${status}`)}
        >
          <Checks checks={checks} />
        </Fact>
      )}
    </Loaded>
  );
}
