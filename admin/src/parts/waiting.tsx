import { Skeleton, Stack } from '@mantine/core';
import { useTranslation } from 'react-i18next';

/** What stands in the place of something that is on its way. It is seen only when that takes a moment. */
export function Waiting({ rows = 5 }: { rows?: number }) {
  const { t } = useTranslation();
  return (
    <Stack gap="xs" role="status" aria-busy aria-label={t('common.loading')} className="late">
      {Array.from({ length: rows }, (_, k) => k).map(k => (
        <Skeleton key={k} height={36} />
      ))}
    </Stack>
  );
}
