import { Code, Stack, Table, Text } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import type { Schemas } from '../api/client.ts';
import { LinkButton } from '../parts/links.tsx';
import { Section } from './review.tsx';

/** What an administrator has set for a plugin: configuration, and where it may send requests. */
export default function PluginConfig({ plugin }: { plugin: Schemas['Plugin'] }) {
  const { t } = useTranslation();
  return (
    <Stack gap="xl">
      <Section title={t('install.config')} about={t('config.about')}>
        {plugin.config.length === 0 ? (
          <Text size="sm">{t('config.none')}</Text>
        ) : (
          <Table maw={720} verticalSpacing="xs">
            <Table.Tbody>
              {plugin.config.map(c => (
                <Table.Tr key={c.name}>
                  <Table.Th>
                    {c.name}
                    <Text size="xs" c="dimmed" fw={400}>
                      {c.description}
                    </Text>
                  </Table.Th>
                  <Table.Td>
                    {!c.is_set ? (
                      t('config.unset')
                    ) : c.sensitive ? (
                      t('config.secret')
                    ) : (
                      <Code style={{ overflowWrap: 'anywhere' }}>{c.value}</Code>
                    )}
                  </Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        )}
        {plugin.installed !== null && (
          <LinkButton
            mt="sm"
            variant="default"
            to="/admin/plugins/upload"
            search={{ id: plugin.id, key: plugin.installed.wasm_key, step: 'settings' }}
          >
            {t('config.change')}
          </LinkButton>
        )}
      </Section>
      {plugin.network !== null && (
        <Section title={t('install.network')}>
          <Text size="sm">
            {plugin.network.hosts.length === 0 ? t('config.everyHost') : t('config.hosts')}{' '}
            {plugin.network.hosts.join(', ')}
          </Text>
          {plugin.network.private.length > 0 && (
            <Text size="sm">
              {t('config.ranges')} {plugin.network.private.join(', ')}
            </Text>
          )}
        </Section>
      )}
    </Stack>
  );
}
