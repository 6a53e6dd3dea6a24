import { Alert, Button, Group, Stack, Text } from '@mantine/core';
import { IconKey } from '@tabler/icons-react';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { CopyText } from './copy.tsx';
import { useLeaveQuestion } from './use-leave-question.ts';

/** The text of a new key, shown this once, with how a program sends it. */
export function KeySecret(props: {
  name: string;
  secret: string;
  /** A command line that uses it. */
  example: string;
  children?: ReactNode;
  onDone: () => void;
}) {
  const { children, example, name, onDone, secret } = props;
  const { t } = useTranslation();
  const kept = useLeaveQuestion(true, t('common.onceText'));
  return (
    <Stack>
      <Alert color="teal" icon={<IconKey aria-hidden />} title={t('keys.secretOf', { name })} role="status">
        <Stack gap="xs">
          <CopyText value={secret} block />
          <Text size="sm">{t('keys.copyNow')}</Text>
        </Stack>
      </Alert>
      {children}
      <div>
        <Text size="sm" fw={500} mb={4}>
          {t('keys.use')}
        </Text>
        <CopyText value={example} block />
      </div>
      <Group justify="flex-end">
        <Button
          onClick={() => {
            kept();
            onDone();
          }}
        >
          {t('keys.done')}
        </Button>
      </Group>
    </Stack>
  );
}
