import { Text } from '@mantine/core';
import type { ReactNode } from 'react';

/** What a key or token is called, with its public part, by which logs name it. */
export function KeyName(props: {
  of: { name: string; public: string };
  /** How records of executions name it. */
  principal?: string;
  children?: ReactNode;
}) {
  const { children, of, principal } = props;
  return (
    <div>
      <Text size="sm" fw={500} style={{ overflowWrap: 'anywhere' }}>
        {of.name}
      </Text>
      <Text size="xs" c="dimmed" ff="monospace">
        {[...(principal === undefined ? [] : [principal]), of.public].join(' · ')}
      </Text>
      {children}
    </div>
  );
}
