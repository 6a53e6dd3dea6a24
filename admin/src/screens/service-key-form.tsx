import { Button, Card, Checkbox, Group, Input, Radio, Stack, Text, TextInput } from '@mantine/core';
import { useForm } from '@mantine/form';
import { IconX } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import { ApiProblem } from '../api/problem.ts';
import { useSearchState } from '../app/use-search-state.ts';
import { type Expiry, ExpiryField, expiryTime } from '../parts/key-expiry.tsx';
import { LinkAnchor } from '../parts/links.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { PluginPicker } from '../parts/plugin-picker.tsx';
import { ProblemAlert } from '../parts/problem.tsx';
import { useLeaveQuestion } from '../parts/use-leave-question.ts';
import { ServiceKeySecret } from './service-key-secret.tsx';
import { ALL_TRIGGERS } from './service-keys.tsx';

type Made = Schemas['ServiceKey'] & { key: string };
/** Triggers of a plugin that are chosen; null for all, later ones too. */
type Chosen = { plugin: string; triggers: string[] | null };
type Values = { name: string; chosen: Chosen[]; expiry: Expiry };

const scopesOf = (chosen: readonly Chosen[]) =>
  chosen.flatMap(c => (c.triggers ?? [ALL_TRIGGERS]).map(trigger => ({ plugin_id: c.plugin, trigger })));

/** Makes a key for another system: the triggers it opens, plugin by plugin, and how long it is good for. */
export function ServiceKeyForm({ onDone, onMade }: { onDone: () => void; onMade: () => void }) {
  const { t } = useTranslation();
  const [{ plugin }] = useSearchState();
  const [error, setError] = useState<unknown>(null);
  const [made, setMade] = useState<Made | null>(null);
  const form = useForm<Values>({
    initialValues: {
      name: '',
      chosen: plugin === undefined ? [] : [{ plugin, triggers: [] }],
      expiry: { choice: 'd365', day: '' },
    },
    validate: {
      chosen: chosen => {
        if (chosen.length === 0) return t('serviceKeys.choose');
        const open = chosen.find(c => c.triggers?.length === 0);
        return open === undefined ? null : t('serviceKeys.chooseTriggers', { plugin: open.plugin });
      },
      expiry: value => (expiryTime(value) === undefined ? t('keys.pickDay') : null),
    },
  });
  const saved = useLeaveQuestion(form.isDirty() && made === null, t('common.leaveText'));
  const submit = form.onSubmit(async ({ chosen, expiry, name }) => {
    setError(null);
    try {
      const body = { name: name.trim(), scopes: scopesOf(chosen), expires_at: expiryTime(expiry) ?? null };
      setMade(answered(await api.POST('/api/admin/service-keys', { body })));
      saved();
      onMade();
    } catch (problem) {
      const { expires_at, name: wrong } = problem instanceof ApiProblem ? problem.fields : {};
      form.setErrors({ name: wrong, expiry: expires_at });
      setError(problem);
    }
  });
  const { chosen } = form.values;
  const set = (next: Chosen[]): void => {
    form.setFieldValue('chosen', next);
    form.clearFieldError('chosen');
  };
  if (made !== null) return <ServiceKeySecret made={made} onDone={onDone} />;
  return (
    <form onSubmit={submit}>
      <Stack>
        <TextInput
          label={t('keys.name')}
          description={t('keys.nameAbout')}
          required
          maxLength={200}
          data-autofocus
          {...form.getInputProps('name')}
        />
        <Input.Label mb={-8}>{t('keys.scopes')}</Input.Label>
        {chosen.map(c => (
          <PluginScope
            key={c.plugin}
            chosen={c}
            onChange={next => set(chosen.map(x => (x.plugin === c.plugin ? next : x)))}
            onRemove={() => set(chosen.filter(x => x.plugin !== c.plugin))}
          />
        ))}
        <PluginPicker
          label={t('serviceKeys.addPlugin')}
          value={null}
          without={chosen.map(c => c.plugin)}
          onChange={id => id !== null && set([...chosen, { plugin: id, triggers: [] }])}
          error={form.errors.chosen}
        />
        <ExpiryField
          value={form.values.expiry}
          onChange={expiry => form.setFieldValue('expiry', expiry)}
          error={form.errors.expiry}
        />
        {error !== null && <ProblemAlert error={error} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={onDone}>
            {t('common.cancel')}
          </Button>
          <Button type="submit" loading={form.submitting}>
            {t('serviceKeys.make')}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

/** Which triggers of one plugin a key opens, and whether they admit keys at all. */
function PluginScope(props: { chosen: Chosen; onChange: (chosen: Chosen) => void; onRemove: () => void }) {
  const { chosen, onChange, onRemove } = props;
  const { plugin, triggers } = chosen;
  const { t } = useTranslation();
  const query = useQuery({
    queryKey: ['plugins', plugin, 'triggers'],
    queryFn: async () =>
      answered(await api.GET('/api/admin/plugins/{id}/triggers', { params: { path: { id: plugin } } })),
  });
  return (
    <Card withBorder padding="sm">
      <Group justify="space-between" mb="xs">
        <Text fw={600} size="sm">
          {plugin}
        </Text>
        <Button
          size="compact-sm"
          variant="subtle"
          color="gray"
          px={6}
          aria-label={t('serviceKeys.removeScope', { plugin })}
          onClick={onRemove}
        >
          <IconX size={16} aria-hidden />
        </Button>
      </Group>
      <Radio.Group
        aria-label={plugin}
        value={triggers === null ? 'all' : 'some'}
        onChange={v => onChange({ plugin, triggers: v === 'all' ? null : [] })}
      >
        <Stack gap="xs">
          <Radio value="some" label={t('serviceKeys.onlySome')} />
          {triggers !== null && (
            <Loaded query={query}>
              {({ items }) =>
                items.length === 0 ? (
                  <Text size="sm">{t('serviceKeys.noTriggers')}</Text>
                ) : (
                  <Triggers items={items} triggers={triggers} onChange={to => onChange({ plugin, triggers: to })} />
                )
              }
            </Loaded>
          )}
          <Radio value="all" label={t('serviceKeys.all')} />
          {triggers === null && query.data?.items.every(s => !s.allow_service_key) && (
            <Text size="xs" c="dimmed">
              {t('serviceKeys.closedAll')}{' '}
              <LinkAnchor
                to="/admin/plugins/$id"
                params={{ id: plugin }}
                search={{ tab: 'access' }}
                size="xs"
                target="_blank"
              >
                {t('serviceKeys.openSettings')}
              </LinkAnchor>
            </Text>
          )}
        </Stack>
      </Radio.Group>
    </Card>
  );
}

function Triggers(props: {
  items: ReadonlyArray<Schemas['TriggerSettings']>;
  triggers: string[];
  onChange: (triggers: string[]) => void;
}) {
  const { items, onChange, triggers } = props;
  const { t } = useTranslation();
  return (
    <Checkbox.Group value={triggers} onChange={onChange} aria-label={t('access.triggers')}>
      <Stack gap={6} ml="xl">
        {items.map(s => (
          <Checkbox
            key={s.trigger}
            value={s.trigger}
            label={s.trigger}
            description={
              <>
                {s.methods.join(', ')} {s.path}
                {!s.allow_service_key && ` · ${t('serviceKeys.closed')}`}
              </>
            }
          />
        ))}
        {items.some(s => triggers.includes(s.trigger) && !s.allow_service_key) && (
          <LinkAnchor
            to="/admin/plugins/$id"
            params={{ id: items[0]?.plugin_id ?? '' }}
            search={{ tab: 'access' }}
            size="xs"
            target="_blank"
          >
            {t('serviceKeys.openSettings')}
          </LinkAnchor>
        )}
      </Stack>
    </Checkbox.Group>
  );
}
