import { Button, Code, Group, Stack, Text } from '@mantine/core';
import { IconHistory } from '@tabler/icons-react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import { confirmed } from '../api/questions.ts';
import { May } from '../app/may.tsx';
import { useSearchState } from '../app/use-search-state.ts';
import { Download } from '../parts/download.tsx';
import { Empty } from '../parts/empty.tsx';
import { KeysetTable, useKeyset } from '../parts/keyset-list.tsx';
import { LinkButton } from '../parts/links.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { notifyDone } from '../parts/problem.tsx';
import { bytesText } from '../parts/quantities.ts';
import { StateBadge } from '../parts/state-badge.tsx';
import { StateDiff } from '../parts/state-diff.tsx';
import { When } from '../parts/time.tsx';
import { useBusy } from '../parts/use-busy.ts';
import { useSent } from '../parts/use-settings-change.ts';
import type { ReadPlugin } from './plugin.tsx';
import { Section, Signed } from './review.tsx';

type Version = Schemas['PluginVersion'];
type Upload = Schemas['Upload'];

/** The versions of a plugin: what runs, what ran, what differs, and the way back. */
export default function Versions({ plugin, tag }: ReadPlugin) {
  const { t } = useTranslation();
  const queries = useQueryClient();
  const [{ compared }, setSearch] = useSearchState();
  const { id } = plugin;
  const sent = useSent(id);
  const [isBusy, begin] = useBusy();
  const list = useKeyset<Version, { items: Version[] }>(['plugins', id, 'versions'], async cursor =>
    answered(
      await api.GET('/api/admin/plugins/{id}/versions', { params: { path: { id }, query: { limit: 20, cursor } } }),
    ),
  );
  const back = async (v: Version): Promise<void> => {
    const names = { plugin: plugin.name ?? id, version: v.version };
    const text = t('versions.backText', { ...names, now: plugin.version });
    const title = t('versions.back', names);
    if (!(await confirmed({ title, text, action: t('versions.backGo'), isDangerous: false }))) return;
    const params = { path: { id }, header: { 'If-Match': tag } };
    await sent(api.POST('/api/admin/plugins/{id}/rollback', { params, body: { wasm_key: v.wasm_key } }));
    await queries.invalidateQueries({ queryKey: ['plugins'] });
    setSearch({ compared: undefined });
    notifyDone(t('versions.backDone', { version: v.version }));
  };
  return (
    <Stack>
      <KeysetTable
        label={t('plugin.tab.versions')}
        query={list}
        rowKey={v => v.wasm_key}
        columns={[
          {
            key: 'version',
            title: t('plugins.version'),
            cell: v => (
              <>
                <Group gap="xs">
                  <Text fw={500}>{v.version}</Text>
                  {v.installed && <StateBadge kind="good" label={t('versions.runs')} />}
                </Group>
                {v.signature.state !== 'none' && <Signed signature={v.signature} isShort />}
              </>
            ),
          },
          { key: 'uploaded', title: t('versions.uploaded'), cell: v => <When at={v.uploaded_at} /> },
          { key: 'installed', title: t('versions.installed'), from: 'sm', cell: v => <When at={v.installed_at} /> },
          { key: 'size', title: t('common.size'), from: 'md', align: 'right', cell: v => bytesText(v.size) },
          {
            key: 'sha',
            title: 'SHA-256',
            from: 'lg',
            cell: v => <Code title={v.sha256}>{v.sha256.slice(0, 12)}…</Code>,
          },
          {
            key: 'actions',
            title: '',
            align: 'right',
            cell: v => (
              <Group gap={6} justify="flex-end">
                <May need="plugins:deploy" plugin={plugin.id} isInline>
                  <Download
                    size="compact-sm"
                    variant="subtle"
                    label={t('versions.download')}
                    aria-label={`${t('versions.download')}: ${v.version}`}
                    load={signal =>
                      api.GET('/api/admin/plugins/{id}/versions/{key}/module', {
                        params: { path: { id, key: v.wasm_key } },
                        parseAs: 'blob',
                        signal,
                      })
                    }
                  />
                </May>
                {!v.installed && (
                  <>
                    {plugin.installed !== null && (
                      <Button
                        size="compact-sm"
                        variant="subtle"
                        aria-label={`${t('versions.compare')}: ${v.version}`}
                        onClick={() => setSearch({ compared: v.wasm_key })}
                      >
                        {t('versions.compare')}
                      </Button>
                    )}
                    {v.installed_at === null ? (
                      <LinkButton
                        size="compact-sm"
                        variant="light"
                        to="/admin/plugins/upload"
                        search={{ id, key: v.wasm_key, step: 'review' }}
                      >
                        {t('versions.install')}
                      </LinkButton>
                    ) : (
                      <May need="plugins:deploy" plugin={plugin.id} isInline>
                        <Button
                          size="compact-sm"
                          variant="light"
                          aria-label={`${t('versions.backGo')}: ${v.version}`}
                          loading={isBusy}
                          onClick={() => begin(() => back(v))}
                        >
                          {t('versions.backGo')}
                        </Button>
                      </May>
                    )}
                  </>
                )}
              </Group>
            ),
          },
        ]}
        empty={<Empty icon={IconHistory} title={t('versions.empty')} />}
      />
      {compared !== undefined && plugin.installed !== null && compared !== plugin.installed.wasm_key && (
        <>
          <Compared id={id} from={plugin.installed.wasm_key} to={compared} />
          <Group>
            <Button size="compact-sm" variant="default" onClick={() => setSearch({ compared: undefined })}>
              {t('common.close')}
            </Button>
          </Group>
        </>
      )}
    </Stack>
  );
}

/** What would change if another version ran: everything its manifest declares. */
function Compared({ from, id, to }: { id: string; from: string; to: string }) {
  const { t } = useTranslation();
  const query = useQuery({
    queryKey: ['plugins', id, 'compared', from, to],
    queryFn: async () => {
      const read = async (key: string): Promise<Upload> =>
        answered(await api.GET('/api/admin/plugins/{id}/versions/{key}', { params: { path: { id, key } } }));
      const [before, after] = await Promise.all([read(from), read(to)]);
      return { before, after };
    },
  });
  return (
    <Loaded query={query}>
      {({ after, before }) => (
        <Section title={t('versions.from', { before: before.version, after: after.version })}>
          {isDeepEqual(declaredBy(before), declaredBy(after)) ? (
            <Text size="sm">{t('versions.same')}</Text>
          ) : (
            <StateDiff before={declaredBy(before)} after={declaredBy(after)} />
          )}
        </Section>
      )}
    </Loaded>
  );
}

const isDeepEqual = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

/** What a version says of itself, by names that stay the same between versions. */
const declaredBy = (u: Upload): Record<string, unknown> => ({
  name: u.name,
  abi: u.abi,
  memory_pages: u.memory_pages,
  permissions: [...u.permissions].sort(),
  frontend: u.frontend?.sha256,
  signature: u.signature.key_id ?? undefined,
  requirements: Object.fromEntries(
    u.requirements.map(({ config, description, kind, name, target }) => [
      [kind, name, target].filter(part => part !== undefined).join(' '),
      { description, config: Object.fromEntries(config.map(({ name: field, ...c }) => [field, c])) },
    ]),
  ),
  triggers: Object.fromEntries(u.triggers.map(({ name, ...trigger }) => [name, trigger])),
});
