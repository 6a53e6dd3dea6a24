import { Alert, Button, Card, Group, Select, Stack, Table, Text } from '@mantine/core';
import { Dropzone } from '@mantine/dropzone';
import '@mantine/dropzone/styles.css';
import { IconAlertTriangle, IconCheck, IconUpload } from '@tabler/icons-react';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { LinkAnchor, LinkButton } from '../parts/links.tsx';
import { ProblemAlert } from '../parts/problem.tsx';
import { numberText } from '../parts/quantities.ts';
import { StateBadge } from '../parts/state-badge.tsx';
import { useLeaveQuestion } from '../parts/use-leave-question.ts';
import { checkLists } from '../university/check-lists.ts';
import { otherColumns } from '../university/column-fields.tsx';
import { asType, importLists, inOrder, type List, listOf, missingFor, neededFor } from '../university/import-lists.ts';
import { placeIn } from '../university/record-error.ts';
import type { UniversityType } from '../university/types.ts';
import { WrongText } from '../university/wrong-text.tsx';

/** Errors that are shown of a list that was checked. */
const SHOWN = 3;

/** The list whose turn it is, and in what. */
type Turn = { id: number; what: 'check' | 'import' };

/** Several lists at once: each is taken for a type, and they are imported in the order in which they refer to each other. */
export function UniversityLists({ types }: { types: readonly UniversityType[] }) {
  const { t } = useTranslation();
  const queries = useQueryClient();
  const [lists, setLists] = useState<readonly List[]>([]);
  const [running, setRunning] = useState<Turn | null>(null);
  const [isReading, setReading] = useState(false);
  const label = (type: UniversityType['type']): string => t(`university.type.${type}`);
  // What a check said of a list may not hold once there are others.
  const edit = (change: (before: readonly List[]) => List[]): void =>
    setLists(before => inOrder(change(before), types).map(l => ({ ...l, check: null })));
  const drop = async (files: File[]): Promise<void> => {
    setReading(true);
    const added = await Promise.all(files.map(f => listOf(f, types, label))).finally(() => setReading(false));
    edit(before => [...before, ...added]);
  };
  const replace = (list: List): void => setLists(before => before.map(l => (l.id === list.id ? list : l)));
  const take = (what: Turn['what'], go: typeof importLists): Promise<void> =>
    go(lists, types, (list, isRunning) => {
      setRunning(isRunning ? { id: list.id, what } : null);
      replace(list);
    });
  const run = async (): Promise<void> => {
    await take('import', importLists);
    await Promise.all(
      ['university', 'users', 'roles', 'relationships'].map(key => queries.invalidateQueries({ queryKey: [key] })),
    );
  };
  const open = lists.filter(l => l.outcome === null);
  const isImporting = running?.what === 'import';
  useLeaveQuestion(open.length > 0 || isImporting, t(isImporting ? 'university.leaveText' : 'university.leaveOpen'));
  const isReady = open.length > 0 && open.every(l => l.type !== null && l.file !== null);
  return (
    <Stack>
      <Dropzone
        onDrop={drop}
        multiple
        inputProps={{ 'aria-label': t('lists.drop') }}
        disabled={running !== null || isReading}
      >
        <Stack align="center" gap={6} py="xs" style={{ pointerEvents: 'none' }}>
          <IconUpload size={28} aria-hidden />
          <Text fw={600} ta="center">
            {t('lists.drop')}
          </Text>
          <Text size="sm" c="dimmed" ta="center" maw="44rem">
            {t('lists.dropAbout', {
              types: neededFor('student_position', types)
                .map(x => label(x.type))
                .join(', '),
            })}
          </Text>
        </Stack>
      </Dropzone>
      {lists.length > 0 && (
        <Card withBorder component="section" aria-label={t('lists.title')}>
          <Stack>
            <Missing lists={lists} types={types} />
            <Lists
              lists={lists}
              types={types}
              running={running}
              onType={(list, type) => edit(before => before.map(l => (l.id === list.id ? asType(l, type) : l)))}
              onRemove={list => edit(before => before.filter(l => l.id !== list.id))}
            />
            {lists.map(l => l.error !== null && <ProblemAlert key={l.id} error={l.error} />)}
            {open.length === 0 ? (
              <Done lists={lists} onClose={() => setLists([])} />
            ) : (
              <Group justify="space-between">
                <Text size="sm" c="dimmed" maw="40rem" style={{ flex: '1 1 16rem' }}>
                  {t('lists.about')}
                </Text>
                <Group gap="xs">
                  <Button
                    variant="default"
                    onClick={() => take('check', checkLists)}
                    loading={running?.what === 'check'}
                    disabled={!isReady || isReading || running !== null}
                  >
                    {t('university.check')}
                  </Button>
                  <Button
                    onClick={run}
                    loading={running?.what === 'import'}
                    disabled={!isReady || isReading || running !== null}
                  >
                    {t('lists.import', { count: open.length })}
                  </Button>
                </Group>
              </Group>
            )}
          </Stack>
        </Card>
      )}
    </Stack>
  );
}

function Missing({ lists, types }: { lists: readonly List[]; types: readonly UniversityType[] }) {
  const { t } = useTranslation();
  const missing = missingFor(lists, types);
  if (missing.length === 0) return null;
  return (
    <Alert color="orange" icon={<IconAlertTriangle aria-hidden />} title={t('university.missingTitle')}>
      {t('lists.missing', { types: missing.map(x => t(`university.type.${x.type}`)).join(', ') })}
    </Alert>
  );
}

function Lists(props: {
  lists: readonly List[];
  types: readonly UniversityType[];
  running: Turn | null;
  onType: (list: List, type: UniversityType) => void;
  onRemove: (list: List) => void;
}) {
  const { lists, onRemove, onType, running, types } = props;
  const { t } = useTranslation();
  return (
    <Table className="stacked" verticalSpacing="xs" aria-label={t('lists.title')}>
      <Table.Thead>
        <Table.Tr>
          <Table.Th>{t('university.file')}</Table.Th>
          <Table.Th>{t('university.typeOf')}</Table.Th>
          <Table.Th>{t('common.state')}</Table.Th>
          <Table.Th />
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {lists.map(l => (
          <Table.Tr key={l.id}>
            <Table.Td>
              <Text size="sm" fw={500} style={{ overflowWrap: 'anywhere' }}>
                {l.name}
              </Text>
            </Table.Td>
            <Table.Td data-label={t('university.typeOf')}>
              {l.outcome !== null && l.type !== null ? (
                <Text size="sm">{t(`university.type.${l.type}`)}</Text>
              ) : (
                <Select
                  aria-label={t('lists.typeOf', { file: l.name })}
                  placeholder={t('lists.chooseType')}
                  size="xs"
                  w={200}
                  data={types.map(x => ({ value: x.type, label: t(`university.type.${x.type}`) }))}
                  value={l.type}
                  onChange={to => {
                    const type = types.find(x => x.type === to);
                    if (type !== undefined) onType(l, type);
                  }}
                  allowDeselect={false}
                  disabled={running !== null}
                  error={l.type === null}
                />
              )}
            </Table.Td>
            <Table.Td data-label={t('common.state')}>
              <State
                list={l}
                type={types.find(x => x.type === l.type)}
                turn={running?.id === l.id ? running.what : null}
              />
            </Table.Td>
            <Table.Td ta="right">
              {l.outcome === null && (
                <Button
                  size="compact-xs"
                  variant="subtle"
                  color="gray"
                  onClick={() => onRemove(l)}
                  disabled={running !== null}
                  aria-label={t('lists.remove', { file: l.name })}
                >
                  {t('common.remove')}
                </Button>
              )}
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}

function State(props: { list: List; type: UniversityType | undefined; turn: Turn['what'] | null }) {
  const { list: l, turn, type } = props;
  const { t } = useTranslation();
  if (l.fault !== null)
    return (
      <Text size="sm" c="red">
        {t(`university.fault.${l.fault.code}`, { ...l.fault })}
      </Text>
    );
  const count = l.file?.records.length ?? 0;
  if (turn !== null)
    return <StateBadge kind="wait" label={t(turn === 'check' ? 'lists.checking' : 'lists.importing', { count })} />;
  if (l.outcome === null) {
    const others = type === undefined || l.file === null ? [] : otherColumns(l.file, type);
    return (
      <div role="status">
        <Text size="sm">{t('university.records', { count })}</Text>
        {others.length > 0 && (
          <Text size="xs" c="dimmed" style={{ overflowWrap: 'anywhere' }}>
            {t('lists.otherColumns', { count: others.length, columns: others.join(', ') })}
          </Text>
        )}
        {type !== undefined && <Check list={l} type={type} />}
      </div>
    );
  }
  const { success, total } = l.outcome.result;
  const failed = total - success;
  return (
    <Group gap="xs">
      <StateBadge
        kind={failed === 0 ? 'good' : success > 0 ? 'warn' : 'bad'}
        label={t('lists.taken', { success: numberText(success), total: numberText(total) })}
      />
      {failed > 0 && l.outcome.importId !== null && (
        <LinkAnchor to="/admin/university/imports/$import" params={{ import: String(l.outcome.importId) }} size="sm">
          {t('lists.errors', { count: failed })}
        </LinkAnchor>
      )}
    </Group>
  );
}

/** What a check of the list found. */
function Check({ list: { check, file }, type }: { list: List; type: UniversityType }) {
  const { t } = useTranslation();
  if (check === null || file === null) return null;
  const { errors, errorsTotal, pending, success, total } = check;
  const shown = errors.slice(0, SHOWN);
  const known = new Set(errors.map(e => e.index)).size;
  const unnamed = known - new Set(shown.map(e => e.index)).size;
  return (
    <Stack gap={2} mt={4} align="flex-start">
      {errorsTotal === null ? (
        <StateBadge
          kind={success === total ? 'good' : success > 0 ? 'warn' : 'bad'}
          label={t('university.wouldTake', { count: success, total })}
        />
      ) : (
        <Text size="sm">{t('lists.cut', { count: known, total: errorsTotal })}</Text>
      )}
      {pending > 0 && (
        <Text size="xs" c="dimmed">
          {t('lists.pending', { count: pending })}
        </Text>
      )}
      {shown.map(e => (
        <div key={`${e.index} ${e.field} ${e.code}`}>
          <Text size="xs" c="dimmed" ff="monospace" style={{ overflowWrap: 'anywhere' }}>
            {[placeIn(file, e.index, t), e.external_id, e.field].filter(x => x !== null).join(' · ')}
          </Text>
          <WrongText error={e} type={type} />
        </div>
      ))}
      {unnamed > 0 && (
        <Text size="xs" c="dimmed">
          {t('lists.moreWrong', { count: unnamed })}
        </Text>
      )}
    </Stack>
  );
}

function Done({ lists, onClose }: { lists: readonly List[]; onClose: () => void }) {
  const { t } = useTranslation();
  const isWhole = lists.every(l => l.outcome?.result.success === l.outcome?.result.total);
  return (
    <Alert
      role="status"
      color={isWhole ? 'teal' : 'orange'}
      icon={isWhole ? <IconCheck aria-hidden /> : <IconAlertTriangle aria-hidden />}
      title={t(isWhole ? 'lists.done' : 'lists.donePartly')}
    >
      <Group gap="xs">
        <LinkButton to="/admin/people" size="xs">
          {t('lists.toPeople')}
        </LinkButton>
        <Button size="xs" variant="default" onClick={onClose}>
          {t('lists.more')}
        </Button>
      </Group>
    </Alert>
  );
}
