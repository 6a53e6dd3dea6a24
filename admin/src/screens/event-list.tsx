import { Group, Switch, Text, UnstyledButton } from '@mantine/core';
import { IconBell } from '@tabler/icons-react';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import type { Streamed } from '../api/event-stream.ts';
import { useLive } from '../api/use-live.ts';
import { useOverlay, useSearchState } from '../app/use-search-state.ts';
import { AddressedDetails } from '../parts/addressed-details.tsx';
import { ClearFilters } from '../parts/clear-filters.tsx';
import { Empty } from '../parts/empty.tsx';
import { FilterText } from '../parts/filter-text.tsx';
import { type Column, KeysetTable, useKeyset } from '../parts/keyset-list.tsx';
import { LiveTable } from '../parts/live-table.tsx';
import { When } from '../parts/time.tsx';
import { EventDetails, EventPreview, type ShownEvent } from './event-details.tsx';

/** What plugins published: as a list, or as it comes. */
export function EventList() {
  const { t } = useTranslation();
  const [search, setSearch] = useSearchState();
  const overlay = useOverlay('event');
  const { event: opened, plugin, type } = search;
  const isLive = search.live === '1';
  const filters = Object.entries({ plugin, type }).flatMap(([k, v]) => (v === undefined ? [] : [[k, v]]));
  const live = useLive(isLive ? `/api/admin/events/stream?${new URLSearchParams(filters)}` : null, eventOf);
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
        <UnstyledButton onClick={() => overlay.open({ event: e.id })}>
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
  const all: readonly ShownEvent[] = isLive ? live.rows : list.rows;
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
        <LiveTable
          label={t('nav.events')}
          live={live}
          columns={columns}
          rowKey={e => e.number}
          about={t('events.liveAbout')}
          empty={t('events.liveEmpty')}
        />
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
              action={<ClearFilters of={['plugin', 'type']} />}
            />
          }
        />
      )}
      <AddressedDetails<ShownEvent>
        id={opened}
        listed={all.find(e => e.id === opened)}
        queryKey={['events', 'one']}
        load={async id => answered(await api.GET('/api/admin/events/{event}', { params: { path: { event: id } } }))}
        title={e => t('events.one', { number: e?.number ?? '' })}
        onClose={overlay.close}
      >
        {e => <EventDetails event={e} />}
      </AddressedDetails>
    </>
  );
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;

/** The row of a CloudEvent; null for what is none. */
function eventOf({ data, id, type }: Streamed): ShownEvent | null {
  let event: unknown;
  try {
    event = JSON.parse(data);
  } catch {
    return null;
  }
  if (!isObject(event)) return null;
  return {
    id: String(event.id),
    number: Number(id),
    plugin_id: String(event.source).replace(/^\/plugins\//, ''),
    type,
    at: String(event.time),
    request_id: null,
    data: event.data,
  };
}
