import { Alert, Button, Group, Pagination, Stack, Table, Text } from '@mantine/core';
import { IconAlertTriangle, IconCheck, IconDownload, IconX } from '@tabler/icons-react';
import { type ReactNode, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import { LinkButton } from '../parts/links.tsx';
import { notifyProblem } from '../parts/problem.tsx';
import { saveText } from '../parts/save-file.ts';
import type { Given } from './choose-records.tsx';
import { placeIn } from './record-error.ts';
import { failedRecords } from './record-file.ts';
import type { UniversityType } from './types.ts';
import { WrongText } from './wrong-text.tsx';

type RecordError = Schemas['RecordError'];
const PAGE = 25;
const LOG_PAGE = 200;

/** The errors that the log keeps of an import: the answer itself names the first ones alone. */
async function errorsOf(importId: number): Promise<RecordError[]> {
  const found: RecordError[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = answered(
      await api.GET('/api/admin/university/imports/{id}/errors', {
        params: { path: { id: importId }, query: { limit: LOG_PAGE, cursor } },
      }),
    );
    found.push(...page.items);
    if (page.next_cursor === null) return found;
    cursor = page.next_cursor;
  }
}

/** What a check or an import came to, what is wrong with which record, and the way on. */
export function ImportResult(props: {
  isDryRun: boolean;
  result: Schemas['BatchResult'];
  importId: number | null;
  given: Given;
  type: UniversityType;
  /** What can be done next: it stands before the errors, which may be many. */
  actions: ReactNode;
}) {
  const { actions, given, importId, isDryRun, result, type } = props;
  const { t } = useTranslation();
  const failed = result.total - result.success;
  const color = failed === 0 ? 'teal' : result.success > 0 ? 'orange' : 'red';
  const Sign = failed === 0 ? IconCheck : result.success > 0 ? IconAlertTriangle : IconX;
  const save = async (): Promise<void> => {
    try {
      const isWhole = result.errors_total === undefined || importId === null;
      const text = failedRecords(given.file, isWhole ? result.errors : await errorsOf(importId));
      const { format } = given.file;
      saveText(`${type.path}-failed.${format}`, text, format === 'csv' ? 'text/csv' : 'application/json');
    } catch (problem) {
      notifyProblem(problem);
    }
  };
  return (
    <Stack role="status">
      <Alert
        color={color}
        icon={<Sign aria-hidden />}
        title={t(isDryRun ? 'university.wouldTake' : 'university.took', { count: result.success, total: result.total })}
      >
        <Stack gap="xs" align="flex-start">
          <Text size="sm">
            {failed > 0 && `${t('university.refused', { count: failed })} `}
            {isDryRun && t('university.nothingWritten')}
          </Text>
          {importId !== null && (
            <LinkButton
              to="/admin/university/imports/$import"
              params={{ import: String(importId) }}
              size="compact-sm"
              variant="light"
              color={color}
            >
              {t('university.openImport')}
            </LinkButton>
          )}
        </Stack>
      </Alert>
      {failed > 0 && (
        <Group justify="space-between" align="flex-start">
          <Text size="sm" c="dimmed" maw="44rem" style={{ flex: '1 1 16rem' }}>
            {t('university.failedAbout')}
            {result.errors_total !== undefined &&
              ` ${t(importId === null ? 'university.errorsCutCheck' : 'university.errorsCut', { shown: result.errors.length, total: result.errors_total })}`}
          </Text>
          <Button variant="default" leftSection={<IconDownload size={16} aria-hidden />} onClick={save}>
            {t('university.saveFailed')}
          </Button>
        </Group>
      )}
      {actions}
      {result.errors.length > 0 && <Errors errors={result.errors} given={given} type={type} />}
    </Stack>
  );
}

function Errors(props: { errors: readonly RecordError[]; given: Given; type: UniversityType }) {
  const { errors, given, type } = props;
  const { t } = useTranslation();
  const [page, setPage] = useState(1);
  const { file } = given;
  return (
    <Stack gap="xs">
      <Table.ScrollContainer tabIndex={0} minWidth={280} type="native">
        <Table verticalSpacing="xs" aria-label={t('university.errors')}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>{t('university.record')}</Table.Th>
              <Table.Th visibleFrom="sm">{t('university.field')}</Table.Th>
              <Table.Th>{t('university.wrong')}</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {errors.slice((page - 1) * PAGE, page * PAGE).map(e => (
              <Table.Tr key={`${e.index} ${e.field} ${e.code}`}>
                <Table.Td>
                  <Text size="sm">{placeIn(file, e.index, t)}</Text>
                  <Text size="xs" c="dimmed" ff="monospace" style={{ overflowWrap: 'anywhere' }}>
                    {e.external_id ?? '–'}
                  </Text>
                  <Text size="xs" ff="monospace" hiddenFrom="sm" style={{ overflowWrap: 'anywhere' }}>
                    {e.field}
                  </Text>
                </Table.Td>
                <Table.Td visibleFrom="sm">
                  <Text size="sm" ff="monospace">
                    {e.field ?? '–'}
                  </Text>
                </Table.Td>
                <Table.Td>
                  <Text size="sm" fw={500}>
                    {t(`university.code.${e.code}`)}
                  </Text>
                  <WrongText error={e} type={type} />
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
      {errors.length > PAGE && (
        <Pagination
          total={Math.ceil(errors.length / PAGE)}
          value={page}
          onChange={setPage}
          getControlProps={c => ({ 'aria-label': t(`university.page.${c}`) })}
          getItemProps={n => ({ 'aria-label': t('university.page.number', { n }) })}
        />
      )}
    </Stack>
  );
}
