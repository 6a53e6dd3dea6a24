import { Button, FileButton, Group, Progress, Stack, Text } from '@mantine/core';
import { IconFileZip } from '@tabler/icons-react';
import { useQueryClient } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { type Schemas, uploadForm } from '../api/client.ts';
import { May } from '../app/may.tsx';
import { ProblemAlert } from '../parts/problem.tsx';
import { bytesText, numberText } from '../parts/quantities.ts';
import { Section } from './review.tsx';

/** The web pages of an uploaded version, which can be delivered until it is installed. */
export function DeliverFrontend({ upload }: { upload: Schemas['Upload'] }) {
  const { frontend, id, installed_at, wasm_key: key } = upload;
  const { t } = useTranslation();
  const queries = useQueryClient();
  const [share, setShare] = useState<number | null>(null);
  const [error, setError] = useState<unknown>(null);
  // A file that was mended has the name of the one that was refused, which the browser would not take as a choice.
  const forget = useRef<() => void>(null);
  const deliver = async (file: File | null): Promise<void> => {
    if (file === null) return;
    const form = new FormData();
    form.append('file', file);
    setShare(0);
    setError(null);
    try {
      const path = `/api/admin/plugins/${encodeURIComponent(id)}/versions/${encodeURIComponent(key)}/frontend`;
      await uploadForm('PUT', path, form, setShare, () => null);
      await queries.invalidateQueries({ queryKey: ['plugins', id] });
    } catch (problem) {
      setError(problem);
    } finally {
      forget.current?.();
      setShare(null);
    }
  };
  return (
    <Section title={t('frontend.title')}>
      <Stack gap="xs">
        <Group gap="md">
          <Text size="sm">
            {frontend === null
              ? t('frontend.none')
              : t('frontend.has', { files: numberText(frontend.files), size: bytesText(frontend.bytes) })}
          </Text>
          {installed_at === null && (
            <May need="plugins:deploy" plugin={id}>
              <FileButton
                resetRef={forget}
                onChange={file => void deliver(file)}
                accept=".zip,application/zip"
                disabled={share !== null}
              >
                {button => (
                  <Button {...button} size="xs" variant="default" leftSection={<IconFileZip size={16} aria-hidden />}>
                    {t(frontend === null ? 'frontend.deliver' : 'frontend.replace')}
                  </Button>
                )}
              </FileButton>
            </May>
          )}
        </Group>
        {frontend !== null && upload.installed_version === null && <Text size="sm">{t('frontend.openToAll')}</Text>}
        {share !== null && <Progress value={share * 100} animated={share === 1} aria-label={t('frontend.sending')} />}
        <ProblemAlert error={error} />
      </Stack>
    </Section>
  );
}
