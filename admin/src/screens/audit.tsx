import { Box, Group, Select, Text, TextInput, UnstyledButton } from '@mantine/core';
import { IconListDetails } from '@tabler/icons-react';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import { useOverlay, useSearchState } from '../app/use-search-state.ts';
import { AddressedDetails } from '../parts/addressed-details.tsx';
import { ClearFilters } from '../parts/clear-filters.tsx';
import { Doctor } from '../parts/doctor.tsx';
import { Download } from '../parts/download.tsx';
import { Empty } from '../parts/empty.tsx';
import { FilterFold } from '../parts/filter-fold.tsx';
import { FilterText } from '../parts/filter-text.tsx';
import { KeysetTable, useKeyset } from '../parts/keyset-list.tsx';
import { Page } from '../parts/page.tsx';
import { When } from '../parts/time.tsx';
import { UserPicker } from '../parts/user-picker.tsx';
import { AUDIT_ACTIONS, OBJECT_TYPES } from './audit-actions.ts';
import { AuditDetails, AuditObject, useActionText } from './audit-entry.tsx';

type Entry = Schemas['AuditEntry'];

/** When a day begins, or one after it, where the administrator is. */
function startOf(day: string | undefined, after: number): string | undefined {
  const start = new Date(`${day}T00:00`);
  if (Number.isNaN(start.getTime())) return undefined;
  start.setDate(start.getDate() + after);
  return start.toISOString();
}

/** Who changed what, newest first. What is filtered can be taken along as a table. */
export default function Audit() {
  const { t } = useTranslation();
  const actionText = useActionText();
  const [search] = useSearchState();
  const overlay = useOverlay('entry');
  const { action, entry: opened, object_id, object_type, since, until } = search;
  const actor = /^\d+$/.test(search.actor ?? '') ? Number(search.actor) : undefined;
  const filter = { action, actor, object_type, object_id, since: startOf(since, 0), until: startOf(until, 1) };
  const list = useKeyset<Entry, { items: Entry[] }>(['audit', filter], async cursor =>
    answered(await api.GET('/api/admin/audit', { params: { query: { limit: 50, cursor, ...filter } } })),
  );
  const isFiltered = Object.values(filter).some(f => f !== undefined);
  return (
    <Page
      title={t('nav.audit')}
      about={t('audit.about')}
      actions={
        <Download
          label={t('audit.download')}
          load={signal => api.GET('/api/admin/audit.csv', { params: { query: filter }, parseAs: 'blob', signal })}
        />
      }
    >
      <Doctor only="audit log" label={t('doctor.verify')} />
      <Filters actor={actor ?? null} />
      <KeysetTable
        label={t('nav.audit')}
        query={list}
        rowKey={e => e.id}
        columns={[
          {
            key: 'what',
            title: t('audit.what'),
            cell: e => (
              <>
                <UnstyledButton onClick={() => overlay.open({ entry: String(e.id) })} fz="sm">
                  <Text size="sm" fw={500} c="var(--mantine-color-anchor)">
                    {actionText(e.action)}
                  </Text>
                </UnstyledButton>
                <Text size="xs" c="dimmed" hiddenFrom="xs">
                  <When at={e.at} />
                </Text>
              </>
            ),
          },
          { key: 'object', title: t('audit.objectLabel'), from: 'sm', cell: e => <AuditObject entry={e} /> },
          { key: 'who', title: t('audit.who'), cell: e => <Who entry={e} /> },
          { key: 'address', title: t('audit.address'), from: 'lg', cell: e => e.address ?? '–' },
          { key: 'at', title: t('audit.at'), from: 'xs', cell: e => <When at={e.at} /> },
        ]}
        empty={
          <Empty
            icon={IconListDetails}
            title={t('audit.emptyTitle')}
            text={t(isFiltered ? 'audit.emptyFilter' : 'audit.empty')}
            action={<ClearFilters of={FILTERS} />}
          />
        }
      />
      <AddressedDetails
        id={opened}
        listed={list.rows.find(e => String(e.id) === opened)}
        queryKey={['audit', 'entry']}
        load={async id =>
          answered(await api.GET('/api/admin/audit/{entry}', { params: { path: { entry: Number(id) } } }))
        }
        title={() => t('audit.one', { id: opened ?? '' })}
        onClose={overlay.close}
      >
        {e => <AuditDetails entry={e} />}
      </AddressedDetails>
    </Page>
  );
}

const FILTERS = ['action', 'actor', 'object_type', 'object_id', 'since', 'until'] as const;

function Filters({ actor }: { actor: number | null }) {
  const { t } = useTranslation();
  const actionText = useActionText();
  const [search, setSearch] = useSearchState();
  const { action, object_id, object_type } = search;
  return (
    <FilterFold count={FILTERS.filter(name => search[name] !== undefined).length}>
      <Group align="flex-end">
        <Select
          label={t('audit.what')}
          data={AUDIT_ACTIONS.map(a => ({ value: a, label: actionText(a) }))}
          value={AUDIT_ACTIONS.find(a => a === action) ?? null}
          onChange={a => setSearch({ action: a ?? undefined })}
          placeholder={t('common.all')}
          searchable
          clearable
          clearButtonProps={{ 'aria-label': t('common.clear') }}
          nothingFoundMessage={t('common.nothingFound')}
          w={{ base: '100%', xs: 260 }}
        />
        <Box w={{ base: '100%', xs: 240 }}>
          <UserPicker
            label={t('audit.who')}
            value={actor}
            onChange={user => setSearch({ actor: user === null ? undefined : String(user) })}
          />
        </Box>
        <Select
          label={t('audit.objectLabel')}
          data={OBJECT_TYPES.map(o => ({ value: o, label: t(`audit.object.${o}`) }))}
          value={OBJECT_TYPES.find(o => o === object_type) ?? null}
          onChange={o => setSearch({ object_type: o ?? undefined })}
          placeholder={t('common.all')}
          clearable
          clearButtonProps={{ 'aria-label': t('common.clear') }}
          w={{ base: '100%', xs: 180 }}
        />
        <FilterText
          label={t('audit.objectId')}
          placeholder={t('audit.objectIdPlaceholder')}
          value={object_id}
          onChange={to => setSearch({ object_id: to })}
          width={180}
        />
        {(['since', 'until'] as const).map(name => (
          <TextInput
            key={name}
            type="date"
            label={t(`audit.${name}`)}
            value={search[name] ?? ''}
            onChange={e => setSearch({ [name]: e.currentTarget.value === '' ? undefined : e.currentTarget.value })}
            w={{ base: '100%', xs: 160 }}
          />
        ))}
      </Group>
    </FilterFold>
  );
}

function Who({ entry: e }: { entry: Entry }) {
  const { t } = useTranslation();
  return (
    <div>
      <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
        {e.actor.kind === 'setup' ? t('audit.kind.setup') : e.actor.name === '' ? '–' : e.actor.name}
      </Text>
      {e.actor.kind !== 'admin' && e.actor.kind !== 'setup' && (
        <Text size="xs" c="dimmed">
          {t(`audit.kind.${e.actor.kind}`)}
        </Text>
      )}
    </div>
  );
}
