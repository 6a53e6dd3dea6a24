import { Anchor, Card, Stack } from '@mantine/core';
import { IconUserCircle } from '@tabler/icons-react';
import { useTranslation } from 'react-i18next';
import { useSession } from '../app/session.ts';
import { Empty } from '../parts/empty.tsx';
import { LinkButton } from '../parts/links.tsx';
import { Page } from '../parts/page.tsx';
import NewPassword from './new-password.tsx';
import { Section } from './review.tsx';
import SecondFactor from './second-factor.tsx';

/** One's own password and sessions. */
export default function Account() {
  const { t } = useTranslation();
  const session = useSession();
  if (session.data?.setup_mode === true)
    return (
      <Page title={t('shell.account')}>
        <Empty
          icon={IconUserCircle}
          title={t('admins.emptyTitle')}
          text={t('account.noneYet')}
          action={<LinkButton to="/admin/setup">{t('admins.setUp')}</LinkButton>}
        />
      </Page>
    );
  return (
    <Page title={t('shell.account')} about={session.data?.admin?.email}>
      <Stack gap="xl" maw={480}>
        <Section title={t('account.password')}>
          <Card withBorder>
            <NewPassword />
          </Card>
        </Section>
        <Section title={t('secondFactor.title')} about={t('secondFactor.about')}>
          <Card withBorder>
            <SecondFactor />
          </Card>
        </Section>
        <Section title={t('account.sessions')} about={t('account.sessionsAbout')}>
          <Anchor href="/account/">{t('account.openSessions')}</Anchor>
        </Section>
      </Stack>
    </Page>
  );
}
