import { Box, Button } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { IconFilter } from '@tabler/icons-react';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';

/**
 * Filters above a list. A small screen shows the list first, and the filters when they are asked for.
 *
 * @param props.count how many are set
 */
export function FilterFold({ children, count }: { count: number; children: ReactNode }) {
  const { t } = useTranslation();
  const [isOpen, { toggle }] = useDisclosure(false);
  return (
    <>
      <Button
        hiddenFrom="xs"
        variant="default"
        leftSection={<IconFilter size={16} aria-hidden />}
        onClick={toggle}
        aria-expanded={isOpen}
        fullWidth
        mb="sm"
      >
        {t('common.filters', { count })}
      </Button>
      <Box {...(isOpen ? {} : { visibleFrom: 'xs' })}>{children}</Box>
    </>
  );
}
