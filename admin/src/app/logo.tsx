import { Group, Text } from '@mantine/core';

/** @param isShort whether a narrow screen shows the sign alone */
export function Logo({ isShort = false }: { isShort?: boolean }) {
  return (
    <Group gap={8} wrap="nowrap">
      <img src="/admin/assets/icon.svg" width={26} height={26} alt={isShort ? 'Plugin host' : ''} />
      <Text fw={700} aria-hidden={isShort} visibleFrom={isShort ? 'xs' : undefined} style={{ whiteSpace: 'nowrap' }}>
        Plugin host
      </Text>
    </Group>
  );
}
