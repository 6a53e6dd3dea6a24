import { Group, Select, Tabs, Text, UnstyledButton } from '@mantine/core';
import { IconTruckDelivery } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import { useOverlay, useSearchState } from '../app/use-search-state.ts';
import { ClearFilters } from '../parts/clear-filters.tsx';
import { Empty } from '../parts/empty.tsx';
import { FilterText } from '../parts/filter-text.tsx';
import { KeysetTable, useKeyset } from '../parts/keyset-list.tsx';
import { Page } from '../parts/page.tsx';
import { When } from '../parts/time.tsx';
import { Drift } from './outbox-drift.tsx';
import { EntryActions, EntryDetails, EntryState } from './outbox-entry.tsx';
import { OutboxSummary, type Summary } from './outbox-summary.tsx';

type Entry = Schemas['OutboxEntry'];

export const ENTRY_STATES = ['pending', 'dead', 'processed', 'requeued', 'discarded'] as const satisfies ReadonlyArray<
  Entry['state']
>;
const REFRESH_MS = 10_000;
const KEYS_SHOWN = 3;

/** Changes on their way to the graph store: how far they are, what is stuck, and whether both sides agree. */
export default function Outbox() {
  const { t } = useTranslation();
  const [search, setSearch] = useSearchState();
  const tab = search.tab === 'drift' ? 'drift' : 'entries';
  return (
    <Page title={t('nav.outbox')} about={t('outbox.about')}>
      <Tabs value={tab} onChange={to => setSearch({ tab: to === 'drift' ? to : undefined }, true)} keepMounted={false}>
        <Tabs.List mb="md">
          <Tabs.Tab value="entries">{t('outbox.tab.entries')}</Tabs.Tab>
          <Tabs.Tab value="drift">{t('outbox.tab.drift')}</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="entries">
          <Entries />
        </Tabs.Panel>
        <Tabs.Panel value="drift">
          <Drift />
        </Tabs.Panel>
      </Tabs>
    </Page>
  );
}

function Entries() {
  const { t } = useTranslation();
  const [search, setSearch] = useSearchState();
  const overlay = useOverlay('entry');
  const state = ENTRY_STATES.find(s => s === search.state);
  const { entry, key } = search;
  const list = useKeyset<Entry, Summary & { items: Entry[] }>(
    ['outbox', 'list', state, key],
    async cursor =>
      answered(await api.GET('/api/admin/outbox', { params: { query: { limit: 50, cursor, state, key } } })),
    REFRESH_MS,
  );
  // The list is not read again once it has several pages.
  const summary = useQuery({
    queryKey: ['outbox', 'summary'],
    queryFn: async () => answered(await api.GET('/api/admin/outbox', { params: { query: { limit: 1 } } })),
    refetchInterval: REFRESH_MS,
  });
  return (
    <>
      <OutboxSummary state={summary.data} onState={to => setSearch({ state: to })} />
      <Group mt="lg" mb="md" align="flex-end">
        <Select
          label={t('common.state')}
          data={ENTRY_STATES.map(s => ({ value: s, label: t(`outbox.state.${s}`) }))}
          value={state ?? null}
          onChange={s => setSearch({ state: s ?? undefined })}
          placeholder={t('common.all')}
          clearable
          clearButtonProps={{ 'aria-label': t('common.clear') }}
          w={{ base: '100%', xs: 180 }}
        />
        <FilterText
          label={t('outbox.key')}
          placeholder={t('outbox.keyPlaceholder')}
          value={key}
          onChange={to => setSearch({ key: to })}
          width={260}
        />
      </Group>
      <KeysetTable
        label={t('nav.outbox')}
        query={list}
        rowKey={e => e.id}
        columns={[
          {
            key: 'id',
            title: t('outbox.entry'),
            cell: e => <EntryName entry={e} onOpen={() => overlay.open({ entry: String(e.id) })} />,
          },
          {
            key: 'state',
            title: t('common.state'),
            cell: e => (
              <>
                <EntryState entry={e} />
                {e.state === 'dead' && e.last_error !== null && (
                  <Text size="xs" c="dimmed" lineClamp={2} maw={320}>
                    {e.last_error}
                  </Text>
                )}
              </>
            ),
          },
          { key: 'keys', title: t('outbox.keys'), from: 'md', cell: e => <Keys keys={e.keys} /> },
          { key: 'attempts', title: t('outbox.attempts'), from: 'lg', align: 'right', cell: e => e.attempts },
          { key: 'at', title: t('common.created'), from: 'sm', cell: e => <When at={e.created_at} /> },
          {
            key: 'actions',
            title: '',
            align: 'right',
            from: 'sm',
            cell: e => (
              <Group gap={6} justify="flex-end" wrap="nowrap">
                <EntryActions entry={e} size="compact-sm" />
              </Group>
            ),
          },
        ]}
        empty={
          <Empty
            icon={IconTruckDelivery}
            title={t('outbox.emptyTitle')}
            text={t(state === undefined && key === undefined ? 'outbox.empty' : 'outbox.emptyFilter')}
            action={<ClearFilters of={['state', 'key']} />}
          />
        }
      />
      <EntryDetails id={entry} onClose={overlay.close} />
    </>
  );
}

/** What an entry does to the graph, in words; opens its details. */
function EntryName({ entry, onOpen }: { entry: Entry; onOpen: () => void }) {
  const { t } = useTranslation();
  return (
    <UnstyledButton onClick={onOpen} fz="sm">
      <Text size="sm" fw={500} c="var(--mantine-color-anchor)">
        {t(`outbox.operation.${entry.operation}`)}
      </Text>
      <Text size="xs" c="dimmed">
        #{entry.id}
      </Text>
    </UnstyledButton>
  );
}

function Keys({ keys }: { keys: readonly string[] }) {
  const { t } = useTranslation();
  return (
    <Text size="sm" ff="monospace" fz="xs" style={{ overflowWrap: 'anywhere' }}>
      {keys.slice(0, KEYS_SHOWN).join(', ')}
      {keys.length > KEYS_SHOWN && ` ${t('outbox.moreKeys', { count: keys.length - KEYS_SHOWN })}`}
    </Text>
  );
}
