import { Button, Stack, Text, Title } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { problemText } from '../parts/problem.tsx';

/** A screen whose code could not be loaded, or that failed: a newer release may be there, so the page is opened again. */
export function ScreenFailed({ error }: { error: unknown }) {
  const { t } = useTranslation();
  return (
    <Stack align="flex-start">
      <Title order={1} size="h2">
        {t('shell.failedTitle')}
      </Title>
      <Text>{t('shell.failed')}</Text>
      <Text size="sm" c="dimmed">
        {problemText(error)}
      </Text>
      <Button onClick={() => location.reload()}>{t('gate.reload')}</Button>
    </Stack>
  );
}
