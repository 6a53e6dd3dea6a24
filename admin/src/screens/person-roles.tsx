import { Alert, Autocomplete, Button, Card, Group, Select, Stack, Table, Text } from '@mantine/core';
import { IconBadge } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import { ApiProblem } from '../api/problem.ts';
import { May } from '../app/may.tsx';
import {
  type NamedRole,
  notifyGiven,
  ROLE_KINDS,
  type RoleKind,
  useChangeRole,
  useTakeRole,
} from '../parts/change-role.ts';
import { Empty } from '../parts/empty.tsx';
import { LinkAnchor } from '../parts/links.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { OriginBadge } from '../parts/origin-badge.tsx';
import { PluginPicker } from '../parts/plugin-picker.tsx';
import { notifyDone, notifyProblem, ProblemAlert } from '../parts/problem.tsx';
import { RoleField } from '../parts/role-field.tsx';
import { When } from '../parts/time.tsx';
import { nameOf } from './people.tsx';

type User = Schemas['User'];
type Role = Schemas['UserRole'];

const namedOf = (r: Role): NamedRole => ({
  kind: r.kind,
  role: r.role,
  plugin: r.kind === 'plugin' ? r.plugin_id : null,
});

/** Roles of a person, those of policies and those of commands: given and taken. */
export default function PersonRoles({ person }: { person: User }) {
  const { t } = useTranslation();
  const query = useQuery({
    queryKey: ['users', 'roles', person.id],
    queryFn: async () =>
      answered(await api.GET('/api/admin/users/{user}/roles', { params: { path: { user: person.id } } })),
  });
  return (
    <Stack>
      <Text size="sm" c="dimmed" maw="48rem">
        {t('personRoles.about')}
      </Text>
      <GiveRole person={person} />
      <Loaded query={query}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty icon={IconBadge} title={t('personRoles.emptyTitle')} text={t('personRoles.empty')} />
          ) : (
            <Roles person={person} items={items} />
          )
        }
      </Loaded>
    </Stack>
  );
}

function Roles({ items, person }: { person: User; items: readonly Role[] }) {
  const { t } = useTranslation();
  const change = useChangeRole();
  const take = useTakeRole();
  const keep = async (r: Role): Promise<void> => {
    try {
      await change(person.id, namedOf(r), true);
      notifyDone(t('personRoles.kept', { role: r.role }));
    } catch (problem) {
      notifyProblem(problem);
    }
  };
  return (
    <Table.ScrollContainer tabIndex={0} minWidth={280} type="native">
      <Table verticalSpacing="xs" aria-label={t('person.tab.roles')} highlightOnHover className="stacked">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>{t('personRoles.role')}</Table.Th>
            <Table.Th visibleFrom="sm">{t('personRoles.from')}</Table.Th>
            <Table.Th visibleFrom="md">{t('personRoles.since')}</Table.Th>
            <Table.Th />
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {items.map(r => (
            <Table.Tr key={`${r.kind} ${r.kind === 'plugin' ? r.plugin_id : ''} ${r.role}`}>
              <Table.Td>
                <div>
                  <Text size="sm" fw={500} ff="monospace" style={{ overflowWrap: 'anywhere' }}>
                    {r.role}
                  </Text>
                  <Text size="xs" c="dimmed" component="div">
                    {t(`personRoles.kinds.${r.kind}`)}
                    {r.kind === 'plugin' && (
                      <>
                        {' '}
                        <LinkAnchor to="/admin/plugins/$id" params={{ id: r.plugin_id }} size="xs">
                          {r.plugin_id}
                        </LinkAnchor>
                      </>
                    )}
                  </Text>
                  <Group hiddenFrom="sm" mt={4}>
                    <OriginBadge origin={r.origin} />
                  </Group>
                </div>
              </Table.Td>
              <Table.Td visibleFrom="sm">
                <OriginBadge origin={r.origin} />
                {r.kind === 'database' && r.origin === 'manual' && (
                  <Text size="xs" c="dimmed">
                    {r.granted_by}
                  </Text>
                )}
              </Table.Td>
              <Table.Td visibleFrom="md">
                <When at={r.granted_at} />
              </Table.Td>
              <Table.Td>
                <Group gap={6} justify="flex-end">
                  {r.origin === 'import' && (
                    <May need="access" isInline>
                      <Button
                        size="compact-sm"
                        variant="subtle"
                        title={t('personRoles.keepAbout')}
                        aria-label={`${t('personRoles.keep')}: ${r.role}`}
                        onClick={() => void keep(r)}
                      >
                        {t('personRoles.keep')}
                      </Button>
                    </May>
                  )}
                  <May need="access" isInline>
                    <Button
                      size="compact-sm"
                      variant="light"
                      color="red"
                      aria-label={`${t('personRoles.take')}: ${r.role}`}
                      onClick={() => void take({ id: person.id, name: nameOf(person) }, namedOf(r), r.origin)}
                    >
                      {t('personRoles.take')}
                    </Button>
                  </May>
                </Group>
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}

/** Names of roles of a kind that are in use; a new one may be typed as well. */
function useKnownRoles(kind: RoleKind, plugin: string | null): string[] {
  const query = useQuery({
    queryKey: ['roles', kind, plugin],
    queryFn: async (): Promise<string[]> => {
      if (kind === 'plugin') {
        if (plugin === null) return [];
        const params = { path: { id: plugin } };
        const { items } = answered(await api.GET('/api/admin/plugins/{id}/commands/settings', { params }));
        return items.flatMap(c => c.plugin_role ?? []);
      }
      const params = { query: { resource_type: `${kind}_role`, relation: 'member', limit: 200 } };
      return answered(await api.GET('/api/admin/relationships', { params })).items.map(r => r.resource_id);
    },
    // Roles of policies have a field of their own.
    enabled: kind !== 'database',
  });
  return [...new Set(query.data ?? [])];
}

function GiveRole({ person }: { person: User }) {
  const { t } = useTranslation();
  const change = useChangeRole();
  const [kind, setKind] = useState<RoleKind>('database');
  const [plugin, setPlugin] = useState<string | null>(null);
  const [role, setRole] = useState('');
  const [error, setError] = useState<unknown>(null);
  const [isSending, setSending] = useState(false);
  const known = useKnownRoles(kind, plugin);
  const isGraph = kind !== 'database';
  const isImpossible = isGraph && person.external_id === null;
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setSending(true);
    setError(null);
    try {
      notifyGiven(t, role, await change(person.id, { kind, plugin, role: role.trim() }, true));
      setRole('');
    } catch (problem) {
      setError(problem);
    } finally {
      setSending(false);
    }
  };
  const wrong = error instanceof ApiProblem ? error.places.find(p => p.pointer === 'path:role')?.message : undefined;
  return (
    <Card withBorder component="form" onSubmit={e => void submit(e)}>
      <May need="access">
        <Stack gap="sm">
          <Group align="flex-end" gap="sm">
            <Select
              label={t('personRoles.kind')}
              data={ROLE_KINDS.map(k => ({ value: k, label: t(`personRoles.kinds.${k}`) }))}
              value={kind}
              onChange={k => setKind(ROLE_KINDS.find(x => x === k) ?? kind)}
              allowDeselect={false}
              w={{ base: '100%', xs: 190 }}
            />
            {kind === 'plugin' && <PluginPicker label={t('personRoles.plugin')} value={plugin} onChange={setPlugin} />}
            {kind === 'database' ? (
              <div style={{ flex: '1 1 14rem', maxWidth: 360 }}>
                <RoleField value={role} onChange={setRole} isRequired />
              </div>
            ) : (
              <Autocomplete
                label={t('personRoles.role')}
                placeholder={t('personRoles.roleAbout')}
                data={known}
                limit={20}
                value={role}
                onChange={setRole}
                required
                style={{ flex: '1 1 14rem' }}
                maw={360}
              />
            )}
            <Button
              type="submit"
              loading={isSending}
              disabled={isImpossible || role.trim() === '' || (kind === 'plugin' && plugin === null)}
            >
              {t('personRoles.give')}
            </Button>
          </Group>
          {isImpossible && <Alert color="orange">{t('personRoles.needsExternalId')}</Alert>}
          {error !== null && wrong === undefined && <ProblemAlert error={error} />}
          {wrong !== undefined && (
            <Text size="sm" c="var(--mantine-color-error)" role="alert">
              {t('personRoles.role')}: {wrong}
            </Text>
          )}
        </Stack>
      </May>
    </Card>
  );
}
