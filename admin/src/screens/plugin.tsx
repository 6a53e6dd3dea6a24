import { Alert, Button, Card, Group, Menu, SimpleGrid, Stack, Tabs, Text } from '@mantine/core';
import { IconDots, IconPlayerPause, IconPlayerPlay, IconTrash, IconUpload } from '@tabler/icons-react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate, useParams } from '@tanstack/react-router';
import { lazy, Suspense } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas, tagOf } from '../api/client.ts';
import { confirmed } from '../api/questions.ts';
import { May, useRefusal } from '../app/may.tsx';
import { useSearchState } from '../app/use-search-state.ts';
import { Findings } from '../parts/findings.tsx';
import { LinkButton, PluginCrumbs } from '../parts/links.tsx';
import { LoadedPage } from '../parts/loaded-page.tsx';
import { Page } from '../parts/page.tsx';
import { notifyDone, notifyProblem } from '../parts/problem.tsx';
import { StateBadge } from '../parts/state-badge.tsx';
import { SuspensionCause } from '../parts/suspension-cause.tsx';
import { When } from '../parts/time.tsx';
import { TryTrigger } from '../parts/try-trigger.tsx';
import { useSent } from '../parts/use-settings-change.ts';
import { Activity } from './activity.tsx';
import { PLUGIN_STATE } from './plugins.tsx';
import { Section } from './review.tsx';

const AccessMatrix = lazy(() => import('./access-matrix.tsx'));
const ExecutionList = lazy(() => import('./execution-list.tsx'));
const Versions = lazy(() => import('./versions.tsx'));
const PluginFiles = lazy(() => import('./plugin-files.tsx'));
const PluginPages = lazy(() => import('./plugin-pages.tsx'));
const PluginConfig = lazy(() => import('./plugin-config.tsx'));

/** What the tabs of executions and versions keep in the address. */
const NO_FILTER = Object.fromEntries(
  ['outcome', 'trigger', 'principal', 'id', 'since', 'until', 'live', 'execution', 'of', 'compared'].map(name => [
    name,
    undefined,
  ]),
);
const TABS = ['overview', 'access', 'executions', 'versions', 'pages', 'files', 'settings'] as const;
type Tab = (typeof TABS)[number];
/** Before a version is installed there is nothing else. */
const TABS_OF_UPLOADED: readonly Tab[] = ['overview', 'versions'];

/** A plugin as it was read, with the tag that a change of it goes out with. */
export type ReadPlugin = { plugin: Schemas['Plugin']; tag: string };

const usePlugin = (id: string) =>
  useQuery({
    queryKey: ['plugins', id, 'tagged'],
    queryFn: async (): Promise<ReadPlugin> => {
      const reply = await api.GET('/api/admin/plugins/{id}', { params: { path: { id } } });
      return { plugin: answered(reply), tag: tagOf(reply) };
    },
  });

/** One plugin: everything about it, tab by tab. */
export default function Plugin() {
  const { t } = useTranslation();
  const { id = '' } = useParams({ strict: false });
  const [search, setSearch] = useSearchState();
  const read = usePlugin(id);
  return (
    <LoadedPage key={id} query={read} title={id} crumbs={<PluginCrumbs />}>
      {({ plugin: p, tag }) => {
        const tabs = p.state === 'uploaded' ? TABS_OF_UPLOADED : TABS;
        const tab = tabs.find(x => x === search.tab) ?? 'overview';
        return (
          <Page
            title={p.name ?? p.id}
            crumbs={<PluginCrumbs />}
            about={
              <Group gap="xs" mt={4}>
                <StateBadge kind={PLUGIN_STATE[p.state]} label={t(`plugins.state.${p.state}`)} />
                <Text size="sm" ff="monospace">
                  {p.id}
                </Text>
                {p.version !== null && <Text size="sm">{t('review.version', { version: p.version })}</Text>}
              </Group>
            }
            actions={<Actions plugin={p} tag={tag} />}
          >
            <Suspended plugin={p} />
            <Tabs
              value={tab}
              onChange={to => setSearch({ ...NO_FILTER, tab: to === 'overview' ? undefined : (to ?? undefined) }, true)}
              keepMounted={false}
            >
              <Tabs.List mb="md">
                {tabs.map(x => (
                  <Tabs.Tab key={x} value={x}>
                    {t(`plugin.tab.${x}`)}
                  </Tabs.Tab>
                ))}
              </Tabs.List>
              <Suspense>
                <Tabs.Panel value="overview">
                  <PluginOverview plugin={p} />
                </Tabs.Panel>
                <Tabs.Panel value="access">
                  <May need="access">
                    <AccessMatrix plugin={p} />
                  </May>
                </Tabs.Panel>
                <Tabs.Panel value="executions">
                  <ExecutionList plugin={p.id} />
                </Tabs.Panel>
                <Tabs.Panel value="versions">
                  <Versions plugin={p} tag={tag} />
                </Tabs.Panel>
                <Tabs.Panel value="pages">
                  <PluginPages plugin={p} tag={tag} />
                </Tabs.Panel>
                <Tabs.Panel value="files">
                  <PluginFiles pluginId={p.id} />
                </Tabs.Panel>
                <Tabs.Panel value="settings">
                  <PluginConfig plugin={p} />
                </Tabs.Panel>
              </Suspense>
            </Tabs>
          </Page>
        );
      }}
    </LoadedPage>
  );
}

function Actions({ plugin, tag }: ReadPlugin) {
  const { t } = useTranslation();
  const refusal = useRefusal();
  const go = useNavigate();
  const queries = useQueryClient();
  const { id } = plugin;
  const noTurn = refusal('plugins:deploy', id);
  const noUninstall = refusal('admin');
  const sent = useSent(id);
  const params = { path: { id }, header: { 'If-Match': tag } };
  const turn = async (isOn: boolean): Promise<void> => {
    try {
      const text = t('plugin.disableText', { id });
      if (
        !isOn &&
        !(await confirmed({ title: t('plugin.disable'), text, action: t('plugin.disable'), isDangerous: true }))
      )
        return;
      await sent(
        isOn
          ? api.POST('/api/admin/plugins/{id}/enable', { params })
          : api.POST('/api/admin/plugins/{id}/disable', { params }),
      );
      await queries.invalidateQueries({ queryKey: ['plugins'] });
      notifyDone(t(isOn ? 'plugin.enabled' : 'plugin.disabled', { id }));
    } catch (problem) {
      notifyProblem(problem);
    }
  };
  const uninstall = async (): Promise<void> => {
    const question = {
      title: t('plugin.uninstall'),
      text: [
        t('plugin.uninstallText', { id }),
        ...(plugin.called_by.length === 0 ? [] : [t('plugin.calledBy', { plugins: plugin.called_by.join(', ') })]),
      ].join(' '),
      action: t('plugin.uninstall'),
      isDangerous: true,
      typed: id,
    };
    if (!(await confirmed(question))) return;
    try {
      await sent(api.DELETE('/api/admin/plugins/{id}', { params }));
      await go({ to: '/admin/plugins' });
      queries.removeQueries({ queryKey: ['plugins', id] });
      await queries.invalidateQueries({ queryKey: ['plugins', 'list'] });
      await queries.invalidateQueries({ queryKey: ['uninstalled'] });
      notifyDone(t('plugin.uninstalled', { id }));
    } catch (problem) {
      notifyProblem(problem);
    }
  };
  return (
    <>
      <LinkButton variant="default" to="/admin/plugins/upload" leftSection={<IconUpload size={16} />}>
        {t('plugin.newVersion')}
      </LinkButton>
      <Menu position="bottom-end">
        <Menu.Target>
          <Button variant="default" px="xs" aria-label={t('common.moreActions')}>
            <IconDots size={18} />
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          {[...new Set([noTurn, noUninstall])].map(
            why =>
              why !== null && (
                <Menu.Label key={why} maw={280}>
                  {why}
                </Menu.Label>
              ),
          )}
          {plugin.state === 'disabled' && (
            <Menu.Item
              disabled={noTurn !== null}
              leftSection={<IconPlayerPlay size={16} />}
              onClick={() => void turn(true)}
            >
              {t('plugin.enable')}
            </Menu.Item>
          )}
          {plugin.state === 'enabled' && (
            <Menu.Item
              disabled={noTurn !== null}
              leftSection={<IconPlayerPause size={16} />}
              onClick={() => void turn(false)}
            >
              {t('plugin.disable')}
            </Menu.Item>
          )}
          <Menu.Item
            disabled={noUninstall !== null}
            color="red"
            leftSection={<IconTrash size={16} />}
            onClick={() => void uninstall()}
          >
            {t('plugin.uninstall')}
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
    </>
  );
}

/** What is suspended, why and until when, with the action that ends it. */
function Suspended({ plugin }: { plugin: Schemas['Plugin'] }) {
  const { t } = useTranslation();
  const queries = useQueryClient();
  const resume = async (trigger: string | null): Promise<void> => {
    try {
      await (trigger === null
        ? api.POST('/api/admin/plugins/{id}/resume', { params: { path: { id: plugin.id } } })
        : api.POST('/api/admin/plugins/{id}/triggers/{name}/resume', {
            params: { path: { id: plugin.id, name: trigger } },
          }));
      await queries.invalidateQueries({ queryKey: ['plugins', plugin.id] });
    } catch (problem) {
      notifyProblem(problem);
    }
  };
  return plugin.quarantine.map(s => (
    <Alert
      key={`${s.trigger} ${s.caller}`}
      color="red"
      title={s.trigger === null ? t('plugin.suspendedAll') : t('plugin.suspended', { trigger: s.trigger })}
    >
      <Text size="sm" component="div">
        <SuspensionCause suspension={s} />
      </Text>
      <Text size="sm">
        {s.caller === null
          ? t('plugin.suspendedCallers', { count: s.callers })
          : t('plugin.suspendedCaller', { caller: s.caller })}
        {' · '}
        {s.until === null ? t('plugin.untilResumed') : t('plugin.until')} {s.until !== null && <When at={s.until} />}
      </Text>
      <Group gap="xs" mt="xs">
        <May need="operate" isInline>
          <Button size="xs" variant="default" onClick={() => void resume(s.trigger)}>
            {t('plugin.resume')}
          </Button>
        </May>
        <LinkButton
          size="xs"
          variant="default"
          to="/admin/plugins/$id"
          params={{ id: plugin.id }}
          search={{ tab: 'executions', trigger: s.trigger ?? undefined, outcome: 'failed' }}
        >
          {t('plugin.seeFailures')}
        </LinkButton>
      </Group>
    </Alert>
  ));
}

function PluginOverview({ plugin: p }: { plugin: Schemas['Plugin'] }) {
  const { t } = useTranslation();
  return (
    <Stack gap="lg">
      <Findings findings={p.findings} />
      {p.triggers.some(x => x.type === 'http') && p.state === 'enabled' && (
        <Section title={t('plugin.howToCall')}>
          <TryTrigger pluginId={p.id} triggers={p.triggers} />
        </Section>
      )}
      {p.state !== 'uploaded' && <Activity plugin={p.id} />}
      {p.state === 'uploaded' && (
        <Alert color="blue" title={t('plugin.notInstalled')}>
          <LinkButton
            size="xs"
            variant="light"
            to="/admin/plugins/$id"
            params={{ id: p.id }}
            search={{ tab: 'versions' }}
          >
            {t('plugin.tab.versions')}
          </LinkButton>
        </Alert>
      )}
      <Section title={t('plugin.mayDo')}>
        {p.state === 'uploaded' ? (
          <Text size="sm">{t('plugin.mayDoNothing')}</Text>
        ) : p.requirements.length === 0 ? (
          <Text size="sm">{t('review.noPermissions')}</Text>
        ) : (
          <SimpleGrid cols={{ base: 1, sm: 2 }}>
            {p.requirements.map(r => (
              <Card withBorder key={`${r.kind} ${r.name ?? ''} ${r.target ?? ''}`}>
                <Text fw={600} size="sm">
                  {t(`permission.${r.kind}.title`)}
                  {r.name !== undefined && `: ${r.name}`}
                  {r.target !== undefined && `: ${r.target}`}
                </Text>
                <Text size="sm">{r.description}</Text>
              </Card>
            ))}
          </SimpleGrid>
        )}
      </Section>
      {p.frontend_url !== null && (
        <Section title={t('plugin.frontend')}>
          <Group>
            <Button component="a" href={p.frontend_url} target="_blank" rel="noopener" variant="default">
              {t('plugin.openFrontend')}
            </Button>
            <Text size="sm" c="dimmed">
              {t(`plugin.frontendAccess.${p.frontend_access}`)}
            </Text>
          </Group>
        </Section>
      )}
    </Stack>
  );
}
