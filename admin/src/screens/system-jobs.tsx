import { Table, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import { Loaded } from '../parts/loaded.tsx';
import { numberText } from '../parts/quantities.ts';
import { StateBadge } from '../parts/state-badge.tsx';
import { When } from '../parts/time.tsx';

const REFRESH_MS = 10_000;
const LATE_SECONDS = 300;

type Queue = Schemas['JobQueue'];

const NAMED = [
  'audit_cleaning',
  'event_cleaning',
  'event_deliver',
  'event_sweep',
  'file_cleaning',
  'file_orphans',
  'graph_comparison',
  'import_cleaning',
  'mail_temporary_password',
  'messenger_cleaning',
  'messenger_send',
  'messenger_sweep',
  'messenger_update',
  'outbox_deliver',
  'outbox_sweep',
  'university_dates',
  'university_pull',
] as const;

/** The queue in which the library keeps what begins at a time. */
const SCHEDULE = '__pgboss__send-it';

/** Background work of all hosts: what waits, what runs, and what failed for the last time within a day. */
export function Jobs() {
  const { t } = useTranslation();
  const query = useQuery({
    queryKey: ['jobs'],
    queryFn: async () => answered(await api.GET('/api/admin/jobs')),
    refetchInterval: REFRESH_MS,
  });
  return (
    <Loaded query={query}>
      {({ items }) => (
        <Table.ScrollContainer tabIndex={0} minWidth={280} type="native">
          <Table verticalSpacing="xs" highlightOnHover aria-label={t('system.jobs')} className="stacked">
            <Table.Thead>
              <Table.Tr>
                <Table.Th>{t('system.queue')}</Table.Th>
                <Table.Th>{t('common.state')}</Table.Th>
                <Table.Th ta="right">{t('system.waiting')}</Table.Th>
                <Table.Th ta="right">{t('system.deferred')}</Table.Th>
                <Table.Th ta="right">{t('system.active')}</Table.Th>
                <Table.Th className="not-on-tablets">{t('system.lastCompleted')}</Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {[...items]
                .sort((a, b) => rank(a) - rank(b))
                .map(q => (
                  <Row key={q.name} queue={q} />
                ))}
            </Table.Tbody>
          </Table>
        </Table.ScrollContainer>
      )}
    </Loaded>
  );
}

const isLate = (q: Queue): boolean => (q.oldest_waiting_seconds ?? 0) > LATE_SECONDS;
/** What needs attention stands first. */
const rank = (q: Queue): number => (q.failed > 0 ? 0 : isLate(q) ? 1 : 2);

function Row({ queue: q }: { queue: Queue }) {
  const { t } = useTranslation();
  const named = q.name === SCHEDULE ? 'schedule' : NAMED.find(n => n === q.name);
  const badge =
    q.failed > 0
      ? ({ kind: 'bad', label: t('system.failed', { count: q.failed }) } as const)
      : isLate(q)
        ? ({ kind: 'warn', label: t('system.late') } as const)
        : ({ kind: 'good', label: t('health.ok') } as const);
  return (
    <Table.Tr>
      <Table.Td>
        <div>
          {named !== undefined && <Text size="sm">{t(`system.queues.${named}`)}</Text>}
          <Text
            ff="monospace"
            fz="xs"
            c={named === undefined ? undefined : 'dimmed'}
            style={{ overflowWrap: 'anywhere' }}
          >
            {q.name}
          </Text>
          {q.last_error !== null && (
            <Text size="xs" c="dimmed" lineClamp={2} title={q.last_error} style={{ overflowWrap: 'anywhere' }}>
              {t('system.lastError')}: <span lang="en">{q.last_error}</span>
            </Text>
          )}
        </div>
      </Table.Td>
      <Table.Td data-label={t('common.state')}>
        <StateBadge {...badge} />
      </Table.Td>
      <Table.Td ta="right" data-label={t('system.waiting')}>
        {numberText(q.waiting)}
      </Table.Td>
      <Table.Td ta="right" data-label={t('system.deferred')}>
        {numberText(q.deferred)}
      </Table.Td>
      <Table.Td ta="right" data-label={t('system.active')}>
        {numberText(q.active)}
      </Table.Td>
      <Table.Td className="not-on-tablets" data-label={t('system.lastCompleted')}>
        <When at={q.last_completed_at} />
      </Table.Td>
    </Table.Tr>
  );
}
