import { Card, SimpleGrid, Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api } from '../api/client.ts';
import { readiness } from '../api/readiness.ts';
import { Checks } from '../parts/checks.tsx';
import { LinkAnchor } from '../parts/links.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { Page } from '../parts/page.tsx';
import { type BadgeKind, StateBadge } from '../parts/state-badge.tsx';
import { SuspensionCause } from '../parts/suspension-cause.tsx';
import { When } from '../parts/time.tsx';
import { Activity } from './activity.tsx';
import { NextSteps } from './next-steps.tsx';

const REFRESH_MS = 15_000;

/** What needs attention first; what is well is said in one line each. */
export default function Overview() {
  const { t } = useTranslation();
  return (
    <Page title={t('nav.overview')}>
      <NextSteps />
      <SimpleGrid cols={{ base: 1, sm: 2, xl: 4 }}>
        <Suspensions />
        <Outbox />
        <Messages />
        <Imports />
        <Hosts />
        <Health />
        <Events />
        <Mails />
      </SimpleGrid>
      <Activity />
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

function Suspensions() {
  const { t } = useTranslation();
  const query = useQuery({
    queryKey: ['suspensions'],
    queryFn: async () => answered(await api.GET('/api/admin/suspensions')),
    refetchInterval: REFRESH_MS,
  });
  return (
    <Loaded query={query}>
      {({ items }) => (
        <Fact
          title={t('overview.suspensions')}
          to="/admin/plugins"
          kind={items.length > 0 ? 'bad' : 'good'}
          state={items.length > 0 ? t('overview.suspended', { count: items.length }) : t('overview.none')}
        >
          {items.slice(0, 5).map(s => (
            <Text key={`${s.plugin_id} ${s.trigger} ${s.caller}`} size="sm" component="div">
              <LinkAnchor to="/admin/plugins/$id" params={{ id: s.plugin_id }}>
                {s.plugin_id}
                {s.trigger === null ? '' : ` · ${s.trigger}`}
              </LinkAnchor>
              <Text size="xs" c="dimmed" component="div">
                <SuspensionCause suspension={s} />
              </Text>
            </Text>
          ))}
          {items.length === 0 && (
            <Text c="dimmed" size="sm">
              {t('overview.noSuspensions')}
            </Text>
          )}
        </Fact>
      )}
    </Loaded>
  );
}

function Outbox() {
  const { t } = useTranslation();
  const query = useQuery({
    queryKey: ['outbox', 'summary'],
    queryFn: async () =>
      answered(await api.GET('/api/admin/outbox', { params: { query: { limit: 1, state: 'dead' } } })),
    refetchInterval: REFRESH_MS,
  });
  return (
    <Loaded query={query}>
      {({ dead, lag_ms, last_comparison, oldest_pending_seconds, paused, pending }) => {
        const differing =
          last_comparison === null || last_comparison.repaired
            ? 0
            : last_comparison.missing_count + last_comparison.extra_count;
        const isStuck = paused !== null || (oldest_pending_seconds ?? 0) > 60;
        return (
          <Fact
            title={t('nav.outbox')}
            to="/admin/outbox"
            kind={dead > 0 || differing > 0 ? 'bad' : isStuck ? 'warn' : 'good'}
            state={
              dead > 0
                ? t('overview.dead', { count: dead })
                : differing > 0
                  ? t('overview.differs')
                  : isStuck
                    ? t('overview.delayed')
                    : t('overview.inStep')
            }
          >
            <Text size="sm">{t('overview.pending', { count: pending })}</Text>
            <Text size="sm" c="dimmed">
              {lag_ms === null
                ? t('overview.noLag')
                : t('overview.lag', { p50: Math.round(lag_ms.p50), p99: Math.round(lag_ms.p99) })}
            </Text>
            {paused !== null && <Text size="sm">{paused.reason}</Text>}
            {last_comparison !== null && (
              <Text size="sm" c="dimmed" component="div">
                <LinkAnchor to="/admin/outbox" search={{ tab: 'drift' }}>
                  {differing > 0 ? t('overview.differing', { count: differing }) : t('overview.compared')}
                </LinkAnchor>{' '}
                <When at={last_comparison.at} />
              </Text>
            )}
          </Fact>
        );
      }}
    </Loaded>
  );
}

function Messages() {
  const { t } = useTranslation();
  const query = useQuery({
    queryKey: ['messages', 'failed'],
    queryFn: async () =>
      answered(await api.GET('/api/admin/messages', { params: { query: { limit: 5, state: 'failed' } } })),
    refetchInterval: REFRESH_MS,
  });
  return (
    <Loaded query={query}>
      {({ items }) => (
        <Fact
          title={t('nav.messages')}
          to="/admin/messages"
          kind={items.length > 0 ? 'warn' : 'good'}
          state={items.length > 0 ? t('overview.failed') : t('overview.none')}
        >
          {items.length === 0 && (
            <Text c="dimmed" size="sm">
              {t('overview.noFailedMessages')}
            </Text>
          )}
          {items.map(m => (
            <Text key={m.id} size="sm" lineClamp={1}>
              {m.channel} {m.chat_id}: {m.last_error}
            </Text>
          ))}
        </Fact>
      )}
    </Loaded>
  );
}

function Imports() {
  const { t } = useTranslation();
  const query = useQuery({
    queryKey: ['imports', 'last'],
    queryFn: async () => answered(await api.GET('/api/admin/university/imports', { params: { query: { limit: 1 } } })),
    refetchInterval: REFRESH_MS,
  });
  return (
    <Loaded query={query}>
      {({ items: [last] }) => {
        const isWell = last === undefined || last.state === 'succeeded' || last.state === 'running';
        return (
          <Fact
            title={t('nav.university')}
            to="/admin/university"
            kind={last === undefined ? 'off' : isWell ? 'good' : 'warn'}
            state={last === undefined ? t('overview.none') : t(`imports.state.${last.state}`)}
          >
            {last === undefined ? (
              <Text c="dimmed" size="sm">
                {t('overview.noImport')}
              </Text>
            ) : (
              <Text size="sm">
                {t('overview.lastImport')} <When at={last.finished_at ?? last.started_at} />
              </Text>
            )}
            {last?.problem != null && <Text size="sm">{last.problem}</Text>}
          </Fact>
        );
      }}
    </Loaded>
  );
}

function Events() {
  const { t } = useTranslation();
  const query = useQuery({
    queryKey: ['subscriptions', 'overview'],
    queryFn: async () =>
      answered(await api.GET('/api/admin/events/subscriptions', { params: { query: { limit: 200 } } })),
    refetchInterval: REFRESH_MS,
  });
  return (
    <Loaded query={query}>
      {({ items }) => {
        const dead = items.filter(s => s.deliveries.dead > 0);
        const count = dead.reduce((n, s) => n + s.deliveries.dead, 0);
        return (
          <Fact
            title={t('nav.events')}
            to="/admin/events"
            kind={items.length === 0 ? 'off' : count > 0 ? 'bad' : 'good'}
            state={count > 0 ? t('overview.undelivered', { count }) : t('overview.none')}
          >
            {dead.slice(0, 5).map(s => (
              <Text key={s.id} size="sm">
                <LinkAnchor to="/admin/events/subscriptions/$subscription" params={{ subscription: String(s.id) }}>
                  {s.name}
                </LinkAnchor>
              </Text>
            ))}
            {dead.length === 0 && (
              <Text c="dimmed" size="sm">
                {t(items.length === 0 ? 'overview.noSubscriptions' : 'overview.allDelivered')}
              </Text>
            )}
          </Fact>
        );
      }}
    </Loaded>
  );
}

/** Mails with temporary passwords that could not be sent. */
function Mails() {
  const { t } = useTranslation();
  const query = useQuery({
    queryKey: ['admins', 'mails'],
    queryFn: async () => answered(await api.GET('/api/admin/admins', { params: { query: { limit: 200 } } })),
    refetchInterval: REFRESH_MS,
  });
  return (
    <Loaded query={query}>
      {({ items }) => {
        const failed = items.filter(a => a.mail?.state === 'failed');
        const waiting = items.filter(a => a.mail?.state === 'pending').length;
        return (
          <Fact
            title={t('overview.mails')}
            to="/admin/administrators"
            kind={failed.length > 0 ? 'bad' : waiting > 0 ? 'warn' : 'good'}
            state={
              failed.length > 0
                ? t('overview.unsent', { count: failed.length })
                : waiting > 0
                  ? t('overview.mailsWaiting', { count: waiting })
                  : t('overview.none')
            }
          >
            {failed.slice(0, 5).map(a => (
              <Text key={a.global_user_id} size="sm" lineClamp={2}>
                {a.email}: {a.mail?.error}
              </Text>
            ))}
            {failed.length === 0 && (
              <Text c="dimmed" size="sm">
                {t(waiting > 0 ? 'overview.mailsSoon' : 'overview.noUnsent')}
              </Text>
            )}
          </Fact>
        );
      }}
    </Loaded>
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
  const query = useQuery({ queryKey: ['readiness'], queryFn: readiness, refetchInterval: REFRESH_MS });
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
