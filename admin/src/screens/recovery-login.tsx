import { Anchor, Button, Stack, Text, TextInput } from '@mantine/core';
import { type FormEvent, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api } from '../api/client.ts';
import { ApiProblem } from '../api/problem.ts';
import { Refusal } from '../parts/refusal.tsx';
import { useCountdown } from './use-countdown.ts';

/** A login with a recovery code instead of the password, in a browser that knows its administrator. */
export function RecoveryLogin({ onBack }: { onBack: () => void }) {
  const { t } = useTranslation();
  const [code, setCode] = useState('');
  const [error, setError] = useState<unknown>(null);
  const [isSending, setSending] = useState(false);
  const wait = useCountdown(error);
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setSending(true);
    setError(null);
    try {
      const { continuation } = answered(await api.POST('/api/admin/auth/login/passwordless/begin'));
      const body = { continuation, recovery_code: code };
      answered(await api.POST('/api/admin/auth/login/passwordless', { body }));
      // The proof of this page comes with the page alone.
      location.reload();
    } catch (problem) {
      const code = problem instanceof ApiProblem ? problem.code : null;
      // A code that was not looked at stays.
      if (code === 'unauthorized') setCode('');
      setError(
        code === 'unauthorized' || code === 'conflict'
          ? new Error(t(code === 'conflict' ? 'login.noCode' : 'login.wrongCode'))
          : problem,
      );
      setSending(false);
    }
  };
  return (
    <form onSubmit={submit}>
      <Stack>
        <Text size="sm">{t('login.recoveryCodeAbout')}</Text>
        <TextInput
          label={t('secondFactor.label.recovery_code')}
          autoComplete="one-time-code"
          value={code}
          onChange={e => setCode(e.currentTarget.value)}
          required
          autoFocus
        />
        <Refusal error={error} wait={wait} />
        <Button type="submit" loading={isSending} disabled={wait > 0}>
          {t('login.submit')}
        </Button>
        <Anchor component="button" type="button" size="sm" onClick={onBack}>
          {t('secondFactor.otherAccount')}
        </Anchor>
      </Stack>
    </form>
  );
}
