import { Card, Code, Group, Text } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import type { Schemas } from '../api/client.ts';
import { durationText } from '../parts/quantities.ts';
import { StateBadge } from '../parts/state-badge.tsx';

/** What a policy asked of the graph, each question with its answer and how long it took. */
export function GraphChecks({
  checks,
}: {
  checks: NonNullable<Schemas['AccessExplanation']['policy']>['graph_checks'];
}) {
  const { t } = useTranslation();
  return (
    <Card withBorder>
      {checks.map(c => (
        <Group key={c.check} gap="xs">
          <Code style={{ overflowWrap: 'anywhere' }}>{c.check}</Code>
          <StateBadge kind={c.allowed ? 'good' : 'bad'} label={t(c.allowed ? 'common.yes' : 'common.no')} />
          <Text size="xs" c="dimmed">
            {durationText(c.ms)}
          </Text>
        </Group>
      ))}
    </Card>
  );
}
