import { Button, PasswordInput, Stack } from '@mantine/core';
import { type FormEvent, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { keepSetupToken, setupInsteadOf, takesSetupToken } from '../api/client.ts';
import { useNewSession } from '../app/session.ts';
import { SmallPage } from '../app/small-page.tsx';
import { ProblemAlert } from '../parts/problem.tsx';

/**
 * Asks for the token that the start has printed: without it a service that is set up is closed.
 *
 * @param wasWrong whether a link had another token
 */
export default function SetupToken({ onTaken, wasWrong }: { wasWrong: boolean; onTaken: () => void }) {
  const { t } = useTranslation();
  const begin = useNewSession();
  const [token, setToken] = useState('');
  const [isWrong, setWrong] = useState(wasWrong);
  const [error, setError] = useState<unknown>(null);
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setError(null);
    setWrong(false);
    keepSetupToken(token.trim());
    try {
      if (!(await takesSetupToken())) return setWrong(true);
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
            error={isWrong && t('setup.tokenWrong')}
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
