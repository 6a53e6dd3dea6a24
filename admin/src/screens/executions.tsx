import { Group, Select, Switch, Text } from '@mantine/core';
import { IconListCheck } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import { useSearchState } from '../app/use-search-state.ts';
import { Empty } from '../parts/empty.tsx';
import { FilterText } from '../parts/filter-text.tsx';
import { KeysetTable, useKeyset } from '../parts/keyset-list.tsx';
import { LinkAnchor } from '../parts/links.tsx';
import { OutcomeBadge } from '../parts/outcome-badge.tsx';
import { durationText } from '../parts/quantities.ts';
import { When } from '../parts/time.tsx';

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
const LIVE_MS = 2_000;

/** What ran: newest first, filtered in the address, followed live. */
export default function Executions({ pluginId }: { pluginId: string }) {
  const { t } = useTranslation();
  const [search, setSearch] = useSearchState();
  const [isLive, setLive] = useState(false);
  const outcome = OUTCOMES.find(o => o === search.outcome);
  const { principal, trigger } = search;
  const triggers = useQuery({
    queryKey: ['plugins', pluginId],
    queryFn: async () => answered(await api.GET('/api/admin/plugins/{id}', { params: { path: { id: pluginId } } })),
  });
  const list = useKeyset<Execution, { items: Execution[] }>(
    ['plugins', pluginId, 'executions', outcome, trigger, principal],
    async cursor =>
      answered(
        await api.GET('/api/admin/plugins/{id}/executions', {
          params: { path: { id: pluginId }, query: { limit: 50, cursor, outcome, trigger, principal } },
        }),
      ),
    isLive ? LIVE_MS : undefined,
  );
  return (
    <>
      <Group mb="md" align="flex-end">
        <Select
          label={t('executions.outcome')}
          data={OUTCOMES.map(o => ({ value: o, label: t(`outcome.${o}`) }))}
          value={outcome ?? null}
          onChange={o => setSearch({ outcome: o ?? undefined })}
          placeholder={t('common.all')}
          clearable
          clearButtonProps={{ 'aria-label': t('common.clear') }}
          w={{ base: '100%', xs: 210 }}
        />
        <Select
          label={t('access.trigger')}
          data={(triggers.data?.triggers ?? []).map(x => x.name)}
          value={trigger ?? null}
          onChange={x => setSearch({ trigger: x ?? undefined })}
          placeholder={t('common.all')}
          clearable
          clearButtonProps={{ 'aria-label': t('common.clear') }}
          w={{ base: '100%', xs: 180 }}
        />
        <FilterText
          label={t('executions.caller')}
          placeholder="user:7"
          value={search.principal}
          onChange={principal => setSearch({ principal })}
          width={150}
        />
        <Switch label={t('executions.live')} checked={isLive} onChange={e => setLive(e.currentTarget.checked)} mb={8} />
      </Group>
      <KeysetTable
        label={t('plugin.tab.executions')}
        query={list}
        rowKey={e => e.id}
        columns={[
          {
            key: 'at',
            title: t('executions.at'),
            cell: e => (
              <LinkAnchor
                to="/admin/plugins/$id/executions/$execution"
                params={{ id: pluginId, execution: String(e.id) }}
              >
                <When at={e.started_at} />
              </LinkAnchor>
            ),
          },
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
            cell: e => (
              <Text size="sm" ff="monospace">
                {e.principal}
              </Text>
            ),
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
        ]}
        empty={
          <Empty
            icon={IconListCheck}
            title={t('executions.emptyTitle')}
            text={t(outcome === undefined ? 'executions.empty' : 'executions.emptyFilter')}
          />
        }
      />
    </>
  );
}
