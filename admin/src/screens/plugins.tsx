import { Center, Group, Stack, Text, TextInput } from '@mantine/core';
import { Dropzone } from '@mantine/dropzone';
import '@mantine/dropzone/styles.css';
import { IconPuzzle, IconSearch, IconUpload } from '@tabler/icons-react';
import { useNavigate } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import { useRefusal } from '../app/may.tsx';
import { useSearchState } from '../app/use-search-state.ts';
import { ClearFilters } from '../parts/clear-filters.tsx';
import { Empty } from '../parts/empty.tsx';
import { KeysetTable, useKeyset } from '../parts/keyset-list.tsx';
import { LinkAnchor, LinkButton } from '../parts/links.tsx';
import { Page } from '../parts/page.tsx';
import { numberText } from '../parts/quantities.ts';
import { StateBadge } from '../parts/state-badge.tsx';
import { When } from '../parts/time.tsx';
import { useTypedText } from '../parts/use-typed-text.ts';
import { keepDropped } from './dropped-files.ts';
import { UninstalledList } from './uninstalled-list.tsx';

export const PLUGIN_STATE = { enabled: 'good', disabled: 'off', uploaded: 'wait' } as const;

export default function Plugins() {
  const { t } = useTranslation();
  const [{ search = '' }, setSearch] = useSearchState();
  const go = useNavigate();
  const mayUpload = useRefusal()('plugins:deploy') === null;
  const list = useKeyset<Schemas['ListedPlugin'], { items: Schemas['ListedPlugin'][] }>(
    ['plugins', 'list', search],
    async cursor =>
      answered(
        await api.GET('/api/admin/plugins', {
          params: { query: { limit: 50, cursor, ...(search === '' ? {} : { search }) } },
        }),
      ),
  );
  const actions = (
    <Group gap="xs">
      <LinkButton to="/admin/plugins/gallery" variant="default">
        {t('gallery.from')}
      </LinkButton>
      <LinkButton to="/admin/plugins/upload" leftSection={<IconUpload size={16} />}>
        {t('plugins.upload')}
      </LinkButton>
    </Group>
  );
  return (
    <Page title={t('nav.plugins')} about={t('plugins.about')} actions={actions}>
      <Dropzone.FullScreen
        active={mayUpload}
        multiple
        inputProps={{ 'aria-label': t('plugins.dropHere') }}
        onDrop={files => {
          keepDropped(files);
          void go({ to: '/admin/plugins/upload' });
        }}
      >
        <Center h="100%" style={{ pointerEvents: 'none' }}>
          <Stack align="center" gap="xs">
            <IconUpload size={48} aria-hidden />
            <Text fw={600}>{t('plugins.dropHere')}</Text>
          </Stack>
        </Center>
      </Dropzone.FullScreen>
      <Search
        value={search}
        onChange={text => setSearch({ search: text === '' ? undefined : text })}
        label={t('plugins.search')}
      />
      <KeysetTable
        label={t('nav.plugins')}
        query={list}
        rowKey={p => p.id}
        columns={[
          {
            key: 'name',
            title: t('plugins.name'),
            cell: p => (
              <div>
                <LinkAnchor to="/admin/plugins/$id" params={{ id: p.id }} fw={500}>
                  {p.name ?? p.id}
                </LinkAnchor>
                <Text size="xs" c="dimmed" ff="monospace">
                  {p.id}
                </Text>
              </div>
            ),
          },
          { key: 'version', title: t('plugins.version'), from: 'sm', cell: p => p.version ?? '–' },
          {
            key: 'state',
            title: t('common.state'),
            cell: p => (
              <Group gap={6}>
                <StateBadge kind={PLUGIN_STATE[p.state]} label={t(`plugins.state.${p.state}`)} />
                {p.suspended && p.state === 'enabled' && <StateBadge kind="bad" label={t('plugins.suspended')} />}
              </Group>
            ),
          },
          {
            key: 'failed',
            title: t('plugins.failed24h'),
            from: 'sm',
            align: 'right',
            cell: p =>
              p.failed_24h === 0 ? (
                <Text size="sm" c="dimmed">
                  0
                </Text>
              ) : (
                <LinkAnchor
                  to="/admin/plugins/$id"
                  params={{ id: p.id }}
                  search={{ tab: 'executions', outcome: 'failed' }}
                >
                  {numberText(p.failed_24h)}
                </LinkAnchor>
              ),
          },
          { key: 'updated', title: t('plugins.updated'), from: 'md', cell: p => <When at={p.updated_at} /> },
        ]}
        empty={
          search === '' ? (
            <Empty icon={IconPuzzle} title={t('plugins.emptyTitle')} text={t('plugins.empty')} action={actions} />
          ) : (
            <Empty
              icon={IconSearch}
              title={t('common.nothingFound')}
              text={t('common.nothingFoundFor', { search })}
              action={<ClearFilters of={['search']} />}
            />
          )
        }
      />
      {search === '' && <UninstalledList />}
    </Page>
  );
}

/** A search that is asked for when one has stopped typing. */
export function Search({ label, onChange, value }: { label: string; value: string; onChange: (text: string) => void }) {
  const typed = useTypedText(value, onChange);
  return (
    <Group>
      <TextInput
        aria-label={label}
        placeholder={label}
        type="search"
        value={typed.text}
        onChange={e => typed.type(e.currentTarget.value)}
        leftSection={<IconSearch size={16} />}
        w={{ base: '100%', sm: 320 }}
      />
    </Group>
  );
}
