import { Group, SegmentedControl, Text, useMatches } from '@mantine/core';
import { IconHistory } from '@tabler/icons-react';
import { useTranslation } from 'react-i18next';
import { answered, api } from '../api/client.ts';
import { useSearchState } from '../app/use-search-state.ts';
import { ClearFilters } from '../parts/clear-filters.tsx';
import { Download } from '../parts/download.tsx';
import { Empty } from '../parts/empty.tsx';
import { KeysetTable, useKeyset } from '../parts/keyset-list.tsx';
import { LinkAnchor, LinkButton } from '../parts/links.tsx';
import { numberText } from '../parts/quantities.ts';
import { StateBadge } from '../parts/state-badge.tsx';
import { When } from '../parts/time.tsx';
import { type ImportRun, RUN_STATE } from '../university/types.ts';

const KINDS = ['batch', 'pull'] as const;
const REFRESH_MS = 10_000;

const sumOf = (run: ImportRun, member: 'total' | 'failed'): number => run.types.reduce((n, x) => n + x[member], 0);

/** What came in when, newest first. */
export default function ImportHistory() {
  const { t } = useTranslation();
  const [search, setSearch] = useSearchState();
  const kind = KINDS.find(k => k === search.kind);
  const orientation = useMatches({ base: 'vertical', xs: 'horizontal' } as const);
  const list = useKeyset<ImportRun, { items: ImportRun[] }>(
    ['university', 'imports', kind],
    async cursor =>
      answered(await api.GET('/api/admin/university/imports', { params: { query: { limit: 50, cursor, kind } } })),
    REFRESH_MS,
  );
  const what = (r: ImportRun): string =>
    r.kind === 'pull'
      ? t('university.kindOf.pull')
      : r.types.map(x => t(`university.type.${x.type}`)).join(', ') || t('university.kindOf.batch');
  return (
    <>
      <Group mb="md" justify="space-between">
        <SegmentedControl
          aria-label={t('university.kindOf.label')}
          orientation={orientation}
          fullWidth={orientation === 'vertical'}
          w={{ base: '100%', xs: 'auto' }}
          value={kind ?? 'all'}
          onChange={k => setSearch({ kind: k === 'all' ? undefined : k })}
          data={[
            { value: 'all', label: t('common.all') },
            ...KINDS.map(k => ({ value: k, label: t(`university.kindOf.${k === 'pull' ? 'pulls' : 'batches'}`) })),
          ]}
        />
        <Download
          label={t('university.saveHistory')}
          load={signal =>
            api.GET('/api/admin/university/imports.csv', { params: { query: { kind } }, parseAs: 'blob', signal })
          }
        />
      </Group>
      <KeysetTable
        label={t('university.tab.history')}
        query={list}
        rowKey={r => r.id}
        columns={[
          {
            key: 'what',
            title: t('university.whatCame'),
            cell: r => (
              <div>
                <LinkAnchor to="/admin/university/imports/$import" params={{ import: String(r.id) }} fw={500}>
                  {what(r)}
                </LinkAnchor>
                <Text size="xs" c="dimmed">
                  {t('university.number', { id: r.id })}
                </Text>
                <Text size="xs" c="dimmed" component="div" hiddenFrom="xs">
                  <When at={r.started_at} />
                </Text>
              </div>
            ),
          },
          {
            key: 'state',
            title: t('common.state'),
            cell: r => <StateBadge kind={RUN_STATE[r.state]} label={t(`imports.state.${r.state}`)} />,
          },
          {
            key: 'total',
            title: t('university.count.total'),
            from: 'sm',
            align: 'right',
            cell: r => numberText(sumOf(r, 'total')),
          },
          {
            key: 'failed',
            title: t('university.count.failed'),
            from: 'sm',
            align: 'right',
            cell: r => (
              <Text size="sm" c={sumOf(r, 'failed') > 0 ? 'red' : 'dimmed'}>
                {numberText(sumOf(r, 'failed'))}
              </Text>
            ),
          },
          { key: 'at', title: t('university.begun'), from: 'xs', cell: r => <When at={r.started_at} /> },
          {
            key: 'by',
            title: t('university.by'),
            from: 'md',
            cell: r => (
              <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
                {t(`university.starter.${r.starter.kind}`, { name: r.starter.name ?? '' })}
              </Text>
            ),
          },
        ]}
        empty={
          <Empty
            icon={IconHistory}
            title={t(kind === undefined ? 'university.historyTitle' : 'common.nothingFound')}
            text={kind === undefined ? t('university.history') : undefined}
            action={
              kind === undefined ? (
                <LinkButton to="." search={{}}>
                  {t('university.import')}
                </LinkButton>
              ) : (
                <ClearFilters of={['kind']} />
              )
            }
          />
        }
      />
    </>
  );
}
