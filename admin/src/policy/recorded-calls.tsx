import { Group, Stack, Text } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import type { Schemas } from '../api/client.ts';
import { PersonLink } from './changed-people.tsx';

export type RecordedCalls = {
  calls: number;
  undecided: number;
  would_admit: Schemas['DecidedOtherwise'];
  would_refuse: Schemas['DecidedOtherwise'];
};

const NAMED_MAX = 10;

/** Which calls of the last days the policy would have decided otherwise. */
export function RecordedCallsAnswer({ days, recorded }: { days: number; recorded: RecordedCalls }) {
  const { t } = useTranslation();
  const { calls, undecided, would_admit, would_refuse } = recorded;
  if (calls + undecided === 0)
    return (
      <Text size="sm" c="dimmed">
        {t('recordedCalls.none', { count: days })}
      </Text>
    );
  return (
    <Stack gap={4}>
      <Text size="sm" fw={500}>
        {t('recordedCalls.looked', { count: calls, period: t('comparePolicy.lastDays', { count: days }) })}
      </Text>
      <Text size="xs" c="dimmed">
        {t('recordedCalls.sample')}
      </Text>
      {calls > 0 && would_refuse.calls + would_admit.calls === 0 && <Text size="sm">{t('recordedCalls.same')}</Text>}
      {would_refuse.calls > 0 && (
        <div>
          <Text size="sm">{t('recordedCalls.refuse', { count: would_refuse.calls })}</Text>
          <Callers of={would_refuse} />
        </div>
      )}
      {would_admit.calls > 0 && (
        <div>
          <Text size="sm">{t('recordedCalls.admit', { count: would_admit.calls })}</Text>
          <Callers of={would_admit} />
        </div>
      )}
      {undecided > 0 && (
        <Text size="sm" c="dimmed">
          {t('recordedCalls.undecided', { count: undecided })}
        </Text>
      )}
    </Stack>
  );
}

function Callers({ of: { callers, most } }: { of: Schemas['DecidedOtherwise'] }) {
  const { t } = useTranslation();
  return (
    <Group gap="xs">
      {most.slice(0, NAMED_MAX).map(({ calls, principal, user }) => (
        <Text key={principal} size="sm" c="dimmed" component="span">
          {user !== undefined ? (
            <PersonLink person={user} />
          ) : principal === 'public' ? (
            t('recordedCalls.noLogin')
          ) : (
            t('recordedCalls.key', { id: principal.slice(principal.indexOf(':') + 1) })
          )}
          {` (${calls})`}
        </Text>
      ))}
      {callers > NAMED_MAX && (
        <Text size="sm" c="dimmed">
          {t('comparePolicy.more', { count: callers - NAMED_MAX })}
        </Text>
      )}
    </Group>
  );
}
