import { Text } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { answered, api } from '../api/client.ts';
import { FileTable } from '../parts/file-table.tsx';
import { useKeyset } from '../parts/keyset-list.tsx';
import { bytesText } from '../parts/quantities.ts';

/** The files that users have given to a plugin, and its own. */
export default function PluginFiles({ pluginId: id }: { pluginId: string }) {
  const { t } = useTranslation();
  const list = useKeyset(['files', id], async cursor => {
    const params = { path: { id }, query: { limit: 50, cursor } };
    const page = answered(await api.GET('/api/admin/plugins/{id}/files', { params }));
    return { ...page, items: page.items.map(file => ({ ...file, plugin_id: id })) };
  });
  const usage = list.first?.usage;
  return (
    <>
      {usage !== undefined && usage.files > 0 && (
        <Text size="sm" mb="sm">
          {t('files.usage', { count: usage.files, size: bytesText(usage.bytes) })}
        </Text>
      )}
      <FileTable list={list} withPlugin={false} empty={t('files.empty')} />
    </>
  );
}
