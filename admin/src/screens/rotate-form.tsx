import { Alert, Button, Group, Select, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import { ProblemAlert } from '../parts/problem.tsx';
import { ServiceKeySecret } from './service-key-secret.tsx';
import { isOverlapping } from './service-keys.tsx';

type Key = Schemas['ServiceKey'];

const OVERLAPS = ['s0', 's3600', 's86400', 's604800', 's2592000'] as const;

/** Gives a key a new secret; the old one works on for a while, so that the programs can be changed meanwhile. */
export function RotateForm(props: { serviceKey: Key; onDone: () => void; onMade: () => void }) {
  const { onDone, onMade, serviceKey: k } = props;
  const { i18n, t } = useTranslation();
  const [overlap, setOverlap] = useState<(typeof OVERLAPS)[number]>('s86400');
  const [error, setError] = useState<unknown>(null);
  const [isSending, setSending] = useState(false);
  const [made, setMade] = useState<(Key & { key: string }) | null>(null);
  const rotate = async (): Promise<void> => {
    setSending(true);
    setError(null);
    try {
      const body = { overlap_seconds: Number(overlap.slice(1)) };
      setMade(
        answered(await api.POST('/api/admin/service-keys/{key}/rotate', { params: { path: { key: k.id } }, body })),
      );
      onMade();
    } catch (problem) {
      setError(problem);
    } finally {
      setSending(false);
    }
  };
  if (made !== null)
    return (
      <ServiceKeySecret made={made} onDone={onDone}>
        <Text size="sm">
          {isOverlapping(made)
            ? t('serviceKeys.untilThen', {
                time: new Date(made.old_secret_until ?? 0).toLocaleString(i18n.language, {
                  dateStyle: 'medium',
                  timeStyle: 'short',
                }),
              })
            : t('serviceKeys.overlapNow')}
        </Text>
      </ServiceKeySecret>
    );
  return (
    <Stack>
      <Text size="sm">{t('serviceKeys.rotateAbout')}</Text>
      <Select
        label={t('serviceKeys.overlap')}
        description={t('serviceKeys.overlapAbout')}
        data={OVERLAPS.map(o => ({ value: o, label: t(`serviceKeys.overlaps.${o}`) }))}
        value={overlap}
        onChange={v => setOverlap(OVERLAPS.find(o => o === v) ?? overlap)}
        allowDeselect={false}
        data-autofocus
      />
      {overlap === 's0' && <Alert color="orange">{t('serviceKeys.overlapNow')}</Alert>}
      {isOverlapping(k) && <Alert color="orange">{t('serviceKeys.overlapLost')}</Alert>}
      {error !== null && <ProblemAlert error={error} />}
      <Group justify="flex-end">
        <Button variant="default" onClick={onDone}>
          {t('common.cancel')}
        </Button>
        <Button loading={isSending} onClick={() => void rotate()}>
          {t('serviceKeys.rotate')}
        </Button>
      </Group>
    </Stack>
  );
}
