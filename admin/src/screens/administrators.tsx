import { Alert, Badge, Box, Button, Group, Menu, Stack, Text } from '@mantine/core';
import {
  IconDots,
  IconFingerprintOff,
  IconLock,
  IconMailForward,
  IconShieldLock,
  IconUserMinus,
  IconUserPlus,
  IconUserShield,
} from '@tabler/icons-react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useEffect } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import { confirmed } from '../api/questions.ts';
import { May, useRefusal } from '../app/may.tsx';
import { useNewSession, useSession } from '../app/session.ts';
import { useSearchState } from '../app/use-search-state.ts';
import { AdminState, isUnused } from '../parts/admin-state.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { Empty } from '../parts/empty.tsx';
import { KeysetTable, useKeyset } from '../parts/keyset-list.tsx';
import { LinkButton } from '../parts/links.tsx';
import { Page } from '../parts/page.tsx';
import { PersonAnchor } from '../parts/person-anchor.tsx';
import { notifyDone, notifyProblem } from '../parts/problem.tsx';
import { When } from '../parts/time.tsx';
import { AppointForm } from './appoint-form.tsx';
import { RolesForm } from './roles-form.tsx';

export type Admin = Schemas['AdminAccount'] & { display_name: string };

/** While a mail is on its way the list is read again so often. */
const PENDING_MS = 2_000;

const nameOf = (a: Admin): string => a.display_name || a.email;

/** Who administers the service, and what became of the mails with their temporary passwords. */
export default function Administrators() {
  const { t } = useTranslation();
  const [{ appoint, roles }, setSearch] = useSearchState();
  const session = useSession();
  const own = session.data?.admin?.global_user_id ?? null;
  const mayAppoint = useRefusal()('owner') === null;
  const list = useKeyset<Admin, { items: Admin[] }>(['admins', 'list'], async cursor =>
    answered(await api.GET('/api/admin/admins', { params: { query: { limit: 50, cursor } } })),
  );
  const isPending = list.rows.some(a => a.mail?.state === 'pending');
  const { refetch } = list;
  useEffect(() => {
    if (!isPending) return;
    const timer = setInterval(() => void refetch(), PENDING_MS);
    return () => clearInterval(timer);
  }, [isPending, refetch]);
  const close = (): void => setSearch({ appoint: undefined });
  const changed = mayAppoint ? list.rows.find(a => String(a.global_user_id) === roles) : undefined;
  const closeRoles = (): void => setSearch({ roles: undefined });
  return (
    <Page
      title={t('nav.administrators')}
      about={t('admins.about')}
      actions={
        own !== null && (
          <May need="owner" isInline>
            <Button leftSection={<IconUserPlus size={16} />} onClick={() => setSearch({ appoint: '1' })}>
              {t('admins.appoint')}
            </Button>
          </May>
        )
      }
    >
      <MailNotice />
      <KeysetTable
        label={t('nav.administrators')}
        query={list}
        rowKey={a => a.global_user_id}
        columns={[
          {
            key: 'name',
            title: t('admins.name'),
            cell: a => (
              <div>
                <PersonAnchor user={a.global_user_id} fw={500}>
                  {nameOf(a)}
                </PersonAnchor>
                {a.global_user_id === own && (
                  <Text span size="sm" c="dimmed">
                    {' '}
                    ({t('admins.you')})
                  </Text>
                )}
                <Text size="xs" c="dimmed" style={{ overflowWrap: 'anywhere' }}>
                  {a.email}
                </Text>
                <Box hiddenFrom="sm" mt={4}>
                  <Roles admin={a} />
                </Box>
              </div>
            ),
          },
          { key: 'roles', title: t('admins.roles'), from: 'sm', cell: a => <Roles admin={a} /> },
          {
            key: 'state',
            title: t('admins.state'),
            cell: a => (
              <Stack gap={4} align="flex-start">
                <AdminState admin={a} />
                <Text size="xs" c="dimmed">
                  {t(a.has_second_factor ? 'admins.factor' : 'admins.noFactor')}
                </Text>
              </Stack>
            ),
          },
          { key: 'since', title: t('admins.since'), from: 'lg', cell: a => <When at={a.created_at} /> },
          {
            key: 'actions',
            title: '',
            align: 'right',
            isSign: true,
            cell: a => <Actions admin={a} isOwn={a.global_user_id === own} />,
          },
        ]}
        empty={
          <Empty
            icon={IconUserShield}
            title={t('admins.emptyTitle')}
            text={t('admins.empty')}
            action={<LinkButton to="/admin/setup">{t('admins.setUp')}</LinkButton>}
          />
        }
      />
      <Dialog
        opened={changed !== undefined}
        onClose={closeRoles}
        title={t('admins.rolesOf', { name: changed === undefined ? '' : nameOf(changed) })}
        size="md"
      >
        {changed !== undefined && (
          <RolesForm admin={changed} isOwn={changed.global_user_id === own} onDone={closeRoles} />
        )}
      </Dialog>
      <Dialog
        opened={appoint === '1' && own !== null && mayAppoint}
        onClose={close}
        title={t('admins.appoint')}
        size="md"
      >
        <AppointForm onDone={close} onCancel={close} />
      </Dialog>
    </Page>
  );
}

/** What an administrator may do. */
function Roles({ admin: a }: { admin: Admin }) {
  const { t } = useTranslation();
  return (
    <Stack gap={2} align="flex-start">
      {a.roles.map(role => (
        <Badge
          key={role}
          variant="light"
          tt="none"
          style={{ minWidth: 'max-content' }}
          color={role === 'owner' ? 'orange' : 'gray'}
        >
          {t(`admins.role.${role}.title`)}
        </Badge>
      ))}
      {a.plugins !== null && (
        <Text size="xs" c="dimmed" style={{ overflowWrap: 'anywhere' }}>
          {a.plugins.join(', ')}
        </Text>
      )}
    </Stack>
  );
}

/** Says so while mails are written to files, which is how a service without a mail server begins. */
function MailNotice() {
  const { t } = useTranslation();
  const config = useQuery({
    queryKey: ['config'],
    queryFn: async () => answered(await api.GET('/api/admin/config')),
    staleTime: 60_000,
  });
  const host = config.data?.settings.find(s => s.key === 'smtp.host');
  if (host === undefined || host.is_set) return null;
  return (
    <Alert color="orange" title={t('admins.mailFilesTitle')}>
      {t('admins.mailFiles')}
    </Alert>
  );
}

function Actions({ admin: a, isOwn }: { admin: Admin; isOwn: boolean }) {
  const { t } = useTranslation();
  const [, setSearch] = useSearchState();
  const refusal = useRefusal()('owner');
  const queries = useQueryClient();
  const begin = useNewSession();
  const words = { name: nameOf(a), email: a.email };
  const params = { path: { user: a.global_user_id } };
  const isWaiting = isUnused(a);
  const send = async (): Promise<void> => {
    const kind = isWaiting ? 'resend' : 'reset';
    const question = {
      title: t(`admins.${kind}Title`, words),
      text: t(`admins.${kind}Text`, words),
      action: t(`admins.${kind}`),
      isDangerous: !isWaiting,
    };
    if (!(await confirmed(question))) return;
    try {
      answered(await api.POST('/api/admin/admins/{user}/reset-password', { params }));
      notifyDone(t('admins.sent', words));
    } catch (problem) {
      notifyProblem(problem);
    }
    await queries.invalidateQueries({ queryKey: ['admins'] });
  };
  const remove = async (): Promise<void> => {
    const question = {
      title: t('admins.removeTitle', words),
      text: t(isOwn ? 'admins.removeOwnText' : 'admins.removeText', words),
      action: t('admins.remove'),
      isDangerous: true,
      typed: a.email,
    };
    if (!(await confirmed(question))) return;
    try {
      await api.DELETE('/api/admin/admins/{user}', { params });
      notifyDone(t('admins.removed', words));
      if (isOwn) await begin();
    } catch (problem) {
      notifyProblem(problem);
    }
    if (!isOwn) await queries.invalidateQueries({ queryKey: ['admins'] });
  };
  const resetFactor = async (): Promise<void> => {
    const question = {
      title: t('admins.resetFactor'),
      text: t('admins.resetFactorText', words),
      action: t('admins.resetFactor'),
      isDangerous: true,
    };
    if (!(await confirmed(question))) return;
    try {
      await api.DELETE('/api/admin/admins/{user}/second-factor', { params });
      notifyDone(t('admins.resetFactorDone', words));
    } catch (problem) {
      notifyProblem(problem);
    }
    await queries.invalidateQueries({ queryKey: ['admins'] });
  };
  return (
    <Group gap={6} justify="flex-end" wrap="nowrap">
      {!isOwn && isWaiting && refusal === null && (
        <Button size="compact-sm" variant="light" visibleFrom="lg" onClick={() => void send()}>
          {t('admins.resend')}
        </Button>
      )}
      <Menu position="bottom-end" withinPortal>
        <Menu.Target>
          <Button
            size="compact-sm"
            variant="subtle"
            color="gray"
            px={6}
            aria-label={`${t('common.moreActions')}: ${words.name}`}
          >
            <IconDots size={18} aria-hidden />
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          {refusal !== null && <Menu.Label maw={280}>{refusal}</Menu.Label>}
          <Menu.Item
            disabled={refusal !== null}
            leftSection={<IconShieldLock size={16} />}
            onClick={() => setSearch({ roles: String(a.global_user_id) })}
          >
            {t('admins.changeRoles')}
          </Menu.Item>
          {isOwn ? (
            <Menu.Item component={Link} to="/admin/account" leftSection={<IconLock size={16} />}>
              {t('password.submit')}
            </Menu.Item>
          ) : (
            <Menu.Item
              disabled={refusal !== null}
              leftSection={<IconMailForward size={16} />}
              onClick={() => void send()}
            >
              {t(isWaiting ? 'admins.resend' : 'admins.reset')}
            </Menu.Item>
          )}
          {!isOwn && a.has_second_factor && (
            <Menu.Item
              disabled={refusal !== null}
              leftSection={<IconFingerprintOff size={16} />}
              onClick={() => void resetFactor()}
            >
              {t('admins.resetFactor')}
            </Menu.Item>
          )}
          <Menu.Item
            disabled={refusal !== null}
            color="red"
            leftSection={<IconUserMinus size={16} />}
            onClick={() => void remove()}
          >
            {t('admins.remove')}
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
    </Group>
  );
}
