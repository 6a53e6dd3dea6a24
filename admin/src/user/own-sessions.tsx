import { Button, Stack, Text, Title } from '@mantine/core';
import { IconDeviceLaptop } from '@tabler/icons-react';
import { useQueryClient } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import { agentText } from '../parts/agent-text.ts';
import { Empty } from '../parts/empty.tsx';
import { KeysetTable, useKeyset } from '../parts/keyset-list.tsx';
import { notifyDone, notifyProblem } from '../parts/problem.tsx';
import { StateBadge } from '../parts/state-badge.tsx';
import { When } from '../parts/time.tsx';

type Session = Schemas['Session'];
const KEY = ['sessions'];

/** Where the user is logged in. */
export function OwnSessions() {
  const { t } = useTranslation();
  const queries = useQueryClient();
  const list = useKeyset<Session, { items: Session[] }>(KEY, async cursor =>
    answered(await api.GET('/api/auth/sessions', { params: { query: { limit: 50, cursor } } })),
  );
  const end = async (s: Session): Promise<void> => {
    try {
      await api.DELETE('/api/auth/sessions/{session}', { params: { path: { session: s.id } } });
      notifyDone(t('user.sessionEnded'));
    } catch (problem) {
      notifyProblem(problem);
    }
    await queries.invalidateQueries({ queryKey: KEY });
  };
  return (
    <Stack gap="sm" component="section">
      <div>
        <Title order={2} size="h4">
          {t('user.sessions')}
        </Title>
        <Text size="sm" c="dimmed">
          {t('user.sessionsAbout')}
        </Text>
      </div>
      <KeysetTable
        label={t('user.sessions')}
        query={list}
        rowKey={s => s.id}
        columns={[
          {
            key: 'where',
            title: t('user.where'),
            cell: s => (
              <div>
                <Text size="sm" style={{ overflowWrap: 'anywhere' }} lineClamp={2} title={s.user_agent}>
                  {agentText(s.user_agent) || '–'}
                  {s.kind === 'admin' && ` · ${t('user.administration')}`}
                </Text>
                <Text size="xs" c="dimmed">
                  {s.address}
                </Text>
              </div>
            ),
          },
          { key: 'used', title: t('keys.lastUsed'), cell: s => <When at={s.last_used_at} /> },
          { key: 'began', title: t('user.began'), from: 'sm', cell: s => <When at={s.created_at} /> },
          {
            key: 'actions',
            title: '',
            align: 'right',
            cell: s =>
              s.current ? (
                <StateBadge kind="good" label={t('user.thisSession')} />
              ) : (
                <Button size="compact-sm" variant="light" color="red" onClick={() => void end(s)}>
                  {t('user.end')}
                </Button>
              ),
          },
        ]}
        empty={<Empty icon={IconDeviceLaptop} title={t('user.sessions')} text={t('user.sessionsAbout')} />}
      />
    </Stack>
  );
}
