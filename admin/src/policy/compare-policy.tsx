import { Alert, Button, Card, Group, Stack, Text, Title } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import { LinkAnchor } from '../parts/links.tsx';
import { ProblemAlert } from '../parts/problem.tsx';

type Changed = Schemas['ChangedAccess'];
type Compared = { examined: number; undecided: number; gains: Changed; loses: Changed };

/** Who among a sample of users gains or loses access by the change that is not saved yet. */
export function ComparePolicy(props: { saved: string; draft: string; isBroken: boolean }) {
  const { draft, isBroken, saved } = props;
  const { t } = useTranslation();
  const [found, setFound] = useState<{ of: string; compared: Compared } | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [isRunning, setRunning] = useState(false);
  const isSame = draft.trim() === saved.trim();
  const run = async (): Promise<void> => {
    setRunning(true);
    setError(null);
    try {
      const body = { before: saved, after: draft, users: 200 };
      setFound({ of: draft, compared: answered(await api.POST('/api/admin/policies/compare', { body })) });
    } catch (problem) {
      setFound(null);
      setError(problem);
    } finally {
      setRunning(false);
    }
  };
  return (
    <Card withBorder>
      <Stack gap="sm">
        <Title order={3} size="h5">
          {t('comparePolicy.title')}
        </Title>
        <Text size="sm" c="dimmed">
          {t(isSame ? 'comparePolicy.same' : 'comparePolicy.about')}
        </Text>
        <div>
          <Button variant="light" onClick={() => void run()} loading={isRunning} disabled={isSame || isBroken}>
            {t('comparePolicy.go')}
          </Button>
        </div>
        <ProblemAlert error={error} />
        {found !== null && found.of === draft && <Answer compared={found.compared} />}
      </Stack>
    </Card>
  );
}

function Answer({ compared: { examined, gains, loses, undecided } }: { compared: Compared }) {
  const { t } = useTranslation();
  return (
    <Stack gap="xs" role="status">
      <Text size="sm">
        {t('comparePolicy.examined', { count: examined })}{' '}
        {gains.count + loses.count === 0 && examined > 0 && t('comparePolicy.none')}
      </Text>
      {loses.count > 0 && (
        <Alert color="red" title={t('comparePolicy.lose', { count: loses.count })}>
          <People changed={loses} />
        </Alert>
      )}
      {gains.count > 0 && (
        <Alert color="orange" title={t('comparePolicy.gain', { count: gains.count })}>
          <People changed={gains} />
        </Alert>
      )}
      {undecided > 0 && (
        <Text size="sm" c="dimmed">
          {t('comparePolicy.undecided', { count: undecided })}
        </Text>
      )}
    </Stack>
  );
}

function People({ changed: { count, users } }: { changed: Changed }) {
  const { t } = useTranslation();
  return (
    <Group gap="xs">
      {users.map(u => (
        <LinkAnchor
          key={u.id}
          to="/admin/people/$user"
          params={{ user: String(u.id) }}
          size="sm"
          c="inherit"
          underline="always"
        >
          {u.display_name || `#${u.id}`}
        </LinkAnchor>
      ))}
      {count > users.length && <Text size="sm">{t('comparePolicy.more', { count: count - users.length })}</Text>}
    </Group>
  );
}
