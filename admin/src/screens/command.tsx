import { Stack, Switch, TagsInput, TextInput } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas, tagOf } from '../api/client.ts';
import { NotConfirmed } from '../api/problem.ts';
import { confirmed } from '../api/questions.ts';
import { May } from '../app/may.tsx';
import { DraftBar } from '../parts/draft-bar.tsx';
import { PluginCrumbs } from '../parts/links.tsx';
import { LoadedPage } from '../parts/loaded-page.tsx';
import { Outdated } from '../parts/outdated.tsx';
import { Page } from '../parts/page.tsx';
import { memberText } from '../parts/problem.tsx';
import { useBusy } from '../parts/use-busy.ts';
import { useDraft } from '../parts/use-draft.ts';
import { useSettingsChange } from '../parts/use-settings-change.ts';
import { WhyButton } from '../parts/why-button.tsx';
import { PolicyWorkbench } from '../policy/workbench.tsx';
import { Section } from './review.tsx';

/** One command of messengers: the roles it asks for, and its policy. */
export default function CommandScreen() {
  const { t } = useTranslation();
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
  const { done, sent } = useSettingsChange(id);
  const saved = (what: string): Promise<void> => done(t('access.saved', { trigger: `/${name}`, what }));
  const [isBusy, begin] = useBusy();
  const change = (what: string, work: Promise<unknown>): Promise<void> => sent(work).then(() => saved(what));
  /** Asks before a change opens the command to everyone. @throws Error when it is not wanted */
  const assertMayOpen = async (before: Settings, after: Settings): Promise<void> => {
    const isOpened =
      before.enabled && !before.open_to_everyone && hasNoRole(after) && after.policy_expression.trim() === '';
    const question = {
      title: t('command.openTitle', { name }),
      text: t('command.openText', { name }),
      action: t('command.openGo'),
    };
    if (isOpened && !(await confirmed({ ...question, isDangerous: true })))
      throw new NotConfirmed(t('command.notSaved'));
  };
  const at = (tag: string) => ({ path, header: { 'If-Match': tag } });
  return (
    <LoadedPage key={key.join('/')} query={query} title={`/${name}`} crumbs={<PluginCrumbs id={id} tab="access" />}>
      {({ settings, tag }) => (
        <Page
          title={`/${name}`}
          crumbs={<PluginCrumbs id={id} tab="access" />}
          about={settings.description}
          actions={<WhyButton search={{ plugin: id, command: name }} />}
        >
          <RolesForm
            settings={settings}
            tag={tag}
            save={async (body, on) => {
              await assertMayOpen(settings, { ...settings, ...body });
              await change(
                t('access.roles'),
                api
                  .PUT('/api/admin/plugins/{id}/commands/{cmd}/roles', { params: at(on), body })
                  .then(reply => notifyWarnings(answered(reply).warnings)),
              );
            }}
          />
          <Section title={t('access.policy')} about={t('policy.about')}>
            <PolicyWorkbench
              plugin={id}
              trigger={name}
              name={key}
              saved={settings.policy_expression}
              tag={tag}
              problems={settings.policy_problems}
              save={async (expression, on) => {
                await assertMayOpen(settings, { ...settings, policy_expression: expression });
                await change(
                  memberText('policy_expression'),
                  api.PUT('/api/admin/plugins/{id}/commands/{cmd}/policy', { params: at(on), body: { expression } }),
                );
              }}
              revisions={async cursor =>
                answered(
                  await api.GET('/api/admin/plugins/{id}/commands/{cmd}/policy/revisions', {
                    params: { path, query: { limit: 20, cursor } },
                  }),
                )
              }
              restore={(revision, on) =>
                sent(
                  api.POST('/api/admin/plugins/{id}/commands/{cmd}/policy/revisions/{revision}/restore', {
                    params: { path: { ...path, revision }, header: { 'If-Match': on } },
                  }),
                )
              }
              reread={() => saved(memberText('policy_expression'))}
            />
          </Section>
          <May need="access">
            <Section title={t('trigger.record')} about={t('command.recordAbout')}>
              <Switch
                checked={settings.record}
                label={t('command.recordSwitch')}
                disabled={isBusy}
                onChange={event => {
                  const body = { record: event.currentTarget.checked };
                  const path = '/api/admin/plugins/{id}/commands/{cmd}/record';
                  begin(() => change(memberText('record'), api.PUT(path, { params: at(tag), body })));
                }}
              />
            </Section>
          </May>
        </Page>
      )}
    </LoadedPage>
  );
}

/** What may be odd about roles that were saved, such as that no user has one. */
function notifyWarnings(warnings: ReadonlyArray<{ message: string }>): void {
  if (warnings.length > 0)
    notifications.show({ color: 'orange', message: warnings.map(w => w.message).join(' '), autoClose: 15_000 });
}

const hasNoRole = (r: Roles): boolean =>
  r.system_role === null && r.plugin_role === null && r.global_roles.length === 0;

type Settings = Schemas['CommandSettings'];
type Roles = Pick<Schemas['CommandSettings'], 'system_role' | 'global_roles' | 'plugin_role'>;
const orNull = (text: string): string | null => (text.trim() === '' ? null : text.trim());
/** Roles as they are stored. */
const trimmed = (r: Roles): Roles => ({
  ...{ system_role: orNull(r.system_role ?? ''), plugin_role: orNull(r.plugin_role ?? '') },
  global_roles: r.global_roles,
});

function RolesForm(props: {
  settings: Schemas['CommandSettings'];
  tag: string;
  save: (roles: Roles, tag: string) => Promise<void>;
}) {
  const { save, settings, tag } = props;
  const { t } = useTranslation();
  const { global_roles, plugin_role, system_role } = settings;
  const edit = useDraft<Roles>({ system_role, plugin_role, global_roles }, tag);
  const { set, value } = edit;
  const wanted = trimmed(value);
  return (
    <Section title={t('access.roles')} about={t('command.rolesAbout')}>
      <May need="access">
        <Stack maw={560}>
          <TextInput
            label={t('command.system')}
            value={value.system_role ?? ''}
            onChange={e => set({ ...value, system_role: e.currentTarget.value || null })}
          />
          <TagsInput
            label={t('command.global')}
            description={t('command.globalAbout')}
            value={value.global_roles}
            onChange={roles => set({ ...value, global_roles: roles })}
          />
          <TextInput
            label={t('command.plugin')}
            value={value.plugin_role ?? ''}
            onChange={e => set({ ...value, plugin_role: e.currentTarget.value || null })}
          />
          <Outdated draft={edit}>
            <div>{`${t('command.system')}: ${system_role ?? '–'}`}</div>
            <div>{`${t('command.global')}: ${global_roles.join(', ') || '–'}`}</div>
            <div>{`${t('command.plugin')}: ${plugin_role ?? '–'}`}</div>
          </Outdated>
          <DraftBar draft={edit} value={wanted} send={save} />
        </Stack>
      </May>
    </Section>
  );
}
