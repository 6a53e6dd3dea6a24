import { Button, Text, UnstyledButton } from '@mantine/core';
import { IconFile } from '@tabler/icons-react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import { confirmed } from '../api/questions.ts';
import { May } from '../app/may.tsx';
import { useOverlay, useSearchState } from '../app/use-search-state.ts';
import { ClearFilters } from './clear-filters.tsx';
import { CopyText } from './copy.tsx';
import { Details } from './details.tsx';
import { Empty } from './empty.tsx';
import { Facts } from './facts.tsx';
import { type KeysetQuery, KeysetTable } from './keyset-list.tsx';
import { LinkAnchor } from './links.tsx';
import { PersonAnchor } from './person-anchor.tsx';
import { notifyProblem } from './problem.tsx';
import { bytesText, numberText } from './quantities.ts';
import { StateBadge } from './state-badge.tsx';
import { When } from './time.tsx';

/** What the list of all files is narrowed by. */
const FILTERS = ['plugin', 'user', 'state'];

const KIND = { ready: 'good', pending: 'wait', cancelled: 'off' } as const;

/** A file with the plugin it belongs to. */
type AnyFile = Schemas['AnyFile'];

/** Files as a table, each of which an administrator may delete. @param withPlugin whether they are of several plugins */
export function FileTable(props: { list: KeysetQuery<AnyFile>; withPlugin: boolean; empty: string }) {
  const { empty, list, withPlugin } = props;
  const { t } = useTranslation();
  const queries = useQueryClient();
  const remove = async (file: AnyFile): Promise<void> => {
    const text = t('files.removeText', { name: file.name });
    if (!(await confirmed({ title: t('files.remove'), text, action: t('common.remove'), isDangerous: true }))) return;
    const path = { id: file.plugin_id, file: file.id };
    try {
      await api.DELETE('/api/admin/plugins/{id}/files/{file}', { params: { path } });
      await queries.invalidateQueries({ queryKey: ['files'] });
    } catch (problem) {
      notifyProblem(problem);
    }
  };
  const [search] = useSearchState();
  const overlay = useOverlay('file');
  const { file: opened } = search;
  const isFiltered = withPlugin && FILTERS.some(name => search[name] !== undefined);
  const shown = useFile(list, opened);
  return (
    <>
      <KeysetTable
        label={t('nav.files')}
        query={list}
        rowKey={f => f.id}
        columns={[
          {
            key: 'name',
            title: t('files.name'),
            cell: f => (
              <>
                <UnstyledButton onClick={() => overlay.open({ file: f.id })}>
                  <Text size="sm" c="var(--mantine-color-anchor)" style={{ overflowWrap: 'anywhere' }}>
                    {f.name}
                  </Text>
                </UnstyledButton>
                {withPlugin && (
                  <LinkAnchor to="/admin/plugins/$id" params={{ id: f.plugin_id }} search={{ tab: 'files' }} size="xs">
                    {f.plugin_id}
                  </LinkAnchor>
                )}
              </>
            ),
          },
          { key: 'type', title: t('files.type'), from: 'md', cell: f => f.mime_type },
          { key: 'size', title: t('common.size'), align: 'right', cell: f => bytesText(f.size) },
          { key: 'user', title: t('files.user'), from: 'sm', cell: f => <Owner file={f} /> },
          {
            key: 'state',
            title: t('common.state'),
            from: 'sm',
            cell: f => <StateBadge kind={KIND[f.state]} label={t(`files.state.${f.state}`)} />,
          },
          { key: 'at', title: t('common.created'), from: 'md', cell: f => <When at={f.created_at} /> },
          {
            key: 'actions',
            title: '',
            align: 'right',
            cell: f => (
              <May need="admin" isInline>
                <Button
                  size="compact-xs"
                  variant="subtle"
                  color="red"
                  aria-label={`${t('common.remove')}: ${f.name}`}
                  onClick={() => void remove(f)}
                >
                  {t('common.remove')}
                </Button>
              </May>
            ),
          },
        ]}
        empty={
          isFiltered ? (
            <Empty icon={IconFile} title={t('common.nothingFound')} action={<ClearFilters of={FILTERS} />} />
          ) : (
            <Empty icon={IconFile} title={t('files.emptyTitle')} text={empty} />
          )
        }
      />
      <Details
        title={shown === null ? t('files.gone') : (shown?.name ?? '')}
        isOpen={shown !== undefined}
        onClose={overlay.close}
      >
        {shown === null && <Text size="sm">{t('files.goneText')}</Text>}
        {shown && <FileFacts file={shown} />}
      </Details>
    </>
  );
}

/**
 * The file that the address names, from the loaded rows or by itself.
 *
 * @returns undefined while no file is named or known yet, null when it exists no more
 */
function useFile(list: KeysetQuery<AnyFile>, id: string | undefined): AnyFile | null | undefined {
  const loaded = list.rows.find(f => f.id === id);
  const single = useQuery({
    queryKey: ['files', 'one', id],
    enabled: id !== undefined && loaded === undefined && !list.isPending,
    queryFn: async () =>
      answered(await api.GET('/api/admin/files', { params: { query: { file: id, limit: 1 } } })).items[0] ?? null,
  });
  return loaded ?? (id === undefined ? undefined : single.data);
}

function Owner({ file: f }: { file: AnyFile }) {
  const { t } = useTranslation();
  if (f.user_id === null) return t('files.own');
  return (
    <PersonAnchor user={f.user_id} size="sm">
      {f.user_name ?? `#${f.user_id}`}
    </PersonAnchor>
  );
}

/** Everything that is known of a file. */
function FileFacts({ file: f }: { file: AnyFile }) {
  const { t } = useTranslation();
  return (
    <Facts
      facts={[
        { label: t('files.id'), value: <CopyText value={f.id} /> },
        {
          label: t('plugins.name'),
          value: (
            <LinkAnchor to="/admin/plugins/$id" params={{ id: f.plugin_id }} search={{ tab: 'files' }} size="sm">
              {f.plugin_id}
            </LinkAnchor>
          ),
        },
        { label: t('files.user'), value: <Owner file={f} /> },
        { label: t('files.type'), value: f.mime_type },
        { label: t('common.size'), value: `${bytesText(f.size)} (${numberText(f.size)})` },
        { label: t('common.state'), value: <StateBadge kind={KIND[f.state]} label={t(`files.state.${f.state}`)} /> },
        { label: t('files.store'), value: t(`files.stores.${f.store}`) },
        { label: t('common.created'), value: <When at={f.created_at} /> },
        f.expires_at === null ? null : { label: t('files.expires'), value: <When at={f.expires_at} /> },
      ]}
    />
  );
}
