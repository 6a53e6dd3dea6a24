import { Button, Group, Stack, Switch, TagsInput, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas, tagOf } from '../api/client.ts';
import { May } from '../app/may.tsx';
import { AccessBadge } from '../parts/access-badge.tsx';
import { CopyText } from '../parts/copy.tsx';
import { DraftBar } from '../parts/draft-bar.tsx';
import { LinkButton, PluginCrumbs } from '../parts/links.tsx';
import { LoadedPage } from '../parts/loaded-page.tsx';
import { Outdated } from '../parts/outdated.tsx';
import { Page } from '../parts/page.tsx';
import { memberText } from '../parts/problem.tsx';
import { useBusy } from '../parts/use-busy.ts';
import { useDraft } from '../parts/use-draft.ts';
import { useSettingsChange } from '../parts/use-settings-change.ts';
import { WhyButton } from '../parts/why-button.tsx';
import { PolicyWorkbench } from '../policy/workbench.tsx';
import { Activity } from './activity.tsx';
import { Section } from './review.tsx';

type Settings = Schemas['TriggerSettings'];

/** One HTTP trigger: its policy, and origins of its own. */
export default function TriggerScreen() {
  const { t } = useTranslation();
  const { id = '', name = '' } = useParams({ strict: false });
  const path = { id, name };
  const key = ['plugins', id, 'trigger', name];
  const query = useQuery({
    queryKey: key,
    queryFn: async () => {
      const reply = await api.GET('/api/admin/plugins/{id}/triggers/{name}/settings', { params: { path } });
      return { settings: answered(reply), tag: tagOf(reply) };
    },
  });
  const { done, sent } = useSettingsChange(id);
  const saved = (member: string): Promise<void> => done(t('access.saved', { trigger: name, what: memberText(member) }));
  const at = (tag: string) => ({ path, header: { 'If-Match': tag } });
  const [isBusy, begin] = useBusy();
  const change = async (
    tag: string,
    body: Partial<Pick<Settings, 'policy_expression' | 'frontend_origins' | 'record'>>,
  ): Promise<void> => {
    await sent(api.PUT('/api/admin/plugins/{id}/triggers/{name}/settings', { params: at(tag), body }));
    await saved(Object.keys(body)[0] ?? '');
  };
  return (
    <LoadedPage key={key.join('/')} query={query} title={name} crumbs={<PluginCrumbs id={id} tab="access" />}>
      {({ settings, tag }) => (
        <Page
          title={name}
          crumbs={<PluginCrumbs id={id} tab="access" />}
          about={
            <Group gap="xs" mt={4}>
              <AccessBadge access={settings.effective_access} hasPolicy={settings.policy_expression !== ''} />
              <CopyText value={`${location.origin}/api/triggers/http/${id}${settings.path}`} />
            </Group>
          }
          actions={
            <>
              <LinkButton
                variant="default"
                to="/admin/plugins/$id"
                params={{ id }}
                search={{ tab: 'executions', trigger: name }}
              >
                {t('nav.executions')}
              </LinkButton>
              <WhyButton search={{ plugin: id, trigger: name }} />
            </>
          }
        >
          <Section title={t('access.policy')} about={t('policy.about')}>
            <PolicyWorkbench
              plugin={id}
              trigger={name}
              name={key}
              saved={settings.policy_expression}
              tag={tag}
              problems={settings.policy_problems}
              save={(policy_expression, on) => change(on, { policy_expression })}
              revisions={async cursor =>
                answered(
                  await api.GET('/api/admin/plugins/{id}/triggers/{name}/policy/revisions', {
                    params: { path, query: { limit: 20, cursor } },
                  }),
                )
              }
              restore={(revision, on) =>
                sent(
                  api.POST('/api/admin/plugins/{id}/triggers/{name}/policy/revisions/{revision}/restore', {
                    params: { path: { ...path, revision }, header: { 'If-Match': on } },
                  }),
                )
              }
              reread={() => saved('policy_expression')}
            />
          </Section>
          <Activity plugin={id} trigger={name} />
          <May need="access">
            <OwnOrigins
              settings={settings}
              tag={tag}
              save={(frontend_origins, on) => change(on, { frontend_origins })}
            />
            <Section title={t('trigger.record')} about={t('trigger.recordAbout')}>
              <Switch
                checked={settings.record}
                label={t('trigger.recordSwitch')}
                disabled={isBusy}
                onChange={event => {
                  const record = event.currentTarget.checked;
                  begin(() => change(tag, { record }));
                }}
              />
            </Section>
          </May>
        </Page>
      )}
    </LoadedPage>
  );
}

/** Origins of this trigger alone, instead of the plugin's. */
function OwnOrigins(props: {
  settings: Settings;
  tag: string;
  save: (origins: string[] | null, tag: string) => Promise<void>;
}) {
  const { save, settings } = props;
  const { t } = useTranslation();
  const edit = useDraft(settings.frontend_origins, props.tag);
  const { set: setOrigins, value: origins } = edit;
  const effective = settings.effective_origins.join(', ') || t('trigger.noOrigins');
  const inherited = t('trigger.inherited', { origins: effective });
  return (
    <Section title={t('access.origins')} about={t('trigger.originsAbout')}>
      {origins === null ? (
        <Stack gap="xs" align="flex-start">
          <Text size="sm">{inherited}</Text>
          <Button variant="default" onClick={() => setOrigins(settings.effective_origins)}>
            {t('trigger.own')}
          </Button>
        </Stack>
      ) : (
        <Stack gap="xs" maw={640}>
          <TagsInput
            aria-label={t('access.origins')}
            placeholder="https://www.example.org"
            value={origins}
            onChange={setOrigins}
          />
          <Outdated draft={edit}>{settings.frontend_origins === null ? inherited : effective}</Outdated>
          <DraftBar
            draft={edit}
            send={save}
            more={(saveNow, isOff) =>
              settings.frontend_origins !== null && (
                <Button variant="default" disabled={isOff} onClick={() => saveNow(null)}>
                  {t('trigger.inherit')}
                </Button>
              )
            }
          />
        </Stack>
      )}
    </Section>
  );
}
