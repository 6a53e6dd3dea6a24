import { Box, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { WholeTimes } from './time.tsx';

export type Fact = { label: string; value: ReactNode };

/** What is known of one thing: names on the left, values on the right, below each other where there is no room. */
export function Facts({ facts }: { facts: ReadonlyArray<Fact | null> }) {
  return (
    <Box component="dl" m={0}>
      {facts
        .filter(f => f !== null)
        .map(({ label, value }) => (
          <Box key={label} display={{ base: 'block', xs: 'flex' }} mb={6} style={{ gap: 'var(--mantine-spacing-md)' }}>
            <Text component="dt" size="sm" c="dimmed" w={{ base: 'auto', xs: 150 }} style={{ flex: 'none' }}>
              {label}
            </Text>
            <Text component="dd" size="sm" m={0} style={{ minWidth: 0, overflowWrap: 'anywhere' }}>
              <WholeTimes value={true}>{value}</WholeTimes>
            </Text>
          </Box>
        ))}
    </Box>
  );
}
