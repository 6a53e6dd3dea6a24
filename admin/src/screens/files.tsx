import { Card, Group, Progress, Select, Stack, Text } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import { useSearchState } from '../app/use-search-state.ts';
import { FileTable } from '../parts/file-table.tsx';
import { useKeyset } from '../parts/keyset-list.tsx';
import { LinkAnchor } from '../parts/links.tsx';
import { Page } from '../parts/page.tsx';
import { PluginPicker } from '../parts/plugin-picker.tsx';
import { bytesText } from '../parts/quantities.ts';
import { UserPicker } from '../parts/user-picker.tsx';
import { Section } from './review.tsx';

const STATES = ['ready', 'pending'] as const;
const PLUGINS_SHOWN = 5;

/** The files of all plugins: what takes the room, and each of them. */
export default function Files() {
  const { t } = useTranslation();
  const [search, setSearch] = useSearchState();
  const { plugin } = search;
  const user = /^\d+$/.test(search.user ?? '') ? Number(search.user) : undefined;
  const state = STATES.find(s => s === search.state);
  const list = useKeyset(['files', 'all', plugin, user, state], async cursor =>
    answered(await api.GET('/api/admin/files', { params: { query: { limit: 50, cursor, plugin, user, state } } })),
  );
  const { first } = list;
  return (
    <Page title={t('nav.files')} about={t('files.about')}>
      {first !== undefined && first.plugins.length > 0 && <Usage all={first.usage} plugins={first.plugins} />}
      <Group align="flex-end">
        <PluginPicker
          label={t('plugins.name')}
          placeholder={t('common.all')}
          value={plugin ?? null}
          onChange={id => setSearch({ plugin: id ?? undefined })}
        />
        <UserPicker
          label={t('files.user')}
          value={user ?? null}
          onChange={id => setSearch({ user: id === null ? undefined : String(id) })}
        />
        <Select
          label={t('common.state')}
          data={STATES.map(s => ({ value: s, label: t(`files.state.${s}`) }))}
          value={state ?? null}
          onChange={s => setSearch({ state: s ?? undefined })}
          placeholder={t('common.all')}
          clearable
          clearButtonProps={{ 'aria-label': t('common.clear') }}
          w={{ base: '100%', xs: 170 }}
        />
      </Group>
      <FileTable list={list} withPlugin empty={t('files.emptyAll')} />
    </Page>
  );
}

function Usage({
  all,
  plugins,
}: {
  all: Schemas['FileUsage'];
  plugins: ReadonlyArray<Schemas['FileUsage'] & { plugin_id: string }>;
}) {
  const { t } = useTranslation();
  return (
    <Card withBorder>
      <Section title={t('files.usage', { count: all.files, size: bytesText(all.bytes) })}>
        <Stack gap="xs">
          {plugins.slice(0, PLUGINS_SHOWN).map(p => (
            <div key={p.plugin_id}>
              <Group justify="space-between" gap="xs">
                <LinkAnchor to="/admin/plugins/$id" params={{ id: p.plugin_id }} search={{ tab: 'files' }} size="sm">
                  {p.plugin_id}
                </LinkAnchor>
                <Text size="sm">{t('files.usage', { count: p.files, size: bytesText(p.bytes) })}</Text>
              </Group>
              <Progress
                value={all.bytes === 0 ? 0 : (p.bytes / all.bytes) * 100}
                size="sm"
                mt={4}
                aria-label={t('files.share', { plugin: p.plugin_id })}
              />
            </div>
          ))}
        </Stack>
      </Section>
    </Card>
  );
}
