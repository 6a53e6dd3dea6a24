import { Alert, Button, Card, Group, Progress, Select, Stack, Text, Title } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api } from '../api/client.ts';
import { May } from '../app/may.tsx';
import { ProblemAlert } from '../parts/problem.tsx';
import { numberText } from '../parts/quantities.ts';
import { ChangedPeople } from './changed-people.tsx';
import { type Compared, compareAll, NOTHING_COMPARED } from './compare-all.ts';
import { type RecordedCalls, RecordedCallsAnswer } from './recorded-calls.tsx';
import { useRun } from './use-run.ts';

/** Of how many days recorded calls are decided again. */
const DAYS = [1, 7, 30, 90] as const;

type Found = Compared & { recorded: (RecordedCalls & { days: number }) | null };

/**
 * Who gains or loses access by the change that is not saved yet, among all users and in the calls of the last days. Belongs
 * to one draft: another one takes a component of its own.
 */
export function ComparePolicy(props: {
  plugin: string;
  trigger: string;
  saved: string;
  draft: string;
  isBroken: boolean;
}) {
  const { draft, isBroken, plugin, saved, trigger } = props;
  const { t } = useTranslation();
  const [found, setFound] = useState<Found | null>(null);
  const [days, setDays] = useState<number>(7);
  const { error, isRunning, start, stop } = useRun();
  const isSame = draft.trim() === saved.trim();
  const compare = (): void =>
    start(async signal => {
      setFound({ ...NOTHING_COMPARED, recorded: null });
      const compared = await compareAll({ before: saved, after: draft }, signal, known =>
        setFound({ ...known, recorded: null }),
      );
      const body = { plugin, trigger, expression: draft, days };
      const recorded = answered(await api.POST('/api/admin/policies/rehearse', { body, signal }));
      setFound({ ...compared, recorded: { ...recorded, days } });
    });
  return (
    <Card withBorder>
      <Stack gap="sm">
        <Title order={3} size="h5">
          {t('comparePolicy.title')}
        </Title>
        <Text size="sm" c="dimmed">
          {t(isSame ? 'comparePolicy.same' : 'comparePolicy.about')}
        </Text>
        <Select
          label={t('comparePolicy.days')}
          size="xs"
          maw={220}
          data={DAYS.map(d => ({ value: String(d), label: t('comparePolicy.lastDays', { count: d }) }))}
          value={String(days)}
          onChange={d => setDays(Number(d ?? 7))}
          allowDeselect={false}
          disabled={isRunning}
        />
        <Group>
          <May need="people" isInline>
            <Button variant="light" onClick={compare} loading={isRunning} disabled={isSame || isBroken}>
              {t('comparePolicy.go')}
            </Button>
          </May>
          {isRunning && (
            <Button variant="subtle" onClick={stop}>
              {t('comparePolicy.stop')}
            </Button>
          )}
        </Group>
        {isRunning && found !== null && <ComparingProgress found={found} />}
        <ProblemAlert error={error} />
        {found !== null && <Answer found={found} isWhole={!isRunning} />}
      </Stack>
    </Card>
  );
}

/** How far the comparison has come. */
export function ComparingProgress({ found: { seen, users } }: { found: Compared }) {
  const { t } = useTranslation();
  const text = t('comparePolicy.progress', { done: numberText(seen), of: numberText(users) });
  return (
    <div role="status">
      <Progress value={users === 0 ? 100 : (100 * seen) / users} animated aria-label={text} />
      <Text size="sm" c="dimmed" mt={4}>
        {text}
      </Text>
    </div>
  );
}

function Answer({ found, isWhole }: { found: Found; isWhole: boolean }) {
  const { t } = useTranslation();
  const { gains, loses, recorded, seen, undecided, users } = found;
  return (
    <Stack gap="xs">
      {isWhole && (
        <Text size="sm" role="status">
          {seen < users
            ? t('comparePolicy.progress', { done: numberText(seen), of: numberText(users) })
            : t('comparePolicy.examined', { count: seen })}{' '}
          {gains.length + loses.length === 0 && seen > 0 && t('comparePolicy.none')}
        </Text>
      )}
      {loses.length > 0 && (
        <Alert color="red" title={t('comparePolicy.lose', { count: loses.length })}>
          <ChangedPeople people={loses} />
        </Alert>
      )}
      {gains.length > 0 && (
        <Alert color="orange" title={t('comparePolicy.gain', { count: gains.length })}>
          <ChangedPeople people={gains} />
        </Alert>
      )}
      {undecided > 0 && (
        <Text size="sm" c="dimmed">
          {t('comparePolicy.undecided', { count: undecided })}
        </Text>
      )}
      {recorded !== null && <RecordedCallsAnswer days={recorded.days} recorded={recorded} />}
    </Stack>
  );
}
