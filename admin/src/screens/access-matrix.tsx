import { Code, Stack, Switch, Table, TagsInput, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas, tagOf } from '../api/client.ts';
import { AccessBadge } from '../parts/access-badge.tsx';
import { DraftBar } from '../parts/draft-bar.tsx';
import { LinkAnchor } from '../parts/links.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { Outdated } from '../parts/outdated.tsx';
import { UnheldRoles } from '../parts/role-field.tsx';
import { StateBadge } from '../parts/state-badge.tsx';
import { useDraft } from '../parts/use-draft.ts';
import { useSettingsChange } from '../parts/use-settings-change.ts';
import { useUndoableSwitch } from '../parts/use-undoable-switch.tsx';
import { Section } from './review.tsx';
import { RoleAccess } from './role-access.tsx';

type Settings = Schemas['TriggerSettings'];
/** Switches of a trigger, and their heads. */
const MEMBERS = {
  enabled: 'access.enabled',
  allow_user_session: 'access.users',
  allow_service_key: 'access.keys',
} as const;
type Member = keyof typeof MEMBERS;

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
                <RoleAccess
                  pluginId={plugin.id}
                  items={items}
                  commands={commands.data?.items.map(c => c.command) ?? []}
                />
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

/** Changes one member of the settings of a trigger. */
function useChangeTrigger(): (before: Settings, member: Member, value: boolean) => Promise<void> {
  const turn = useUndoableSwitch();
  const { t } = useTranslation();
  return ({ plugin_id, trigger }, member, value) => {
    const path = { id: plugin_id, name: trigger };
    const read = async () => {
      const reply = await api.GET('/api/admin/plugins/{id}/triggers/{name}/settings', { params: { path } });
      return { value: answered(reply)[member], tag: tagOf(reply) };
    };
    const send = async (to: boolean, tag: string): Promise<string> => {
      const params = { path, header: { 'If-Match': tag } };
      return tagOf(
        await api.PUT('/api/admin/plugins/{id}/triggers/{name}/settings', { params, body: { [member]: to } }),
      );
    };
    return turn({ plugin: plugin_id, name: trigger, member: t(MEMBERS[member]), read, send }, value);
  };
}

/** Enables or disables a command. */
function useChangeCommand(): (before: Schemas['CommandSettings'], value: boolean) => Promise<void> {
  const turn = useUndoableSwitch();
  const { t } = useTranslation();
  return ({ command, plugin_id }, value) => {
    const path = { id: plugin_id, cmd: command };
    const read = async () => {
      const reply = await api.GET('/api/admin/plugins/{id}/commands/{cmd}/settings', { params: { path } });
      return { value: answered(reply).enabled, tag: tagOf(reply) };
    };
    const send = async (enabled: boolean, tag: string): Promise<string> => {
      const params = { path, header: { 'If-Match': tag } };
      return tagOf(await api.PUT('/api/admin/plugins/{id}/commands/{cmd}/enabled', { params, body: { enabled } }));
    };
    return turn({ plugin: plugin_id, name: `/${command}`, member: t('access.enabled'), read, send }, value);
  };
}

function Triggers({ items }: { items: readonly Settings[] }) {
  const { t } = useTranslation();
  const change = useChangeTrigger();
  const flag = (s: Settings, member: Member) => (
    <Switch
      checked={s[member]}
      aria-label={`${s.trigger}: ${t(MEMBERS[member])}`}
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
              <Table.Td data-label={t('access.enabled')}>{flag(s, 'enabled')}</Table.Td>
              <Table.Td data-label={t('access.users')}>{flag(s, 'allow_user_session')}</Table.Td>
              <Table.Td data-label={t('access.keys')}>{flag(s, 'allow_service_key')}</Table.Td>
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
  const { done, sent } = useSettingsChange(id);
  const save = async (origins: string[], on: string): Promise<void> => {
    const params = { path: { id }, header: { 'If-Match': on } };
    await sent(api.PUT('/api/admin/plugins/{id}/origins', { params, body: { origins } }));
    await done(t('access.originsSaved'));
  };
  return (
    <Stack gap="xs">
      <Outdated draft={edit}>{saved.join(', ') || t('trigger.noOrigins')}</Outdated>
      <TagsInput
        aria-label={t('access.origins')}
        placeholder="https://www.example.org"
        value={edit.value}
        onChange={edit.set}
        maw={640}
      />
      <DraftBar draft={edit} send={save} />
    </Stack>
  );
}

function Commands({ items }: { items: ReadonlyArray<Schemas['CommandSettings']> }) {
  const { t } = useTranslation();
  const change = useChangeCommand();
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
                  onChange={e => void change(c, e.currentTarget.checked)}
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
