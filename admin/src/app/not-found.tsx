import { IconMapOff } from '@tabler/icons-react';
import { useRouterState } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { Empty } from '../parts/empty.tsx';
import { LinkButton } from '../parts/links.tsx';
import { Page } from '../parts/page.tsx';

export function NotFound() {
  const { t } = useTranslation();
  const path = useRouterState({ select: s => s.location.pathname });
  return (
    <Page title={t('shell.notFoundTitle')}>
      <Empty
        icon={IconMapOff}
        title={t('common.nothingFound')}
        text={t('shell.notFound', { path })}
        action={<LinkButton to="/admin/">{t('nav.overview')}</LinkButton>}
      />
    </Page>
  );
}
