import { Badge, Button, Group, Text } from '@mantine/core';
import { IconPlus, IconShieldLock } from '@tabler/icons-react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import { confirmed } from '../api/questions.ts';
import { May } from '../app/may.tsx';
import { useSession } from '../app/session.ts';
import { useSearchState } from '../app/use-search-state.ts';
import { Dialog } from '../parts/dialog.tsx';
import { Empty } from '../parts/empty.tsx';
import { KeyEnd, KeyFacts } from '../parts/key-expiry.tsx';
import { type Column, KeysetTable, useKeyset } from '../parts/keyset-list.tsx';
import { Page } from '../parts/page.tsx';
import { PersonAnchor } from '../parts/person-anchor.tsx';
import { notifyDone, notifyProblem } from '../parts/problem.tsx';
import { When } from '../parts/time.tsx';
import { AdminKeyForm, AdminKeySecret, DEPLOY_ONE, SCOPES } from './admin-key-form.tsx';
import { isOverlapping, RotateForm } from './rotate-form.tsx';

type Key = Schemas['AdminKey'];

/** Keys with which programs administer: what each opens, made by whom, last used, until when. */
export default function AdminKeys() {
  const { t } = useTranslation();
  const queries = useQueryClient();
  const [{ make }, setSearch] = useSearchState();
  const [rotated, setRotated] = useState<Key | null>(null);
  const [isShown, setShown] = useState(false);
  const [isMade, setMade] = useState(false);
  const list = useKeyset<Key, { items: Key[] }>(['admin-keys'], async cursor =>
    answered(await api.GET('/api/admin/keys', { params: { query: { limit: 50, cursor } } })),
  );
  const close = (): void => {
    setSearch({ make: undefined });
    setRotated(null);
    setShown(false);
    setMade(false);
    void queries.invalidateQueries({ queryKey: ['admin-keys'] });
  };
  // A page loaded again now asks for no second key.
  const made = (): void => {
    setShown(true);
    setMade(true);
    setSearch({ make: undefined });
  };
  const button = (
    <May need="owner" isInline>
      <Button leftSection={<IconPlus size={16} />} onClick={() => setSearch({ make: '1' })}>
        {t('adminKeys.make')}
      </Button>
    </May>
  );
  return (
    <Page title={t('nav.keys')} about={t('adminKeys.about')} actions={button}>
      <KeysetTable
        label={t('nav.keys')}
        query={list}
        rowKey={k => k.id}
        columns={useColumns(setRotated)}
        empty={
          <Empty
            icon={IconShieldLock}
            title={t('adminKeys.emptyTitle')}
            text={t('adminKeys.empty')}
            action={
              <May need="owner" isInline>
                <Button variant="light" onClick={() => setSearch({ make: '1' })}>
                  {t('adminKeys.make')}
                </Button>
              </May>
            }
          />
        }
      />
      <Dialog opened={make === '1' || isMade} onClose={close} title={t('adminKeys.title')} isLocked={isShown}>
        <AdminKeyForm onDone={close} onMade={made} />
      </Dialog>
      <Dialog
        opened={rotated !== null}
        isLocked={isShown}
        onClose={close}
        title={rotated === null ? '' : t('serviceKeys.rotateLabel', { name: rotated.name })}
      >
        {rotated !== null && (
          <RotateForm
            rotated={rotated}
            rotate={async body => {
              const params = { path: { key: rotated.id } };
              return answered(await api.POST('/api/admin/keys/{key}/rotate', { params, body }));
            }}
            secretOf={(key, ofOld) => (
              <AdminKeySecret made={key} onDone={close}>
                {ofOld}
              </AdminKeySecret>
            )}
            onDone={close}
            onMade={() => setShown(true)}
          />
        )}
      </Dialog>
    </Page>
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

function useColumns(rotate: (key: Key) => void): ReadonlyArray<Column<Key>> {
  const { t } = useTranslation();
  const session = useSession();
  const names = useAdminNames();
  return [
    {
      key: 'name',
      title: t('keys.name'),
      cell: k => (
        <div>
          <Text size="sm" fw={500} style={{ overflowWrap: 'anywhere' }}>
            {k.name}
          </Text>
          <Text size="xs" c="dimmed" ff="monospace">
            {k.public}
          </Text>
          <Group hiddenFrom="sm" mt={4}>
            <Scopes scopes={k.scopes} />
          </Group>
          <KeyFacts used={k.last_used_at} ends={k.expires_at} by={names.get(k.made_by)} />
          {isOverlapping(k) && (
            <Text size="xs" c="dimmed" component="div">
              {t('serviceKeys.oldUntil')} <When at={k.old_secret_until} />
            </Text>
          )}
        </div>
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
          {session.data?.admin?.global_user_id === k.made_by && (
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
          {session.data?.admin?.global_user_id === k.made_by && (
            <May need="owner" isInline>
              <Button
                size="compact-sm"
                variant="light"
                aria-label={t('serviceKeys.rotateLabel', { name: k.name })}
                onClick={() => rotate(k)}
              >
                {t('serviceKeys.rotate')}
              </Button>
            </May>
          )}
          <Revoke adminKey={k} />
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

function Revoke({ adminKey: k }: { adminKey: Key }) {
  const { t } = useTranslation();
  const queries = useQueryClient();
  const revoke = async (): Promise<void> => {
    const question = {
      title: t('adminKeys.revokeTitle'),
      text: t('adminKeys.revokeText', { name: k.name }),
      action: t('keys.revoke'),
    };
    if (!(await confirmed({ ...question, isDangerous: true }))) return;
    try {
      await api.DELETE('/api/admin/keys/{key}', { params: { path: { key: k.id } } });
      notifyDone(t('keys.revoked', { name: k.name }));
    } catch (problem) {
      notifyProblem(problem);
    }
    await queries.invalidateQueries({ queryKey: ['admin-keys'] });
  };
  return (
    <May need="admin" isInline>
      <Button
        size="compact-sm"
        variant="light"
        color="red"
        aria-label={t('keys.revokeLabel', { name: k.name })}
        onClick={() => void revoke()}
      >
        {t('keys.revoke')}
      </Button>
    </May>
  );
}
