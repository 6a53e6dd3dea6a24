import { Group, Select, Text, TextInput } from '@mantine/core';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { StateBadge } from './state-badge.tsx';
import { When } from './time.tsx';

const CHOICES = ['d30', 'd90', 'd365', 'date', 'never'] as const;
const DAY_MS = 86_400_000;
/** A key that ends within this time is marked. */
const SOON_MS = 14 * DAY_MS;

export type Expiry = { choice: (typeof CHOICES)[number]; day: string };

/** When a key with this choice ends; null for never, undefined while no day is chosen. */
export function expiryTime({ choice, day }: Expiry): string | null | undefined {
  if (choice === 'never') return null;
  if (choice !== 'date') return new Date(Date.now() + Number(choice.slice(1)) * DAY_MS).toISOString();
  // The whole day, as clocks here show it.
  const end = new Date(`${day}T23:59:59`);
  return Number.isNaN(end.getTime()) ? undefined : end.toISOString();
}

/** How long a key is good for. */
export function ExpiryField(props: { value: Expiry; onChange: (value: Expiry) => void; error?: ReactNode }) {
  const { error, onChange, value } = props;
  const { t } = useTranslation();
  const isDay = value.choice === 'date';
  return (
    <Group align="flex-start" gap="sm">
      <Select
        label={t('keys.expires')}
        data={CHOICES.map(c => ({ value: c, label: t(`keys.expiry.${c}`) }))}
        value={value.choice}
        onChange={c => onChange({ ...value, choice: CHOICES.find(x => x === c) ?? value.choice })}
        allowDeselect={false}
        error={isDay ? undefined : error}
        w={260}
      />
      {isDay && (
        <TextInput
          type="date"
          label={t('keys.day')}
          value={value.day}
          min={new Date().toISOString().slice(0, 10)}
          onChange={e => onChange({ ...value, day: e.currentTarget.value })}
          error={error}
          required
          w={180}
        />
      )}
    </Group>
  );
}

/** When a key ends, marked when that is near or past. */
export function KeyEnd({ at }: { at: string | null }) {
  const { t } = useTranslation();
  if (at === null)
    return (
      <Text span size="sm" c="dimmed">
        {t('keys.neverEnds')}
      </Text>
    );
  const left = new Date(at).getTime() - Date.now();
  return (
    <Group gap={6}>
      <When at={at} />
      {left <= 0 ? (
        <StateBadge kind="bad" label={t('keys.expired')} />
      ) : (
        left < SOON_MS && <StateBadge kind="warn" label={t('keys.soon')} />
      )}
    </Group>
  );
}

/** On small screens, where their columns are left out: when a key was last used, when it ends, who made it. */
export function KeyFacts({ by, ends, used }: { used: string | null; ends: string | null; by?: string | undefined }) {
  const { t } = useTranslation();
  return (
    <Text size="xs" c="dimmed" component="div" hiddenFrom="md" mt={4}>
      <div>
        {t('keys.lastUsed')}: <When at={used} />
      </div>
      {ends !== null && (
        <Group gap={4}>
          {t('keys.ends')}: <KeyEnd at={ends} />
        </Group>
      )}
      {by !== undefined && (
        <div>
          {t('adminKeys.madeBy')}: {by}
        </div>
      )}
    </Text>
  );
}
