import { Box, Card, Code, Group, Progress, SimpleGrid, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api } from '../api/client.ts';
import { May } from '../app/may.tsx';
import { Caller } from '../parts/caller.tsx';
import { CopyText } from '../parts/copy.tsx';
import { Details } from '../parts/details.tsx';
import { Download } from '../parts/download.tsx';
import { LinkAnchor, LinkButton } from '../parts/links.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { OutcomeBadge } from '../parts/outcome-badge.tsx';
import { bytesText, durationText, numberText } from '../parts/quantities.ts';
import { When } from '../parts/time.tsx';
import { WhyButton } from '../parts/why-button.tsx';
import { RecordedDecision } from '../policy/recorded-decision.tsx';
import { Section } from './review.tsx';

const PAGE_BYTES = 65_536;
const NUMBER = /^[1-9]\d{0,15}$/;

/** @param execution its number, as it stands in an address */
export const isExecutionNumber = (execution: string | undefined): execution is string =>
  execution !== undefined && NUMBER.test(execution);

/** One execution with its log; what is no number is not asked for. */
export function useExecution(id: string, execution: string | undefined) {
  return useQuery({
    enabled: isExecutionNumber(execution),
    queryKey: ['plugins', id, 'execution', execution],
    queryFn: async () =>
      answered(
        await api.GET('/api/admin/plugins/{id}/executions/{execution}', {
          params: { path: { id, execution: Number(execution) } },
        }),
      ),
  });
}

type Found = NonNullable<ReturnType<typeof useExecution>['data']>;

/** One execution over the edge of a list, which keeps its place and its filters. */
export function ExecutionDrawer(props: { plugin: string | null; execution: string | undefined; onClose: () => void }) {
  const { execution, onClose, plugin } = props;
  const { t } = useTranslation();
  const isOpen = plugin !== null && isExecutionNumber(execution);
  const query = useExecution(plugin ?? '', isOpen ? execution : undefined);
  return (
    <Details title={t('executions.one', { id: execution ?? '' })} isOpen={isOpen} onClose={onClose}>
      <Loaded query={query}>
        {e => (
          <>
            <ExecutionDetails execution={e} />
            <Group gap="xs">
              <LinkButton
                variant="default"
                to="/admin/plugins/$id/executions/$execution"
                params={{ id: e.plugin_id, execution: String(e.id) }}
              >
                {t('executions.open')}
              </LinkButton>
              <WhyOfExecution execution={e} />
            </Group>
          </>
        )}
      </Loaded>
    </Details>
  );
}

/** Leads to the decision about the caller, who must be a user. */
export const WhyOfExecution = ({ execution: e }: { execution: Found }) =>
  e.principal.startsWith('user:') ? (
    <WhyButton search={{ user: e.principal.slice(5), plugin: e.plugin_id, trigger: e.trigger }} />
  ) : null;

/** How an execution ended and why, where its time went, what it wrote to its log. */
export function ExecutionDetails({ execution: e }: { execution: Found }) {
  const { t } = useTranslation();
  const isRefused = e.outcome === 'refused' && e.decision !== null;
  return (
    <Stack gap="lg">
      <Card withBorder>
        <Group justify="space-between">
          <OutcomeBadge outcome={e.outcome} status={e.status} />
          <Text size="sm" c="dimmed">
            <When at={e.started_at} />
          </Text>
        </Group>
        {/* The decision says it in words. */}
        {e.failure !== null && !isRefused && (
          <Code block mt="sm" style={{ whiteSpace: 'pre-wrap', overflowWrap: 'anywhere' }}>
            {e.failure}
          </Code>
        )}
      </Card>
      {e.decision !== null && e.outcome === 'refused' && <RecordedDecision decision={e.decision} of={e} />}
      <TimeBar waited={e.queue_wait_ms} ran={e.run_ms} />
      <Section title={t('executions.log')}>
        {e.log.length === 0 ? (
          <Text size="sm" c="dimmed">
            {t('executions.noLog')}
          </Text>
        ) : (
          <Code block style={{ whiteSpace: 'pre-wrap', overflowWrap: 'anywhere' }}>
            {e.log.map(line => `${line.level.toUpperCase().padEnd(6)}${line.text}`).join('\n')}
          </Code>
        )}
      </Section>
      <SimpleGrid cols={{ base: 2, sm: 3 }}>
        <Fact
          label={t('activity.plugin')}
          value={
            <LinkAnchor to="/admin/plugins/$id" params={{ id: e.plugin_id }} size="sm">
              {e.plugin_id}
            </LinkAnchor>
          }
        />
        <Fact label={t('access.trigger')} value={e.trigger} />
        <Fact label={t('plugins.version')} value={e.version} />
        <Fact label={t('executions.hostCalls')} value={numberText(e.host_calls)} />
        <Fact label={t('executions.memory')} value={bytesText(e.peak_pages * PAGE_BYTES)} />
        <Fact label={t('executions.caller')} value={<Caller principal={e.principal} />} />
      </SimpleGrid>
      <Stack gap={6}>
        <Named label={t('problem.requestId')} value={e.request_id} />
        {e.trace_id !== null && <Named label={t('executions.traceId')} value={e.trace_id} />}
      </Stack>
      {e.recorded && (
        <Section title={t('executions.again')} about={t('executions.againAbout')}>
          <CopyText value={`plugin-host plugin replay ${e.id} --url ${location.origin}`} />
          <Text size="sm">{t('executions.againRecorded')}</Text>
          <CopyText value={`plugin-host plugin replay ${e.id} --plugin ${e.plugin_id} --url ${location.origin}`} />
          <May need="operate" isInline>
            <Download
              size="xs"
              label={t('executions.saveRecording')}
              load={signal =>
                api.GET('/api/admin/plugins/{id}/executions/{execution}/recording', {
                  params: { path: { id: e.plugin_id, execution: e.id } },
                  parseAs: 'blob',
                  signal,
                })
              }
            />
          </May>
        </Section>
      )}
      {e.decision !== null && e.outcome !== 'refused' && <RecordedDecision decision={e.decision} of={e} />}
    </Stack>
  );
}

/** Waiting and running as one bar. */
function TimeBar({ ran, waited }: { waited: number; ran: number }) {
  const { t } = useTranslation();
  const whole = waited + ran;
  const share = (ms: number): number => (whole === 0 ? 0 : (ms / whole) * 100);
  return (
    <Box>
      <Progress.Root size="md" aria-hidden>
        <Progress.Section value={share(waited)} color="gray" />
        <Progress.Section value={share(ran)} color="indigo" />
      </Progress.Root>
      <Group justify="space-between" mt={4}>
        <Text size="xs" c="dimmed">
          {t('executions.waited')} {durationText(waited)}
        </Text>
        <Text size="xs" c="dimmed">
          {t('executions.ran')} {durationText(ran)}
        </Text>
      </Group>
    </Box>
  );
}

function Named({ label, value }: { label: string; value: string }) {
  return (
    <Group gap="xs">
      <Text size="sm" w={130} c="dimmed">
        {label}
      </Text>
      <CopyText value={value} />
    </Group>
  );
}

function Fact({ label, value }: { label: string; value: ReactNode }) {
  return (
    <div>
      <Text size="xs" c="dimmed">
        {label}
      </Text>
      <Text component="div" fw={500} size="sm" style={{ overflowWrap: 'anywhere' }}>
        {value}
      </Text>
    </div>
  );
}
