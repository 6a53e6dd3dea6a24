import { Text } from '@mantine/core';
import type { ReactNode } from 'react';

/** What a key or token is called, with its public part, by which logs name it. */
export function KeyName({ children, of }: { of: { name: string; public: string }; children?: ReactNode }) {
  return (
    <div>
      <Text size="sm" fw={500} style={{ overflowWrap: 'anywhere' }}>
        {of.name}
      </Text>
      <Text size="xs" c="dimmed" ff="monospace">
        {of.public}
      </Text>
      {children}
    </div>
  );
}
