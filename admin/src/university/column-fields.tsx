import { Button, Card, Code, Group, Select, SimpleGrid, Stack, Text } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api } from '../api/client.ts';
import { notifyDone, ProblemAlert } from '../parts/problem.tsx';
import type { Given } from './choose-records.tsx';
import { type Columns, ERROR_COLUMN, FileProblem, type RecordFile, readRecords } from './record-file.ts';
import type { UniversityType } from './types.ts';

const AS_IT_IS = ' as it is';
const LEFT_OUT = ' left out';

/** Columns of a file that are not named like fields. */
export function otherColumns(file: RecordFile, type: UniversityType): string[] {
  if (file.format !== 'csv') return [];
  const known = new Set(type.fields.map(f => f.name));
  return file.headings.filter(h => h !== '' && h !== ERROR_COLUMN && !known.has(h.split('.')[0] ?? h));
}

/** Says which field each column is. It is kept for the next file of the type, of every administrator. */
export function ColumnFields(props: { given: Given; type: UniversityType; onRead: (file: RecordFile) => void }) {
  const { given, onRead, type } = props;
  const { t } = useTranslation();
  const queries = useQueryClient();
  const [columns, setColumns] = useState<Columns>(type.columns);
  const [error, setError] = useState<unknown>(null);
  const [isSaving, setSaving] = useState(false);
  const shown = otherColumns(given.file, type);
  if (shown.length === 0) return null;
  const taken = new Map(shown.flatMap(h => (typeof columns[h] === 'string' ? [[columns[h], h] as const] : [])));
  const own = new Set(given.file.format === 'csv' ? given.file.headings : []);
  const save = async (): Promise<void> => {
    setError(null);
    setSaving(true);
    try {
      // First: what cannot be read so is not kept.
      const file = readRecords(given.text, type.fields, columns);
      const params = { path: { type: type.type } };
      // Another administrator may have named columns of other files meanwhile.
      const { items } = answered(await api.GET('/api/admin/university/types'));
      const kept = items.find(x => x.type === type.type)?.columns ?? {};
      const others = Object.entries(kept).filter(([heading]) => !shown.includes(heading));
      const own = Object.entries(columns).filter(([heading]) => shown.includes(heading));
      const body = { columns: Object.fromEntries([...others, ...own]) };
      answered(await api.PUT('/api/admin/university/types/{type}/columns', { params, body }));
      await queries.invalidateQueries({ queryKey: ['university', 'types'] });
      onRead(file);
      notifyDone(t('university.columns.saved'));
    } catch (problem) {
      setError(
        problem instanceof FileProblem
          ? new Error(t(`university.fault.${problem.fault.code}`, { ...problem.fault }))
          : problem,
      );
    } finally {
      setSaving(false);
    }
  };
  const choose = (heading: string, to: string | null): void => {
    const { [heading]: _, ...rest } = columns;
    if (to === null || to === AS_IT_IS) setColumns(rest);
    else setColumns({ ...rest, [heading]: to === LEFT_OUT ? null : to });
  };
  const isChanged =
    JSON.stringify(Object.entries(columns).sort()) !== JSON.stringify(Object.entries(type.columns).sort());
  return (
    <Card withBorder>
      <Stack gap="sm">
        <div>
          <Text fw={600} size="sm">
            {t('university.columns.title', { count: shown.length })}
          </Text>
          <Text size="sm" c="dimmed">
            {t('university.columns.about')}
          </Text>
        </div>
        <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="sm">
          {shown.map(heading => (
            <Select
              key={heading}
              label={<Code style={{ overflowWrap: 'anywhere' }}>{heading}</Code>}
              aria-label={t('university.columns.of', { column: heading })}
              size="xs"
              searchable
              allowDeselect={false}
              value={Object.hasOwn(columns, heading) ? (columns[heading] ?? LEFT_OUT) : AS_IT_IS}
              onChange={to => choose(heading, to)}
              data={[
                { value: AS_IT_IS, label: t('university.columns.asItIs') },
                { value: LEFT_OUT, label: t('university.columns.leftOut') },
                ...type.fields.map(f => ({
                  value: f.name,
                  label: f.required ? `${f.name} · ${t('university.required')}` : f.name,
                  disabled: own.has(f.name) || (taken.has(f.name) && taken.get(f.name) !== heading),
                })),
              ]}
            />
          ))}
        </SimpleGrid>
        <ProblemAlert error={error} />
        <Group justify="flex-end">
          <Button size="xs" onClick={() => void save()} loading={isSaving} disabled={!isChanged}>
            {t('university.columns.save')}
          </Button>
        </Group>
      </Stack>
    </Card>
  );
}
