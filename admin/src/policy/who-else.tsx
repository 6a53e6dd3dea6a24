import { Button, Group, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { ProblemAlert } from '../parts/problem.tsx';
import { numberText } from '../parts/quantities.ts';
import { ChangedPeople } from './changed-people.tsx';
import { type Compared, compareAll, NOTHING_COMPARED } from './compare-all.ts';
import { ComparingProgress } from './compare-policy.tsx';
import { useRun } from './use-run.ts';

/** Against it, everyone whom a policy lets in gains. */
const LETS_NO_ONE_IN = 'false';

/** Everyone whom a policy lets in, once one asks for it: the service goes over all people. */
export function WhoElse({ expression, hasRoles }: { expression: string; hasRoles: boolean }) {
  const { t } = useTranslation();
  const [found, setFound] = useState<Compared | null>(null);
  const { error, isRunning, start, stop } = useRun();
  const find = (): void =>
    start(async signal => {
      setFound(NOTHING_COMPARED);
      await compareAll({ before: LETS_NO_ONE_IN, after: expression }, signal, setFound);
    });
  return (
    <Stack gap="sm" align="flex-start">
      <Text size="sm">
        {t('whoElse.about')} {hasRoles && t('whoElse.roles')}
      </Text>
      <Group>
        <Button size="xs" variant="default" onClick={find} loading={isRunning}>
          {t('whoElse.go')}
        </Button>
        {isRunning && (
          <Button size="xs" variant="subtle" onClick={stop}>
            {t('comparePolicy.stop')}
          </Button>
        )}
      </Group>
      {isRunning && found !== null && <ComparingProgress found={found} />}
      <ProblemAlert error={error} />
      {found !== null && found.gains.length > 0 && <ChangedPeople people={found.gains} />}
      {found !== null && !isRunning && error === null && (
        <Text size="sm" role="status">
          {t('whoElse.found', { count: found.gains.length })}{' '}
          {found.seen < found.users &&
            t('comparePolicy.progress', { done: numberText(found.seen), of: numberText(found.users) })}
          {found.undecided > 0 && t('comparePolicy.undecided', { count: found.undecided })}
        </Text>
      )}
    </Stack>
  );
}
