import { Badge, Group, Text } from '@mantine/core';
import { IconShieldLock } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import { May } from '../app/may.tsx';
import { useSession } from '../app/session.ts';
import { KeyEnd, KeyFacts } from '../parts/key-expiry.tsx';
import { KeyName } from '../parts/key-name.tsx';
import type { Column } from '../parts/keyset-list.tsx';
import { PersonAnchor } from '../parts/person-anchor.tsx';
import { RevokeKey } from '../parts/revoke-key.tsx';
import { When } from '../parts/time.tsx';
import { AdminKeyForm, AdminKeySecret, DEPLOY_ONE, SCOPES } from './admin-key-form.tsx';
import { KeysPage, OldSecret, RotateButton } from './keys-page.tsx';

type Key = Schemas['AdminKey'];
const LIST = ['admin-keys'] as const;

/** Keys with which programs administer: what each opens, made by whom, last used, until when. */
export default function AdminKeys() {
  const { t } = useTranslation();
  return (
    <KeysPage
      list={LIST}
      load={async cursor => answered(await api.GET('/api/admin/keys', { params: { query: { limit: 50, cursor } } }))}
      texts={{
        title: t('nav.keys'),
        about: t('adminKeys.about'),
        make: t('adminKeys.make'),
        makeTitle: t('adminKeys.title'),
        emptyTitle: t('adminKeys.emptyTitle'),
        empty: t('adminKeys.empty'),
      }}
      icon={IconShieldLock}
      need="owner"
      columns={useColumns()}
      form={(onDone, onMade) => <AdminKeyForm onDone={onDone} onMade={onMade} />}
      rotate={async ({ id }, body) =>
        answered(await api.POST('/api/admin/keys/{key}/rotate', { params: { path: { key: id } }, body }))
      }
      secretOf={(made, ofOld, onDone) => (
        <AdminKeySecret made={made} onDone={onDone}>
          {ofOld}
        </AdminKeySecret>
      )}
    />
  );
}

/** Names of administrators by their ids; of very many only the newest. */
function useAdminNames(): ReadonlyMap<number, string> {
  const query = useQuery({
    queryKey: ['admins', 'names'],
    queryFn: async () => answered(await api.GET('/api/admin/admins', { params: { query: { limit: 200 } } })),
  });
  return new Map(query.data?.items.map(a => [a.global_user_id, a.display_name || a.email]));
}

function useColumns(): (rotate: (key: Key) => void) => ReadonlyArray<Column<Key>> {
  const { t } = useTranslation();
  const own = useSession().data?.admin?.global_user_id;
  const names = useAdminNames();
  return rotate => [
    {
      key: 'name',
      title: t('keys.name'),
      cell: k => (
        <KeyName of={k}>
          <Group hiddenFrom="sm" mt={4}>
            <Scopes scopes={k.scopes} />
          </Group>
          <KeyFacts used={k.last_used_at} ends={k.expires_at} by={names.get(k.made_by)} />
          <OldSecret of={k} />
        </KeyName>
      ),
    },
    { key: 'scopes', title: t('keys.scopes'), from: 'sm', cell: k => <Scopes scopes={k.scopes} /> },
    {
      key: 'by',
      title: t('adminKeys.madeBy'),
      from: 'md',
      cell: k => (
        <>
          <PersonAnchor user={k.made_by} size="sm" underline="always">
            {names.get(k.made_by) ?? `#${k.made_by}`}
          </PersonAnchor>
          {own === k.made_by && (
            <Text span size="sm" c="dimmed">
              {' '}
              ({t('admins.you')})
            </Text>
          )}
        </>
      ),
    },
    { key: 'used', title: t('keys.lastUsed'), from: 'md', cell: k => <When at={k.last_used_at} /> },
    { key: 'ends', title: t('keys.ends'), from: 'md', cell: k => <KeyEnd at={k.expires_at} /> },
    {
      key: 'actions',
      title: '',
      align: 'right',
      cell: k => (
        <Group gap={6} justify="flex-end">
          {own === k.made_by && (
            <May need="owner" isInline>
              <RotateButton name={k.name} onRotate={() => rotate(k)} />
            </May>
          )}
          <May need="admin" isInline>
            <RevokeKey
              name={k.name}
              question={{ title: t('adminKeys.revokeTitle'), text: t('adminKeys.revokeText', { name: k.name }) }}
              done={t('keys.revoked', { name: k.name })}
              list={LIST}
              revoke={() => api.DELETE('/api/admin/keys/{key}', { params: { path: { key: k.id } } })}
            />
          </May>
        </Group>
      ),
    },
  ];
}

const WRAPPED = { label: { whiteSpace: 'normal', textAlign: 'left' } } as const;

/** Scopes in words, with the plugins of those that are limited. */
function Scopes({ scopes }: { scopes: readonly string[] }) {
  const { t } = useTranslation();
  const wordsOf = (scope: string): string => {
    if (scope.startsWith(DEPLOY_ONE)) return t('adminKeys.scopeDeployOne', { plugin: scope.slice(DEPLOY_ONE.length) });
    const known = SCOPES.find(s => s.scope === scope);
    return known === undefined ? scope : t(`adminKeys.scope.${known.text}.title`);
  };
  return (
    <Group gap={4}>
      {scopes.map(s => (
        <Badge
          key={s}
          variant="light"
          tt="none"
          color={s === 'admin' ? 'orange' : 'gray'}
          title={s}
          h="auto"
          styles={WRAPPED}
        >
          {wordsOf(s)}
        </Badge>
      ))}
    </Group>
  );
}
