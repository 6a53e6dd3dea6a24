import { Skeleton, Stack } from '@mantine/core';
import { useTranslation } from 'react-i18next';

/** What stands in the place of something that is on its way. It is seen only when that takes a moment. */
export function Waiting() {
  const { t } = useTranslation();
  return (
    <Stack gap="xs" role="status" aria-busy aria-label={t('common.loading')} className="late">
      {[0, 1, 2, 3, 4].map(k => (
        <Skeleton key={k} height={36} />
      ))}
    </Stack>
  );
}
