import { Alert, Button, Code, Group, SimpleGrid, Stack, Text } from '@mantine/core';
import { IconCheck } from '@tabler/icons-react';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import { confirmed } from '../api/questions.ts';
import { May } from '../app/may.tsx';
import { notifyDone, ProblemAlert } from '../parts/problem.tsx';
import { numberText } from '../parts/quantities.ts';
import { When } from '../parts/time.tsx';
import { Section } from './review.tsx';

/** A repair of more differences than this is confirmed by typing a word. */
const MANY = 100;

/** Whether the graph store holds what the database says, and making it so. */
export function Drift() {
  const { t } = useTranslation();
  const queries = useQueryClient();
  // What was found stays while it is repaired, and when that is refused.
  const [found, setFound] = useState<Schemas['Drift']>();
  const look = useMutation({
    mutationFn: async (isRepair: boolean) =>
      isRepair
        ? answered(await api.POST('/api/admin/authz/drift/repair'))
        : answered(await api.GET('/api/admin/authz/drift')),
    onSuccess: setFound,
  });
  /** Whether what is under way repairs; null: nothing is under way. */
  const isRepairing = look.isPending ? look.variables : null;
  const repair = async (): Promise<void> => {
    if (found === undefined) return;
    const count = found.missing_count + found.extra_count;
    const question = {
      title: t('outbox.repair'),
      text: t('outbox.repairText', { missing: found.missing_count, extra: found.extra_count }),
      action: t('outbox.repair'),
      isDangerous: true,
      ...(count > MANY ? { typed: t('outbox.repairWord') } : {}),
    };
    if (!(await confirmed(question))) return;
    await look.mutateAsync(true).then(
      () => notifyDone(t('outbox.repaired')),
      // It is shown in its place.
      () => {},
    );
    await queries.invalidateQueries({ queryKey: ['outbox'] });
  };
  const last = useQuery({
    queryKey: ['outbox', 'summary'],
    queryFn: async () => answered(await api.GET('/api/admin/outbox', { params: { query: { limit: 1 } } })),
    select: state => state.last_comparison,
  });
  const isDifferent = found !== undefined && !found.repaired && found.missing_count + found.extra_count > 0;
  return (
    <Stack>
      <Text size="sm" maw="48rem">
        {t('outbox.driftAbout')}
      </Text>
      <Group>
        <Button
          variant={isDifferent ? 'default' : 'filled'}
          loading={isRepairing === false}
          disabled={isRepairing !== null}
          onClick={() => look.mutate(false)}
        >
          {t(found === undefined ? 'outbox.compare' : 'outbox.compareAgain')}
        </Button>
        {isDifferent && (
          <May need="operate" isInline>
            <Button color="red" loading={isRepairing === true} onClick={() => void repair()}>
              {t('outbox.repair')}
            </Button>
          </May>
        )}
      </Group>
      {isRepairing === true && (
        <Text size="sm" role="status">
          {t('outbox.repairing')}
        </Text>
      )}
      <ProblemAlert error={look.error} />
      {found === undefined && last.data && (
        <Text size="sm" component="div">
          {t('outbox.lastCompared')} <When at={last.data.at} />:{' '}
          {t(last.data.repaired ? 'outbox.lastRepaired' : 'outbox.lastFound', {
            missing: last.data.missing_count,
            extra: last.data.extra_count,
          })}
        </Text>
      )}
      {found !== undefined && <Found drift={found} />}
    </Stack>
  );
}

function Found({ drift }: { drift: Schemas['Drift'] }) {
  const { t } = useTranslation();
  const { compared, extra, extra_count, missing, missing_count, pending, repaired } = drift;
  const isSame = missing_count + extra_count === 0;
  return (
    <Stack role="status">
      <Alert
        color={isSame || repaired ? 'teal' : 'orange'}
        icon={isSame || repaired ? <IconCheck aria-hidden /> : undefined}
        title={t(repaired && !isSame ? 'outbox.repaired' : isSame ? 'outbox.same' : 'outbox.differs')}
      >
        {t('outbox.compared', { count: compared, number: numberText(compared) })}
        {pending > 0 && ` ${t('outbox.driftPending', { count: pending })}`}
      </Alert>
      {!isSame && (
        <SimpleGrid cols={{ base: 1, lg: 2 }}>
          <Differences
            title={t(repaired ? 'outbox.wasMissing' : 'outbox.missing', { count: missing_count })}
            about={t('outbox.missingAbout')}
            lines={missing}
            count={missing_count}
          />
          <Differences
            title={t(repaired ? 'outbox.wasExtra' : 'outbox.extra', { count: extra_count })}
            about={t('outbox.extraAbout')}
            lines={extra}
            count={extra_count}
          />
        </SimpleGrid>
      )}
    </Stack>
  );
}

function Differences(props: { title: string; about: string; lines: readonly string[]; count: number }) {
  const { about, count, lines, title } = props;
  const { t } = useTranslation();
  if (count === 0) return null;
  return (
    <Section title={title} about={about}>
      <Code
        block
        tabIndex={0}
        style={{ maxHeight: 420, overflow: 'auto', whiteSpace: 'pre-wrap', overflowWrap: 'anywhere' }}
      >
        {lines.join('\n')}
      </Code>
      {count > lines.length && (
        <Text size="sm" c="dimmed">
          {t('outbox.firstShown', { count: lines.length })}
        </Text>
      )}
    </Section>
  );
}
