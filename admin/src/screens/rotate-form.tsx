import { Alert, Button, Group, Select, Stack, Text } from '@mantine/core';
import { type ReactNode, useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { Schemas } from '../api/client.ts';
import { ProblemAlert } from '../parts/problem.tsx';
import { dateLocale } from '../texts/index.ts';

/** What is said of the secret before the last rotation. */
type Overlapping = Pick<Schemas['ServiceKey'], 'old_secret_until'>;

const OVERLAPS = ['s0', 's3600', 's86400', 's604800', 's2592000'] as const;

/** Whether the secret before the last rotation is still good. */
export const isOverlapping = (k: Overlapping): boolean =>
  k.old_secret_until !== null && new Date(k.old_secret_until).getTime() > Date.now();

/** Gives a key a new secret; the old one works on for a while, so that the programs can be changed meanwhile. */
export function RotateForm<Made extends Overlapping>(props: {
  rotated: Overlapping;
  rotate: (overlap: { overlap_seconds: number }) => Promise<Made>;
  /** Shows the new secret, with what is said of the old one. */
  secretOf: (made: Made, ofOld: ReactNode) => ReactNode;
  onDone: () => void;
  onMade: () => void;
}) {
  const { onDone, onMade, rotate, rotated: k, secretOf } = props;
  const { t } = useTranslation();
  const [overlap, setOverlap] = useState<(typeof OVERLAPS)[number]>('s86400');
  const [error, setError] = useState<unknown>(null);
  const [isSending, setSending] = useState(false);
  const [made, setMade] = useState<Made | null>(null);
  const submit = async (): Promise<void> => {
    setSending(true);
    setError(null);
    try {
      setMade(await rotate({ overlap_seconds: Number(overlap.slice(1)) }));
      onMade();
    } catch (problem) {
      setError(problem);
    } finally {
      setSending(false);
    }
  };
  if (made !== null)
    return secretOf(
      made,
      <Text size="sm">
        {isOverlapping(made)
          ? t('serviceKeys.untilThen', {
              time: new Date(made.old_secret_until ?? 0).toLocaleString(dateLocale(), {
                dateStyle: 'medium',
                timeStyle: 'short',
              }),
            })
          : t('serviceKeys.overlapNow')}
      </Text>,
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
        <Button loading={isSending} onClick={() => void submit()}>
          {t('serviceKeys.rotate')}
        </Button>
      </Group>
    </Stack>
  );
}
