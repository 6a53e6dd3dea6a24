import { Button, Group, Stack, Switch, TagsInput, TextInput } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas, tagOf } from '../api/client.ts';
import { May } from '../app/may.tsx';
import { PluginCrumbs } from '../parts/links.tsx';
import { LoadedPage } from '../parts/loaded-page.tsx';
import { Page } from '../parts/page.tsx';
import { notifyDone, notifyProblem } from '../parts/problem.tsx';
import { WhyButton } from '../parts/why-button.tsx';
import { PolicyWorkbench } from '../policy/workbench.tsx';
import { Section } from './review.tsx';

/** One command of messengers: the roles it asks for, and its policy. */
export default function CommandScreen() {
  const { t } = useTranslation();
  const queries = useQueryClient();
  const { id = '', name = '' } = useParams({ strict: false });
  const path = { id, cmd: name };
  const key = ['plugins', id, 'command', name];
  const query = useQuery({
    queryKey: key,
    queryFn: async () => {
      const reply = await api.GET('/api/admin/plugins/{id}/commands/{cmd}/settings', { params: { path } });
      return { settings: answered(reply), tag: tagOf(reply) };
    },
  });
  const done = async (): Promise<void> => {
    await queries.invalidateQueries({ queryKey: ['plugins', id] });
    notifyDone(t('access.saved', { trigger: name }));
  };
  const record = async (tag: string, on: boolean): Promise<void> => {
    answered(
      await api.PUT('/api/admin/plugins/{id}/commands/{cmd}/record', {
        params: { path, header: { 'If-Match': tag } },
        body: { record: on },
      }),
    );
    await done();
  };
  return (
    <LoadedPage query={query} title={`/${name}`} crumbs={<PluginCrumbs id={id} tab="access" />}>
      {({ settings, tag }) => (
        <Page
          title={`/${name}`}
          crumbs={<PluginCrumbs id={id} tab="access" />}
          about={settings.description}
          actions={<WhyButton search={{ plugin: id, command: name }} />}
        >
          <Roles
            settings={settings}
            save={async body => {
              answered(
                await api.PUT('/api/admin/plugins/{id}/commands/{cmd}/roles', {
                  params: { path, header: { 'If-Match': tag } },
                  body,
                }),
              );
              await done();
            }}
          />
          <Section title={t('access.policy')} about={t('policy.about')}>
            <PolicyWorkbench
              key={settings.policy_expression}
              plugin={id}
              trigger={name}
              name={key}
              saved={settings.policy_expression}
              problems={settings.policy_problems}
              save={async expression => {
                answered(
                  await api.PUT('/api/admin/plugins/{id}/commands/{cmd}/policy', {
                    params: { path, header: { 'If-Match': tag } },
                    body: { expression },
                  }),
                );
                await done();
              }}
              revisions={async cursor =>
                answered(
                  await api.GET('/api/admin/plugins/{id}/commands/{cmd}/policy/revisions', {
                    params: { path, query: { limit: 20, cursor } },
                  }),
                )
              }
              restore={async revision => {
                await api.POST('/api/admin/plugins/{id}/commands/{cmd}/policy/revisions/{revision}/restore', {
                  params: { path: { ...path, revision } },
                });
                await done();
              }}
            />
          </Section>
          <May need="access">
            <Section title={t('trigger.record')} about={t('command.recordAbout')}>
              <Switch
                checked={settings.record}
                label={t('command.recordSwitch')}
                onChange={event => void record(tag, event.currentTarget.checked).catch(notifyProblem)}
              />
            </Section>
          </May>
        </Page>
      )}
    </LoadedPage>
  );
}

type Wanted = { system_role: string | null; global_roles: string[]; plugin_role: string | null };

function Roles({ save, settings }: { settings: Schemas['CommandSettings']; save: (roles: Wanted) => Promise<void> }) {
  const { t } = useTranslation();
  const [system, setSystem] = useState(settings.system_role ?? '');
  const [global, setGlobal] = useState(settings.global_roles);
  const [own, setOwn] = useState(settings.plugin_role ?? '');
  const orNull = (text: string): string | null => (text.trim() === '' ? null : text.trim());
  return (
    <Section title={t('access.roles')} about={t('command.rolesAbout')}>
      <May need="access">
        <Stack maw={560}>
          <TextInput label={t('command.system')} value={system} onChange={e => setSystem(e.currentTarget.value)} />
          <TagsInput
            label={t('command.global')}
            description={t('command.globalAbout')}
            value={global}
            onChange={setGlobal}
          />
          <TextInput label={t('command.plugin')} value={own} onChange={e => setOwn(e.currentTarget.value)} />
          <Group>
            <Button
              onClick={() =>
                void save({ system_role: orNull(system), global_roles: global, plugin_role: orNull(own) }).catch(
                  notifyProblem,
                )
              }
            >
              {t('common.save')}
            </Button>
          </Group>
        </Stack>
      </May>
    </Section>
  );
}
