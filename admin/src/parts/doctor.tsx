import { Button, Group, Stack, Text } from '@mantine/core';
import { IconStethoscope } from '@tabler/icons-react';
import { useMutation } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { answered, api } from '../api/client.ts';
import { May } from '../app/may.tsx';
import type { en } from '../texts/en.ts';
import { ProblemAlert } from './problem.tsx';
import { StateBadge } from './state-badge.tsx';
import { When } from './time.tsx';

const KIND = { ok: 'good', warn: 'warn', failed: 'bad' } as const;

type Name = keyof (typeof en)['doctor']['name'];

/** Looks at everything the service needs when it is asked to. @param only the one row that is shown */
export function Doctor({ only, label }: { only?: string; label: string }) {
  const { i18n, t } = useTranslation();
  const look = useMutation({ mutationFn: async () => answered(await api.GET('/api/admin/doctor')) });
  const nameOf = (name: string): string => {
    const key = name.replaceAll(' ', '_');
    // A newer service may look at more.
    return i18n.exists(`doctor.name.${key}`) ? t(`doctor.name.${key as Name}`) : name;
  };
  const rows = look.data?.checks.filter(c => only === undefined || c.name === only) ?? [];
  return (
    <Stack gap="sm" align="flex-start">
      <May need="operate" isInline>
        <Button
          variant="default"
          leftSection={<IconStethoscope size={16} aria-hidden />}
          loading={look.isPending}
          onClick={() => look.mutate()}
        >
          {label}
        </Button>
      </May>
      <ProblemAlert error={look.error} />
      {look.data !== undefined && (
        <Stack gap={8} role="status" w="100%">
          {rows.map(c => (
            <div key={c.name}>
              <Group justify="space-between" gap="xs">
                <Text size="sm" fw={500} flex="1" miw={0}>
                  {nameOf(c.name)}
                </Text>
                <StateBadge kind={KIND[c.state]} label={t(`doctor.state.${c.state}`)} />
              </Group>
              <Text size="xs" c="dimmed" lang="en" style={{ overflowWrap: 'anywhere' }}>
                {c.detail}
              </Text>
            </div>
          ))}
          <Text size="xs" c="dimmed" component="div">
            <When at={look.data.looked_at} />
          </Text>
        </Stack>
      )}
    </Stack>
  );
}
