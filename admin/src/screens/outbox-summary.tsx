import { Alert, Card, Group, SimpleGrid, Text, UnstyledButton } from '@mantine/core';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import type { Schemas } from '../api/client.ts';
import { durationText, numberText } from '../parts/quantities.ts';
import { type BadgeKind, StateBadge } from '../parts/state-badge.tsx';
import { When } from '../parts/time.tsx';

export type Summary = {
  pending: number;
  backing_off: number;
  dead: number;
  oldest_pending_seconds: number | null;
  lag_ms: { p50: number; p99: number } | null;
  paused: Schemas['StreamPause'] | null;
  last_error: string | null;
};

/** Delivery usually takes less than a second; what waits this long is stuck. */
const LATE_SECONDS = 60;

/** How far delivery is, in four numbers, and why it stands still if it does. The counts are filters of the list. */
export function OutboxSummary(props: { state: Summary | undefined; onState: (state: string) => void }) {
  const { t } = useTranslation();
  const { onState, state } = props;
  if (state === undefined) return null;
  const { backing_off, dead, lag_ms, last_error, oldest_pending_seconds, paused, pending } = state;
  const isLate = (oldest_pending_seconds ?? 0) > LATE_SECONDS;
  const [kind, word] =
    paused !== null
      ? (['bad', 'paused'] as const)
      : isLate
        ? (['warn', 'late'] as const)
        : (['good', 'inStep'] as const);
  return (
    <>
      <SimpleGrid cols={{ base: 1, xs: 2, lg: 4 }}>
        <Tile label={t('outbox.delivery')} badge={{ kind, label: t(`outbox.delivers.${word}`) }}>
          {oldest_pending_seconds === null
            ? t('outbox.nothingWaits')
            : t('outbox.oldest', { time: durationText(oldest_pending_seconds * 1000) })}
        </Tile>
        <Tile
          label={t('outbox.waiting')}
          value={numberText(pending)}
          onClick={pending > 0 ? () => onState('pending') : undefined}
        >
          {backing_off > 0 ? t('outbox.pendingAgain', { count: backing_off }) : t('outbox.pendingAbout')}
        </Tile>
        <Tile
          label={t('outbox.dead')}
          value={numberText(dead)}
          badge={dead > 0 ? { kind: 'bad', label: t('outbox.decide') } : undefined}
          onClick={dead > 0 ? () => onState('dead') : undefined}
        >
          {t('outbox.deadAbout')}
        </Tile>
        <Tile label={t('outbox.lag')} value={lag_ms === null ? '–' : durationText(lag_ms.p50)}>
          {lag_ms === null ? t('outbox.noLag') : t('outbox.slowest', { time: durationText(lag_ms.p99) })}
        </Tile>
      </SimpleGrid>
      {paused !== null && (
        <Alert color="red" mt="md" title={t('outbox.pausedTitle')}>
          <Text size="sm">{paused.reason}</Text>
          <Text size="sm" mt={4}>
            {t('outbox.pausedSince')} <When at={paused.since} />.{' '}
            {paused.until === null ? (
              t('outbox.pausedTried')
            ) : (
              <>
                {t('outbox.pausedUntil')} <When at={paused.until} />.
              </>
            )}
          </Text>
        </Alert>
      )}
      {paused === null && isLate && last_error !== null && (
        <Alert color="orange" mt="md" title={t('outbox.lastError')}>
          {last_error}
        </Alert>
      )}
    </>
  );
}

function Tile(props: {
  label: string;
  value?: string;
  badge?: { kind: BadgeKind; label: string } | undefined;
  onClick?: (() => void) | undefined;
  children: ReactNode;
}) {
  const { badge, children, label, onClick, value } = props;
  const contents = (
    <>
      <Text size="sm" c="dimmed">
        {label}
      </Text>
      <Group gap="xs" mt={2} mih={32}>
        {value !== undefined && (
          <Text fz={22} fw={650}>
            {value}
          </Text>
        )}
        {badge !== undefined && <StateBadge {...badge} />}
      </Group>
      <Text size="xs" c="dimmed">
        {children}
      </Text>
    </>
  );
  return (
    <Card withBorder p="sm">
      {onClick === undefined ? contents : <UnstyledButton onClick={onClick}>{contents}</UnstyledButton>}
    </Card>
  );
}
