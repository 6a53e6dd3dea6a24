import { Anchor, Button, Stack, Text, TextInput } from '@mantine/core';
import { IconFingerprint } from '@tabler/icons-react';
import { type FormEvent, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api } from '../api/client.ts';
import { isBrokenOff, knowsPasskeys, signWithPasskey } from '../api/passkey.ts';
import { ApiProblem, type SecondFactorAsked } from '../api/problem.ts';
import { Refusal } from '../parts/refusal.tsx';
import { useCountdown } from './use-countdown.ts';

type Way = 'passkey' | 'totp' | 'recovery_code';

/**
 * The second half of a login: a passkey, a code of the app, or a recovery code.
 *
 * @param props.onAgain called when the password is asked for again, with the reason
 */
export function SecondStep(props: {
  asked: SecondFactorAsked;
  onDone: () => unknown;
  onAgain: (why: unknown) => void;
}) {
  const { asked, onAgain, onDone } = props;
  const { t } = useTranslation();
  const ways = (['passkey', 'totp', 'recovery_code'] as const).filter(
    w => asked.methods.includes(w) && (w !== 'passkey' || knowsPasskeys()),
  );
  const [way, setWay] = useState<Way>(ways[0] ?? 'recovery_code');
  const [code, setCode] = useState('');
  const [error, setError] = useState<unknown>(null);
  const [isSending, setSending] = useState(false);
  const wait = useCountdown(error);
  const attempt = async (work: () => Promise<unknown>): Promise<void> => {
    setSending(true);
    setError(null);
    try {
      await work();
      await onDone();
    } catch (problem) {
      const isOver = problem instanceof ApiProblem && problem.status === 401 && problem.attemptsLeft === 0;
      if (isOver) onAgain(problem);
      else setError(isBrokenOff(problem) ? new Error(t('secondFactor.brokenOff')) : problem);
      setCode('');
    } finally {
      setSending(false);
    }
  };
  const send = async (answer: { code: string } | { recovery_code: string } | { passkey: Passkey }): Promise<unknown> =>
    answered(
      await api.POST('/api/admin/auth/login/second-factor', { body: { continuation: asked.continuation, ...answer } }),
    );
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    await attempt(async () => {
      if (way !== 'passkey') return await send(way === 'totp' ? { code } : { recovery_code: code });
      if (asked.passkeyOptions !== null) await send({ passkey: await signWithPasskey(asked.passkeyOptions) });
    });
  };
  if (ways.length === 0)
    return (
      <Stack>
        <Text size="sm">{t('secondFactor.noWay')}</Text>
        <Button variant="default" onClick={() => onAgain(null)}>
          {t('secondFactor.otherAccount')}
        </Button>
      </Stack>
    );
  const change = (to: Way): void => {
    setWay(to);
    setCode('');
    setError(null);
  };
  return (
    <form onSubmit={submit}>
      <Stack>
        <Text size="sm">{t(`secondFactor.ask.${way}`)}</Text>
        {way !== 'passkey' && (
          <TextInput
            key={way}
            label={t(`secondFactor.label.${way}`)}
            inputMode={way === 'totp' ? 'numeric' : undefined}
            autoComplete="one-time-code"
            value={code}
            onChange={e => setCode(e.currentTarget.value)}
            required
            autoFocus
            data-autofocus
          />
        )}
        <Refusal error={error} wait={wait} />
        <Button
          type="submit"
          loading={isSending}
          disabled={wait > 0}
          leftSection={way === 'passkey' ? <IconFingerprint size={18} aria-hidden /> : undefined}
        >
          {t(way === 'passkey' ? 'secondFactor.usePasskey' : 'login.submit')}
        </Button>
        <Stack gap={6} align="flex-start">
          {ways
            .filter(w => w !== way)
            .map(w => (
              <Anchor key={w} component="button" type="button" size="sm" onClick={() => change(w)}>
                {t(`secondFactor.instead.${w}`)}
              </Anchor>
            ))}
          <Anchor component="button" type="button" size="sm" onClick={() => onAgain(null)}>
            {t('secondFactor.otherAccount')}
          </Anchor>
        </Stack>
      </Stack>
    </form>
  );
}

type Passkey = Awaited<ReturnType<typeof signWithPasskey>>;
