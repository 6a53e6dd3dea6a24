import { Button, Divider, PasswordInput, Stack, Text, TextInput } from '@mantine/core';
import { type FormEvent, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api } from '../api/client.ts';
import { ApiProblem, type SecondFactorAsked } from '../api/problem.ts';
import { useNewSession } from '../app/session.ts';
import { SmallPage } from '../app/small-page.tsx';
import { ProblemAlert } from '../parts/problem.tsx';
import { SecondStep } from './second-step.tsx';
import { useCountdown } from './use-countdown.ts';

export function Login({ hasProvider }: { hasProvider: boolean }) {
  const { t } = useTranslation();
  const begin = useNewSession();
  return (
    <SmallPage title={t('login.title')} about={t('login.about')}>
      <LoginForm hasProvider={hasProvider} onDone={begin} />
    </SmallPage>
  );
}

/** The refusal of a wrong password in the language of the page; a wait stands in its own place. */
function inWords(error: unknown, wrong: string): unknown {
  if (!(error instanceof ApiProblem)) return error;
  if (error.code === 'too_many_attempts') return null;
  return error.code === 'unauthorized' ? new Error(wrong) : error;
}

/** @param props.inDialog over a page whose contents must stay: the identity provider would leave it */
export function LoginForm(props: { hasProvider: boolean; onDone: () => unknown; inDialog?: boolean }) {
  const { hasProvider, inDialog = false, onDone } = props;
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
      else setError(problem);
    } finally {
      setSending(false);
    }
  };
  const again = (why: unknown): void => {
    setAsked(null);
    setPassword('');
    setError(why);
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
          <ProblemAlert error={inWords(error, t('login.wrong'))} />
        )}
        <Button type="submit" loading={isSending} disabled={wait > 0}>
          {t('login.submit')}
        </Button>
        {hasProvider && (
          <>
            <Divider label={t('login.or')} />
            <Button variant="default" component="a" href={to}>
              {t('login.provider')}
            </Button>
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
