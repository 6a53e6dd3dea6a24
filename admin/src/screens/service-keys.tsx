import { Badge, Group, Stack, Text } from '@mantine/core';
import { IconKey } from '@tabler/icons-react';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import { May } from '../app/may.tsx';
import { KeyEnd, KeyFacts } from '../parts/key-expiry.tsx';
import { KeyName } from '../parts/key-name.tsx';
import type { Column } from '../parts/keyset-list.tsx';
import { LinkAnchor } from '../parts/links.tsx';
import { RevokeKey } from '../parts/revoke-key.tsx';
import { When } from '../parts/time.tsx';
import { KeysPage, OldSecret, RotateButton } from './keys-page.tsx';
import { ServiceKeyForm } from './service-key-form.tsx';
import { ServiceKeySecret } from './service-key-secret.tsx';

type Key = Schemas['ServiceKey'];
const LIST = ['service-keys'] as const;

export const ALL_TRIGGERS = '*';

/** Keys with which other systems call triggers. */
export default function ServiceKeys() {
  const { t } = useTranslation();
  return (
    <KeysPage
      list={LIST}
      load={async cursor =>
        answered(await api.GET('/api/admin/service-keys', { params: { query: { limit: 50, cursor } } }))
      }
      texts={{
        title: t('nav.serviceKeys'),
        about: t('serviceKeys.about'),
        make: t('serviceKeys.make'),
        makeTitle: t('serviceKeys.title'),
        emptyTitle: t('serviceKeys.emptyTitle'),
        empty: t('serviceKeys.empty'),
      }}
      icon={IconKey}
      need="admin"
      columns={useColumns()}
      form={(onDone, onMade) => <ServiceKeyForm onDone={onDone} onMade={onMade} />}
      rotate={async ({ id }, body) =>
        answered(await api.POST('/api/admin/service-keys/{key}/rotate', { params: { path: { key: id } }, body }))
      }
      secretOf={(made, ofOld, onDone) => (
        <ServiceKeySecret made={made} onDone={onDone}>
          {ofOld}
        </ServiceKeySecret>
      )}
    />
  );
}

function useColumns(): (rotate: (key: Key) => void) => ReadonlyArray<Column<Key>> {
  const { t } = useTranslation();
  return rotate => [
    {
      key: 'name',
      title: t('keys.name'),
      cell: k => (
        <KeyName of={k} principal={`service:${k.id}`}>
          <Group hiddenFrom="sm" mt={4}>
            <Scopes scopes={k.scopes} />
          </Group>
          <KeyFacts used={k.last_used_at} ends={k.expires_at} />
          <OldSecret of={k} hiddenFrom="lg" />
        </KeyName>
      ),
    },
    { key: 'scopes', title: t('keys.scopes'), from: 'sm', cell: k => <Scopes scopes={k.scopes} /> },
    { key: 'used', title: t('keys.lastUsed'), from: 'md', cell: k => <When at={k.last_used_at} /> },
    {
      key: 'rotated',
      title: t('serviceKeys.rotated'),
      from: 'lg',
      cell: k => (
        <div>
          <When at={k.rotated_at ?? k.created_at} />
          <OldSecret of={k} />
        </div>
      ),
    },
    { key: 'ends', title: t('keys.ends'), from: 'md', cell: k => <KeyEnd at={k.expires_at} /> },
    {
      key: 'actions',
      title: '',
      align: 'right',
      cell: k => (
        <May need="admin" isInline>
          <Group gap={6} justify="flex-end">
            <RotateButton name={k.name} onRotate={() => rotate(k)} />
            <RevokeKey
              name={k.name}
              question={{ title: t('serviceKeys.revokeTitle'), text: t('serviceKeys.revokeText', { name: k.name }) }}
              done={t('keys.revoked', { name: k.name })}
              list={LIST}
              revoke={() => api.DELETE('/api/admin/service-keys/{key}', { params: { path: { key: k.id } } })}
            />
          </Group>
        </May>
      ),
    },
  ];
}

const SHOWN_SCOPES = 6;

/** Plugins with the triggers that a key opens. */
function Scopes({ scopes }: { scopes: Key['scopes'] }) {
  const { t } = useTranslation();
  const rest = scopes.length - SHOWN_SCOPES;
  return (
    <Stack gap={4} align="flex-start">
      {scopes.slice(0, SHOWN_SCOPES).map(s => (
        <Group key={`${s.plugin_id} ${s.trigger}`} gap={6}>
          <LinkAnchor to="/admin/plugins/$id" params={{ id: s.plugin_id }} search={{ tab: 'access' }} size="sm">
            {s.plugin_id}
          </LinkAnchor>
          <Badge
            variant="light"
            tt="none"
            style={{ minWidth: 'max-content' }}
            color={s.trigger === ALL_TRIGGERS ? 'orange' : 'gray'}
          >
            {s.trigger === ALL_TRIGGERS ? t('serviceKeys.allShort') : s.trigger}
          </Badge>
        </Group>
      ))}
      {rest > 0 && (
        <Text size="xs" c="dimmed">
          {t('serviceKeys.moreScopes', { count: rest })}
        </Text>
      )}
    </Stack>
  );
}
