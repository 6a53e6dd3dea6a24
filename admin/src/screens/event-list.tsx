import { Alert, Group, Switch, Text, UnstyledButton } from '@mantine/core';
import { IconBell } from '@tabler/icons-react';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import { useSearchState } from '../app/use-search-state.ts';
import { Details } from '../parts/details.tsx';
import { Empty } from '../parts/empty.tsx';
import { FilterText } from '../parts/filter-text.tsx';
import { type Column, KeysetTable, useKeyset } from '../parts/keyset-list.tsx';
import { ProblemAlert } from '../parts/problem.tsx';
import { StateBadge } from '../parts/state-badge.tsx';
import { When } from '../parts/time.tsx';
import { EventDetails, EventPreview, type ShownEvent } from './event-details.tsx';
import { type Live, useLiveEvents } from './use-live-events.ts';

const LIVE_KIND = { connecting: 'wait', open: 'good', lost: 'warn' } as const;

/** What plugins published: as a list, or as it comes. */
export function EventList() {
  const { t } = useTranslation();
  const [search, setSearch] = useSearchState();
  const { event: opened, plugin, type } = search;
  const isLive = search.live === '1';
  const filters = Object.entries({ plugin, type }).flatMap(([k, v]) => (v === undefined ? [] : [[k, v]]));
  const live = useLiveEvents(isLive ? String(new URLSearchParams(filters)) : null);
  const list = useKeyset<Schemas['Event'], { items: Array<Schemas['Event']> }>(
    ['events', 'list', plugin, type],
    async cursor =>
      answered(await api.GET('/api/admin/events', { params: { query: { limit: 50, cursor, plugin, type } } })),
  );
  const columns: Array<Column<ShownEvent>> = [
    {
      key: 'type',
      title: t('events.type'),
      cell: e => (
        <UnstyledButton onClick={() => setSearch({ event: String(e.number) })}>
          <Text size="sm" fw={500} c="var(--mantine-color-anchor)" style={{ overflowWrap: 'anywhere' }}>
            {e.type}
          </Text>
          <Text size="xs" c="dimmed">
            #{e.number}
          </Text>
        </UnstyledButton>
      ),
    },
    { key: 'plugin', title: t('plugins.name'), from: 'xs', cell: e => e.plugin_id },
    { key: 'data', title: t('events.payload'), from: 'md', cell: e => <EventPreview event={e} /> },
    { key: 'at', title: t('events.at'), cell: e => <When at={e.at} /> },
  ];
  const all: readonly ShownEvent[] = isLive ? live.events : list.rows;
  const shown = all.find(e => String(e.number) === opened);
  return (
    <>
      <Group mb="md" align="flex-end">
        <FilterText label={t('plugins.name')} value={plugin} onChange={to => setSearch({ plugin: to })} />
        <FilterText
          label={t('events.type')}
          placeholder={t('events.typePlaceholder')}
          value={type}
          onChange={to => setSearch({ type: to })}
          width={240}
        />
        <Switch
          label={t('executions.live')}
          checked={isLive}
          onChange={e => setSearch({ live: e.currentTarget.checked ? '1' : undefined, event: undefined })}
          mb={8}
        />
      </Group>
      {isLive ? (
        <LiveEvents live={live} columns={columns} />
      ) : (
        <KeysetTable
          label={t('nav.events')}
          query={list}
          rowKey={e => e.number}
          columns={columns}
          empty={
            <Empty
              icon={IconBell}
              title={t('events.emptyTitle')}
              text={t(filters.length > 0 ? 'events.emptyFilter' : 'events.empty')}
            />
          }
        />
      )}
      <Details
        title={t('events.one', { number: opened ?? '' })}
        isOpen={shown !== undefined}
        onClose={() => setSearch({ event: undefined })}
      >
        {shown !== undefined && <EventDetails event={shown} />}
      </Details>
    </>
  );
}

function LiveEvents({ columns, live }: { live: Live; columns: ReadonlyArray<Column<ShownEvent>> }) {
  const { t } = useTranslation();
  const query = {
    rows: [...live.events],
    isPending: false,
    error: null,
    refetch: () => {},
    hasNextPage: false,
    isFetchingNextPage: false,
    fetchNextPage: () => {},
  };
  return (
    <>
      <Group mb="sm" gap="xs" role="status">
        <StateBadge kind={LIVE_KIND[live.state]} label={t(`events.live.${live.state}`)} />
        <Text size="sm" c="dimmed">
          {t('events.liveAbout')}
        </Text>
      </Group>
      <ProblemAlert error={live.error} />
      {live.events.length === 0 ? (
        <Alert color="gray">{t('events.liveEmpty')}</Alert>
      ) : (
        <KeysetTable label={t('nav.events')} query={query} rowKey={e => e.number} columns={columns} empty={null} />
      )}
    </>
  );
}
