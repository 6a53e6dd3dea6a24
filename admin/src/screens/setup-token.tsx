import { Button, PasswordInput, Stack } from '@mantine/core';
import { type FormEvent, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api, keepSetupToken, setupInsteadOf } from '../api/client.ts';
import { useNewSession } from '../app/session.ts';
import { SmallPage } from '../app/small-page.tsx';
import { ProblemAlert } from '../parts/problem.tsx';

/** Asks for the token that the start has printed: without it a service that is set up is closed. */
export default function SetupToken({ onTaken }: { onTaken: () => void }) {
  const { t } = useTranslation();
  const begin = useNewSession();
  const [token, setToken] = useState('');
  const [error, setError] = useState<unknown>(null);
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setError(null);
    keepSetupToken(token.trim());
    try {
      answered(await api.GET('/api/admin/plugins', { params: { query: { limit: 1 } } }));
      history.replaceState(null, '', setupInsteadOf(location.pathname) + location.search);
      await begin();
      onTaken();
    } catch (problem) {
      keepSetupToken('');
      setError(problem);
    }
  };
  return (
    <SmallPage title={t('setup.tokenTitle')} about={t('setup.tokenAbout')}>
      <form onSubmit={submit}>
        <Stack>
          <PasswordInput
            label={t('setup.token')}
            description={t('setup.tokenWhere')}
            value={token}
            onChange={e => setToken(e.currentTarget.value)}
            autoComplete="off"
            required
            autoFocus
          />
          <ProblemAlert error={error} />
          <Button type="submit">{t('setup.tokenSubmit')}</Button>
        </Stack>
      </form>
    </SmallPage>
  );
}
