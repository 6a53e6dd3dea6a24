import { Progress, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { answered, api } from '../api/client.ts';
import { numberText } from '../parts/quantities.ts';
import type { UniversityType } from './types.ts';

const POLL_MS = 1000;
const LATEST = 5;

/** How far an import is, which its entry in the log tells; a check leaves no entry. */
export function ImportProgress(props: { type: UniversityType['type']; count: number; kind: 'check' | 'import' }) {
  const { count, kind, type } = props;
  const { t } = useTranslation();
  const query = useQuery({
    queryKey: ['university', 'progress', type],
    queryFn: async () =>
      answered(await api.GET('/api/admin/university/imports', { params: { query: { limit: LATEST, kind: 'batch' } } }))
        .items.find(r => r.state === 'running')
        ?.types.find(x => x.type === type)?.total ?? null,
    enabled: kind === 'import',
    refetchInterval: POLL_MS,
    gcTime: 0,
  });
  const done = query.data ?? null;
  return (
    <div role="status">
      <Progress
        value={done === null ? 100 : (done / count) * 100}
        animated
        aria-label={t(`university.progress.${kind}`, { count })}
      />
      <Text size="sm" c="dimmed" mt={4}>
        {done === null
          ? t(`university.progress.${kind}`, { count })
          : t('university.progress.done', { done: numberText(done), of: numberText(count) })}
      </Text>
    </div>
  );
}
