import { Box, Group, Select, Switch, Text, TextInput, UnstyledButton } from '@mantine/core';
import { IconListCheck } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import type { Streamed } from '../api/event-stream.ts';
import { useLive } from '../api/use-live.ts';
import { type SearchState, useOverlay, useSearchState } from '../app/use-search-state.ts';
import { Caller } from '../parts/caller.tsx';
import { ClearFilters } from '../parts/clear-filters.tsx';
import { Empty } from '../parts/empty.tsx';
import { FilterFold } from '../parts/filter-fold.tsx';
import { FilterText } from '../parts/filter-text.tsx';
import { type Column, KeysetTable, useKeyset } from '../parts/keyset-list.tsx';
import { LinkAnchor } from '../parts/links.tsx';
import { LiveTable } from '../parts/live-table.tsx';
import { OutcomeBadge } from '../parts/outcome-badge.tsx';
import { PluginPicker } from '../parts/plugin-picker.tsx';
import { durationText } from '../parts/quantities.ts';
import { When } from '../parts/time.tsx';
import { ExecutionDrawer } from './execution-details.tsx';
import { Section } from './review.tsx';

type Execution = Schemas['Execution'];
type Outcome = Execution['outcome'] | 'failed';

export const OUTCOMES = [
  'failed',
  'ok',
  'refused',
  'handler_error',
  'trapped',
  'exited',
  'invalid_response',
  'quota',
  'load_failed',
  'no_slot',
  'queue_full',
  'deadline',
  'memory_budget',
  'crashed',
  'draining',
] as const satisfies readonly Outcome[];

/** Trace ids of W3C trace context; ids of requests have another form. */
const TRACE_ID = /^[0-9a-f]{32}$/;

const outcomeOf = (search: SearchState): Outcome | undefined => OUTCOMES.find(o => o === search.outcome);

/** What the address asks for, as the API takes it. */
function filterOf(search: SearchState, plugin: string | null) {
  const { id, principal, since, trigger, until } = search;
  const one = id === undefined ? {} : TRACE_ID.test(id) ? { trace_id: id } : { request_id: id };
  return { plugin: plugin ?? search.plugin, outcome: outcomeOf(search), trigger, principal, since, until, ...one };
}

/** How far back failures are shown above everything that ran, and how many of them at a time. */
const LATE_FAILURES_MS = 24 * 3_600_000;
const LATE_FAILURES = 5;

/**
 * What ran: the newest failures, then everything, newest first; filtered in the address, followed live.
 *
 * @param plugin the plugin whose executions they are; null for all plugins
 */
export default function ExecutionList({ plugin }: { plugin: string | null }) {
  const { t } = useTranslation();
  const [search] = useSearchState();
  const { close } = useOverlay('execution', 'of');
  const isLive = search.live === '1';
  const filter = filterOf(search, plugin);
  const live = useLive(isLive ? streamOf(filter) : null, executionOf);
  const list = useKeyset<Execution, { items: Execution[] }>(['executions', filter], async cursor =>
    answered(await api.GET('/api/admin/executions', { params: { query: { limit: 50, cursor, ...filter } } })),
  );
  const columns = useColumns(plugin === null);
  const table = (
    <KeysetTable
      label={t('nav.executions')}
      query={list}
      rowKey={e => e.id}
      columns={columns}
      empty={
        <Empty
          icon={IconListCheck}
          title={t('executions.emptyTitle')}
          text={t(isNarrowed(search) ? 'executions.emptyFilter' : 'executions.empty')}
          action={<ClearFilters of={FILTERS} />}
        />
      }
    />
  );
  return (
    <>
      <Filters plugin={plugin} isLive={isLive} />
      {isLive ? (
        <LiveTable
          label={t('nav.executions')}
          live={live}
          columns={columns}
          rowKey={e => e.id}
          about={t('executions.liveAbout')}
          empty={t('executions.liveEmpty')}
        />
      ) : isNarrowed(search) ? (
        table
      ) : (
        <BelowFailures plugin={plugin} columns={columns}>
          {table}
        </BelowFailures>
      )}
      <ExecutionDrawer plugin={plugin ?? search.of ?? null} execution={search.execution} onClose={close} />
    </>
  );
}

/** What ran below the failures of the last day, which are what most come for; alone where nothing failed. */
function BelowFailures(props: { plugin: string | null; columns: Array<Column<Execution>>; children: ReactNode }) {
  const { children, columns, plugin } = props;
  const { t } = useTranslation();
  const list = useKeyset<Execution, { items: Execution[] }>(['executions', 'late failures', plugin], async cursor => {
    const since = new Date(Date.now() - LATE_FAILURES_MS).toISOString();
    const query = { limit: LATE_FAILURES, cursor, plugin: plugin ?? undefined, outcome: 'failed', since } as const;
    return answered(await api.GET('/api/admin/executions', { params: { query } }));
  });
  if (list.rows.length === 0) return children;
  return (
    <>
      <Section title={t('executions.lateFailures')}>
        <KeysetTable
          label={t('executions.lateFailures')}
          query={list}
          rowKey={e => e.id}
          // The cause on any width: it is what one looks for here.
          columns={columns.map(c => (c.key === 'why' ? { ...c, from: undefined } : c))}
          empty={null}
        />
      </Section>
      <Section title={t('executions.all')}>{children}</Section>
    </>
  );
}

const FILTERS = ['id', 'outcome', 'plugin', 'principal', 'since', 'trigger', 'until'] as const;
const isNarrowed = (search: SearchState): boolean => FILTERS.some(name => search[name] !== undefined);

/** The stream of what is recorded from now on; times have no part in it. */
function streamOf({ outcome, plugin, principal, trigger }: ReturnType<typeof filterOf>): string {
  const given = Object.entries({ outcome, plugin, principal, trigger }).flatMap(([k, v]) =>
    v === undefined ? [] : [[k, v]],
  );
  return `/api/admin/executions/stream?${new URLSearchParams(given)}`;
}

/** The service writes the execution of a stream as it does in lists; what is none is left out. */
function executionOf({ data }: Streamed): Execution | null {
  try {
    return JSON.parse(data);
  } catch {
    return null;
  }
}

function useColumns(hasPlugin: boolean): Array<Column<Execution>> {
  const { t } = useTranslation();
  const { open } = useOverlay();
  const plugin: Column<Execution> = {
    key: 'plugin',
    title: t('activity.plugin'),
    cell: e => (
      <LinkAnchor to="/admin/plugins/$id" params={{ id: e.plugin_id }} search={{ tab: 'executions' }} size="sm">
        {e.plugin_id}
      </LinkAnchor>
    ),
  };
  return [
    {
      key: 'at',
      title: t('executions.at'),
      cell: e => (
        <UnstyledButton onClick={() => open({ execution: String(e.id), of: e.plugin_id })}>
          <Text size="sm" fw={500} c="var(--mantine-color-anchor)">
            <When at={e.started_at} />
          </Text>
        </UnstyledButton>
      ),
    },
    ...(hasPlugin ? [plugin] : []),
    { key: 'trigger', title: t('access.trigger'), cell: e => e.trigger },
    {
      key: 'outcome',
      title: t('executions.outcome'),
      cell: e => <OutcomeBadge outcome={e.outcome} status={e.status} />,
    },
    { key: 'run', title: t('executions.ran'), from: 'sm', align: 'right', cell: e => durationText(e.run_ms) },
    {
      key: 'who',
      title: t('executions.caller'),
      from: 'md',
      cell: e => <Caller principal={e.principal} />,
    },
    {
      key: 'why',
      title: t('executions.failure'),
      from: 'lg',
      cell: e => (
        <Text size="sm" lineClamp={1} maw={320} title={e.failure ?? undefined}>
          {e.failure?.split('\n')[0]}
        </Text>
      ),
    },
  ];
}

function Filters({ isLive, plugin }: { plugin: string | null; isLive: boolean }) {
  const { t } = useTranslation();
  const [search, setSearch] = useSearchState();
  return (
    <FilterFold count={FILTERS.filter(name => search[name] !== undefined).length}>
      <Group mb="md" align="flex-end">
        {plugin === null && (
          <Box w={{ base: '100%', xs: 200 }}>
            <PluginPicker
              label={t('activity.plugin')}
              placeholder={t('common.all')}
              value={search.plugin ?? null}
              onChange={to => setSearch({ plugin: to ?? undefined, trigger: undefined })}
            />
          </Box>
        )}
        <Select
          label={t('executions.outcome')}
          data={OUTCOMES.map(o => ({ value: o, label: t(`outcome.${o}`) }))}
          value={outcomeOf(search) ?? null}
          onChange={o => setSearch({ outcome: o ?? undefined })}
          placeholder={t('common.all')}
          clearable
          clearButtonProps={{ 'aria-label': t('common.clear') }}
          w={{ base: '100%', xs: 210 }}
        />
        <TriggerFilter plugin={plugin ?? search.plugin} />
        <FilterText
          label={t('executions.caller')}
          placeholder="user:7"
          value={search.principal}
          onChange={principal => setSearch({ principal })}
          width={130}
        />
        {!isLive && (
          <>
            <FilterText
              label={t('executions.requestOrTrace')}
              value={search.id}
              onChange={id => setSearch({ id })}
              width={190}
            />
            <TimeFilter name="since" />
            <TimeFilter name="until" />
          </>
        )}
        <Switch
          label={t('executions.live')}
          checked={isLive}
          onChange={e => {
            const live = e.currentTarget.checked ? '1' : undefined;
            // A stream has what comes: times and single requests have no part in it.
            setSearch({ live, id: undefined, since: undefined, until: undefined });
          }}
          mb={8}
        />
      </Group>
    </FilterFold>
  );
}

/** Triggers of a plugin to choose from; a name to type where no plugin is chosen. */
function TriggerFilter({ plugin }: { plugin: string | undefined }) {
  const { t } = useTranslation();
  const [search, setSearch] = useSearchState();
  const found = useQuery({
    enabled: plugin !== undefined,
    queryKey: ['plugins', plugin],
    queryFn: async () => answered(await api.GET('/api/admin/plugins/{id}', { params: { path: { id: plugin ?? '' } } })),
  });
  const label = t('access.trigger');
  const choose = (trigger: string | null | undefined): void => setSearch({ trigger: trigger ?? undefined });
  if (found.data === undefined)
    return <FilterText label={label} value={search.trigger} onChange={choose} width={150} />;
  return (
    <Select
      label={label}
      data={found.data.triggers.map(x => x.name)}
      value={search.trigger ?? null}
      onChange={choose}
      placeholder={t('common.all')}
      searchable
      limit={100}
      clearable
      clearButtonProps={{ 'aria-label': t('common.clear') }}
      w={{ base: '100%', xs: 170 }}
    />
  );
}

/** What the browser's field for a time takes: the local time without its zone. */
function localTime(at: string | undefined): string {
  const time = new Date(at ?? '');
  if (Number.isNaN(time.getTime())) return '';
  return new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

function TimeFilter({ name }: { name: 'since' | 'until' }) {
  const { t } = useTranslation();
  const [search, setSearch] = useSearchState();
  return (
    <TextInput
      type="datetime-local"
      label={t(`executions.${name}`)}
      key={search[name]}
      defaultValue={localTime(search[name])}
      max="9999-12-31T23:59"
      // A time counts when it is whole: not at each digit of the year.
      onBlur={e => {
        const time = new Date(e.currentTarget.value);
        const to = Number.isNaN(time.getTime()) ? undefined : time.toISOString();
        if (localTime(to) !== localTime(search[name])) setSearch({ [name]: to });
      }}
      w={{ base: '100%', xs: 200 }}
    />
  );
}
