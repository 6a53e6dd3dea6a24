import { Group, Stack, Text, Title } from '@mantine/core';
import { type ReactNode, useEffect } from 'react';

/** The frame of a screen: where one is, its name, what can be done, and the contents. */
export function Page(props: {
  title: string;
  about?: ReactNode;
  actions?: ReactNode;
  /** Links back to what it belongs to. */
  crumbs?: ReactNode;
  children: ReactNode;
}) {
  const { about, actions, children, crumbs, title } = props;
  useEffect(() => {
    document.title = `${title} · Plugin host`;
  }, [title]);
  return (
    <Stack gap="lg">
      <div>
        {crumbs !== undefined && (
          <Text size="sm" c="dimmed" mb={4} component="nav">
            {crumbs}
          </Text>
        )}
        <Group justify="space-between" align="flex-start" gap="sm">
          <div style={{ minWidth: 0, flex: '1 1 20rem' }}>
            <Title order={1} fz={{ base: 'h3', xs: 'h2' }} style={{ overflowWrap: 'anywhere' }}>
              {title}
            </Title>
            {about !== undefined && (
              <Text c="dimmed" size="sm" component="div" maw="48rem">
                {about}
              </Text>
            )}
          </div>
          {actions !== undefined && <Group gap="xs">{actions}</Group>}
        </Group>
      </div>
      {children}
    </Stack>
  );
}
