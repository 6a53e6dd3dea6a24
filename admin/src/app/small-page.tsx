import {
  ActionIcon,
  Center,
  Group,
  Paper,
  Stack,
  Text,
  Title,
  useComputedColorScheme,
  useMantineColorScheme,
} from '@mantine/core';
import { IconLanguage, IconMoon, IconSun } from '@tabler/icons-react';
import { type ReactNode, useEffect } from 'react';
import { useTranslation } from 'react-i18next';
import { notifyProblem } from '../parts/problem.tsx';
import { switchLanguage } from '../texts/index.ts';
import { Logo } from './logo.tsx';

export function LanguageButton() {
  const { i18n, t } = useTranslation();
  const isRussian = i18n.language === 'ru';
  return (
    <ActionIcon
      variant="subtle"
      color="gray"
      size="lg"
      aria-label={t('shell.language')}
      title={t('shell.language')}
      onClick={() => void switchLanguage(isRussian ? 'en' : 'ru').catch(notifyProblem)}
    >
      <IconLanguage size={20} />
    </ActionIcon>
  );
}

export function ThemeButton() {
  const { t } = useTranslation();
  const { setColorScheme } = useMantineColorScheme();
  const scheme = useComputedColorScheme('light');
  return (
    <ActionIcon
      variant="subtle"
      color="gray"
      size="lg"
      aria-label={t('shell.theme')}
      title={t('shell.theme')}
      onClick={() => setColorScheme(scheme === 'dark' ? 'light' : 'dark')}
    >
      {scheme === 'dark' ? <IconSun size={20} /> : <IconMoon size={20} />}
    </ActionIcon>
  );
}

/** A page with one form: login, first password, setup token. */
export function SmallPage({ about, children, title }: { title: string; about?: ReactNode; children: ReactNode }) {
  useEffect(() => {
    document.title = `${title} · Plugin host`;
  }, [title]);
  return (
    <Center component="main" mih="100vh" p="md">
      <Stack w="100%" maw={420} gap="lg">
        <Group justify="space-between">
          <Logo />
          <Group gap={4}>
            <LanguageButton />
            <ThemeButton />
          </Group>
        </Group>
        <Paper withBorder p="lg" shadow="xs">
          <Stack gap="md">
            <div>
              <Title order={1} size="h3">
                {title}
              </Title>
              {about !== undefined && (
                <Text size="sm" c="dimmed" component="div">
                  {about}
                </Text>
              )}
            </div>
            {children}
          </Stack>
        </Paper>
      </Stack>
    </Center>
  );
}
