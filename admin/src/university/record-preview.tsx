import { Alert, Code, Group, Stack, Table, Text } from '@mantine/core';
import { IconAlertTriangle, IconInfoCircle } from '@tabler/icons-react';
import { useTranslation } from 'react-i18next';
import type { Given } from './choose-records.tsx';
import type { UniversityType } from './types.ts';

const ROWS_SHOWN = 5;

const shown = (value: unknown): string =>
  value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value);

/** What a record has in a column; one that is no object stands in the first of them. */
function textOf(record: unknown, column: string, isFirst: boolean): string {
  if (typeof record !== 'object' || record === null) return isFirst ? shown(record) : '';
  return shown(Object.entries(record).find(([name]) => name === column)?.[1]);
}

/** Fields of every type that say something about a record, and nothing about what it stands for. */
const ABOUT_RECORD: ReadonlySet<string> = new Set(['is_active', 'updated_at', 'metadata']);

const isEmptied = (f: UniversityType['fields'][number], columns: readonly string[]): boolean =>
  !f.required && !ABOUT_RECORD.has(f.name) && !columns.includes(f.name);

/** Names of columns, and what they mean for the import; nothing where there are none. */
function Columns({
  color,
  names,
  title,
}: {
  color: 'red' | 'yellow' | 'blue';
  names: readonly string[];
  title: string;
}) {
  if (names.length === 0) return null;
  const Icon = color === 'blue' ? IconInfoCircle : IconAlertTriangle;
  return (
    <Alert color={color} icon={<Icon aria-hidden />} title={title}>
      <Group gap={6}>
        {names.map(c => (
          <Code key={c} style={{ overflowWrap: 'anywhere' }}>
            {c}
          </Code>
        ))}
      </Group>
    </Alert>
  );
}

/** The first records as they were read, and columns that are missing or that no field has. */
export function RecordPreview({ given, type }: { given: Given; type: UniversityType }) {
  const { t } = useTranslation();
  const { columns, records } = given.file;
  const known = new Set(type.fields.map(f => f.name));
  const missing = type.fields.filter(f => f.required && !columns.includes(f.name)).map(f => f.name);
  const further = columns.filter(c => !known.has(c));
  // A record replaces the one that is stored as a whole.
  const emptied = type.records === 0 ? [] : type.fields.filter(f => isEmptied(f, columns)).map(f => f.name);
  // Records have no name that is sure to be theirs alone: their place is it.
  const first = records.slice(0, ROWS_SHOWN).map((record, place) => ({ place, record }));
  return (
    <Stack gap="sm">
      <Columns color="red" title={t('university.columnsMissing', { count: missing.length })} names={missing} />
      <Columns color="yellow" title={t('university.columnsEmptied', { count: emptied.length })} names={emptied} />
      <Columns color="blue" title={t('university.columnsFurther', { count: further.length })} names={further} />
      <div>
        <Text size="sm" c="dimmed" mb={4}>
          {t('university.preview', { count: Math.min(ROWS_SHOWN, records.length) })}
        </Text>
        <Table.ScrollContainer tabIndex={0} minWidth={280} type="native">
          <Table withTableBorder verticalSpacing={4} fz="sm" aria-label={t('university.previewTable')}>
            <Table.Thead>
              <Table.Tr>
                {columns.map(c => (
                  <Table.Th key={c} style={{ whiteSpace: 'nowrap' }}>
                    {c}
                  </Table.Th>
                ))}
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {first.map(({ place, record }) => (
                <Table.Tr key={place}>
                  {columns.map(c => (
                    <Table.Td
                      key={c}
                      maw={260}
                      style={{ whiteSpace: 'nowrap', overflow: 'hidden', textOverflow: 'ellipsis' }}
                    >
                      {textOf(record, c, c === columns[0])}
                    </Table.Td>
                  ))}
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </Table.ScrollContainer>
      </div>
    </Stack>
  );
}
