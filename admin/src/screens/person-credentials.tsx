import { Alert, Button, Group, Stack, Text } from '@mantine/core';
import { IconDeviceLaptop, IconKey, IconLogout } from '@tabler/icons-react';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import { ApiProblem } from '../api/problem.ts';
import { confirmed } from '../api/questions.ts';
import { May } from '../app/may.tsx';
import { useSession } from '../app/session.ts';
import { agentText } from '../parts/agent-text.ts';
import { Empty } from '../parts/empty.tsx';
import { KeyEnd, KeyFacts } from '../parts/key-expiry.tsx';
import { KeyName } from '../parts/key-name.tsx';
import { KeysetTable, useKeyset } from '../parts/keyset-list.tsx';
import { notifyDone, notifyProblem } from '../parts/problem.tsx';
import { RevokeKey } from '../parts/revoke-key.tsx';
import { StateBadge } from '../parts/state-badge.tsx';
import { When } from '../parts/time.tsx';
import { nameOf } from './people.tsx';
import { Section } from './review.tsx';

type User = Schemas['User'];
type Session = Schemas['Session'];
type Token = Schemas['UserToken'];

const BATCH = 100;

const listSessions = async (user: number, cursor?: string, limit = 20) =>
  answered(await api.GET('/api/admin/users/{user}/sessions', { params: { path: { user }, query: { limit, cursor } } }));
const listTokens = async (user: number, cursor?: string, limit = 20) =>
  answered(await api.GET('/api/admin/users/{user}/tokens', { params: { path: { user }, query: { limit, cursor } } }));
const endSession = (user: number, session: number) =>
  api.DELETE('/api/admin/users/{user}/sessions/{session}', { params: { path: { user, session } } });
const revokeToken = (user: number, token: number) =>
  api.DELETE('/api/admin/users/{user}/tokens/{token}', { params: { path: { user, token } } });

/** What has ended by itself meanwhile is as wanted. */
async function unlessGone(ending: Promise<unknown>): Promise<void> {
  try {
    await ending;
  } catch (problem) {
    if (!(problem instanceof ApiProblem) || problem.code !== 'not_found') throw problem;
  }
}

/** Ends everything, page by page: what was ended is no longer listed. */
async function endAll(user: number): Promise<void> {
  for (;;) {
    const { items } = await listTokens(user, undefined, BATCH);
    for (const { id } of items) await unlessGone(revokeToken(user, id));
    if (items.length < BATCH) break;
  }
  // One's own session last: without it nothing more could be ended.
  let own: number | null = null;
  for (;;) {
    const { items } = await listSessions(user, undefined, BATCH);
    for (const { current, id } of items)
      if (current) own = id;
      else await unlessGone(endSession(user, id));
    if (items.length < BATCH) break;
  }
  if (own !== null) await unlessGone(endSession(user, own));
}

/** Where a person is logged in and which programs act in their name; each can be ended. */
export default function PersonCredentials({ person }: { person: User }) {
  const { t } = useTranslation();
  const queries = useQueryClient();
  const session = useSession();
  const [isEnding, setEnding] = useState(false);
  const all = async (): Promise<void> => {
    const question = {
      title: t('personCredentials.endAllTitle'),
      text: t('personCredentials.endAllText', { name: nameOf(person) }),
      action: t('personCredentials.endAll'),
      isDangerous: true,
    };
    if (!(await confirmed(question))) return;
    setEnding(true);
    try {
      await endAll(person.id);
      notifyDone(t('personCredentials.endedAll'));
    } catch (problem) {
      notifyProblem(problem);
    } finally {
      setEnding(false);
      await queries.invalidateQueries({ queryKey: ['users', 'credentials', person.id] });
    }
  };
  return (
    <Stack gap="xl">
      <Group justify="space-between" align="flex-start">
        {session.data?.admin?.global_user_id === person.id ? (
          <Alert color="orange" style={{ flex: '1 1 18rem' }}>
            {t('personCredentials.self')}
          </Alert>
        ) : (
          <span />
        )}
        <May need="admin" isInline>
          <Button
            color="red"
            variant="light"
            leftSection={<IconLogout size={16} />}
            loading={isEnding}
            onClick={() => void all()}
          >
            {t('personCredentials.endAll')}
          </Button>
        </May>
      </Group>
      <Sessions person={person} />
      <Tokens person={person} />
    </Stack>
  );
}

function Sessions({ person }: { person: User }) {
  const { t } = useTranslation();
  const queries = useQueryClient();
  const key = ['users', 'credentials', person.id, 'sessions'];
  const list = useKeyset<Session, { items: Session[] }>(key, cursor => listSessions(person.id, cursor));
  const end = async (s: Session): Promise<void> => {
    const question = {
      title: t('personCredentials.endSessionTitle'),
      text: t('personCredentials.endSessionText', { address: s.address }),
      action: t('personCredentials.endSession'),
    };
    if (!(await confirmed({ ...question, isDangerous: true }))) return;
    try {
      await endSession(person.id, s.id);
      notifyDone(t('personCredentials.ended'));
    } catch (problem) {
      notifyProblem(problem);
    }
    await queries.invalidateQueries({ queryKey: key });
  };
  const agentOf = (s: Session): string => agentText(s.user_agent) || t('personCredentials.unknownAgent');
  return (
    <Section title={t('personCredentials.sessions')} about={t('personCredentials.sessionsAbout')}>
      <KeysetTable
        label={t('personCredentials.sessions')}
        query={list}
        rowKey={s => s.id}
        columns={[
          {
            key: 'agent',
            title: t('personCredentials.agent'),
            cell: s => (
              <div>
                <Text size="sm" title={s.user_agent}>
                  {agentOf(s)}
                </Text>
                <Text size="xs" c="dimmed">
                  {s.address}
                </Text>
                <Text size="xs" c="dimmed" component="div" hiddenFrom="sm">
                  {t('personCredentials.lastUsed')}: <When at={s.last_used_at} />
                </Text>
              </div>
            ),
          },
          {
            key: 'kind',
            title: t('personCredentials.kind'),
            cell: s =>
              s.kind === 'admin' ? (
                <StateBadge kind="closed" label={t('personCredentials.adminSession')} />
              ) : (
                <StateBadge kind="off" label={t('personCredentials.userSession')} />
              ),
          },
          {
            key: 'begun',
            title: t('personCredentials.loggedIn'),
            from: 'md',
            cell: s => <When at={s.created_at} />,
          },
          {
            key: 'used',
            title: t('personCredentials.lastUsed'),
            from: 'sm',
            cell: s => <When at={s.last_used_at} />,
          },
          { key: 'ends', title: t('personCredentials.expires'), from: 'lg', cell: s => <When at={s.expires_at} /> },
          {
            key: 'actions',
            title: '',
            align: 'right',
            cell: s => (
              <May need="admin" isInline>
                <Button
                  size="compact-sm"
                  variant="light"
                  color="red"
                  aria-label={t('personCredentials.endSessionLabel', { agent: agentOf(s) })}
                  onClick={() => void end(s)}
                >
                  {t('personCredentials.endSession')}
                </Button>
              </May>
            ),
          },
        ]}
        empty={
          <Empty
            icon={IconDeviceLaptop}
            title={t('personCredentials.noSessions')}
            text={t('personCredentials.noSessionsAbout')}
          />
        }
      />
    </Section>
  );
}

function Tokens({ person }: { person: User }) {
  const { t } = useTranslation();
  const key = ['users', 'credentials', person.id, 'tokens'];
  const list = useKeyset<Token, { items: Token[] }>(key, cursor => listTokens(person.id, cursor));
  return (
    <Section title={t('personCredentials.tokens')} about={t('personCredentials.tokensAbout')}>
      <KeysetTable
        label={t('personCredentials.tokens')}
        query={list}
        rowKey={k => k.id}
        columns={[
          {
            key: 'name',
            title: t('keys.name'),
            cell: k => (
              <KeyName of={k}>
                <KeyFacts used={k.last_used_at} ends={k.expires_at} />
              </KeyName>
            ),
          },
          { key: 'used', title: t('keys.lastUsed'), from: 'md', cell: k => <When at={k.last_used_at} /> },
          { key: 'made', title: t('keys.made'), from: 'md', cell: k => <When at={k.created_at} /> },
          { key: 'ends', title: t('keys.ends'), from: 'md', cell: k => <KeyEnd at={k.expires_at} /> },
          {
            key: 'actions',
            title: '',
            align: 'right',
            cell: k => (
              <May need="admin" isInline>
                <RevokeKey
                  name={k.name}
                  question={{
                    title: t('personCredentials.revokeTitle'),
                    text: t('personCredentials.revokeText', { name: k.name }),
                  }}
                  done={t('personCredentials.revoked', { name: k.name })}
                  list={key}
                  revoke={() => revokeToken(person.id, k.id)}
                />
              </May>
            ),
          },
        ]}
        empty={
          <Empty icon={IconKey} title={t('personCredentials.noTokens')} text={t('personCredentials.noTokensAbout')} />
        }
      />
    </Section>
  );
}
