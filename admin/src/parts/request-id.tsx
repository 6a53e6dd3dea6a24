import { Group } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { CopyText } from './copy.tsx';
import { LinkAnchor } from './links.tsx';

/** A request id, with the way to the executions of that request. */
export function RequestId({ id }: { id: string }) {
  const { t } = useTranslation();
  return (
    <Group gap="xs">
      <CopyText value={id} />
      <LinkAnchor to="/admin/executions" search={{ id }} size="sm">
        {t('nav.executions')}
      </LinkAnchor>
    </Group>
  );
}
