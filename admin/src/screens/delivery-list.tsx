import { Button, Group, Select, Text } from '@mantine/core';
import { IconTruckDelivery } from '@tabler/icons-react';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import { May } from '../app/may.tsx';
import { useSearchState } from '../app/use-search-state.ts';
import { ClearFilters } from '../parts/clear-filters.tsx';
import { Empty } from '../parts/empty.tsx';
import { KeysetTable, useKeyset } from '../parts/keyset-list.tsx';
import { LinkAnchor } from '../parts/links.tsx';
import { notifyDone, notifyProblem } from '../parts/problem.tsx';
import { numberText } from '../parts/quantities.ts';
import { StateBadge } from '../parts/state-badge.tsx';
import { When } from '../parts/time.tsx';

type Delivery = Schemas['EventDelivery'];

const STATES = ['waiting', 'dead', 'delivered'] as const satisfies ReadonlyArray<Delivery['state']>;
const KIND = { waiting: 'wait', delivered: 'good', dead: 'bad' } as const;
const REFRESH_MS = 10_000;

/** What was sent to a subscriber, what waits, and what was given up and can be sent again. */
export function DeliveryList({ subscription }: { subscription: Schemas['EventSubscription'] }) {
  const { t } = useTranslation();
  const queries = useQueryClient();
  const [search, setSearch] = useSearchState();
  const state = STATES.find(s => s === search.state);
  const { deliveries, id } = subscription;
  const list = useKeyset<Delivery, { items: Delivery[] }>(
    ['events', 'subscription', id, 'deliveries', state],
    async cursor =>
      answered(
        await api.GET('/api/admin/events/subscriptions/{id}/deliveries', {
          params: { path: { id }, query: { limit: 50, cursor, state } },
        }),
      ),
    REFRESH_MS,
  );
  /** The event that is sent again now, `all`, or nothing. */
  const [sending, setSending] = useState<string | null>(null);
  const replay = async (event?: string): Promise<void> => {
    setSending(event ?? 'all');
    try {
      const params = { path: { id }, query: event === undefined ? {} : { event } };
      const { retried } = answered(await api.POST('/api/admin/events/subscriptions/{id}/retry', { params }));
      notifyDone(t('events.replayed', { count: retried }));
    } catch (problem) {
      notifyProblem(problem);
    } finally {
      setSending(null);
      await queries.invalidateQueries({ queryKey: ['events'] });
    }
  };
  return (
    <>
      <Group mb="md" align="flex-end" justify="space-between">
        <Select
          label={t('common.state')}
          data={STATES.map(s => ({ value: s, label: `${t(`events.delivery.${s}`)} (${numberText(deliveries[s])})` }))}
          value={state ?? null}
          onChange={s => setSearch({ state: s ?? undefined })}
          placeholder={t('common.all')}
          clearable
          clearButtonProps={{ 'aria-label': t('common.clear') }}
          w={{ base: '100%', xs: 200 }}
        />
        {deliveries.dead + deliveries.waiting > 0 && (
          <May need="operate" isInline>
            <Button
              variant="light"
              loading={sending === 'all'}
              onClick={() => void replay()}
              disabled={!subscription.enabled}
            >
              {t(deliveries.dead > 0 ? 'events.replayAll' : 'events.tryNow')}
            </Button>
          </May>
        )}
      </Group>
      <KeysetTable
        label={t('events.deliveries')}
        query={list}
        rowKey={d => d.number}
        columns={[
          { key: 'event', title: t('events.event'), cell: d => <EventName delivery={d} /> },
          {
            key: 'state',
            title: t('common.state'),
            cell: d => <StateBadge kind={KIND[d.state]} label={t(`events.delivery.${d.state}`)} />,
          },
          { key: 'answer', title: t('events.answer'), from: 'sm', cell: d => <Answer delivery={d} /> },
          { key: 'attempts', title: t('events.attempts'), from: 'md', align: 'right', cell: d => d.attempts },
          {
            key: 'at',
            title: t('events.when'),
            from: 'md',
            cell: d => <Moment delivery={d} />,
          },
          {
            key: 'actions',
            title: '',
            align: 'right',
            cell: d =>
              d.state === 'delivered' ? null : (
                <May need="operate" isInline>
                  <Button
                    size="compact-sm"
                    variant="light"
                    loading={sending === d.event_id}
                    disabled={!subscription.enabled}
                    onClick={() => void replay(d.event_id)}
                  >
                    {t(d.state === 'dead' ? 'events.replay' : 'events.tryNow')}
                  </Button>
                </May>
              ),
          },
        ]}
        empty={
          <Empty
            icon={IconTruckDelivery}
            title={t('events.noDeliveriesTitle')}
            text={t(state === undefined ? 'events.noDeliveries' : 'events.noDeliveriesFilter')}
            action={<ClearFilters of={['state']} />}
          />
        }
      />
    </>
  );
}

/** When it ended, or when it is tried next: one whose time has come waits behind an earlier event of its plugin. */
function Moment({ delivery: d }: { delivery: Delivery }) {
  const { t } = useTranslation();
  if (d.next_attempt_at === null) return <When at={d.ended_at} />;
  if (new Date(d.next_attempt_at).getTime() < Date.now()) return t('events.inLine');
  return (
    <>
      {t('events.again')} <When at={d.next_attempt_at} />
    </>
  );
}

function EventName({ delivery: d }: { delivery: Delivery }) {
  return (
    <div>
      <LinkAnchor
        to="/admin/events"
        search={{ plugin: d.plugin_id, type: d.type, event: d.event_id }}
        size="sm"
        fw={500}
        style={{ overflowWrap: 'anywhere' }}
      >
        {d.type}
      </LinkAnchor>
      <Text size="xs" c="dimmed">
        {d.plugin_id} · #{d.number}
      </Text>
    </div>
  );
}

function Answer({ delivery: d }: { delivery: Delivery }) {
  const { t } = useTranslation();
  return (
    <div>
      {d.last_status !== null && <Text size="sm">{t('events.status', { status: d.last_status })}</Text>}
      {d.state !== 'delivered' && d.last_error !== '' && (
        <Text size="xs" c="dimmed" maw={320} lineClamp={2} title={d.last_error}>
          {d.last_error}
        </Text>
      )}
    </div>
  );
}
