import { Card, Group, Progress, SegmentedControl, SimpleGrid, Stack, Table, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { lazy, Suspense, useMemo } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import { readable } from '../app/theme.ts';
import { useSearchState } from '../app/use-search-state.ts';
import type { ChartProps, Line } from '../parts/chart.tsx';
import { LinkAnchor } from '../parts/links.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { durationText, figureText, shareText } from '../parts/quantities.ts';

/** The library of charts does not load where the browser names its language in a form of its own; the figures stay. */
const Chart = lazy(() => import('../parts/chart.tsx').catch(() => ({ default: ChartText })));

function ChartText({ label }: ChartProps) {
  return <Text size="sm">{label}</Text>;
}

const WINDOWS = ['15m', '1h', '24h', '7d', '30d'] as const;
const REFRESH_MS = 15_000;
/** Shares of the executions whose durations are shown, of 100. */
const PERCENTS = [50, 95, 99] as const;

const tookText = (ms: number | null): string => (ms === null ? '–' : durationText(ms));

type Figures = Schemas['ActivitySum'];
type Point = Schemas['ActivityPoint'];
type Read = { points: Point[]; since: string; until: string; step_seconds: number; slots_max: number; total: Figures };

/** Requests, failures, durations and slots over time: of the whole service, of one plugin, or of one of its triggers. */
export function Activity({ plugin, trigger }: { plugin?: string; trigger?: string }) {
  const { t } = useTranslation();
  const [search, setSearch] = useSearchState();
  const window = WINDOWS.find(w => w === search.window) ?? '1h';
  const query = useQuery({
    queryKey: ['activity', plugin, trigger, window],
    queryFn: async () =>
      answered(await api.GET('/api/admin/activity', { params: { query: { window, plugin, trigger } } })),
    refetchInterval: REFRESH_MS,
  });
  return (
    <Stack gap="md">
      <Group justify="space-between">
        <Title order={2} size="h4">
          {t('activity.title')}
        </Title>
        <SegmentedControl
          size="xs"
          aria-label={t('activity.window')}
          value={window}
          onChange={w => setSearch({ window: w === '1h' ? undefined : w })}
          data={WINDOWS.map(w => ({ value: w, label: t(`activity.windows.${w}`) }))}
        />
      </Group>
      <Loaded query={query}>
        {read => (
          <Stack gap="md">
            <Totals read={read} />
            {read.total.requests > 0 && <Charts read={read} />}
            {read.plugins.length > 0 && (
              <Busiest rows={read.plugins.map(p => ({ ...p, trigger: null }))} slotsMax={read.slots_max} />
            )}
            {plugin !== undefined && read.triggers.length > 0 && (
              <Busiest rows={read.triggers.map(x => ({ ...x, plugin }))} slotsMax={read.slots_max} />
            )}
          </Stack>
        )}
      </Loaded>
    </Stack>
  );
}

function Totals({ read: { since, total, until } }: { read: Read }) {
  const { t } = useTranslation();
  const seconds = (Date.parse(until) - Date.parse(since)) / 1000;
  const rate = total.requests / seconds;
  return (
    <SimpleGrid cols={{ base: 2, md: 4 }}>
      <Figure
        label={t('activity.requests')}
        value={figureText(total.requests)}
        more={t('activity.perSecond', { rate: figureText(rate) })}
      />
      <Figure
        label={t('activity.failed')}
        value={figureText(total.failed)}
        more={total.requests === 0 ? '' : shareText(total.failed / total.requests)}
        color={total.failed > 0 ? readable('red') : undefined}
      />
      <Figure
        label={t('activity.duration')}
        value={tookText(total.p95_ms)}
        more={
          total.requests === 0
            ? ''
            : t('activity.durationAbout', { p50: tookText(total.p50_ms), p99: tookText(total.p99_ms) })
        }
      />
      <Figure label={t('activity.slots')} value={figureText(total.slots)} more={t('activity.slotsAbout')} />
    </SimpleGrid>
  );
}

function Figure({ color, label, more, value }: { label: string; value: string; more: string; color?: string }) {
  return (
    <Card withBorder padding="sm">
      <Text size="sm" c="dimmed">
        {label}
      </Text>
      <Text fz={26} fw={650} lh={1.3} c={color} style={{ fontVariantNumeric: 'tabular-nums' }}>
        {value}
      </Text>
      <Text size="xs" c="dimmed">
        {more}
      </Text>
    </Card>
  );
}

/** A value for each step of the window: steps in which nothing ended are not in the answer. */
function stepsOf({ points, since, step_seconds, until }: Read): { times: number[]; points: Array<Point | null> } {
  const byTime = new Map(points.map(p => [Date.parse(p.at) / 1000, p]));
  const times: number[] = [];
  for (let at = Date.parse(since) / 1000; at <= Date.parse(until) / 1000; at += step_seconds) times.push(at);
  return { times, points: times.map(at => byTime.get(at) ?? null) };
}

function Charts({ read }: { read: Read }) {
  const { t } = useTranslation();
  const { total } = read;
  const charts = useMemo(() => {
    const { points, times } = stepsOf(read);
    const of = (value: (p: Point) => number): number[] => points.map(p => (p === null ? 0 : value(p)));
    const took = (value: (p: Point) => number | null): Array<number | null> =>
      points.map(p => (p === null ? null : value(p)));
    const requests: Line[] = [
      { label: t('activity.requests'), color: 'indigo', values: of(p => p.requests), isFilled: true },
      { label: t('activity.failed'), color: 'red', values: of(p => p.failed), isFilled: true },
    ];
    const durations: Line[] = [
      { label: t('activity.of100', { percent: 50 }), color: 'teal', values: took(p => p.p50_ms) },
      { label: t('activity.of100', { percent: 95 }), color: 'orange', dash: [9, 5], values: took(p => p.p95_ms) },
      { label: t('activity.of100', { percent: 99 }), color: 'red', dash: [2, 5], values: took(p => p.p99_ms) },
    ];
    const slots: Line[] = [{ label: t('activity.slots'), color: 'grape', values: of(p => p.slots), isFilled: true }];
    return { times, requests, durations, slots };
  }, [read, t]);
  const figures = {
    requests: figureText(total.requests),
    failed: figureText(total.failed),
    p95: tookText(total.p95_ms),
  };
  return (
    <Suspense>
      <SimpleGrid cols={{ base: 1, lg: 3 }}>
        <Framed
          title={t('activity.requestsPer', { count: read.step_seconds / 60 })}
          about={t('activity.requestsAbout')}
        >
          <Chart
            label={t('activity.requestsLabel', figures)}
            times={charts.times}
            lines={charts.requests}
            format={figureText}
          />
        </Framed>
        <Framed title={t('activity.durations')} about={t('activity.durationsAbout')}>
          <Chart
            label={t('activity.durationsLabel', figures)}
            times={charts.times}
            lines={charts.durations}
            format={durationText}
            isLogarithmic
          />
        </Framed>
        <Framed title={t('activity.slots')} about={t('activity.slotsChartAbout', { count: read.slots_max })}>
          <Chart
            label={t('activity.slotsLabel', { slots: figureText(total.slots) })}
            times={charts.times}
            lines={charts.slots}
            format={figureText}
          />
        </Framed>
      </SimpleGrid>
    </Suspense>
  );
}

/** The charts of a row stand at the same height, however long the words above them are. */
function Framed({ about, children, title }: { title: string; about: string; children: React.ReactNode }) {
  return (
    <Card withBorder padding="sm" style={{ minWidth: 0 }}>
      <Text size="sm" fw={500}>
        {title}
      </Text>
      <Text size="xs" c="dimmed" mb="xs" style={{ flexGrow: 1 }}>
        {about}
      </Text>
      {children}
    </Card>
  );
}

type Row = Figures & { plugin: string; trigger: string | null };

/** The plugins, or the triggers of one, with the most executions, with the share of the plugin's slots that they use. */
function Busiest({ rows, slotsMax }: { rows: Row[]; slotsMax: number }) {
  const { t } = useTranslation();
  const ofTriggers = rows[0]?.trigger != null;
  const title = t(ofTriggers ? 'activity.busiestTriggers' : 'activity.busiest');
  return (
    <Card withBorder padding="sm">
      <Text size="sm" fw={500} mb={4}>
        {title}
      </Text>
      <Table.ScrollContainer minWidth={240} type="native" tabIndex={0}>
        <Table
          aria-label={title}
          className="stacked"
          style={{ fontVariantNumeric: 'tabular-nums', whiteSpace: 'nowrap' }}
        >
          <Table.Thead style={{ whiteSpace: 'normal' }}>
            <Table.Tr>
              <Table.Th>{t(ofTriggers ? 'access.trigger' : 'activity.plugin')}</Table.Th>
              <Table.Th ta="right">{t('activity.requests')}</Table.Th>
              <Table.Th ta="right">{t('activity.failed')}</Table.Th>
              {PERCENTS.map(percent => (
                <Table.Th key={percent} ta="right" title={t('activity.of100About', { percent })}>
                  {t('activity.of100', { percent })}
                </Table.Th>
              ))}
              <Table.Th w={160}>{t('activity.slotsOf', { count: slotsMax })}</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {rows.map(p => (
              <Table.Tr key={`${p.plugin} ${p.trigger}`}>
                <Table.Td style={{ whiteSpace: 'normal' }}>
                  <LinkAnchor
                    to="/admin/plugins/$id"
                    params={{ id: p.plugin }}
                    search={p.trigger === null ? {} : { tab: 'executions', trigger: p.trigger }}
                  >
                    {p.trigger ?? p.plugin}
                  </LinkAnchor>
                </Table.Td>
                <Table.Td ta="right" data-label={t('activity.requests')}>
                  {figureText(p.requests)}
                </Table.Td>
                <Table.Td ta="right" data-label={t('activity.failed')}>
                  {p.failed === 0 ? (
                    '0'
                  ) : (
                    <LinkAnchor
                      to="/admin/plugins/$id"
                      params={{ id: p.plugin }}
                      search={{ tab: 'executions', outcome: 'failed', trigger: p.trigger ?? undefined }}
                    >
                      {figureText(p.failed)} ({shareText(p.failed / p.requests)})
                    </LinkAnchor>
                  )}
                </Table.Td>
                {PERCENTS.map(percent => (
                  <Table.Td key={percent} ta="right" data-label={t('activity.of100', { percent })}>
                    {tookText(p[`p${percent}_ms`])}
                  </Table.Td>
                ))}
                <Table.Td data-label={t('activity.slots')}>
                  <Group gap="xs" wrap="nowrap" flex={1}>
                    <Progress
                      value={Math.min(100, (p.slots / slotsMax) * 100)}
                      flex={1}
                      color={p.slots > slotsMax * 0.8 ? 'orange' : 'indigo'}
                      aria-label={t('activity.slotsLabel', { slots: figureText(p.slots) })}
                    />
                    <Text size="xs" w={40} ta="right">
                      {figureText(p.slots)}
                    </Text>
                  </Group>
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    </Card>
  );
}
