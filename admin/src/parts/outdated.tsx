import { Alert, Button, Group, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import type { Draft } from './use-draft.ts';

/** Says that something else was saved under a draft, shows it, and lets its author choose. */
export function Outdated({
  children,
  draft,
}: {
  draft: Pick<Draft<unknown>, 'isOutdated' | 'load' | 'keep'>;
  children: ReactNode;
}) {
  const { t } = useTranslation();
  if (!draft.isOutdated) return null;
  return (
    <Alert color="orange" title={t('outdated.title')} role="alert">
      <Text size="sm" mb="xs" style={{ overflowWrap: 'anywhere' }}>
        {t('outdated.about')} {children}
      </Text>
      <Group gap="xs">
        <Button size="xs" variant="default" onClick={draft.load}>
          {t('outdated.load')}
        </Button>
        <Button size="xs" variant="default" onClick={draft.keep}>
          {t('outdated.keep')}
        </Button>
      </Group>
    </Alert>
  );
}
