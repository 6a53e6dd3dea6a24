import { Code, Drawer, Stack } from '@mantine/core';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';

/** More about one entry of a list, over its edge: the list keeps its place and its filters. */
export function Details(props: { title: string; isOpen: boolean; onClose: () => void; children: ReactNode }) {
  const { children, isOpen, onClose, title } = props;
  const { t } = useTranslation();
  return (
    <Drawer
      opened={isOpen}
      onClose={onClose}
      title={title}
      position="right"
      size="lg"
      padding="lg"
      styles={{ title: { fontWeight: 600, overflowWrap: 'anywhere' } }}
      closeButtonProps={{ 'aria-label': t('common.close') }}
    >
      <Stack gap="lg">{children}</Stack>
    </Drawer>
  );
}

/** JSON as it is, indented. */
export function JsonBlock({ value }: { value: unknown }) {
  return (
    <Code
      block
      style={{ whiteSpace: 'pre-wrap', overflowWrap: 'anywhere', maxHeight: 480, overflow: 'auto' }}
      tabIndex={0}
    >
      {JSON.stringify(value, null, 2)}
    </Code>
  );
}
