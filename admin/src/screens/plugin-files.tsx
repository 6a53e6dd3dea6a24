import { Button, Text } from '@mantine/core';
import { IconFile } from '@tabler/icons-react';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import { confirmed } from '../api/questions.ts';
import { May } from '../app/may.tsx';
import { Empty } from '../parts/empty.tsx';
import { KeysetTable, useKeyset } from '../parts/keyset-list.tsx';
import { notifyProblem } from '../parts/problem.tsx';
import { bytesText } from '../parts/quantities.ts';
import { StateBadge } from '../parts/state-badge.tsx';
import { When } from '../parts/time.tsx';

type PluginFile = Schemas['PluginFile'];
const KIND = { ready: 'good', pending: 'wait', cancelled: 'off' } as const;

/** The files that users have given to a plugin, and its own. */
export default function PluginFiles({ pluginId: id }: { pluginId: string }) {
  const { t } = useTranslation();
  const list = useKeyset(['plugins', id, 'files'], async cursor =>
    answered(
      await api.GET('/api/admin/plugins/{id}/files', { params: { path: { id }, query: { limit: 50, cursor } } }),
    ),
  );
  const usage = list.first?.usage;
  const remove = async (file: PluginFile): Promise<void> => {
    const text = t('files.removeText', { name: file.name });
    if (!(await confirmed({ title: t('files.remove'), text, action: t('common.remove'), isDangerous: true }))) return;
    try {
      await api.DELETE('/api/admin/plugins/{id}/files/{file}', { params: { path: { id, file: file.id } } });
      await list.refetch();
    } catch (problem) {
      notifyProblem(problem);
    }
  };
  return (
    <>
      {usage !== undefined && usage.files > 0 && (
        <Text size="sm" mb="sm">
          {t('files.usage', { count: usage.files, size: bytesText(usage.bytes) })}
        </Text>
      )}
      <KeysetTable
        label={t('plugin.tab.files')}
        query={list}
        rowKey={f => f.id}
        columns={[
          {
            key: 'name',
            title: t('files.name'),
            cell: f => (
              <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
                {f.name}
              </Text>
            ),
          },
          { key: 'type', title: t('files.type'), from: 'md', cell: f => f.mime_type },
          { key: 'size', title: t('common.size'), align: 'right', cell: f => bytesText(f.size) },
          { key: 'user', title: t('files.user'), from: 'sm', cell: f => f.user_id ?? t('files.own') },
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
                <Button size="compact-xs" variant="subtle" color="red" onClick={() => void remove(f)}>
                  {t('common.remove')}
                </Button>
              </May>
            ),
          },
        ]}
        empty={<Empty icon={IconFile} title={t('files.emptyTitle')} text={t('files.empty')} />}
      />
    </>
  );
}
