import { Button, Table, Text } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import { useRefusal } from '../app/may.tsx';
import { notifyDone, notifyProblem } from '../parts/problem.tsx';
import { When } from '../parts/time.tsx';
import { Section } from './review.tsx';

type Kept = Schemas['UninstalledVersion'];

/** Versions of uninstalled plugins, which can be brought back for a while; nothing when there are none. */
export function UninstalledList() {
  const { t } = useTranslation();
  const queries = useQueryClient();
  const go = useNavigate();
  const mayRestore = useRefusal()('plugins:deploy') === null;
  const list = useQuery({
    queryKey: ['uninstalled'],
    queryFn: async () => answered(await api.GET('/api/admin/uninstalled')),
    enabled: mayRestore,
  });
  const items = list.data?.items ?? [];
  const restore = async ({ id, version, wasm_key }: Kept): Promise<void> => {
    try {
      const params = { path: { key: wasm_key } };
      answered(await api.POST('/api/admin/uninstalled/{key}/restore', { params }));
      await queries.invalidateQueries({ queryKey: ['uninstalled'] });
      await queries.invalidateQueries({ queryKey: ['plugins'] });
      notifyDone(t('uninstalled.restored', { id, version }));
      await go({ to: '/admin/plugins/upload', search: { id, key: wasm_key, step: 'review' } });
    } catch (problem) {
      notifyProblem(problem);
    }
  };
  if (items.length === 0) return null;
  return (
    <Section title={t('uninstalled.title')} about={t('uninstalled.about')}>
      <Table.ScrollContainer tabIndex={0} minWidth={280} type="native">
        <Table verticalSpacing="xs" aria-label={t('uninstalled.title')} className="stacked">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>{t('plugins.name')}</Table.Th>
              <Table.Th>{t('plugins.version')}</Table.Th>
              <Table.Th>{t('uninstalled.at')}</Table.Th>
              <Table.Th>{t('uninstalled.until')}</Table.Th>
              <Table.Th />
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {items.map(v => (
              <Table.Tr key={v.wasm_key}>
                <Table.Td>
                  <Text size="sm" ff="monospace">
                    {v.id}
                  </Text>
                </Table.Td>
                <Table.Td data-label={t('plugins.version')}>{v.version}</Table.Td>
                <Table.Td data-label={t('uninstalled.at')}>
                  <When at={v.uninstalled_at} />
                </Table.Td>
                <Table.Td data-label={t('uninstalled.until')}>
                  <When at={v.kept_until} />
                </Table.Td>
                <Table.Td ta="right">
                  <Button
                    size="compact-sm"
                    variant="light"
                    aria-label={`${t('uninstalled.restore')}: ${v.id} ${v.version}`}
                    onClick={() => void restore(v)}
                  >
                    {t('uninstalled.restore')}
                  </Button>
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    </Section>
  );
}
