import { Alert, Button, type ButtonProps, Code, Group, Stack, Text } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import { confirmed } from '../api/questions.ts';
import { May } from '../app/may.tsx';
import { Details, JsonBlock } from '../parts/details.tsx';
import { Facts } from '../parts/facts.tsx';
import { LinkAnchor } from '../parts/links.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { notifyDone, notifyProblem } from '../parts/problem.tsx';
import { StateBadge } from '../parts/state-badge.tsx';
import { When } from '../parts/time.tsx';
import { Section } from './review.tsx';

type Entry = Schemas['OutboxEntry'];

const KIND = { pending: 'wait', processed: 'good', dead: 'bad', requeued: 'off', discarded: 'off' } as const;

/** Of what waits, it also says whether it has failed before or waits because all delivery does. */
export function EntryState({ entry }: { entry: Entry }) {
  const { t } = useTranslation();
  if (entry.paused !== null) return <StateBadge kind="wait" label={t('outbox.paused')} />;
  if (entry.state === 'pending' && entry.attempts > 0) return <StateBadge kind="warn" label={t('outbox.backingOff')} />;
  return <StateBadge kind={KIND[entry.state]} label={t(`outbox.state.${entry.state}`)} />;
}

/** A dead entry is delivered again or given up; others need no decision. */
export function EntryActions({ entry, size = 'sm' }: { entry: Entry; size?: ButtonProps['size'] }) {
  const { t } = useTranslation();
  const queries = useQueryClient();
  const [isSending, setSending] = useState(false);
  if (entry.state !== 'dead') return null;
  const params = { path: { entry: entry.id } };
  const act = async (work: () => Promise<string>): Promise<void> => {
    setSending(true);
    try {
      notifyDone(await work());
    } catch (problem) {
      notifyProblem(problem);
    } finally {
      setSending(false);
      await queries.invalidateQueries({ queryKey: ['outbox'] });
    }
  };
  const retry = () =>
    act(async () => {
      const { delivered, requeued_as } = answered(await api.POST('/api/admin/outbox/{entry}/retry', { params }));
      if (requeued_as === null) return t('outbox.nothingLeft', { id: entry.id });
      return t(delivered ? 'outbox.delivered' : 'outbox.queued', { id: entry.id, next: requeued_as });
    });
  const discard = async (): Promise<void> => {
    const question = { title: t('outbox.discardTitle', { id: entry.id }), text: t('outbox.discardText') };
    if (!(await confirmed({ ...question, action: t('outbox.discard'), isDangerous: true }))) return;
    await act(async () => {
      await api.POST('/api/admin/outbox/{entry}/discard', { params });
      return t('outbox.discarded', { id: entry.id });
    });
  };
  return (
    <>
      <May need="operate" isInline>
        <Button size={size} variant="light" loading={isSending} onClick={() => void retry()}>
          {t('outbox.retry')}
        </Button>
      </May>
      <May need="operate" isInline>
        <Button size={size} variant="subtle" color="red" disabled={isSending} onClick={() => void discard()}>
          {t('outbox.discard')}
        </Button>
      </May>
    </>
  );
}

/** One entry: what it changes in the graph, what became of it, and what can be done. */
export function EntryDetails({ id, onClose }: { id: string | undefined; onClose: () => void }) {
  const { t } = useTranslation();
  const query = useQuery({
    queryKey: ['outbox', 'entry', id],
    queryFn: async () =>
      answered(await api.GET('/api/admin/outbox/{entry}', { params: { path: { entry: Number(id) } } })),
    enabled: id !== undefined,
  });
  return (
    <Details title={t('outbox.one', { id: id ?? '' })} isOpen={id !== undefined} onClose={onClose}>
      <Loaded query={query}>
        {e => (
          <>
            <Facts
              facts={[
                { label: t('common.state'), value: <EntryState entry={e} /> },
                { label: t('outbox.does'), value: t(`outbox.operation.${e.operation}`) },
                { label: t('common.created'), value: <When at={e.created_at} /> },
                { label: t('outbox.attempts'), value: e.attempts },
                e.processed_at === null
                  ? null
                  : { label: t('outbox.processedAt'), value: <When at={e.processed_at} /> },
                e.dead_at === null ? null : { label: t('outbox.deadAt'), value: <When at={e.dead_at} /> },
                e.resolved_by === null ? null : { label: t('outbox.resolvedBy'), value: e.resolved_by },
                e.requeue_of === null
                  ? null
                  : {
                      label: t('outbox.requeueOf'),
                      value: (
                        <LinkAnchor to="/admin/outbox" search={{ entry: String(e.requeue_of) }} size="sm">
                          {t('outbox.one', { id: e.requeue_of })}
                        </LinkAnchor>
                      ),
                    },
              ]}
            />
            {e.last_error !== null && e.last_error !== '' && (
              <Alert color={e.state === 'dead' ? 'red' : 'gray'} title={t('outbox.lastError')}>
                <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
                  {e.last_error}
                </Text>
              </Alert>
            )}
            {e.paused !== null && (
              <Alert color="orange" title={t('outbox.pausedTitle')}>
                {e.paused.reason}
              </Alert>
            )}
            <Group gap="xs">
              <EntryActions entry={e} />
            </Group>
            {e.state === 'dead' && (
              <Text size="sm" c="dimmed">
                {t('outbox.deadHelp')}
              </Text>
            )}
            <Payload payload={e.payload} />
          </>
        )}
      </Loaded>
    </Details>
  );
}

/** What an entry changes, one relationship a line, with the JSON under it. */
function Payload({ payload }: { payload: Record<string, unknown> }) {
  const { t } = useTranslation();
  const filter = isObject(payload.filter) ? filterText(payload.filter) : '';
  return (
    <>
      {filter !== '' && (
        <Section title={t('outbox.filter')} about={t('outbox.filterAbout')}>
          <Code>{filter}</Code>
        </Section>
      )}
      <Relations title={t('outbox.tuples')} tuples={payload.tuples} />
      <Relations title={t('outbox.removed')} tuples={payload.removed} />
      <Section title={t('outbox.payload')}>
        <JsonBlock value={payload} />
      </Section>
    </>
  );
}

function Relations({ title, tuples }: { title: string; tuples: unknown }) {
  const lines = Array.isArray(tuples) ? tuples.filter(isObject).map(tupleText) : [];
  if (lines.length === 0) return null;
  return (
    <Section title={title}>
      <Stack gap={4}>
        {lines.map(line => (
          <Code key={line} style={{ overflowWrap: 'anywhere' }}>
            {line}
          </Code>
        ))}
      </Stack>
    </Section>
  );
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;

const tupleText = (x: Record<string, unknown>): string =>
  `${x.resource_type}:${x.resource_id}#${x.relation}@${x.subject_type}:${x.subject_id}${x.subject_relation === undefined ? '' : `#${x.subject_relation}`}`;

const filterText = (x: Record<string, unknown>): string =>
  `${x.resource_type ?? '*'}:${x.resource_id ?? '*'}#${x.relation ?? '*'}@${x.subject_type ?? '*'}:${x.subject_id ?? '*'}`;
