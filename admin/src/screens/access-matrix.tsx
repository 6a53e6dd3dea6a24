import { Button, Code, Group, Stack, Switch, Table, TagsInput, Text } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useRef } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas, tagOf } from '../api/client.ts';
import { ApiProblem } from '../api/problem.ts';
import { AccessBadge } from '../parts/access-badge.tsx';
import { LinkAnchor } from '../parts/links.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { Outdated } from '../parts/outdated.tsx';
import { memberText, notifyProblem } from '../parts/problem.tsx';
import { UnheldRoles } from '../parts/role-field.tsx';
import { StateBadge } from '../parts/state-badge.tsx';
import { useDraft } from '../parts/use-draft.ts';
import { useSettingsChange } from '../parts/use-settings-change.ts';
import { Section } from './review.tsx';
import { RoleAccess } from './role-access.tsx';

type Settings = Schemas['TriggerSettings'];
type Member = 'enabled' | 'allow_user_session' | 'allow_service_key';

/** Long enough to get there with the keyboard. */
const UNDO_MS = 20_000;

/** Who may call what: a row for each trigger and command, changed where it stands, and taken back with one click. */
export default function AccessMatrix({ plugin }: { plugin: Schemas['Plugin'] }) {
  const { t } = useTranslation();
  const triggers = useQuery({
    queryKey: ['plugins', plugin.id, 'triggers'],
    queryFn: async () =>
      answered(await api.GET('/api/admin/plugins/{id}/triggers', { params: { path: { id: plugin.id } } })),
  });
  const commands = useQuery({
    queryKey: ['plugins', plugin.id, 'commands'],
    queryFn: async () =>
      answered(await api.GET('/api/admin/plugins/{id}/commands/settings', { params: { path: { id: plugin.id } } })),
  });
  return (
    <Stack gap="xl">
      <Section title={t('access.triggers')} about={t('access.triggersAbout')}>
        <Loaded query={triggers}>
          {({ items }) =>
            items.length === 0 ? (
              <Text size="sm">{t('access.noTriggers')}</Text>
            ) : (
              <Stack>
                <Triggers items={items} />
                <UnheldRoles policies={items.map(s => s.policy_expression)} />
                <RoleAccess pluginId={plugin.id} items={items} />
              </Stack>
            )
          }
        </Loaded>
      </Section>
      <Origins key={plugin.id} id={plugin.id} />
      <Section title={t('access.commands')} about={t('access.commandsAbout')}>
        <Loaded query={commands}>
          {({ items }) =>
            items.length === 0 ? <Text size="sm">{t('access.noCommands')}</Text> : <Commands items={items} />
          }
        </Loaded>
      </Section>
    </Stack>
  );
}

/** Sends a change of one member; what it brought is shown with the way back. */
function useChangeTrigger(): (before: Settings, member: Member, value: boolean) => Promise<void> {
  const { t } = useTranslation();
  const queries = useQueryClient();
  const shown = useRef('');
  const last = useRef(new Map<string, Promise<void>>());
  const change = async ({ plugin_id, trigger }: Settings, member: Member, value: boolean): Promise<void> => {
    const path = { id: plugin_id, name: trigger };
    const readAgain = (): Promise<void> => queries.invalidateQueries({ queryKey: ['plugins', plugin_id] });
    /** @returns the tag of the settings as they are then */
    const send = async (to: boolean, tag: string): Promise<string> => {
      const reply = await api.PUT('/api/admin/plugins/{id}/triggers/{name}/settings', {
        params: { path, header: { 'If-Match': tag } },
        body: { [member]: to },
      });
      answered(reply);
      return tagOf(reply);
    };
    /** What another administrator has changed since may make it mean something else. */
    const undo = (tag: string): void => {
      notifications.hide(shown.current);
      send(!value, tag)
        .catch((problem: unknown) => {
          if (!(problem instanceof ApiProblem) || problem.code !== 'precondition_failed') return notifyProblem(problem);
          const members = problem.changed.map(memberText).join(', ');
          notifications.show({
            color: 'red',
            message: t('access.notUndone', { trigger, members }),
            autoClose: UNDO_MS,
          });
        })
        .finally(readAgain);
    };
    try {
      const now = await api.GET('/api/admin/plugins/{id}/triggers/{name}/settings', { params: { path } });
      // Another administrator did the same: there is nothing of one's own to take back.
      if (answered(now)[member] === value) return await readAgain();
      const tag = await send(value, tagOf(now));
      await readAgain();
      notifications.hide(shown.current);
      const id = `undo ${plugin_id} ${trigger} ${tag}`;
      shown.current = id;
      let isUndone = false;
      notifications.show({
        id,
        color: 'teal',
        autoClose: UNDO_MS,
        message: (
          <Group justify="space-between" wrap="nowrap">
            <Text size="sm">{t('access.saved', { trigger })}</Text>
            <Button
              size="compact-sm"
              variant="light"
              onClick={() => {
                // It can be clicked while it fades out.
                if (!isUndone) undo(tag);
                isUndone = true;
              }}
            >
              {t('common.undo')}
            </Button>
          </Group>
        ),
      });
    } catch (problem) {
      notifyProblem(problem);
    }
  };
  // One after the other, so that the next one finds the tag that the one before has left.
  return (before, member, value) => {
    const { trigger } = before;
    const next = (last.current.get(trigger) ?? Promise.resolve()).then(() => change(before, member, value));
    last.current.set(trigger, next);
    return next;
  };
}

function Triggers({ items }: { items: readonly Settings[] }) {
  const { t } = useTranslation();
  const change = useChangeTrigger();
  const flag = (s: Settings, member: Member, label: string) => (
    <Switch
      checked={s[member]}
      aria-label={`${s.trigger}: ${label}`}
      onChange={e => void change(s, member, e.currentTarget.checked)}
    />
  );
  return (
    <Table.ScrollContainer tabIndex={0} minWidth={280} type="native">
      <Table verticalSpacing="sm" horizontalSpacing={6} aria-label={t('access.triggers')} className="stacked">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>{t('access.trigger')}</Table.Th>
            <Table.Th>{t('access.who')}</Table.Th>
            <Table.Th>{t('access.enabled')}</Table.Th>
            <Table.Th>{t('access.users')}</Table.Th>
            <Table.Th>{t('access.keys')}</Table.Th>
            <Table.Th>{t('access.policy')}</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {items.map(s => (
            <Table.Tr key={s.trigger}>
              <Table.Td>
                <div>
                  <LinkAnchor
                    to="/admin/plugins/$id/triggers/$name"
                    params={{ id: s.plugin_id, name: s.trigger }}
                    fw={500}
                  >
                    {s.trigger}
                  </LinkAnchor>
                  <Text size="xs" c="dimmed" ff="monospace">
                    {s.methods.join(', ')} {s.path}
                  </Text>
                </div>
              </Table.Td>
              <Table.Td data-label={t('access.who')}>
                <div>
                  <AccessBadge access={s.effective_access} hasPolicy={s.policy_expression !== ''} />
                  {s.frontend_origins !== null && (
                    <Text size="xs" c="dimmed">
                      {t('access.ownOrigins', { count: s.frontend_origins.length })}
                    </Text>
                  )}
                </div>
              </Table.Td>
              <Table.Td data-label={t('access.enabled')}>{flag(s, 'enabled', t('access.enabled'))}</Table.Td>
              <Table.Td data-label={t('access.users')}>{flag(s, 'allow_user_session', t('access.users'))}</Table.Td>
              <Table.Td data-label={t('access.keys')}>{flag(s, 'allow_service_key', t('access.keys'))}</Table.Td>
              <Table.Td maw={260} data-label={t('access.policy')}>
                <PolicyCell
                  expression={s.policy_expression}
                  isBroken={s.policy_problems.length > 0}
                  to="/admin/plugins/$id/triggers/$name"
                  params={{ id: s.plugin_id, name: s.trigger }}
                />
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}

function PolicyCell(props: {
  expression: string;
  isBroken: boolean;
  to: '/admin/plugins/$id/triggers/$name' | '/admin/plugins/$id/commands/$name';
  params: { id: string; name: string };
}) {
  const { expression, isBroken, params, to } = props;
  const { t } = useTranslation();
  return (
    <Stack gap={4} align="flex-start">
      {expression !== '' && (
        <Code
          style={{
            display: '-webkit-box',
            WebkitBoxOrient: 'vertical',
            WebkitLineClamp: 2,
            overflow: 'hidden',
            overflowWrap: 'anywhere',
          }}
          title={expression}
        >
          {expression}
        </Code>
      )}
      {isBroken && <StateBadge kind="bad" label={t('access.broken')} />}
      <LinkAnchor to={to} params={params} size="sm">
        {t(expression === '' ? 'access.addPolicy' : 'access.editPolicy')}
      </LinkAnchor>
    </Stack>
  );
}

/** Origins that every trigger inherits. */
function Origins({ id }: { id: string }) {
  const { t } = useTranslation();
  const query = useQuery({
    queryKey: ['plugins', id, 'origins'],
    queryFn: async () => {
      const reply = await api.GET('/api/admin/plugins/{id}', { params: { path: { id } } });
      return { origins: answered(reply).frontend_origins, tag: tagOf(reply) };
    },
  });
  return (
    <Section title={t('access.origins')} about={t('access.originsAbout')}>
      <Loaded query={query}>{read => <OriginsForm id={id} saved={read.origins} tag={read.tag} />}</Loaded>
    </Section>
  );
}

function OriginsForm({ id, saved, tag }: { id: string; saved: readonly string[]; tag: string }) {
  const { t } = useTranslation();
  const edit = useDraft([...saved], tag);
  const { done, sent } = useSettingsChange(id, t('access.originsSaved'));
  const save = async (origins: string[], on: string): Promise<void> => {
    const params = { path: { id }, header: { 'If-Match': on } };
    await sent(api.PUT('/api/admin/plugins/{id}/origins', { params, body: { origins } }));
    await done();
  };
  return (
    <Stack gap="xs">
      <Outdated draft={edit}>{saved.join(', ') || t('trigger.noOrigins')}</Outdated>
      <Group align="flex-end">
        <TagsInput
          aria-label={t('access.origins')}
          placeholder="https://www.example.org"
          value={edit.value}
          onChange={edit.set}
          style={{ flex: '1 1 20rem' }}
          maw={640}
        />
        <Button
          onClick={() => void edit.save(edit.value, save).catch(notifyProblem)}
          disabled={!edit.isChanged || edit.isOutdated}
        >
          {t('common.save')}
        </Button>
      </Group>
    </Stack>
  );
}

function Commands({ items }: { items: ReadonlyArray<Schemas['CommandSettings']> }) {
  const { t } = useTranslation();
  const queries = useQueryClient();
  const turn = async (c: Schemas['CommandSettings'], enabled: boolean): Promise<void> => {
    try {
      const params = { path: { id: c.plugin_id, cmd: c.command } };
      answered(await api.PUT('/api/admin/plugins/{id}/commands/{cmd}/enabled', { params, body: { enabled } }));
      await queries.invalidateQueries({ queryKey: ['plugins', c.plugin_id] });
    } catch (problem) {
      notifyProblem(problem);
    }
  };
  const rolesOf = (c: Schemas['CommandSettings']): string =>
    [c.system_role, ...c.global_roles, c.plugin_role].filter(r => r !== null).join(', ');
  return (
    <Table.ScrollContainer tabIndex={0} minWidth={280} type="native">
      <Table verticalSpacing="sm" horizontalSpacing={6} aria-label={t('access.commands')} className="stacked">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>{t('access.command')}</Table.Th>
            <Table.Th>{t('access.who')}</Table.Th>
            <Table.Th>{t('access.enabled')}</Table.Th>
            <Table.Th>{t('access.roles')}</Table.Th>
            <Table.Th>{t('access.policy')}</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {items.map(c => (
            <Table.Tr key={c.command}>
              <Table.Td>
                <div>
                  <LinkAnchor
                    to="/admin/plugins/$id/commands/$name"
                    params={{ id: c.plugin_id, name: c.command }}
                    fw={500}
                  >
                    /{c.command}
                  </LinkAnchor>
                  <Text size="xs" c="dimmed">
                    {c.description}
                  </Text>
                </div>
              </Table.Td>
              <Table.Td data-label={t('access.who')}>
                {!c.enabled ? (
                  <StateBadge kind="off" label={t('access.effective.disabled')} />
                ) : c.open_to_everyone ? (
                  <StateBadge kind="open" label={t('access.everyone')} />
                ) : (
                  <StateBadge kind="closed" label={t('access.restricted')} />
                )}
              </Table.Td>
              <Table.Td data-label={t('access.enabled')}>
                <Switch
                  checked={c.enabled}
                  aria-label={`${c.command}: ${t('access.enabled')}`}
                  onChange={e => void turn(c, e.currentTarget.checked)}
                />
              </Table.Td>
              <Table.Td data-label={t('access.roles')}>{rolesOf(c) || '–'}</Table.Td>
              <Table.Td maw={260} data-label={t('access.policy')}>
                <PolicyCell
                  expression={c.policy_expression}
                  isBroken={c.policy_problems.length > 0}
                  to="/admin/plugins/$id/commands/$name"
                  params={{ id: c.plugin_id, name: c.command }}
                />
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}
