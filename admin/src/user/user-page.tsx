import { ActionIcon, Alert, Anchor, Button, Container, Group, Stack, Tabs, Text, Title } from '@mantine/core';
import { IconLogout, IconSettings } from '@tabler/icons-react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useEffect } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api, onSessionEnd } from '../api/client.ts';
import { Logo } from '../app/logo.tsx';
import { LanguageButton, SmallPage, ThemeButton } from '../app/small-page.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { notifyProblem } from '../parts/problem.tsx';
import { LinkedAccounts } from './linked-accounts.tsx';
import { OwnSessions } from './own-sessions.tsx';
import { OwnTokens } from './own-tokens.tsx';

const ACCOUNT = '/account/';
const MESSENGERS = '/messengers/';

/** What a user does alone: tokens, sessions, accounts of messengers. */
export function UserPage() {
  const { t } = useTranslation();
  const query = useQuery({
    queryKey: ['check'],
    queryFn: async () => answered(await api.GET('/api/auth/check')),
    staleTime: Number.POSITIVE_INFINITY,
  });
  const queries = useQueryClient();
  // The page then offers the way in.
  useEffect(() => onSessionEnd(() => void queries.invalidateQueries({ queryKey: ['check'] })), [queries]);
  const isMessengers = location.pathname === MESSENGERS;
  const title = t(isMessengers ? 'user.messengers' : 'user.account');
  useEffect(() => {
    document.title = `${title} · Plugin host`;
  }, [title]);
  return (
    <Loaded query={query}>
      {({ authenticated, idp, page_proof_required, user }) =>
        !authenticated ? (
          <NotLoggedIn title={title} hasProvider={idp} />
        ) : page_proof_required === true ? (
          <LostProof />
        ) : (
          <Frame title={title} name={user?.display_name ?? ''}>
            <Tabs
              value={isMessengers ? MESSENGERS : ACCOUNT}
              onChange={to => {
                if (to !== null) location.assign(to);
              }}
            >
              <Tabs.List mb="lg">
                <Tabs.Tab value={ACCOUNT}>{t('user.accountTab')}</Tabs.Tab>
                <Tabs.Tab value={MESSENGERS}>{t('user.messengers')}</Tabs.Tab>
              </Tabs.List>
            </Tabs>
            {isMessengers ? (
              <LinkedAccounts />
            ) : (
              <Stack gap="xl">
                <OwnTokens />
                <OwnSessions />
              </Stack>
            )}
          </Frame>
        )
      }
    </Loaded>
  );
}

/** The way in, or what is missing for one. */
function NotLoggedIn({ hasProvider, title }: { title: string; hasProvider: boolean }) {
  const { t } = useTranslation();
  const back = encodeURIComponent(location.pathname);
  if (hasProvider)
    return (
      <SmallPage title={title} about={t('user.logInAbout')}>
        <Button component="a" href={`/api/auth/idp/start?return_to=${back}`}>
          {t('login.provider')}
        </Button>
      </SmallPage>
    );
  return (
    <SmallPage title={title}>
      <Alert color="orange" title={t('user.noProviderTitle')}>
        <Stack gap="xs">
          <Text size="sm">{t('user.noProvider')}</Text>
          <Text size="sm">
            {t('user.noProviderAdmin')}{' '}
            <Anchor href="/admin/" c="inherit" underline="always">
              {t('user.toAdmin')}
            </Anchor>
          </Text>
        </Stack>
      </Alert>
    </SmallPage>
  );
}

/** The user has logged in from another window: a page opened again has the new proof. */
function LostProof() {
  const { t } = useTranslation();
  const isReloaded = performance.getEntriesByType('navigation').some(e => 'type' in e && e.type === 'reload');
  if (!isReloaded) {
    location.reload();
    return null;
  }
  return (
    <SmallPage title={t('gate.unprotectedTitle')}>
      <Text size="sm">{t('gate.unprotected')}</Text>
      <Button onClick={() => location.reload()}>{t('gate.reload')}</Button>
    </SmallPage>
  );
}

/** The way to the administration, for those who are logged in there too. */
function AdminLink() {
  const { t } = useTranslation();
  const { data } = useQuery({
    queryKey: ['admin-check'],
    queryFn: async () => answered(await api.GET('/api/admin/auth/check')),
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (data?.authenticated !== true) return null;
  const title = t('user.toAdmin');
  return (
    <>
      <ActionIcon
        component="a"
        href="/admin/"
        hiddenFrom="xs"
        variant="subtle"
        color="gray"
        size="lg"
        aria-label={title}
        title={title}
      >
        <IconSettings size={20} aria-hidden />
      </ActionIcon>
      <Anchor href="/admin/" visibleFrom="xs" size="sm" mr="xs">
        {title}
      </Anchor>
    </>
  );
}

function Frame({ children, name, title }: { title: string; name: string; children: ReactNode }) {
  const { t } = useTranslation();
  const logOut = async (): Promise<void> => {
    try {
      await api.POST('/api/auth/logout');
      location.reload();
    } catch (problem) {
      notifyProblem(problem);
    }
  };
  return (
    <>
      <Container component="header" size="md" pt="md">
        <Group justify="space-between" wrap="nowrap">
          <Logo isShort />
          <Group gap={4} wrap="nowrap">
            <AdminLink />
            <LanguageButton />
            <ThemeButton />
            <ActionIcon
              hiddenFrom="xs"
              variant="subtle"
              color="gray"
              size="lg"
              aria-label={t('shell.logout')}
              onClick={() => void logOut()}
            >
              <IconLogout size={20} aria-hidden />
            </ActionIcon>
            <Button
              visibleFrom="xs"
              variant="subtle"
              color="gray"
              leftSection={<IconLogout size={18} aria-hidden />}
              onClick={() => void logOut()}
            >
              {t('shell.logout')}
            </Button>
          </Group>
        </Group>
      </Container>
      <Container component="main" size="md" py="lg">
        <Title order={1} fz={{ base: 'h3', xs: 'h2' }}>
          {title}
        </Title>
        <Text c="dimmed" mb="md">
          {name}
        </Text>
        {children}
      </Container>
    </>
  );
}
