import { Alert, Code, Text } from '@mantine/core';
import { IconAlertTriangle, IconPuzzle, IconShieldCheck } from '@tabler/icons-react';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import { useConfig } from '../api/config.ts';
import { Empty } from '../parts/empty.tsx';
import { KeysetTable, useKeyset } from '../parts/keyset-list.tsx';
import { LinkAnchor, LinkButton } from '../parts/links.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { Page } from '../parts/page.tsx';
import { StateBadge } from '../parts/state-badge.tsx';

type Listed = Schemas['ListedPlugin'];

/** What the pages of each plugin may do in the browsers of users, in plain words. */
export default function Trust() {
  const { t } = useTranslation();
  const list = useKeyset<Listed, { items: Listed[] }>(['plugins', 'list', ''], async cursor =>
    answered(await api.GET('/api/admin/plugins', { params: { query: { limit: 50, cursor } } })),
  );
  return (
    <Page title={t('nav.trust')} about={t('trust.screenAbout')}>
      <Origins />
      <KeysetTable
        label={t('nav.trust')}
        query={list}
        rowKey={p => p.id}
        columns={[
          {
            key: 'plugin',
            title: t('plugins.name'),
            cell: p => (
              <LinkAnchor to="/admin/plugins/$id" params={{ id: p.id }} search={{ tab: 'pages' }} size="sm" fw={500}>
                {p.name ?? p.id}
              </LinkAnchor>
            ),
          },
          { key: 'html', title: t('trust.html'), cell: p => <HtmlTrust trust={p.html.trust} /> },
          { key: 'frontend', title: t('trust.frontendLabel'), cell: p => <Frontend plugin={p} /> },
          {
            key: 'origins',
            title: t('trust.origins'),
            cell: p =>
              p.frontend_origins.length === 0 ? (
                <Text size="sm" c="dimmed">
                  {t('trust.noOrigins')}
                </Text>
              ) : (
                p.frontend_origins.map(o => (
                  <Text key={o} size="xs" ff="monospace" style={{ overflowWrap: 'anywhere' }}>
                    {o}
                  </Text>
                ))
              ),
          },
        ]}
        empty={
          <Empty
            icon={IconPuzzle}
            title={t('plugins.emptyTitle')}
            text={t('plugins.empty')}
            action={
              <LinkButton to="/admin/plugins/upload" variant="light">
                {t('plugins.upload')}
              </LinkButton>
            }
          />
        }
      />
    </Page>
  );
}

/** Whether pages of plugins are kept on origins of their own. */
function Origins() {
  const { t } = useTranslation();
  const query = useConfig();
  const config = query.data;
  if (config === undefined) return <Loaded query={query}>{() => null}</Loaded>;
  const origin = config.settings.find(s => s.key === 'plugins.origin')?.value;
  if (typeof origin === 'string' && origin !== '')
    return (
      <Alert color="teal" icon={<IconShieldCheck aria-hidden />} title={t('trust.apartTitle')}>
        {t('trust.apart')} <Code>{origin}</Code>
      </Alert>
    );
  return (
    <Alert color="orange" icon={<IconAlertTriangle aria-hidden />} title={t('trust.sharedTitle')}>
      {t('trust.shared')}
    </Alert>
  );
}

function HtmlTrust({ trust }: { trust: Listed['html']['trust'] }) {
  const { t } = useTranslation();
  return (
    <div>
      <StateBadge kind={trust === 'trusted' ? 'warn' : 'good'} label={t(`trust.${trust}`)} />
      <Text size="xs" c="dimmed">
        {t(`trust.means.${trust}`)}
      </Text>
    </div>
  );
}

function Frontend({ plugin: p }: { plugin: Listed }) {
  const { t } = useTranslation();
  if (p.frontend_url === null)
    return (
      <Text size="sm" c="dimmed">
        {t('trust.noFrontend')}
      </Text>
    );
  return (
    <div>
      <Text size="sm">{t(p.frontend_access === 'public' ? 'trust.public' : 'trust.session')}</Text>
      <Text size="xs" ff="monospace" c="dimmed" style={{ overflowWrap: 'anywhere' }}>
        {p.frontend_url}
      </Text>
    </div>
  );
}
