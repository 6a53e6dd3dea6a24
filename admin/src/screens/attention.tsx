import { Card, Divider, Group, Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Fragment } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import { AWAY_REFRESH_MS, AwayHelp, awayOf } from '../parts/away.tsx';
import { LinkButton } from '../parts/links.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { StateBadge } from '../parts/state-badge.tsx';
import { When } from '../parts/time.tsx';

type Item = Schemas['Attention'];

/** Where each kind is looked into and mended. */
const WHERE = {
  suspended: { to: '/admin/plugins', search: {} },
  outbox_dead: { to: '/admin/outbox', search: { state: 'dead' } },
  outbox_late: { to: '/admin/outbox', search: { state: 'pending' } },
  graph_differs: { to: '/admin/outbox', search: { tab: 'drift' } },
  events_undelivered: { to: '/admin/events', search: { tab: 'subscriptions' } },
  mails_unsent: { to: '/admin/administrators', search: {} },
  host_silent: { to: '/admin/system', search: {} },
  config_wrong: { to: '/admin/system', search: { tab: 'config' } },
  config_changed: { to: '/admin/system', search: { tab: 'config' } },
  check_failed: { to: '/admin/system', search: {} },
  import_stopped: { to: '/admin/university', search: { tab: 'pulls' } },
  import_broken: { to: '/admin/university', search: { tab: 'history' } },
  import_failed: { to: '/admin/university', search: { tab: 'history' } },
  messages_uncertain: { to: '/admin/messages', search: { state: 'uncertain' } },
  messages_failed: { to: '/admin/messages', search: { state: 'failed' } },
} as const satisfies Record<Item['kind'], { to: string; search: Record<string, string> }>;

/** What waits for an administrator, the worst first, each with the screen that helps. */
export function Attention() {
  const { t } = useTranslation();
  const query = useQuery({
    queryKey: ['attention'],
    queryFn: async () => answered(await api.GET('/api/admin/attention')),
    refetchInterval: AWAY_REFRESH_MS,
    retry: false,
  });
  return (
    <Card withBorder component="section" aria-label={t('attention.title')} padding="md">
      <Title order={2} size="h4" mb="xs">
        {t('attention.title')}
      </Title>
      <Loaded query={query}>
        {({ items }) =>
          items.length === 0 ? (
            <Group gap="xs">
              <StateBadge kind="good" label={t('attention.well')} />
              <Text size="sm" c="dimmed">
                {t('attention.none')}
              </Text>
            </Group>
          ) : (
            <Stack gap="xs" aria-live="polite">
              {items.map((item, k) => (
                <Fragment key={`${item.kind} ${item.check} ${item.detail}`}>
                  {k > 0 && <Divider />}
                  <One item={item} />
                </Fragment>
              ))}
            </Stack>
          )
        }
      </Loaded>
    </Card>
  );
}

function One({ item }: { item: Item }) {
  const { check, count, detail, kind, severity, since, type } = item;
  const { t } = useTranslation();
  const away = awayOf(check);
  return (
    <Group justify="space-between" gap="sm">
      <Group gap="4px 12px" align="flex-start" style={{ flex: '1 1 18rem', minWidth: 0 }}>
        <StateBadge kind={severity} label={t(`attention.severity.${severity}`)} />
        <div style={{ flex: '1 1 13rem', minWidth: 0 }}>
          <Text size="sm" fw={500}>
            {away === undefined ? t(`attention.kind.${kind}`, { count }) : t(`away.${away}.title`)}
            {type !== undefined && `: ${t(`university.type.${type}`)}`}
          </Text>
          {away !== undefined && <AwayHelp name={away} />}
          {(detail !== null || since !== null) && (
            <Text
              size="xs"
              c="dimmed"
              style={{ overflowWrap: 'anywhere' }}
              lineClamp={3}
              lang={detail === null ? undefined : 'en'}
            >
              {since !== null && <When at={since} />}
              {since !== null && detail !== null && ' · '}
              {detail}
            </Text>
          )}
        </div>
      </Group>
      <Way item={item} />
    </Group>
  );
}

/** The way to where it is mended. */
function Way({ item: { check, import: run, kind, plugin } }: { item: Item }) {
  const { t } = useTranslation();
  const away = awayOf(check);
  const look = { variant: 'default', size: 'xs' } as const;
  const label = t(`attention.go.${kind}`);
  if (plugin !== null)
    return (
      <LinkButton to="/admin/plugins/$id" params={{ id: plugin }} {...look}>
        {label}
      </LinkButton>
    );
  if (run !== undefined && kind !== 'import_stopped')
    return (
      <LinkButton to="/admin/university/imports/$import" params={{ import: String(run) }} {...look}>
        {label}
      </LinkButton>
    );
  if (away === 'telegram' || away === 'vk')
    return (
      <LinkButton to="/admin/messages" {...look}>
        {t('attention.messages')}
      </LinkButton>
    );
  return (
    <LinkButton {...WHERE[kind]} {...look}>
      {kind === 'suspended' ? t('attention.plugins') : label}
    </LinkButton>
  );
}
