import { Alert, Button, Group, Stack, TextInput } from '@mantine/core';
import { IconSend } from '@tabler/icons-react';
import { type FormEvent, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import { ApiProblem } from '../api/problem.ts';
import { May } from '../app/may.tsx';
import { useSession } from '../app/session.ts';
import { ProblemAlert } from '../parts/problem.tsx';
import { durationText } from '../parts/quantities.ts';

/** Sends a mail the way temporary passwords go, and says what the mail server made of it. */
export function MailTest({ isOptional = false }: { isOptional?: boolean }) {
  const { t } = useTranslation();
  const session = useSession();
  const [to, setTo] = useState(session.data?.admin?.email ?? '');
  const [isSending, setSending] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const [trial, setTrial] = useState<Schemas['MailTrial'] | null>(null);
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setSending(true);
    setError(null);
    setTrial(null);
    try {
      setTrial(answered(await api.POST('/api/admin/mail/test', { body: { to } })));
    } catch (problem) {
      setError(problem);
    } finally {
      setSending(false);
    }
  };
  const fieldError = error instanceof ApiProblem ? error.fields.to : undefined;
  return (
    <form onSubmit={submit}>
      <Stack gap="sm">
        <Group align="flex-end" gap="xs">
          <TextInput
            type="email"
            label={t('system.mailTo')}
            value={to}
            onChange={e => setTo(e.currentTarget.value)}
            error={fieldError}
            required
            withAsterisk={!isOptional}
            style={{ flex: '1 1 14rem' }}
          />
          <May need="admin" isInline>
            <Button type="submit" variant="light" leftSection={<IconSend size={16} />} loading={isSending}>
              {t('system.mailGo')}
            </Button>
          </May>
        </Group>
        {fieldError === undefined && <ProblemAlert error={error} />}
        {trial !== null && <Outcome trial={trial} />}
      </Stack>
    </form>
  );
}

/** Without a mail server a mail becomes a file, which is no failure and yet reaches no mailbox. */
function Outcome({ trial }: { trial: Schemas['MailTrial'] }) {
  const { t } = useTranslation();
  const style = { overflowWrap: 'anywhere' } as const;
  if (!trial.ok)
    return (
      <Alert color="red" role="status" title={t('system.mailFailed')} style={style}>
        {trial.error}
      </Alert>
    );
  const isFile = trial.where.endsWith('.eml');
  return (
    <Alert
      color={isFile ? 'orange' : 'teal'}
      role="status"
      title={t(isFile ? 'system.mailKept' : 'system.mailOk')}
      style={style}
    >
      {t(isFile ? 'system.mailFile' : 'system.mailSent', { where: trial.where, time: durationText(trial.latency_ms) })}
    </Alert>
  );
}
