import { Button, Card, Group, Stack, Table, Text } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import { confirmed } from '../api/questions.ts';
import { May } from '../app/may.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { notifyDone, notifyProblem } from '../parts/problem.tsx';
import { bytesText, numberText } from '../parts/quantities.ts';
import { StateBadge } from '../parts/state-badge.tsx';
import { When } from '../parts/time.tsx';

type Host = Schemas['Host'];

const REFRESH_MS = 5_000;
const KIND = { serving: 'good', draining: 'wait', silent: 'bad' } as const;
const DUTIES = ['outbox_delivery', 'event_delivery', 'university_pull', 'message_sending', 'message_polling'] as const;

function useDutyText(): (duty: string) => string {
  const { t } = useTranslation();
  return duty => {
    // Of messengers there is one for each channel.
    const [name, channel] = duty.split(':');
    const known = DUTIES.find(d => d === name);
    const text = known === undefined ? duty.replaceAll('_', ' ') : t(`system.duty.${known}`);
    return known === undefined || channel === undefined ? text : `${text} (${channel})`;
  };
}

/** The machines of this service with their processes: which serve, how busy they are, and what each does for all. */
export function Hosts() {
  const { t } = useTranslation();
  const query = useQuery({
    queryKey: ['hosts'],
    queryFn: async () => answered(await api.GET('/api/admin/hosts')),
    refetchInterval: REFRESH_MS,
  });
  return (
    <Loaded query={query}>
      {({ items }) => (
        <Stack>
          {new Set(items.flatMap(h => h.versions)).size > 1 && (
            <Text size="sm" c="orange">
              {t('system.mixed')}
            </Text>
          )}
          {items.map(h => (
            <HostCard key={h.id} host={h} />
          ))}
        </Stack>
      )}
    </Loaded>
  );
}

function HostCard({ host: h }: { host: Host }) {
  const { t } = useTranslation();
  const dutyText = useDutyText();
  return (
    <Card withBorder>
      <Group justify="space-between" align="flex-start" mb="xs">
        <div>
          <Text fw={600}>{h.name}</Text>
          <Text size="xs" c="dimmed">
            {h.address} · {t('system.release')} {h.versions.join(', ')} · {t('overview.since')}{' '}
            <When at={h.started_at} />
          </Text>
        </div>
        <Group gap="xs">
          <StateBadge kind={KIND[h.state]} label={t(`system.hostState.${h.state}`)} />
          {h.state === 'silent' && <Forget host={h} />}
        </Group>
      </Group>
      {h.state === 'silent' && (
        <Text size="sm" mb="xs">
          {t('system.silentAbout')} <When at={h.seen_at} />.
        </Text>
      )}
      <Text size="sm" mb="xs">
        <Text span size="sm" c="dimmed">
          {t('system.duties')}{' '}
        </Text>
        {h.duties.length === 0 ? t('system.noDuties') : h.duties.map(dutyText).join(', ')}
      </Text>
      <Table.ScrollContainer tabIndex={0} minWidth={200} type="native">
        <Table verticalSpacing={6} aria-label={t('system.processesOf', { name: h.name })} className="stacked">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>{t('system.process')}</Table.Th>
              <Table.Th>{t('common.state')}</Table.Th>
              <Table.Th ta="right">{t('system.running')}</Table.Th>
              <Table.Th ta="right" className="not-on-tablets">
                {t('system.threads')}
              </Table.Th>
              <Table.Th ta="right" className="not-on-tablets">
                {t('system.connections')}
              </Table.Th>
              <Table.Th ta="right">{t('system.memory')}</Table.Th>
              <Table.Th ta="right">{t('system.cpu')}</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {h.processes.map(p => (
              <Table.Tr key={p.pid}>
                <Table.Td data-label={t('system.process')}>{p.pid}</Table.Td>
                <Table.Td data-label={t('common.state')}>{t(`system.hostState.${p.state}`)}</Table.Td>
                <Table.Td ta="right" data-label={t('system.running')}>
                  {numberText(p.load.executions_in_flight)}
                </Table.Td>
                <Table.Td ta="right" className="not-on-tablets" data-label={t('system.threads')}>
                  {numberText(p.load.lanes)}
                </Table.Td>
                <Table.Td ta="right" className="not-on-tablets" data-label={t('system.connections')}>
                  {numberText(p.load.connections)}
                </Table.Td>
                <Table.Td ta="right" data-label={t('system.memory')}>
                  {bytesText(p.load.resident_bytes)}
                </Table.Td>
                <Table.Td ta="right" data-label={t('system.cpu')}>
                  {t('system.percent', { number: numberText(Math.round(p.load.cpu * 100)) })}
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    </Card>
  );
}

/** A host that was taken away stays listed for a day, unless it is forgotten. */
function Forget({ host: h }: { host: Host }) {
  const { t } = useTranslation();
  const queries = useQueryClient();
  const forget = async (): Promise<void> => {
    const question = { title: t('system.forgetTitle', { name: h.name }), text: t('system.forgetText') };
    if (!(await confirmed({ ...question, action: t('system.forget'), isDangerous: true }))) return;
    try {
      await api.DELETE('/api/admin/hosts/{host}', { params: { path: { host: Number(h.id) } } });
      notifyDone(t('system.forgotten', { name: h.name }));
    } catch (problem) {
      notifyProblem(problem);
    } finally {
      await queries.invalidateQueries({ queryKey: ['hosts'] });
    }
  };
  return (
    <May need="operate" isInline>
      <Button size="compact-sm" variant="light" color="red" onClick={() => void forget()}>
        {t('system.forget')}
      </Button>
    </May>
  );
}
