import { Button, Card, Code, Group, Progress, Stack, Text } from '@mantine/core';
import { IconCloudDownload, IconPlugConnectedX } from '@tabler/icons-react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import { May } from '../app/may.tsx';
import { CopyText } from '../parts/copy.tsx';
import { Empty } from '../parts/empty.tsx';
import { Facts } from '../parts/facts.tsx';
import { LinkButton } from '../parts/links.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { numberText } from '../parts/quantities.ts';
import { StateBadge } from '../parts/state-badge.tsx';
import { When } from '../parts/time.tsx';
import { ImportTypes } from '../university/import-types.tsx';
import { intervalText } from '../university/interval.ts';
import { StoppedTypes, usePull } from '../university/stopped-types.tsx';
import { type ImportRun, RUN_STATE } from '../university/types.ts';
import { Section } from './review.tsx';

const RUNNING_MS = 1500;
const IDLE_MS = 15_000;

/** The source the data are pulled from: what it is, when it was and will be pulled, how far a pull is, what was stopped. */
export default function UniversityPulls() {
  const query = useQuery({
    queryKey: ['university', 'source'],
    queryFn: async () => answered(await api.GET('/api/admin/university/source')),
    refetchInterval: q => (q.state.data?.last_pull?.state === 'running' ? RUNNING_MS : IDLE_MS),
    staleTime: 0,
  });
  const isRunning = query.data?.last_pull?.state === 'running';
  const queries = useQueryClient();
  // Counts of the types are others after a pull.
  useEffect(() => {
    if (!isRunning) void queries.invalidateQueries({ queryKey: ['university', 'types'] });
  }, [isRunning, queries]);
  return (
    <Loaded query={query}>{source => (source.base_url === null ? <NoSource /> : <Source source={source} />)}</Loaded>
  );
}

function NoSource() {
  const { t } = useTranslation();
  return (
    <Empty
      icon={IconPlugConnectedX}
      title={t('university.pull.noneTitle')}
      text={
        <Stack gap="xs" align="center">
          <Text size="sm">{t('university.pull.none')}</Text>
          <CopyText
            block
            value={[
              'BOT_UNIVERSITY_SYNC_BASE_URL=https://campus.example.org/api',
              'BOT_UNIVERSITY_SYNC_TOKEN=…',
              'BOT_UNIVERSITY_SYNC_ENABLED=true',
            ].join('\n')}
          />
          <Text size="sm">{t('university.pull.noneFiles')}</Text>
        </Stack>
      }
    />
  );
}

function Source({ source: s }: { source: Schemas['UniversitySource'] }) {
  const { t } = useTranslation();
  const pull = usePull();
  const [isAsking, setAsking] = useState(false);
  const last = s.last_pull;
  const isRunning = last?.state === 'running';
  const go = async (): Promise<void> => {
    setAsking(true);
    await pull();
    setAsking(false);
  };
  return (
    <Stack gap="lg">
      <Card withBorder>
        <Group justify="space-between" align="flex-start">
          <div style={{ flex: '1 1 18rem', minWidth: 0 }}>
            <Facts
              facts={[
                {
                  label: t('university.pull.source'),
                  value: <Code style={{ overflowWrap: 'anywhere' }}>{s.base_url}</Code>,
                },
                {
                  label: t('university.pull.background'),
                  value: s.enabled
                    ? t('university.pull.every', { interval: intervalText(s.interval_seconds) })
                    : t('university.pull.off'),
                },
                s.next_pull_at === null
                  ? null
                  : { label: t('university.pull.next'), value: <When at={s.next_pull_at} /> },
                {
                  label: t('university.pull.brake'),
                  value: t('university.pull.brakeAbout', { percent: s.brake_percent }),
                },
              ]}
            />
          </div>
          <May need="university" isInline>
            <Button
              leftSection={<IconCloudDownload size={18} aria-hidden />}
              onClick={go}
              loading={isAsking}
              disabled={isRunning}
            >
              {t('university.pull.now')}
            </Button>
          </May>
        </Group>
      </Card>
      {last === null ? (
        <Empty icon={IconCloudDownload} title={t('university.pull.neverTitle')} text={t('university.pull.never')} />
      ) : (
        <LastPull run={last} />
      )}
    </Stack>
  );
}

const OVER: ReadonlySet<string> = new Set(['waiting', 'fetching', 'running']);

function LastPull({ run }: { run: ImportRun }) {
  const { t } = useTranslation();
  const isRunning = run.state === 'running';
  const done = run.types.filter(x => !OVER.has(x.state)).length;
  const at = run.types.find(x => x.state === 'fetching' || x.state === 'running');
  return (
    <Section title={t(isRunning ? 'university.pull.running' : 'university.pull.last')}>
      <Stack>
        <Group gap="sm">
          <StateBadge kind={RUN_STATE[run.state]} label={t(`imports.state.${run.state}`)} />
          <Text size="sm" c="dimmed" component="span">
            <When at={run.finished_at ?? run.started_at} /> ·{' '}
            {t(`university.starter.${run.starter.kind}`, { name: run.starter.name ?? '' })}
          </Text>
          <LinkButton
            to="/admin/university/imports/$import"
            params={{ import: String(run.id) }}
            size="compact-sm"
            variant="light"
          >
            {t('university.openImport')}
          </LinkButton>
        </Group>
        {run.problem !== null && (
          <Text size="sm" lang="en">
            {run.problem}
          </Text>
        )}
        {isRunning && (
          <div role="status">
            <Progress value={(done / run.types.length) * 100} animated aria-label={t('university.pull.running')} />
            <Text size="sm" c="dimmed" mt={4}>
              {t('university.pull.typesDone', { done, of: run.types.length })}
              {at !== undefined &&
                ` · ${t(`university.type.${at.type}`)}: ${t(`university.state.${at.state}`)}${at.total > 0 ? `, ${numberText(at.total)}` : ''}`}
            </Text>
          </div>
        )}
        {!isRunning && <StoppedTypes run={run} />}
        <ImportTypes run={run} />
      </Stack>
    </Section>
  );
}
