import {
  Button,
  Code,
  Divider,
  Group,
  getDefaultZIndex,
  Modal,
  PasswordInput,
  Stack,
  Text,
  TextInput,
} from '@mantine/core';
import { IconFingerprint } from '@tabler/icons-react';
import type { TFunction } from 'i18next';
import { type FormEvent, useEffect, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api } from '../api/client.ts';
import { isBrokenOff, knowsPasskeys, signWithPasskey } from '../api/passkey.ts';
import { type Asked, type Question, useQuestion } from '../api/questions.ts';
import { notifyDone } from '../parts/problem.tsx';
import { Refusal } from '../parts/refusal.tsx';
import { WideningList } from '../parts/widening.tsx';
import { LoginForm } from '../screens/login.tsx';
import { useCountdown } from '../screens/use-countdown.ts';
import { useNewSession, useSecondFactor, useSession } from './session.ts';

/** A question also lies over a dialog whose form asks it. */
const OVER_DIALOGS = getDefaultZIndex('modal') + 50;

/** The dialog over the page for what a request still needs. */
export function Questions() {
  const { t } = useTranslation();
  const asked = useQuestion();
  // The contents stay while the dialog goes away.
  const [shown, setShown] = useState<Asked | null>(null);
  useEffect(() => {
    if (asked !== null) setShown(asked);
  }, [asked]);
  return (
    <Modal
      opened={asked !== null}
      onClose={() => asked?.answer(null)}
      title={shown === null ? '' : titleOf(shown.question, t)}
      closeOnClickOutside={shown?.question.kind === 'confirm'}
      zIndex={OVER_DIALOGS}
      closeButtonProps={{ 'aria-label': t('common.cancel') }}
      centered
    >
      {shown !== null && <Contents asked={shown} />}
    </Modal>
  );
}

function titleOf(question: Question, t: TFunction): string {
  switch (question.kind) {
    case 'confirm':
      return question.title;
    case 'login':
      return t('questions.loginTitle');
    case 'password':
    case 'provider':
      return t('questions.passwordTitle');
    case 'wider':
      return t(question.places.length > 0 ? 'questions.publicTitle' : 'widening.title');
  }
}

function Contents({ asked }: { asked: Asked }) {
  const { t } = useTranslation();
  const session = useSession();
  const readAgain = useNewSession();
  const { answer, question } = asked;
  /** Another administrator may have logged in: then all that is shown is read again. */
  const loggedIn = async (): Promise<void> => {
    const before = session.data?.admin?.global_user_id;
    const now = (await session.refetch()).data?.admin;
    // What one administrator has typed is not sent as another.
    const isOther = now !== undefined && now.global_user_id !== before;
    answer(isOther ? null : 'done');
    if (!isOther) return;
    notifyDone(t('questions.otherPerson', { email: now.email }));
    await readAgain();
  };
  switch (question.kind) {
    case 'login':
      return (
        <Stack>
          <Text size="sm">{t('questions.login')}</Text>
          <LoginForm hasProvider={session.data?.idp ?? false} onDone={() => void loggedIn()} inDialog />
        </Stack>
      );
    case 'password':
      return <PasswordAgain onDone={() => answer('done')} onCancel={() => answer(null)} />;
    case 'provider':
      return (
        <Stack>
          <Text size="sm">{t('questions.provider')}</Text>
          <Group justify="flex-end">
            <Button variant="default" onClick={() => answer(null)}>
              {t('common.cancel')}
            </Button>
            <Button
              component="a"
              href={`${question.path}&return_to=${encodeURIComponent(location.pathname + location.search)}`}
            >
              {t('questions.providerGo')}
            </Button>
          </Group>
        </Stack>
      );
    case 'wider':
      return (
        <Stack>
          {question.widens.length > 0 && <WideningList widens={question.widens} />}
          {question.places.length > 0 && <Text size="sm">{t('questions.public')}</Text>}
          {question.places.map(p => (
            <Code
              key={`${p.methods.join()} ${p.url}`}
              block
              style={{ whiteSpace: 'pre-wrap', overflowWrap: 'anywhere' }}
            >
              {p.methods.join(', ')} {location.origin}
              {p.url}
            </Code>
          ))}
          <Group justify="flex-end">
            <Button variant="default" onClick={() => answer(null)} data-autofocus>
              {t('common.cancel')}
            </Button>
            <Button color="grape" onClick={() => answer('yes')}>
              {t(question.places.length > 0 ? 'questions.publicGo' : 'questions.widerGo')}
            </Button>
          </Group>
        </Stack>
      );
    case 'confirm':
      return <Confirm question={question} answer={answer} />;
  }
}

/** Names are compared as they look: invisible characters and kinds of spaces cannot be typed. */
const visible = (text: string): string =>
  text
    .normalize('NFKC')
    .replaceAll(/\p{Cf}/gu, '')
    .replaceAll(/\s+/gu, ' ')
    .trim();

function Confirm({ answer, question }: { question: Extract<Question, { kind: 'confirm' }>; answer: Asked['answer'] }) {
  const { t } = useTranslation();
  const [typed, setTyped] = useState('');
  return (
    <form
      onSubmit={e => {
        e.preventDefault();
        answer('yes');
      }}
    >
      <Stack>
        <Text size="sm" style={{ whiteSpace: 'pre-line' }}>
          {question.text}
        </Text>
        {question.typed !== undefined && (
          <TextInput
            label={t('questions.typeToConfirm', { word: question.typed })}
            value={typed}
            onChange={e => setTyped(e.currentTarget.value)}
            autoComplete="off"
            data-autofocus
          />
        )}
        <Group justify="flex-end">
          <Button variant="default" onClick={() => answer(null)} data-autofocus={question.typed === undefined}>
            {t('common.cancel')}
          </Button>
          <Button
            type="submit"
            color={question.isDangerous ? 'red' : undefined}
            disabled={question.typed !== undefined && visible(typed) !== visible(question.typed)}
          >
            {question.action}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

/** The password or a passkey again, for what asks for a recent one. */
function PasswordAgain({ onCancel, onDone }: { onDone: () => void; onCancel: () => void }) {
  const { t } = useTranslation();
  const factor = useSecondFactor();
  const hasPasskey = knowsPasskeys() && factor.data?.passkeys.some(p => p.is_usable) === true;
  const [password, setPassword] = useState('');
  const [error, setError] = useState<unknown>(null);
  const [isSending, setSending] = useState(false);
  const wait = useCountdown(error);
  const attempt = async (work: () => Promise<unknown>): Promise<void> => {
    setSending(true);
    setError(null);
    try {
      await work();
      onDone();
    } catch (problem) {
      setError(isBrokenOff(problem) ? new Error(t('secondFactor.brokenOff')) : problem);
    } finally {
      setSending(false);
    }
  };
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    await attempt(async () => answered(await api.POST('/api/admin/auth/confirm', { body: { password } })));
  };
  const withPasskey = async (): Promise<void> =>
    await attempt(async () => {
      const { continuation, options } = answered(await api.POST('/api/admin/auth/confirm/passkey'));
      const body = { continuation, passkey: await signWithPasskey(options) };
      answered(await api.POST('/api/admin/auth/confirm', { body }));
    });
  return (
    <form onSubmit={submit}>
      <Stack>
        <Text size="sm">{t('questions.password')}</Text>
        {hasPasskey && (
          <>
            <Button
              leftSection={<IconFingerprint size={18} aria-hidden />}
              onClick={() => void withPasskey()}
              loading={isSending}
              data-autofocus
            >
              {t('secondFactor.usePasskey')}
            </Button>
            <Divider label={t('login.or')} />
          </>
        )}
        <PasswordInput
          label={t('login.password')}
          autoComplete="current-password"
          value={password}
          onChange={e => setPassword(e.currentTarget.value)}
          required
          data-autofocus={!hasPasskey}
        />
        <Refusal error={error} wait={wait} />
        <Group justify="flex-end">
          <Button variant="default" onClick={onCancel}>
            {t('common.cancel')}
          </Button>
          <Button type="submit" loading={isSending} disabled={wait > 0}>
            {t('questions.passwordGo')}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
