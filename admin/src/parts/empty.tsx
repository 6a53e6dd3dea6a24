import { Paper, Stack, Text, ThemeIcon } from '@mantine/core';
import type { Icon } from '@tabler/icons-react';
import type { ReactNode } from 'react';

/** An empty list: says what would stand here, and the next step. */
export function Empty({
  action,
  icon: Sign,
  text,
  title,
}: {
  icon: Icon;
  title: string;
  text?: ReactNode;
  action?: ReactNode;
}) {
  return (
    <Paper withBorder p="xl">
      <Stack align="center" gap="xs">
        <ThemeIcon size={48} radius="xl" variant="light" color="gray">
          <Sign size={26} aria-hidden />
        </ThemeIcon>
        <Text fw={600} ta="center">
          {title}
        </Text>
        {text !== undefined && (
          <Text c="dimmed" size="sm" ta="center" maw="32rem" component="div" style={{ textWrap: 'balance' }}>
            {text}
          </Text>
        )}
        {action}
      </Stack>
    </Paper>
  );
}
