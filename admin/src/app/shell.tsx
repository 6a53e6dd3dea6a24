import {
  ActionIcon,
  Alert,
  AppShell,
  Burger,
  Button,
  Group,
  Menu,
  NavLink,
  ScrollArea,
  Text,
  UnstyledButton,
  useMantineTheme,
} from '@mantine/core';
import { useDisclosure, useHotkeys, useMediaQuery } from '@mantine/hooks';
import { IconLogout, IconSearch, IconUserCircle } from '@tabler/icons-react';
import { Link, Outlet, useRouterState } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { LinkButton } from '../parts/links.tsx';
import { Logo } from './logo.tsx';
import { useNavigation } from './navigation.ts';
import { openPalette, PaletteOnDemand } from './palette-on-demand.tsx';
import { useLogout, useSession } from './session.ts';
import { LanguageButton, ThemeButton } from './small-page.tsx';

const SHORTCUT = /Mac/.test(navigator.userAgent) ? '⌘K' : 'Ctrl K';

const CONTENT_ID = 'content';
const MENU_ID = 'menu';

/** The frame of every screen: menu, palette, account, and a banner while the service is still being set up. */
export function Shell() {
  const { t } = useTranslation();
  const [isMenuOpen, menu] = useDisclosure(false);
  const { md: desktop } = useMantineTheme().breakpoints;
  const isNarrow = useMediaQuery(`not all and (min-width: ${desktop})`, false, {
    getInitialValueInEffect: false,
  });
  useHotkeys([['Escape', menu.close]]);
  const path = useRouterState({ select: s => s.location.pathname });
  const session = useSession();
  const groups = useNavigation();
  return (
    <AppShell
      header={{ height: 56 }}
      navbar={{ width: { base: 232, lg: 272 }, breakpoint: 'md', collapsed: { mobile: !isMenuOpen } }}
      padding={{ base: 'md', lg: 'xl' }}
    >
      <a
        className="skip-link"
        href={`#${CONTENT_ID}`}
        onClick={event => {
          // The address stays as it is: it says what is shown.
          event.preventDefault();
          document.getElementById(CONTENT_ID)?.focus();
        }}
      >
        {t('shell.skip')}
      </a>
      <AppShell.Header>
        <Group h="100%" px="md" justify="space-between" wrap="nowrap">
          <Group gap="sm" wrap="nowrap">
            <Burger
              opened={isMenuOpen}
              onClick={menu.toggle}
              hiddenFrom="md"
              size="sm"
              aria-label={t('shell.menu')}
              aria-expanded={isMenuOpen}
              aria-controls={MENU_ID}
            />
            <UnstyledButton component={Link} to="/admin/">
              <Logo isShort />
            </UnstyledButton>
          </Group>
          <Group gap={4} wrap="nowrap">
            <ActionIcon
              hiddenFrom="sm"
              variant="subtle"
              color="gray"
              size="lg"
              onClick={openPalette}
              aria-label={`${t('shell.search')} ${SHORTCUT}`}
            >
              <IconSearch size={20} />
            </ActionIcon>
            <Button
              visibleFrom="sm"
              variant="default"
              size="xs"
              leftSection={<IconSearch size={14} />}
              onClick={openPalette}
              aria-label={`${t('shell.search')} ${SHORTCUT}`}
              styles={{ label: { fontWeight: 400 } }}
            >
              <Text span size="xs">
                {t('shell.search')}
              </Text>{' '}
              <Text span size="xs" c="dimmed" ml={8} visibleFrom="md">
                {SHORTCUT}
              </Text>
            </Button>
            <LanguageButton />
            <ThemeButton />
            <AccountMenu />
          </Group>
        </Group>
      </AppShell.Header>
      <AppShell.Navbar
        id={MENU_ID}
        p="xs"
        aria-label={t('shell.menu')}
        // While it is out of sight the keyboard passes over it.
        inert={isNarrow && !isMenuOpen}
      >
        <ScrollArea>
          {groups.map(({ items, label }) => (
            <div key={label ?? ''}>
              {label !== null && (
                <Text size="xs" fw={600} c="dimmed" mt="md" mb={4} px="sm">
                  {t(label)}
                </Text>
              )}
              {items.map(({ icon: Sign, label: text, to }) => {
                const isHere = to === '/admin/' ? path === '/admin/' : path === to || path.startsWith(`${to}/`);
                return (
                  <NavLink
                    key={to}
                    component={Link}
                    to={to}
                    // It covers a small screen.
                    onClick={menu.close}
                    activeOptions={{ exact: to === '/admin/' }}
                    label={t(text)}
                    active={isHere}
                    aria-current={isHere ? 'page' : undefined}
                    leftSection={<Sign size={18} stroke={1.7} aria-hidden />}
                    py={6}
                    style={{ borderRadius: 'var(--mantine-radius-md)' }}
                  />
                );
              })}
            </div>
          ))}
        </ScrollArea>
      </AppShell.Navbar>
      <AppShell.Main id={CONTENT_ID} tabIndex={-1}>
        {session.data?.setup_mode === true && (
          <Alert color="orange" mb="lg" title={t('shell.setupOpen')}>
            <Group gap="xs">
              <Text size="sm">{t('shell.setupOpenAbout')}</Text>
              {path !== '/admin/setup' && (
                <LinkButton to="/admin/setup" size="xs" variant="default">
                  {t('shell.setupGo')}
                </LinkButton>
              )}
            </Group>
          </Alert>
        )}
        <Outlet />
      </AppShell.Main>
      <PaletteOnDemand />
    </AppShell>
  );
}

function AccountMenu() {
  const { t } = useTranslation();
  const session = useSession();
  const logout = useLogout();
  const admin = session.data?.admin;
  if (admin === undefined) return null;
  return (
    <Menu position="bottom-end" withinPortal>
      <Menu.Target>
        <Button variant="subtle" color="gray" size="xs" px={6} aria-label={t('shell.account')}>
          <IconUserCircle size={22} />
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>{admin.email}</Menu.Label>
        <Menu.Item component={Link} to="/admin/account" leftSection={<IconUserCircle size={16} />}>
          {t('shell.account')}
        </Menu.Item>
        <Menu.Item leftSection={<IconLogout size={16} />} onClick={() => void logout()}>
          {t('shell.logout')}
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
