import { Alert, Button, Code, Group, List, Stack, Text, Title } from '@mantine/core';
import { IconAlertTriangle, IconArrowLeft } from '@tabler/icons-react';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { type Schemas, sendRecords } from '../api/client.ts';
import { May } from '../app/may.tsx';
import { LinkButton } from '../parts/links.tsx';
import { ProblemAlert } from '../parts/problem.tsx';
import { useLeaveQuestion } from '../parts/use-leave-question.ts';
import { ChooseRecords, type Given } from '../university/choose-records.tsx';
import { ColumnFields } from '../university/column-fields.tsx';
import { FieldList } from '../university/field-list.tsx';
import { ImportProgress } from '../university/import-progress.tsx';
import { ImportResult } from '../university/import-result.tsx';
import { RecordPreview } from '../university/record-preview.tsx';
import type { UniversityType } from '../university/types.ts';

type Outcome = { isDryRun: boolean; result: Schemas['BatchResult']; importId: number | null };

/** From a file to records of one type: chosen, looked at, checked on trial, and then taken. */
export function UniversityImport({ type, types }: { type: UniversityType; types: readonly UniversityType[] }) {
  const { t } = useTranslation();
  const queries = useQueryClient();
  const [given, setGiven] = useState<Given | null>(null);
  const [running, setRunning] = useState<'check' | 'import' | null>(null);
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const [error, setError] = useState<unknown>(null);
  const choose = (next: Given | null): void => {
    setGiven(next);
    setOutcome(null);
    setError(null);
  };
  const isImporting = running === 'import';
  const isOpen = given !== null && outcome?.isDryRun !== false;
  useLeaveQuestion(isOpen || isImporting, t(isImporting ? 'university.leaveText' : 'university.leaveOpen'));
  const run = async (isDryRun: boolean): Promise<void> => {
    if (given === null) return;
    setRunning(isDryRun ? 'check' : 'import');
    setError(null);
    try {
      setOutcome({ isDryRun, ...(await sendRecords(type.path, given.file.records, isDryRun)) });
      if (!isDryRun)
        await Promise.all(
          ['university', 'users', 'roles', 'relationships'].map(key => queries.invalidateQueries({ queryKey: [key] })),
        );
    } catch (problem) {
      setError(problem);
    } finally {
      setRunning(null);
    }
  };
  const ready = outcome?.isDryRun === true ? outcome.result.success : 0;
  const next = types[types.findIndex(x => x.type === type.type) + 1];
  const actions =
    outcome?.isDryRun === false ? (
      next !== undefined && (
        <Group justify="flex-end">
          <LinkButton to="." search={{ type: next.type }} variant="default">
            {t('university.nextType', { type: t(`university.type.${next.type}`) })}
          </LinkButton>
        </Group>
      )
    ) : (
      <Group justify="flex-end">
        <Button
          variant={ready > 0 ? 'default' : 'filled'}
          onClick={() => run(true)}
          loading={running === 'check'}
          disabled={running === 'import'}
        >
          {t(outcome === null ? 'university.check' : 'university.checkAgain')}
        </Button>
        {outcome !== null && (
          <Button
            onClick={() => run(false)}
            loading={running === 'import'}
            disabled={ready === 0 || running === 'check'}
          >
            {t('university.take', { count: ready })}
          </Button>
        )}
      </Group>
    );
  return (
    <Stack>
      <Group>
        <LinkButton
          to="."
          search={{}}
          variant="subtle"
          size="compact-sm"
          leftSection={<IconArrowLeft size={16} aria-hidden />}
        >
          {t('university.allTypes')}
        </LinkButton>
      </Group>
      <Title order={2} size="h3">
        {t('university.importOf', { type: t(`university.type.${type.type}`) })}
      </Title>
      <Missing type={type} types={types} />
      <FieldList type={type} />
      <ChooseRecords type={type} given={given} onGiven={choose} isDisabled={running !== null} />
      {given !== null && (
        <>
          <May need="university" isInline>
            <ColumnFields given={given} type={type} onRead={file => choose({ ...given, file })} />
          </May>
          <RecordPreview given={given} type={type} />
          {running !== null && <ImportProgress type={type.type} count={given.file.records.length} kind={running} />}
          <ProblemAlert error={error} />
          {outcome !== null && running === null ? (
            <ImportResult {...outcome} given={given} type={type} actions={actions} />
          ) : (
            actions
          )}
        </>
      )}
    </Stack>
  );
}

/** Types that this one refers to and of which there is nothing yet: every record that names one would be refused. */
function Missing({ type, types }: { type: UniversityType; types: readonly UniversityType[] }) {
  const { t } = useTranslation();
  const needed = type.fields.flatMap(f => {
    const other = f.required ? types.find(x => x.type === f.references) : undefined;
    return other === undefined || other.records > 0 ? [] : [{ field: f.name, other }];
  });
  if (needed.length === 0) return null;
  return (
    <Alert color="orange" icon={<IconAlertTriangle aria-hidden />} title={t('university.missingTitle')}>
      <List size="sm">
        {needed.map(({ field, other }) => (
          <List.Item key={field}>
            <LinkButton to="." search={{ type: other.type }} size="compact-sm" variant="light" color="orange">
              {t(`university.type.${other.type}`)}
            </LinkButton>{' '}
            <Text span size="sm">
              {t('university.missing')} <Code>{field}</Code>
            </Text>
          </List.Item>
        ))}
      </List>
    </Alert>
  );
}
