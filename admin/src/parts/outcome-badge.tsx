import { Group, Text } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import type { Schemas } from '../api/client.ts';
import { StateBadge } from './state-badge.tsx';

/** How an execution ended, with the status the caller got. */
export function OutcomeBadge({ outcome, status }: Pick<Schemas['Execution'], 'outcome' | 'status'>) {
  const { t } = useTranslation();
  const kind = outcome === 'ok' ? (status >= 400 ? 'warn' : 'good') : outcome === 'refused' ? 'closed' : 'bad';
  return (
    <Group gap={6} wrap="nowrap">
      <StateBadge kind={kind} label={t(kind === 'warn' ? 'outcome.answeredError' : `outcome.${outcome}`)} />
      {status > 0 && (
        <Text size="sm" c="dimmed">
          {status}
        </Text>
      )}
    </Group>
  );
}
