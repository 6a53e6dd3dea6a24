import { Group, Stack, Text } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import type { Schemas } from '../api/client.ts';
import { StateBadge } from './state-badge.tsx';

const KIND = { ok: 'good', degraded: 'warn', failed: 'bad' } as const;

const NAMES = ['changes', 'database', 'writes', 'disk', 'graph', 'files'] as const;
const NAMED: ReadonlySet<string> = new Set(NAMES);
const nameOf = (name: string): (typeof NAMES)[number] => NAMES.find(n => n === name) ?? 'changes';

/** The name of a check in words; one of a later release by its own. */
function useCheckName(): (name: string) => string {
  const { t } = useTranslation();
  return name => (NAMED.has(name) ? t(`checks.${nameOf(name)}`) : name);
}

/** Each thing the service needs, with what is missing. */
export function Checks({ checks }: { checks: ReadonlyArray<Schemas['HealthCheck']> }) {
  const { t } = useTranslation();
  const checkName = useCheckName();
  return (
    <Stack gap={6}>
      {checks.map(c => (
        <Group key={c.name} justify="space-between" gap="xs">
          <Text size="sm" flex="1" miw={0}>
            {checkName(c.name)}
          </Text>
          <StateBadge kind={KIND[c.state]} label={t(`health.${c.state}`)} />
          {c.detail !== null && (
            <Text size="xs" c="dimmed" w="100%">
              {c.detail}
            </Text>
          )}
        </Group>
      ))}
    </Stack>
  );
}
