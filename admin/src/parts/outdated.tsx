import { Alert, Button, Group, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import type { Draft } from './use-draft.ts';

/** Says that something else was saved under a draft, shows it, and lets its author choose. */
export function Outdated({
  children,
  draft,
  onChosen,
}: {
  draft: Pick<Draft<unknown>, 'isOutdated' | 'load' | 'keep'>;
  /** Called when the administrator has chosen. */
  onChosen?: () => void;
  children: ReactNode;
}) {
  const { t } = useTranslation();
  if (!draft.isOutdated) return null;
  const choose = (take: () => void) => (): void => {
    take();
    onChosen?.();
  };
  return (
    <Alert color="orange" title={t('outdated.title')} role="alert">
      <Text size="sm">{t('outdated.about')}</Text>
      <Text size="sm" component="div" my="xs" style={{ overflowWrap: 'anywhere' }}>
        {children}
      </Text>
      <Group gap="xs">
        <Button size="xs" variant="default" onClick={choose(draft.load)}>
          {t('outdated.load')}
        </Button>
        <Button size="xs" variant="default" onClick={choose(draft.keep)}>
          {t('outdated.keep')}
        </Button>
      </Group>
    </Alert>
  );
}
