import { Alert, Button, Card, Group, Menu, SimpleGrid, Stack, Text } from '@mantine/core';
import { useForm } from '@mantine/form';
import { IconDots, IconKey, IconPlayerPause, IconPlayerPlay, IconSend, IconTrash } from '@tabler/icons-react';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate, useParams } from '@tanstack/react-router';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import { ApiProblem } from '../api/problem.ts';
import { confirmed } from '../api/questions.ts';
import { May, useRefusal } from '../app/may.tsx';
import { LinkAnchor } from '../parts/links.tsx';
import { LoadedPage } from '../parts/loaded-page.tsx';
import { Page } from '../parts/page.tsx';
import { notifyDone, notifyProblem, ProblemAlert } from '../parts/problem.tsx';
import { durationText } from '../parts/quantities.ts';
import { SecretDialog } from '../parts/secret-once.tsx';
import { When } from '../parts/time.tsx';
import { useLeaveQuestion } from '../parts/use-leave-question.ts';
import { DeliveryList } from './delivery-list.tsx';
import { Section } from './review.tsx';
import { SubscriptionFields } from './subscription-form.tsx';
import { SubscriptionState } from './subscription-list.tsx';

type Subscription = Schemas['EventSubscription'];
const REFRESH_MS = 10_000;

/** One subscriber: whether events reach it, what it gets, and what became of each. */
export default function SubscriptionScreen() {
  const { t } = useTranslation();
  const { subscription = '' } = useParams({ strict: false });
  const id = Number(subscription);
  const [secret, setSecret] = useState<string | null>(null);
  const kept = useLeaveQuestion(secret !== null, t('common.onceText'));
  const query = useQuery({
    queryKey: ['events', 'subscription', id],
    queryFn: async () => answered(await api.GET('/api/admin/events/subscriptions/{id}', { params: { path: { id } } })),
    refetchInterval: REFRESH_MS,
  });
  const crumbs = (
    <LinkAnchor to="/admin/events" search={{ tab: 'subscriptions' }} size="sm">
      {t('nav.events')}
    </LinkAnchor>
  );
  return (
    <>
      <LoadedPage query={query} title={t('events.tab.subscriptions')} crumbs={crumbs}>
        {s => (
          <Page
            title={s.name}
            crumbs={crumbs}
            about={
              <Group gap="xs" mt={4}>
                <SubscriptionState subscription={s} />
                <span>
                  {t('common.created')} <When at={s.created_at} />
                </span>
              </Group>
            }
            actions={<Actions subscription={s} onSecret={setSecret} />}
          >
            <SwitchedOff subscription={s} />
            <SimpleGrid cols={{ base: 1, lg: 2 }}>
              <Card withBorder>
                <Settings subscription={s} onSecret={setSecret} />
              </Card>
              <TestDelivery subscription={s} />
            </SimpleGrid>
            <Section title={t('events.deliveries')} about={t('events.deliveriesAbout')}>
              <DeliveryList subscription={s} />
            </Section>
          </Page>
        )}
      </LoadedPage>
      <SecretDialog
        title={t('events.newSecret')}
        about={t('events.secretAbout')}
        secret={secret}
        onClose={() => {
          kept();
          setSecret(null);
        }}
      />
    </>
  );
}

function SwitchedOff({ subscription: s }: { subscription: Subscription }) {
  const { t } = useTranslation();
  if (s.enabled) return null;
  return (
    <Alert color={s.disabled_why === '' ? 'gray' : 'red'} title={t('events.disabledTitle')}>
      {s.disabled_why !== '' && <Text size="sm">{s.disabled_why}.</Text>}
      <Text size="sm">{t('events.disabledAbout')}</Text>
    </Alert>
  );
}

function Actions({ onSecret, subscription: s }: { subscription: Subscription; onSecret: (secret: string) => void }) {
  const { t } = useTranslation();
  const queries = useQueryClient();
  const go = useNavigate();
  const params = { path: { id: s.id } };
  const change = async (body: { enabled?: boolean; new_secret?: boolean }): Promise<void> => {
    try {
      const { secret } = answered(await api.PATCH('/api/admin/events/subscriptions/{id}', { params, body }));
      if (secret !== undefined) onSecret(secret);
      else notifyDone(t(body.enabled === true ? 'events.enabledDone' : 'events.disabledDone', { name: s.name }));
      await queries.invalidateQueries({ queryKey: ['events'] });
    } catch (problem) {
      notifyProblem(problem);
    }
  };
  const refusal = useRefusal()('operate');
  const disable = async (): Promise<void> => {
    const question = {
      title: t('events.disableTitle', { name: s.name }),
      text: t('events.disabledAbout'),
      action: t('events.disable'),
    };
    if (await confirmed({ ...question, isDangerous: true })) await change({ enabled: false });
  };
  const renew = async (): Promise<void> => {
    const question = { title: t('events.newSecret'), text: t('events.newSecretText'), action: t('events.newSecretGo') };
    if (await confirmed({ ...question, isDangerous: true })) await change({ new_secret: true });
  };
  const remove = async (): Promise<void> => {
    const question = {
      title: t('events.removeTitle', { name: s.name }),
      text: t('events.removeText', { count: s.deliveries.waiting + s.deliveries.dead }),
      action: t('events.remove'),
      isDangerous: true,
    };
    if (!(await confirmed(question))) return;
    try {
      await api.DELETE('/api/admin/events/subscriptions/{id}', { params });
      await go({ to: '/admin/events', search: { tab: 'subscriptions' } });
      queries.removeQueries({ queryKey: ['events', 'subscription', s.id] });
      await queries.invalidateQueries({ queryKey: ['events', 'subscriptions'] });
      notifyDone(t('events.removed', { name: s.name }));
    } catch (problem) {
      notifyProblem(problem);
    }
  };
  return (
    <>
      {s.enabled ? (
        <May need="operate" isInline>
          <Button variant="default" leftSection={<IconPlayerPause size={16} />} onClick={() => void disable()}>
            {t('events.disable')}
          </Button>
        </May>
      ) : (
        <May need="operate" isInline>
          <Button leftSection={<IconPlayerPlay size={16} />} onClick={() => void change({ enabled: true })}>
            {t('events.enable')}
          </Button>
        </May>
      )}
      <Menu position="bottom-end">
        <Menu.Target>
          <Button variant="default" px="xs" aria-label={t('common.moreActions')}>
            <IconDots size={18} />
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          {refusal !== null && <Menu.Label maw={280}>{refusal}</Menu.Label>}
          <Menu.Item disabled={refusal !== null} leftSection={<IconKey size={16} />} onClick={() => void renew()}>
            {t('events.newSecret')}
          </Menu.Item>
          <Menu.Item
            disabled={refusal !== null}
            color="red"
            leftSection={<IconTrash size={16} />}
            onClick={() => void remove()}
          >
            {t('events.remove')}
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
    </>
  );
}

/** What it gets and where. Another address gets another secret, which is shown then. */
function Settings({ onSecret, subscription: s }: { subscription: Subscription; onSecret: (secret: string) => void }) {
  const { t } = useTranslation();
  const queries = useQueryClient();
  const [error, setError] = useState<unknown>(null);
  const read = { name: s.name, url: s.url, types: [...s.types], plugins: [...s.plugins] };
  const form = useForm({ initialValues: read });
  // Until something is typed, it is what another administrator has saved.
  const now = JSON.stringify(read);
  const [begun, setBegun] = useState(now);
  if (begun !== now && !form.isDirty()) {
    setBegun(now);
    form.setInitialValues(read);
    form.setValues(read);
  }
  useLeaveQuestion(form.isDirty(), t('common.leaveText'), ['state']);
  const submit = form.onSubmit(async values => {
    setError(null);
    const isMoved = form.isDirty('url') && values.url !== s.url;
    const question = { title: t('events.moveTitle'), text: t('events.moveText'), action: t('common.save') };
    if (isMoved && !(await confirmed({ ...question, isDangerous: false }))) return;
    try {
      const params = { path: { id: s.id } };
      // Only what was changed here: another administrator may have changed the rest meanwhile.
      const body = Object.fromEntries(Object.entries(values).filter(([name]) => form.isDirty(name)));
      const { secret } = answered(await api.PATCH('/api/admin/events/subscriptions/{id}', { params, body }));
      form.resetDirty(values);
      if (secret !== undefined) onSecret(secret);
      else notifyDone(t('events.saved'));
      await queries.invalidateQueries({ queryKey: ['events'] });
    } catch (problem) {
      setError(problem);
      if (problem instanceof ApiProblem) form.setErrors(problem.fields);
    }
  });
  return (
    <form onSubmit={submit}>
      <Stack>
        <SubscriptionFields form={form} />
        <ProblemAlert error={error} />
        <Group>
          <May need="operate" isInline>
            <Button type="submit" loading={form.submitting} disabled={!form.isDirty()}>
              {t('common.save')}
            </Button>
          </May>
          {form.isDirty() && (
            <Button variant="default" onClick={() => form.reset()}>
              {t('common.undo')}
            </Button>
          )}
        </Group>
      </Stack>
    </form>
  );
}

/** Sends one signed event of no plugin, to see whether the subscriber takes it. */
function TestDelivery({ subscription: s }: { subscription: Subscription }) {
  const { t } = useTranslation();
  const test = useMutation({
    mutationFn: async () =>
      answered(await api.POST('/api/admin/events/subscriptions/{id}/test', { params: { path: { id: s.id } } })),
  });
  const { data } = test;
  return (
    <Card withBorder style={{ alignSelf: 'start' }}>
      <Section title={t('events.test')} about={t('events.testAbout')}>
        <Stack align="flex-start">
          <May need="operate" isInline>
            <Button
              variant="light"
              leftSection={<IconSend size={16} />}
              loading={test.isPending}
              disabled={!s.enabled}
              onClick={() => test.mutate()}
            >
              {t('events.testGo')}
            </Button>
          </May>
          {!s.enabled && (
            <Text size="sm" c="dimmed">
              {t('events.testDisabled')}
            </Text>
          )}
          <ProblemAlert error={test.error} />
          {data !== undefined && (
            <Alert color={data.ok ? 'teal' : 'red'} role="status" w="100%">
              {data.ok
                ? t('events.testOk', { status: data.status, time: durationText(data.latency_ms) })
                : `${data.problem} (${durationText(data.latency_ms)}). ${t('events.testHelp')}`}
            </Alert>
          )}
        </Stack>
      </Section>
    </Card>
  );
}
