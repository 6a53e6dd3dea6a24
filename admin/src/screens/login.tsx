import { Button, Divider, PasswordInput, Stack, Text, TextInput } from '@mantine/core';
import { IconFingerprint } from '@tabler/icons-react';
import { type FormEvent, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api } from '../api/client.ts';
import { isBrokenOff, knowsPasskeys, signWithPasskey } from '../api/passkey.ts';
import { ApiProblem, type SecondFactorAsked } from '../api/problem.ts';
import { useNewSession } from '../app/session.ts';
import { SmallPage } from '../app/small-page.tsx';
import { ProblemAlert } from '../parts/problem.tsx';
import { SecondStep } from './second-step.tsx';
import { useCountdown } from './use-countdown.ts';

export function Login(props: { hasProvider: boolean; hasPasskey: boolean }) {
  const { t } = useTranslation();
  const begin = useNewSession();
  return (
    <SmallPage title={t('login.title')} about={t('login.about')}>
      <LoginForm {...props} onDone={begin} />
    </SmallPage>
  );
}

/** The refusal of a wrong answer in the language of the page. */
function inWords(error: unknown, wrong: string): unknown {
  return error instanceof ApiProblem && error.code === 'unauthorized' ? new Error(wrong) : error;
}

/**
 * @param props.hasPasskey whether the administrator who has logged in last here may with a passkey alone; its page is opened again
 *   then, so it is not offered over one
 * @param props.inDialog over a page whose contents must stay: the identity provider would leave it
 */
export function LoginForm(props: {
  hasProvider: boolean;
  hasPasskey?: boolean;
  onDone: () => unknown;
  inDialog?: boolean;
}) {
  const { hasProvider, inDialog = false, onDone } = props;
  const hasPasskey = props.hasPasskey === true && knowsPasskeys();
  const { t } = useTranslation();
  const [email, setEmail] = useState('');
  const [password, setPassword] = useState('');
  const [error, setError] = useState<unknown>(null);
  const [isSending, setSending] = useState(false);
  const [asked, setAsked] = useState<SecondFactorAsked | null>(null);
  const wait = useCountdown(error);
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setSending(true);
    setError(null);
    try {
      answered(await api.POST('/api/admin/auth/login', { body: { email, password } }));
      await onDone();
    } catch (problem) {
      if (problem instanceof ApiProblem && problem.secondFactor !== null) setAsked(problem.secondFactor);
      else setError(inWords(problem, t('login.wrong')));
    } finally {
      setSending(false);
    }
  };
  const usePasskey = async (): Promise<void> => {
    setSending(true);
    setError(null);
    try {
      const { continuation, options } = answered(await api.POST('/api/admin/auth/login/passkey/begin'));
      const passkey = await signWithPasskey(options);
      answered(await api.POST('/api/admin/auth/login/passkey', { body: { continuation, passkey } }));
      // The proof of this page comes with the page alone.
      location.reload();
      return;
    } catch (problem) {
      setError(
        isBrokenOff(problem) ? new Error(t('secondFactor.brokenOff')) : inWords(problem, t('login.wrongPasskey')),
      );
      setSending(false);
    }
  };
  const again = (why: unknown): void => {
    setAsked(null);
    setPassword('');
    setError(inWords(why, t('secondFactor.over')));
  };
  if (asked !== null) return <SecondStep asked={asked} onDone={onDone} onAgain={again} />;
  const to = `/api/auth/idp/start?return_to=${encodeURIComponent(location.pathname + location.search)}`;
  return (
    <form onSubmit={submit}>
      <Stack>
        <TextInput
          label={t('login.email')}
          type="email"
          autoComplete="username"
          value={email}
          onChange={e => setEmail(e.currentTarget.value)}
          required
          autoFocus={!inDialog}
          data-autofocus
        />
        <PasswordInput
          label={t('login.password')}
          autoComplete="current-password"
          value={password}
          onChange={e => setPassword(e.currentTarget.value)}
          required
        />
        {wait > 0 ? (
          <Text size="sm" c="orange" role="status">
            {t('login.wait', { count: wait })}
          </Text>
        ) : (
          <ProblemAlert error={error instanceof ApiProblem && error.code === 'too_many_attempts' ? null : error} />
        )}
        <Button type="submit" loading={isSending} disabled={wait > 0}>
          {t('login.submit')}
        </Button>
        {(hasProvider || hasPasskey) && (
          <>
            <Divider label={t('login.or')} />
            {hasPasskey && (
              <Button
                variant="default"
                leftSection={<IconFingerprint size={18} aria-hidden />}
                disabled={isSending || wait > 0}
                onClick={usePasskey}
              >
                {t('login.passkey')}
              </Button>
            )}
            {hasProvider && (
              <Button variant="default" component="a" href={to}>
                {t('login.provider')}
              </Button>
            )}
            {inDialog && (
              <Text size="xs" c="dimmed">
                {t('login.providerLeaves')}
              </Text>
            )}
          </>
        )}
      </Stack>
    </form>
  );
}
