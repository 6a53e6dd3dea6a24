import { Button, Divider, PasswordInput, Stack, Text, TextInput } from '@mantine/core';
import { IconFingerprint } from '@tabler/icons-react';
import { type FormEvent, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import { isBrokenOff, knowsPasskeys, signWithPasskey } from '../api/passkey.ts';
import { ApiProblem, type SecondFactorAsked } from '../api/problem.ts';
import { useNewSession } from '../app/session.ts';
import { SmallPage } from '../app/small-page.tsx';
import { Refusal } from '../parts/refusal.tsx';
import { RecoveryLogin } from './recovery-login.tsx';
import { SecondStep } from './second-step.tsx';
import { useCountdown } from './use-countdown.ts';

type Passwordless = Schemas['AdminLoginCheck']['passwordless'];

export function Login(props: { hasProvider: boolean; passwordless: Passwordless }) {
  const { t } = useTranslation();
  const begin = useNewSession();
  return (
    <SmallPage title={t('login.title')} about={t('login.about')}>
      <LoginForm {...props} onDone={begin} />
    </SmallPage>
  );
}

/** The refusal of a wrong answer in the language of the page, and that there is nothing to answer. */
function inWords(error: unknown, wrong: string, none?: string): unknown {
  if (!(error instanceof ApiProblem)) return error;
  if (error.code === 'conflict' && none !== undefined) return new Error(none);
  return error.code === 'unauthorized' ? new Error(wrong) : error;
}

/**
 * @param props.passwordless what the administrator who has logged in last here may give instead of the password; the page is opened
 *   again then, so it is not offered over one
 * @param props.inDialog over a page whose contents must stay: the identity provider would leave it
 */
export function LoginForm(props: {
  hasProvider: boolean;
  passwordless?: Passwordless;
  onDone: () => unknown;
  inDialog?: boolean;
}) {
  const { hasProvider, inDialog = false, onDone, passwordless = [] } = props;
  const hasPasskey = passwordless.includes('passkey') && knowsPasskeys();
  const hasCode = passwordless.includes('recovery_code');
  const { t } = useTranslation();
  const [email, setEmail] = useState('');
  const [password, setPassword] = useState('');
  const [error, setError] = useState<unknown>(null);
  // Each way in is slowed down by its own failures.
  const [passkeyError, setPasskeyError] = useState<unknown>(null);
  const [isSending, setSending] = useState(false);
  const [asked, setAsked] = useState<SecondFactorAsked | null>(null);
  const [givesCode, setGivesCode] = useState(false);
  const wait = useCountdown(error);
  const passkeyWait = useCountdown(passkeyError);
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
    setPasskeyError(null);
    try {
      const { continuation, passkey_options: options } = answered(
        await api.POST('/api/admin/auth/login/passwordless/begin'),
      );
      if (options === null) throw new Error(t('login.noPasskey'));
      const passkey = await signWithPasskey(options);
      answered(await api.POST('/api/admin/auth/login/passwordless', { body: { continuation, passkey } }));
      // The proof of this page comes with the page alone.
      location.reload();
      return;
    } catch (problem) {
      setPasskeyError(
        isBrokenOff(problem)
          ? new Error(t('secondFactor.brokenOff'))
          : inWords(problem, t('login.wrongPasskey'), t('login.noPasskey')),
      );
      setSending(false);
    }
  };
  const giveCode = (gives: boolean) => (): void => {
    setGivesCode(gives);
    setError(null);
    setPasskeyError(null);
  };
  const again = (why: unknown): void => {
    setAsked(null);
    setPassword('');
    setError(inWords(why, t('secondFactor.over')));
  };
  if (asked !== null) return <SecondStep asked={asked} onDone={onDone} onAgain={again} />;
  if (givesCode) return <RecoveryLogin onBack={giveCode(false)} />;
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
        <Refusal error={error} wait={wait} />
        <Button type="submit" loading={isSending} disabled={wait > 0}>
          {t('login.submit')}
        </Button>
        {(hasProvider || hasPasskey || hasCode) && (
          <>
            <Divider label={t('login.or')} />
            {hasPasskey && (
              <Button
                variant="default"
                leftSection={<IconFingerprint size={18} aria-hidden />}
                disabled={isSending || passkeyWait > 0}
                onClick={usePasskey}
              >
                {t('login.passkey')}
              </Button>
            )}
            {hasCode && (
              <Button variant="default" disabled={isSending} onClick={giveCode(true)}>
                {t('login.recoveryCode')}
              </Button>
            )}
            {hasProvider && (
              <Button variant="default" component="a" href={to}>
                {t('login.provider')}
              </Button>
            )}
            <Refusal error={passkeyError} wait={passkeyWait} />
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
