import { Card, Code, Group, SimpleGrid, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { answered, api } from '../api/client.ts';
import { NotFound } from '../app/not-found.tsx';
import { CopyText } from '../parts/copy.tsx';
import { LinkButton, PluginCrumbs } from '../parts/links.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { OutcomeBadge } from '../parts/outcome-badge.tsx';
import { Page } from '../parts/page.tsx';
import { bytesText, durationText, numberText } from '../parts/quantities.ts';
import { When } from '../parts/time.tsx';
import { Section } from './review.tsx';

const PAGE_BYTES = 65_536;

/** One execution: how it ended and why, where its time went, what it wrote to its log. */
export default function ExecutionScreen() {
  const { t } = useTranslation();
  const { execution = '', id = '' } = useParams({ strict: false });
  const isNumber = /^[1-9]\d{0,15}$/.test(execution);
  const query = useQuery({
    enabled: isNumber,
    queryKey: ['plugins', id, 'execution', execution],
    queryFn: async () =>
      answered(
        await api.GET('/api/admin/plugins/{id}/executions/{execution}', {
          params: { path: { id, execution: Number(execution) } },
        }),
      ),
  });
  if (!isNumber) return <NotFound />;
  return (
    <Loaded query={query}>
      {e => (
        <Page
          title={t('executions.one', { id: e.id })}
          crumbs={<PluginCrumbs id={id} />}
          actions={
            <>
              <LinkButton
                variant="default"
                to="/admin/plugins/$id"
                params={{ id }}
                search={{ tab: 'executions', trigger: e.trigger }}
              >
                {t('executions.likeIt')}
              </LinkButton>
              {e.principal.startsWith('user:') && (
                <LinkButton to="/admin/why" search={{ user: e.principal.slice(5), plugin: id, trigger: e.trigger }}>
                  {t('nav.why')}
                </LinkButton>
              )}
            </>
          }
        >
          <Card withBorder>
            <Group justify="space-between">
              <OutcomeBadge outcome={e.outcome} status={e.status} />
              <Text size="sm" c="dimmed">
                <When at={e.started_at} />
              </Text>
            </Group>
            {e.failure !== null && (
              <Code block mt="sm" style={{ whiteSpace: 'pre-wrap', overflowWrap: 'anywhere' }}>
                {e.failure}
              </Code>
            )}
          </Card>
          <SimpleGrid cols={{ base: 2, sm: 3, lg: 6 }}>
            <Fact label={t('access.trigger')} value={e.trigger} />
            <Fact label={t('plugins.version')} value={e.version} />
            <Fact label={t('executions.waited')} value={durationText(e.queue_wait_ms)} />
            <Fact label={t('executions.ran')} value={durationText(e.run_ms)} />
            <Fact label={t('executions.hostCalls')} value={numberText(e.host_calls)} />
            <Fact label={t('executions.memory')} value={bytesText(e.peak_pages * PAGE_BYTES)} />
          </SimpleGrid>
          <Section title={t('executions.who')}>
            <Stack gap={6}>
              <Group gap="xs">
                <Text size="sm" w={130} c="dimmed">
                  {t('executions.caller')}
                </Text>
                <Code>{e.principal}</Code>
              </Group>
              <Group gap="xs">
                <Text size="sm" w={130} c="dimmed">
                  {t('problem.requestId')}
                </Text>
                <CopyText value={e.request_id} />
              </Group>
              {e.trace_id !== null && (
                <Group gap="xs">
                  <Text size="sm" w={130} c="dimmed">
                    {t('executions.traceId')}
                  </Text>
                  <CopyText value={e.trace_id} />
                </Group>
              )}
            </Stack>
          </Section>
          {e.recorded && (
            <Section title={t('executions.again')} about={t('executions.againAbout')}>
              <CopyText value={`plugin-host plugin replay ${e.id} --url ${location.origin}`} />
            </Section>
          )}
          {e.decision !== null && (
            <Section title={t('executions.decision')}>
              <Code block style={{ whiteSpace: 'pre-wrap' }}>
                {JSON.stringify(e.decision, null, 2)}
              </Code>
            </Section>
          )}
          <Section title={t('executions.log')}>
            {e.log.length === 0 ? (
              <Text size="sm" c="dimmed">
                {t('executions.noLog')}
              </Text>
            ) : (
              <Card withBorder p="sm">
                <Code block style={{ whiteSpace: 'pre-wrap', overflowWrap: 'anywhere' }}>
                  {e.log.map(line => `${line.level.toUpperCase().padEnd(6)}${line.text}`).join('\n')}
                </Code>
              </Card>
            )}
          </Section>
        </Page>
      )}
    </Loaded>
  );
}

function Fact({ label, value }: { label: string; value: string }) {
  return (
    <div>
      <Text size="xs" c="dimmed">
        {label}
      </Text>
      <Text fw={500} style={{ overflowWrap: 'anywhere' }}>
        {value}
      </Text>
    </div>
  );
}
