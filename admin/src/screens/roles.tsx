import { Alert, Anchor, Autocomplete, Button, Group, Stack, Tabs, Text } from '@mantine/core';
import { IconBadge, IconPlus } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import { ApiProblem } from '../api/problem.ts';
import { May, useRefusal } from '../app/may.tsx';
import { useOverlay, useSearchState } from '../app/use-search-state.ts';
import {
  type NamedRole,
  notifyGiven,
  ROLE_KINDS,
  type RoleKind,
  useChangeRole,
  useTakeRole,
} from '../parts/change-role.ts';
import { Details } from '../parts/details.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { Empty } from '../parts/empty.tsx';
import { KeysetTable, useKeyset } from '../parts/keyset-list.tsx';
import { LinkAnchor } from '../parts/links.tsx';
import { OriginBadge } from '../parts/origin-badge.tsx';
import { Page } from '../parts/page.tsx';
import { PluginPicker } from '../parts/plugin-picker.tsx';
import { ProblemAlert } from '../parts/problem.tsx';
import { RoleField } from '../parts/role-field.tsx';
import { When } from '../parts/time.tsx';
import { UserPicker } from '../parts/user-picker.tsx';
import { nameOf } from './people.tsx';

type Listed = Schemas['Role'];
type Holder = Schemas['RoleHolder'];

/** Every role that is used, of each kind, and who has it. */
export default function Roles() {
  const { t } = useTranslation();
  const [{ give, kind: asked, plugin, role }, setSearch] = useSearchState();
  const overlay = useOverlay('role', 'plugin');
  const kind = ROLE_KINDS.find(k => k === asked) ?? 'database';
  const list = useKeyset<Listed, { items: Listed[] }>(['roles', 'of-kind', kind], async () =>
    answered(await api.GET('/api/admin/roles', { params: { query: { kind } } })),
  );
  const opened: NamedRole | null = role === undefined ? null : { kind, role, plugin: plugin ?? null };
  const giveNew = (
    <May need="access" isInline>
      <Button leftSection={<IconPlus size={16} />} onClick={() => setSearch({ give: '1' })}>
        {t('roles.giveNew')}
      </Button>
    </May>
  );
  const mayGive = useRefusal()('access') === null;
  const stopGiving = (): void => setSearch({ give: undefined });
  return (
    <Page title={t('nav.roles')} about={t('roles.about')} actions={giveNew}>
      <Tabs
        value={kind}
        onChange={k => setSearch({ kind: k === null || k === 'database' ? undefined : k, role: undefined }, true)}
      >
        <Tabs.List aria-label={t('roles.kind')}>
          {ROLE_KINDS.map(k => (
            <Tabs.Tab key={k} value={k}>
              {t(`roles.kinds.${k}`)}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        <Tabs.Panel value={kind} pt="md">
          <KeysetTable
            label={t('nav.roles')}
            query={list}
            rowKey={r => `${r.plugin_id ?? ''} ${r.role}`}
            columns={[
              {
                key: 'role',
                title: t('roles.role'),
                cell: r => (
                  <div>
                    <Anchor
                      component="button"
                      type="button"
                      ff="monospace"
                      fw={500}
                      style={{ overflowWrap: 'anywhere', textAlign: 'left' }}
                      onClick={() => overlay.open({ role: r.role, plugin: r.plugin_id })}
                    >
                      {r.role}
                    </Anchor>
                    {r.plugin_id !== undefined && (
                      <Text size="xs" c="dimmed">
                        {r.plugin_id}
                      </Text>
                    )}
                  </div>
                ),
              },
              {
                key: 'from',
                title: t('personRoles.from'),
                from: 'sm',
                cell: r => r.imported && <Text size="sm">{t('roles.imported')}</Text>,
              },
              { key: 'holders', title: t('roles.holders'), align: 'right', cell: r => r.holders },
            ]}
            empty={<Empty icon={IconBadge} title={t('roles.emptyTitle')} text={t('roles.empty')} />}
          />
        </Tabs.Panel>
      </Tabs>
      <Details
        title={t(opened?.plugin == null ? 'roles.title' : 'roles.titleOfPlugin', { role, plugin })}
        isOpen={opened !== null}
        onClose={overlay.close}
      >
        {opened !== null && (
          <Stack>
            <GiveForm role={opened} />
            <Holders role={opened} />
          </Stack>
        )}
      </Details>
      <Dialog opened={give === '1' && mayGive} onClose={stopGiving} title={t('roles.giveNew')}>
        <GiveNewForm kind={kind} onDone={stopGiving} />
      </Dialog>
    </Page>
  );
}

/** Gives a role that is chosen to a person. */
function GiveForm({ onDone, role }: { role: NamedRole; onDone?: () => void }) {
  const { t } = useTranslation();
  const change = useChangeRole();
  const [user, setUser] = useState<number | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [isSending, setSending] = useState(false);
  // The graph knows people by the id of the university.
  const isStranger = role.kind !== 'database' && error instanceof ApiProblem && error.code === 'conflict';
  const isWhole = user !== null && role.role !== '' && (role.kind !== 'plugin' || role.plugin !== null);
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    if (user === null) return;
    setSending(true);
    setError(null);
    try {
      notifyGiven(t, role.role, await change(user, role, true));
      setUser(null);
      onDone?.();
    } catch (problem) {
      setError(problem);
    } finally {
      setSending(false);
    }
  };
  return (
    <form onSubmit={e => void submit(e)}>
      <May need="access">
        <Stack gap="xs">
          <UserPicker label={t('roles.giveTo')} value={user} onChange={setUser} />
          {isStranger ? (
            <Alert color="orange">{t('personRoles.needsExternalId')}</Alert>
          ) : (
            <ProblemAlert error={error} />
          )}
          <Group justify="flex-end">
            <Button type="submit" loading={isSending} disabled={!isWhole}>
              {t('personRoles.give')}
            </Button>
          </Group>
        </Stack>
      </May>
    </form>
  );
}

/** Gives a role that no person has to have yet. */
function GiveNewForm({ kind, onDone }: { kind: RoleKind; onDone: () => void }) {
  const { t } = useTranslation();
  const [role, setRole] = useState('');
  const [plugin, setPlugin] = useState<string | null>(null);
  return (
    <Stack>
      {kind === 'plugin' && <PluginPicker label={t('personRoles.plugin')} value={plugin} onChange={setPlugin} />}
      {kind === 'database' ? (
        <RoleField value={role} onChange={setRole} isRequired />
      ) : (
        <KnownRoleField kind={kind} value={role} onChange={setRole} />
      )}
      <GiveForm role={{ kind, plugin, role: role.trim() }} onDone={onDone} />
    </Stack>
  );
}

function KnownRoleField(props: { kind: RoleKind; value: string; onChange: (role: string) => void }) {
  const { kind, onChange, value } = props;
  const { t } = useTranslation();
  const known = useQuery({
    queryKey: ['roles', 'known', kind],
    queryFn: async () => answered(await api.GET('/api/admin/roles', { params: { query: { kind } } })).items,
  });
  return (
    <Autocomplete
      label={t('personRoles.role')}
      data={[...new Set((known.data ?? []).map(r => r.role))]}
      limit={20}
      value={value}
      onChange={onChange}
      required
    />
  );
}

function Holders({ role: r }: { role: NamedRole }) {
  const { t } = useTranslation();
  const take = useTakeRole();
  const of = r.plugin === null ? { kind: r.kind } : { kind: r.kind, plugin: r.plugin };
  const list = useKeyset<Holder, { items: Holder[] }>(['roles', 'holders', r.kind, r.plugin, r.role], async cursor =>
    answered(
      await api.GET('/api/admin/roles/{role}/users', {
        params: { path: { role: r.role }, query: { limit: 50, cursor, ...of } },
      }),
    ),
  );
  return (
    <KeysetTable
      label={t('roles.holders')}
      query={list}
      rowKey={h => h.user}
      columns={[
        {
          key: 'name',
          title: t('people.name'),
          cell: h => (
            <div>
              <LinkAnchor to="/admin/people/$user" params={{ user: String(h.user) }} size="sm">
                {nameOf({ ...h, id: h.user })}
              </LinkAnchor>
              <Text size="xs" c="dimmed" component="div">
                <When at={h.granted_at} />
                {h.granted_by !== null && h.origin === 'manual' && ` · ${h.granted_by}`}
              </Text>
            </div>
          ),
        },
        { key: 'from', title: t('personRoles.from'), from: 'xs', cell: h => <OriginBadge origin={h.origin} /> },
        {
          key: 'take',
          title: '',
          align: 'right',
          cell: h => (
            <May need="access" isInline>
              <Button
                size="compact-sm"
                variant="light"
                color="red"
                onClick={() => void take({ id: h.user, name: nameOf({ ...h, id: h.user }) }, r, h.origin)}
              >
                {t('personRoles.take')}
              </Button>
            </May>
          ),
        },
      ]}
      empty={<Text c="dimmed">{t('roles.noHolder')}</Text>}
    />
  );
}
