import { Badge, Button, Group, Stack, Text } from '@mantine/core';
import { IconKey, IconPlus } from '@tabler/icons-react';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import { confirmed } from '../api/questions.ts';
import { May } from '../app/may.tsx';
import { useSearchState } from '../app/use-search-state.ts';
import { Dialog } from '../parts/dialog.tsx';
import { Empty } from '../parts/empty.tsx';
import { KeyEnd, KeyFacts } from '../parts/key-expiry.tsx';
import { type Column, KeysetTable, useKeyset } from '../parts/keyset-list.tsx';
import { LinkAnchor } from '../parts/links.tsx';
import { Page } from '../parts/page.tsx';
import { notifyDone, notifyProblem } from '../parts/problem.tsx';
import { When } from '../parts/time.tsx';
import { isOverlapping, RotateForm } from './rotate-form.tsx';
import { ServiceKeyForm } from './service-key-form.tsx';
import { ServiceKeySecret } from './service-key-secret.tsx';

type Key = Schemas['ServiceKey'];

export const ALL_TRIGGERS = '*';

/** Keys with which other systems call triggers. */
export default function ServiceKeys() {
  const { t } = useTranslation();
  const queries = useQueryClient();
  const [{ make }, setSearch] = useSearchState();
  const [rotated, setRotated] = useState<Key | null>(null);
  const [isShown, setShown] = useState(false);
  const [isMade, setMade] = useState(false);
  const list = useKeyset<Key, { items: Key[] }>(['service-keys'], async cursor =>
    answered(await api.GET('/api/admin/service-keys', { params: { query: { limit: 50, cursor } } })),
  );
  const close = (): void => {
    setSearch({ make: undefined });
    setRotated(null);
    setShown(false);
    setMade(false);
    void queries.invalidateQueries({ queryKey: ['service-keys'] });
  };
  // A page loaded again now asks for no second key.
  const made = (): void => {
    setShown(true);
    setMade(true);
    setSearch({ make: undefined });
  };
  const columns = useColumns(setRotated);
  return (
    <Page
      title={t('nav.serviceKeys')}
      about={t('serviceKeys.about')}
      actions={
        <May need="admin" isInline>
          <Button leftSection={<IconPlus size={16} />} onClick={() => setSearch({ make: '1' })}>
            {t('serviceKeys.make')}
          </Button>
        </May>
      }
    >
      <KeysetTable
        label={t('nav.serviceKeys')}
        query={list}
        rowKey={k => k.id}
        columns={columns}
        empty={
          <Empty
            icon={IconKey}
            title={t('serviceKeys.emptyTitle')}
            text={t('serviceKeys.empty')}
            action={
              <May need="admin" isInline>
                <Button variant="light" onClick={() => setSearch({ make: '1' })}>
                  {t('serviceKeys.make')}
                </Button>
              </May>
            }
          />
        }
      />
      <Dialog opened={make === '1' || isMade} onClose={close} title={t('serviceKeys.title')} isLocked={isShown}>
        <ServiceKeyForm onDone={close} onMade={made} />
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
              return answered(await api.POST('/api/admin/service-keys/{key}/rotate', { params, body }));
            }}
            secretOf={(key, ofOld) => (
              <ServiceKeySecret made={key} onDone={close}>
                {ofOld}
              </ServiceKeySecret>
            )}
            onDone={close}
            onMade={() => setShown(true)}
          />
        )}
      </Dialog>
    </Page>
  );
}

function useColumns(rotate: (key: Key) => void): ReadonlyArray<Column<Key>> {
  const { t } = useTranslation();
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
          <KeyFacts used={k.last_used_at} ends={k.expires_at} />
          {isOverlapping(k) && (
            <Text size="xs" c="dimmed" component="div" hiddenFrom="lg">
              {t('serviceKeys.oldUntil')} <When at={k.old_secret_until} />
            </Text>
          )}
        </div>
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
          {isOverlapping(k) && (
            <Text size="xs" c="dimmed" component="div">
              {t('serviceKeys.oldUntil')} <When at={k.old_secret_until} />
            </Text>
          )}
        </div>
      ),
    },
    { key: 'ends', title: t('keys.ends'), from: 'md', cell: k => <KeyEnd at={k.expires_at} /> },
    { key: 'actions', title: '', align: 'right', cell: k => <Actions serviceKey={k} onRotate={() => rotate(k)} /> },
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

function Actions({ onRotate, serviceKey: k }: { serviceKey: Key; onRotate: () => void }) {
  const { t } = useTranslation();
  const queries = useQueryClient();
  const revoke = async (): Promise<void> => {
    const question = {
      title: t('serviceKeys.revokeTitle'),
      text: t('serviceKeys.revokeText', { name: k.name }),
      action: t('keys.revoke'),
    };
    if (!(await confirmed({ ...question, isDangerous: true }))) return;
    try {
      await api.DELETE('/api/admin/service-keys/{key}', { params: { path: { key: k.id } } });
      notifyDone(t('keys.revoked', { name: k.name }));
    } catch (problem) {
      notifyProblem(problem);
    }
    await queries.invalidateQueries({ queryKey: ['service-keys'] });
  };
  return (
    <May need="admin" isInline>
      <Group gap={6} justify="flex-end">
        <Button
          size="compact-sm"
          variant="light"
          aria-label={t('serviceKeys.rotateLabel', { name: k.name })}
          onClick={onRotate}
        >
          {t('serviceKeys.rotate')}
        </Button>
        <Button
          size="compact-sm"
          variant="light"
          color="red"
          aria-label={t('keys.revokeLabel', { name: k.name })}
          onClick={() => void revoke()}
        >
          {t('keys.revoke')}
        </Button>
      </Group>
    </May>
  );
}
