import { Alert, Button, Group, List, Stack, Text } from '@mantine/core';
import { IconHandStop } from '@tabler/icons-react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import { confirmed } from '../api/questions.ts';
import { May, useRefusal } from '../app/may.tsx';
import { Details } from '../parts/details.tsx';
import { Empty } from '../parts/empty.tsx';
import { KeysetTable, useKeyset } from '../parts/keyset-list.tsx';
import { notifyDone, notifyProblem } from '../parts/problem.tsx';
import { numberText } from '../parts/quantities.ts';
import type { ImportRun, UniversityType } from './types.ts';

type ImportedType = ImportRun['types'][number];
type Ending = Schemas['EndingRecord'];
type EndingPage = { items: Ending[]; next_cursor: string | null };

type Release = { type: UniversityType['type']; endingMax: number | undefined };

/** Begins a pull; with a release, one type may lose that many records. */
export function usePull(): (release?: Release) => Promise<void> {
  const { t } = useTranslation();
  const queries = useQueryClient();
  return async release => {
    try {
      const body = release === undefined ? {} : { release_brake: [release.type], ending_max: release.endingMax };
      answered(await api.POST('/api/admin/university/pull', { body }));
      await queries.invalidateQueries({ queryKey: ['university'] });
      notifyDone(t('university.pull.begun'));
    } catch (problem) {
      notifyProblem(problem);
    }
  };
}

/** Says what a stopped list would do. Of a pull before the upgrade that counts it, the words of the service are all there is. */
export function useFound(): (x: ImportedType) => string {
  const { t } = useTranslation();
  return ({ brake, problem }) =>
    brake === null
      ? (problem ?? '')
      : t('university.pull.found', { ending: numberText(brake.ending), active: numberText(brake.active) });
}

/** What the brake has stopped in the last pull, whom it would end, and the pull that may do it all the same. */
export function StoppedTypes({ run }: { run: ImportRun }) {
  return run.types.filter(x => x.state === 'stopped').map(x => <Stopped key={x.type} run={run} type={x} />);
}

function Stopped({ run, type: x }: { run: ImportRun; type: ImportedType }) {
  const { t } = useTranslation();
  const foundBy = useFound();
  const pull = usePull();
  const release = async (): Promise<void> => {
    const isSure = await confirmed({
      title: t('university.pull.releaseTitle', { type: t(`university.type.${x.type}`) }),
      text: t('university.pull.releaseText', { found: foundBy(x) }),
      action: t('university.pull.release'),
      isDangerous: true,
      typed: x.type,
    });
    if (isSure) await pull({ type: x.type, endingMax: x.brake?.ending });
  };
  return (
    <Alert
      color="red"
      icon={<IconHandStop aria-hidden />}
      title={t('university.pull.stopped', { type: t(`university.type.${x.type}`) })}
    >
      <Stack gap="xs" align="flex-start">
        <Text size="sm">
          {foundBy(x)} {t('university.pull.unchanged')}
        </Text>
        {x.brake !== null && <EndingRecords importId={run.id} type={x.type} count={x.brake.ending} />}
        <Text size="sm">{t('university.pull.stoppedAbout')}</Text>
        <May need="university" isInline>
          <Button size="xs" color="red" variant="light" onClick={() => void release()}>
            {t('university.pull.releaseGo')}
          </Button>
        </May>
      </Stack>
    </Alert>
  );
}

const SHOWN = 5;

const loadEnding = async (
  id: number,
  type: ImportedType['type'],
  limit: number,
  cursor?: string,
): Promise<EndingPage> =>
  answered(
    await api.GET('/api/admin/university/imports/{id}/ending/{type}', {
      params: { path: { id, type }, query: { limit, cursor } },
    }),
  );

/** The first records that would become inactive, and the way to all of them. */
function EndingRecords({ importId, count, type }: { importId: number; type: ImportedType['type']; count: number }) {
  const { t } = useTranslation();
  const [isOpen, setOpen] = useState(false);
  const refusal = useRefusal()('people');
  const first = useQuery({
    queryKey: ['university', 'import', importId, 'ending', type, SHOWN],
    queryFn: () => loadEnding(importId, type, SHOWN),
    enabled: refusal === null,
  });
  if (refusal !== null)
    return (
      <Text size="sm" c="dimmed">
        {t('university.pull.endingRefused')} {refusal}
      </Text>
    );
  if (first.data === undefined) return null;
  const rest = count - first.data.items.length;
  return (
    <div>
      <Text size="sm">{t('university.pull.ending')}</Text>
      <List size="sm" my={4}>
        {first.data.items.map(r => (
          <List.Item key={r.external_id}>
            <RecordName record={r} />
          </List.Item>
        ))}
      </List>
      {rest > 0 && (
        <Button size="compact-sm" variant="default" onClick={() => setOpen(true)}>
          {t('university.pull.endingMore', { count: rest })}
        </Button>
      )}
      <Details
        title={t('university.pull.endingTitle', { type: t(`university.type.${type}`), number: numberText(count) })}
        isOpen={isOpen}
        onClose={() => setOpen(false)}
      >
        <AllEnding importId={importId} type={type} count={count} />
      </Details>
    </div>
  );
}

const RecordName = ({ record: r }: { record: Ending }) => (
  <Group gap={6} component="span" style={{ overflowWrap: 'anywhere' }}>
    {r.name !== null && <span>{r.name}</span>}
    <Text span size="xs" ff="monospace" c="dimmed">
      {r.external_id}
    </Text>
  </Group>
);

function AllEnding({ importId, type, count }: { importId: number; type: ImportedType['type']; count: number }) {
  const { t } = useTranslation();
  const list = useKeyset<Ending, EndingPage>(['university', 'import', importId, 'ending', type, 'all'], cursor =>
    loadEnding(importId, type, 100, cursor),
  );
  const kept = list.rows.length;
  return (
    <Stack gap="sm">
      <KeysetTable
        label={t('university.pull.ending')}
        query={list}
        rowKey={r => r.external_id}
        columns={[{ key: 'record', title: t('university.record'), cell: r => <RecordName record={r} /> }]}
        empty={<Empty icon={IconHandStop} title={t('common.nothingFound')} />}
      />
      {!list.isPending && !list.hasNextPage && kept < count && (
        <Text size="sm" c="dimmed">
          {t('university.pull.endingKept', { kept, count })}
        </Text>
      )}
    </Stack>
  );
}
