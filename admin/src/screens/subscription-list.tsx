import { Button, Group, Stack, Text } from '@mantine/core';
import { useForm } from '@mantine/form';
import { IconPlus, IconWebhook } from '@tabler/icons-react';
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import { ApiProblem } from '../api/problem.ts';
import { May } from '../app/may.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { Empty } from '../parts/empty.tsx';
import { KeysetTable, useKeyset } from '../parts/keyset-list.tsx';
import { LinkAnchor } from '../parts/links.tsx';
import { ProblemAlert } from '../parts/problem.tsx';
import { numberText } from '../parts/quantities.ts';
import { SecretOnce } from '../parts/secret-once.tsx';
import { StateBadge } from '../parts/state-badge.tsx';
import { useLeaveQuestion } from '../parts/use-leave-question.ts';
import { EMPTY_SUBSCRIPTION, SubscriptionFields } from './subscription-form.tsx';

type Subscription = Schemas['EventSubscription'];
const REFRESH_MS = 10_000;

/** Whether events are sent; switched off by the service is worse than by an administrator. */
export function SubscriptionState({ subscription: s }: { subscription: Subscription }) {
  const { t } = useTranslation();
  if (s.enabled) return <StateBadge kind="good" label={t('events.enabled')} />;
  return (
    <StateBadge
      kind={s.disabled_why === '' ? 'off' : 'bad'}
      label={t(s.disabled_why === '' ? 'events.disabled' : 'events.switchedOff')}
    />
  );
}

/** Who gets events, and what is stuck on the way. */
export function SubscriptionList() {
  const { t } = useTranslation();
  const [isAdding, setAdding] = useState(false);
  /** A secret is in the dialog: it closes by its own buttons alone. */
  const [isMade, setMade] = useState(false);
  const list = useKeyset<Subscription, { items: Subscription[] }>(
    ['events', 'subscriptions'],
    async cursor =>
      answered(await api.GET('/api/admin/events/subscriptions', { params: { query: { limit: 50, cursor } } })),
    REFRESH_MS,
  );
  const add = (
    <May need="operate" isInline>
      <Button
        leftSection={<IconPlus size={16} />}
        onClick={() => {
          setMade(false);
          setAdding(true);
        }}
      >
        {t('events.add')}
      </Button>
    </May>
  );
  return (
    <>
      <Group justify="space-between" mb="md">
        <Text size="sm" c="dimmed" maw="40rem">
          {t('events.subscriptionsAbout')}
        </Text>
        {list.rows.length > 0 && add}
      </Group>
      <KeysetTable
        label={t('events.tab.subscriptions')}
        query={list}
        rowKey={s => s.id}
        columns={[
          { key: 'name', title: t('events.name'), cell: s => <Name subscription={s} /> },
          { key: 'state', title: t('common.state'), cell: s => <SubscriptionState subscription={s} /> },
          {
            key: 'what',
            title: t('events.gets'),
            from: 'md',
            cell: s => (
              <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
                {s.types.length === 0 ? t('events.allTypes') : s.types.join(', ')}
                <Text span size="sm" c="dimmed">
                  {' · '}
                  {s.plugins.length === 0 ? t('events.allPlugins') : s.plugins.join(', ')}
                </Text>
              </Text>
            ),
          },
          {
            key: 'waiting',
            title: t('events.waiting'),
            from: 'sm',
            align: 'right',
            cell: s => numberText(s.deliveries.waiting),
          },
          {
            key: 'dead',
            title: t('events.dead'),
            align: 'right',
            cell: s =>
              s.deliveries.dead === 0 ? (
                '0'
              ) : (
                <LinkAnchor
                  to="/admin/events/subscriptions/$subscription"
                  params={{ subscription: String(s.id) }}
                  search={{ state: 'dead' }}
                  c="red"
                  fw={600}
                >
                  {numberText(s.deliveries.dead)}
                </LinkAnchor>
              ),
          },
        ]}
        empty={
          <Empty
            icon={IconWebhook}
            title={t('events.noSubscriptionsTitle')}
            text={t('events.noSubscriptions')}
            action={add}
          />
        }
      />
      <Dialog opened={isAdding} onClose={() => setAdding(false)} title={t('events.add')} isLocked={isMade}>
        <NewSubscription onMade={() => setMade(true)} onClose={() => setAdding(false)} />
      </Dialog>
    </>
  );
}

function Name({ subscription: s }: { subscription: Subscription }) {
  return (
    <div>
      <LinkAnchor to="/admin/events/subscriptions/$subscription" params={{ subscription: String(s.id) }} fw={500}>
        {s.name}
      </LinkAnchor>
      <Text size="xs" c="dimmed" ff="monospace" style={{ overflowWrap: 'anywhere' }}>
        {s.url}
      </Text>
    </div>
  );
}

/** The form, and then the secret that the subscriber checks signatures with. */
function NewSubscription({ onClose, onMade }: { onClose: () => void; onMade: () => void }) {
  const { t } = useTranslation();
  const queries = useQueryClient();
  const go = useNavigate();
  const [error, setError] = useState<unknown>(null);
  const [made, setMade] = useState<{ id: number; secret: string } | null>(null);
  const form = useForm({ initialValues: EMPTY_SUBSCRIPTION });
  const saved = useLeaveQuestion(form.isDirty() && made === null, t('common.leaveText'));
  const kept = useLeaveQuestion(made !== null, t('common.onceText'));
  const submit = form.onSubmit(async values => {
    setError(null);
    try {
      const { id, secret } = answered(await api.POST('/api/admin/events/subscriptions', { body: values }));
      setMade({ id, secret });
      saved();
      onMade();
      await queries.invalidateQueries({ queryKey: ['events', 'subscriptions'] });
    } catch (problem) {
      setError(problem);
      if (problem instanceof ApiProblem) form.setErrors(problem.fields);
    }
  });
  if (made !== null)
    return (
      <Stack>
        <SecretOnce about={t('events.secretAbout')} secret={made.secret} />
        <Group justify="flex-end">
          <Button
            variant="default"
            onClick={() => {
              kept();
              onClose();
            }}
          >
            {t('events.secretKept')}
          </Button>
          <Button
            onClick={() => {
              kept();
              void go({
                to: '/admin/events/subscriptions/$subscription',
                params: { subscription: String(made.id) },
              });
            }}
          >
            {t('events.openToTest')}
          </Button>
        </Group>
      </Stack>
    );
  return (
    <form onSubmit={submit}>
      <Stack>
        <SubscriptionFields form={form} />
        <ProblemAlert error={error} />
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            {t('common.cancel')}
          </Button>
          <Button type="submit" loading={form.submitting}>
            {t('events.subscribe')}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
