import { Stack, Text } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import type { Schemas } from '../api/client.ts';
import { useConfig } from '../api/config.ts';
import { dateLocale } from '../texts/index.ts';
import { StateBadge } from './state-badge.tsx';
import { When } from './time.tsx';

type Admin = Schemas['AdminAccount'];

/** Whether the administrator has not chosen a password of their own yet. */
export const isUnused = (a: Admin): boolean => a.must_change_password;

/** Whether an administrator can log in, and what became of the mail with the temporary password. */
export function AdminState({ admin: a }: { admin: Admin }) {
  const { t } = useTranslation();
  const isToFile = useMailsAreFiles(isUnused(a) && a.mail?.state === 'sent');
  if (!isUnused(a)) return <StateBadge kind="good" label={t('admins.theirs')} />;
  const until =
    a.temporary_until === null
      ? null
      : new Date(a.temporary_until).toLocaleString(dateLocale(), { dateStyle: 'medium', timeStyle: 'short' });
  const hasLapsed = a.temporary_until !== null && new Date(a.temporary_until).getTime() <= Date.now();
  if (a.mail?.state === 'pending')
    return (
      <State kind="wait" label={t('admins.mailPending')}>
        {a.mail.error !== null && t('admins.mailRetry', { error: a.mail.error })}
      </State>
    );
  if (a.mail?.state === 'failed')
    return (
      <State kind="bad" label={t('admins.mailFailed')}>
        {a.mail.error}
      </State>
    );
  if (hasLapsed)
    return (
      <State kind="bad" label={t('admins.lapsed')}>
        {t('admins.lapsedAbout', { time: until })}
      </State>
    );
  return (
    <State
      kind="wait"
      label={t(a.mail === null ? 'admins.noMail' : isToFile ? 'admins.mailWritten' : 'admins.mailSent')}
    >
      {a.mail?.at != null && (
        <>
          <When at={a.mail.at} />.{' '}
        </>
      )}
      {until !== null && t('admins.mailSentAbout', { time: until })}
    </State>
  );
}

/** Whether the service has no mail server and writes mails to files. */
function useMailsAreFiles(isAsked: boolean): boolean {
  const host = useConfig(isAsked).data?.settings.find(s => s.key === 'smtp.host');
  return host !== undefined && (host.value === null || host.value === '');
}

function State(props: { kind: 'wait' | 'bad'; label: string; children: React.ReactNode }) {
  const { children, kind, label } = props;
  return (
    <Stack gap={2} align="flex-start" role="status">
      <StateBadge kind={kind} label={label} />
      <Text size="xs" c="dimmed" component="div" style={{ overflowWrap: 'anywhere' }}>
        {children}
      </Text>
    </Stack>
  );
}
