import { Card, Group, SimpleGrid, Stack, Tabs, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { answered, api } from '../api/client.ts';
import { May } from '../app/may.tsx';
import { useSearchState } from '../app/use-search-state.ts';
import { useReadiness } from '../parts/away.tsx';
import { Checks } from '../parts/checks.tsx';
import { CopyText } from '../parts/copy.tsx';
import { Doctor } from '../parts/doctor.tsx';
import { Download } from '../parts/download.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { Page } from '../parts/page.tsx';
import { StateBadge } from '../parts/state-badge.tsx';
import { Section } from './review.tsx';
import { ConfigTable, LimitTable } from './system-config.tsx';
import { Hosts } from './system-hosts.tsx';
import { Jobs } from './system-jobs.tsx';
import { MailTest } from './system-mail.tsx';

const TABS = ['state', 'jobs', 'config', 'limits'] as const;
const HEALTH_KIND = { ready: 'good', degraded: 'warn', unavailable: 'bad' } as const;
const BUNDLE = 'npx plugin-host support-bundle';

/** The service itself: whether it has what it needs, where it runs, what it does in the background, how it is configured. */
export default function System() {
  const { t } = useTranslation();
  const [search, setSearch] = useSearchState();
  const tab = TABS.find(x => x === search.tab) ?? 'state';
  return (
    <Page title={t('nav.system')} about={<Version />}>
      <Tabs
        value={tab}
        onChange={to => setSearch({ tab: to === 'state' ? undefined : (to ?? undefined), find: undefined }, true)}
        keepMounted={false}
      >
        <Tabs.List mb="md">
          {TABS.map(x => (
            <Tabs.Tab key={x} value={x}>
              {t(`system.tab.${x}`)}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        <Tabs.Panel value="state">
          <State />
        </Tabs.Panel>
        <Tabs.Panel value="jobs">
          <Stack>
            <Text size="sm">{t('system.jobsAbout')}</Text>
            <Jobs />
          </Stack>
        </Tabs.Panel>
        <Tabs.Panel value="config">
          <ConfigTable />
        </Tabs.Panel>
        <Tabs.Panel value="limits">
          <LimitTable />
        </Tabs.Panel>
      </Tabs>
    </Page>
  );
}

/** The release that answers. */
function Version() {
  const { t } = useTranslation();
  const { data } = useQuery({ queryKey: ['alive'], queryFn: async () => answered(await api.GET('/healthz')) });
  return <>{data?.version === undefined ? t('system.about') : t('system.version', { version: data.version })}</>;
}

function State() {
  const { t } = useTranslation();
  return (
    <Stack gap="xl">
      <SimpleGrid cols={{ base: 1, lg: 2 }}>
        <Stack>
          <Health />
          <Card withBorder>
            <Section title={t('doctor.title')} about={t('doctor.about')}>
              <Doctor label={t('doctor.look')} />
            </Section>
          </Card>
        </Stack>
        <Card withBorder>
          <Stack gap="lg">
            <Section title={t('system.mail')} about={t('system.mailAbout')}>
              <MailTest />
            </Section>
            <Section title={t('system.bundle')} about={t('system.bundleAbout')}>
              <Bundle />
            </Section>
          </Stack>
        </Card>
      </SimpleGrid>
      <Section title={t('overview.hosts')} about={t('system.hostsAbout')}>
        <Hosts />
      </Section>
    </Stack>
  );
}

function Bundle() {
  const { t } = useTranslation();
  return (
    <Stack gap="xs" align="flex-start">
      <May need="operate" isInline>
        <Download
          variant="light"
          label={t('system.bundleGo')}
          load={signal => api.GET('/api/admin/support-bundle', { parseAs: 'blob', signal })}
        />
      </May>
      <Text size="sm" c="dimmed" component="div">
        {t('system.bundleCommand')} <CopyText value={BUNDLE} />
      </Text>
    </Stack>
  );
}

function Health() {
  const { t } = useTranslation();
  const query = useReadiness();
  return (
    <Card withBorder>
      <Loaded query={query}>
        {({ checks, status }) => (
          <Section title={t('overview.health')}>
            <Group mb="sm">
              <StateBadge kind={HEALTH_KIND[status]} label={t(`health.${status}`)} />
            </Group>
            <Checks checks={checks} />
          </Section>
        )}
      </Loaded>
    </Card>
  );
}
