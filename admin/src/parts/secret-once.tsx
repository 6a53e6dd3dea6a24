import { Alert, Button, Group, Modal, Stack, Text } from '@mantine/core';
import { IconKey } from '@tabler/icons-react';
import { useTranslation } from 'react-i18next';
import { CopyText } from './copy.tsx';

/** A secret that the service shows once, with what it is for. */
export function SecretOnce({ about, secret }: { about: string; secret: string }) {
  const { t } = useTranslation();
  return (
    <Alert color="orange" icon={<IconKey aria-hidden />} title={t('events.secretOnce')}>
      <Stack gap="xs">
        <Text size="sm">{about}</Text>
        <CopyText value={secret} />
      </Stack>
    </Alert>
  );
}

/** The same over the page. It is closed by its button alone, so that the secret is not lost by a click next to it. */
export function SecretDialog(props: { title: string; about: string; secret: string | null; onClose: () => void }) {
  const { about, onClose, secret, title } = props;
  const { t } = useTranslation();
  return (
    <Modal
      opened={secret !== null}
      onClose={onClose}
      title={title}
      closeOnClickOutside={false}
      closeOnEscape={false}
      withCloseButton={false}
      centered
    >
      <Stack>
        {secret !== null && <SecretOnce about={about} secret={secret} />}
        <Group justify="flex-end">
          <Button onClick={onClose}>{t('events.secretKept')}</Button>
        </Group>
      </Stack>
    </Modal>
  );
}
