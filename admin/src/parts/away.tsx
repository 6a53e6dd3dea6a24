import { Alert, Stack, Text } from '@mantine/core';
import { IconPlugConnectedX } from '@tabler/icons-react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import { useTranslation } from 'react-i18next';
import { type Readiness, readiness } from '../api/readiness.ts';

/** An administrator learns within five seconds what is away, and that it is back. */
export const AWAY_REFRESH_MS = 2000;

/** What may be away, by the names of the checks and of the states of a service that is not ready. */
const NAMES = [
  'changes',
  'database',
  'disk',
  'draining',
  'files',
  'graph',
  'mail',
  'starting',
  'telegram',
  'vk',
  'writes',
] as const;

/** A check of a later release has no words here. */
export const awayOf = (name: string | undefined): (typeof NAMES)[number] | undefined => NAMES.find(n => n === name);

/** What still works, and what to do. */
export function AwayHelp({ name }: { name: (typeof NAMES)[number] }) {
  const { t } = useTranslation();
  return (
    <Stack gap={2} fz="sm">
      <span>{t(`away.${name}.works`)}</span>
      <span>{t(`away.${name}.help`)}</span>
    </Stack>
  );
}

/** Whether the service has what it needs, asked every two seconds. When it is back, everything is read again. */
export function useReadiness() {
  const queries = useQueryClient();
  const query = useQuery({
    queryKey: ['readiness'],
    queryFn: readiness,
    refetchInterval: AWAY_REFRESH_MS,
    retry: false,
  });
  const isAway = query.error !== null || query.data?.status === 'unavailable';
  const wasAway = useRef(false);
  useEffect(() => {
    if (wasAway.current && !isAway) void queries.invalidateQueries();
    wasAway.current = isAway;
  }, [isAway, queries]);
  return query;
}

/** What is missing so that every request is refused; null where requests are answered. On a full disk they are. */
export const refusingFor = (data: Readiness | undefined): string | null =>
  data?.status === 'unavailable' && data.missing !== 'disk' ? data.missing : null;

/** Says what a service that is not ready lacks, what still works, and what to do. */
export function Away({ missing }: { missing: string }) {
  const { t } = useTranslation();
  const name = awayOf(missing);
  return (
    <Alert
      color="red"
      role="alert"
      icon={<IconPlugConnectedX aria-hidden />}
      title={name === undefined ? t('refusal.unavailable') : t(`away.${name}.title`)}
    >
      {name !== undefined && <AwayHelp name={name} />}
      <Text size="xs" c="dimmed" mt={6}>
        {t('away.again')}
      </Text>
    </Alert>
  );
}
