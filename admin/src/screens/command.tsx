import { Button, Group, Stack, Switch, TagsInput, TextInput } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas, tagOf } from '../api/client.ts';
import { May } from '../app/may.tsx';
import { PluginCrumbs } from '../parts/links.tsx';
import { LoadedPage } from '../parts/loaded-page.tsx';
import { Outdated } from '../parts/outdated.tsx';
import { Page } from '../parts/page.tsx';
import { notifyDone, notifyProblem } from '../parts/problem.tsx';
import { useDraft } from '../parts/use-draft.ts';
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
  const done = async (work: Promise<unknown>): Promise<void> => {
    try {
      await work;
    } finally {
      // After a refusal too: another administrator may have saved something else.
      await queries.invalidateQueries({ queryKey: ['plugins', id] });
    }
    notifyDone(t('access.saved', { trigger: name }));
  };
  const at = (tag: string) => ({ path, header: { 'If-Match': tag } });
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
            tag={tag}
            save={(body, on) => done(api.PUT('/api/admin/plugins/{id}/commands/{cmd}/roles', { params: at(on), body }))}
          />
          <Section title={t('access.policy')} about={t('policy.about')}>
            <PolicyWorkbench
              plugin={id}
              trigger={name}
              name={key}
              saved={settings.policy_expression}
              tag={tag}
              problems={settings.policy_problems}
              save={(expression, on) =>
                done(api.PUT('/api/admin/plugins/{id}/commands/{cmd}/policy', { params: at(on), body: { expression } }))
              }
              revisions={async cursor =>
                answered(
                  await api.GET('/api/admin/plugins/{id}/commands/{cmd}/policy/revisions', {
                    params: { path, query: { limit: 20, cursor } },
                  }),
                )
              }
              restore={revision =>
                done(
                  api.POST('/api/admin/plugins/{id}/commands/{cmd}/policy/revisions/{revision}/restore', {
                    params: { path: { ...path, revision } },
                  }),
                )
              }
            />
          </Section>
          <May need="access">
            <Section title={t('trigger.record')} about={t('command.recordAbout')}>
              <Switch
                checked={settings.record}
                label={t('command.recordSwitch')}
                onChange={event =>
                  void done(
                    api.PUT('/api/admin/plugins/{id}/commands/{cmd}/record', {
                      params: at(tag),
                      body: { record: event.currentTarget.checked },
                    }),
                  ).catch(notifyProblem)
                }
              />
            </Section>
          </May>
        </Page>
      )}
    </LoadedPage>
  );
}

type Wanted = { system_role: string | null; global_roles: string[]; plugin_role: string | null };
const orNull = (text: string): string | null => (text.trim() === '' ? null : text.trim());

function Roles(props: {
  settings: Schemas['CommandSettings'];
  tag: string;
  save: (roles: Wanted, tag: string) => Promise<void>;
}) {
  const { save, settings, tag } = props;
  const { t } = useTranslation();
  const saved = {
    system: settings.system_role ?? '',
    global: settings.global_roles,
    own: settings.plugin_role ?? '',
  };
  const edit = useDraft(saved, tag);
  const { set, value } = edit;
  const roles = { system_role: orNull(value.system), global_roles: value.global, plugin_role: orNull(value.own) };
  return (
    <Section title={t('access.roles')} about={t('command.rolesAbout')}>
      <May need="access">
        <Stack maw={560}>
          <TextInput
            label={t('command.system')}
            value={value.system}
            onChange={e => set({ ...value, system: e.currentTarget.value })}
          />
          <TagsInput
            label={t('command.global')}
            description={t('command.globalAbout')}
            value={value.global}
            onChange={global => set({ ...value, global })}
          />
          <TextInput
            label={t('command.plugin')}
            value={value.own}
            onChange={e => set({ ...value, own: e.currentTarget.value })}
          />
          <Outdated draft={edit}>
            {[saved.system, ...saved.global, saved.own].filter(r => r !== '').join(', ') || t('outdated.nothing')}
          </Outdated>
          <Group>
            <Button disabled={edit.isOutdated} onClick={() => void save(roles, edit.tag).catch(notifyProblem)}>
              {t('common.save')}
            </Button>
          </Group>
        </Stack>
      </May>
    </Section>
  );
}
