import { Badge } from '@mantine/core';
import { IconBuildingBank, IconPencil } from '@tabler/icons-react';
import { useTranslation } from 'react-i18next';

/** Where a role or a relationship comes from: an import brings its own back. */
export function OriginBadge({ origin }: { origin: 'import' | 'manual' }) {
  const { t } = useTranslation();
  const Sign = origin === 'import' ? IconBuildingBank : IconPencil;
  return (
    <Badge
      color={origin === 'import' ? 'blue' : 'gray'}
      variant="light"
      tt="none"
      leftSection={<Sign size={12} aria-hidden />}
      style={{ flex: 'none', width: 'max-content', maxWidth: 'none' }}
    >
      {t(`personRoles.origin.${origin}`)}
    </Badge>
  );
}
