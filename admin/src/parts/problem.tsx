import { Alert, Button, Code, Group, List, Text } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { IconAlertTriangle } from '@tabler/icons-react';
import i18next from 'i18next';
import { useTranslation } from 'react-i18next';
import { ApiProblem, NotConfirmed } from '../api/problem.ts';
import { currentLanguage } from '../texts/index.ts';
import { Refusals } from './findings.tsx';
import { placeText } from './place-text.ts';

/** A member of settings as the pages call it. */
export const memberText = (member: string): string =>
  i18next.exists(`problem.member.${member}`)
    ? i18next.t(`problem.member.${member}` as 'problem.member.enabled')
    : member;

/** Names of roles as the service writes them, in the language of the page. */
const roleNames = (words: string, between: string): string =>
  words
    .split(between)
    .map(word => {
      const key = `admins.role.${word.replace(' ', '_')}.title`;
      return i18next.exists(key) ? i18next.t(key as 'admins.role.owner.title') : word;
    })
    .join(', ');

/** Which roles may what was refused, without the call of the API that the service names; null for other refusals. */
function rolesText({ code, message }: ApiProblem): string | null {
  const [, needed, yours, limit] = / needs the role (.+); you are ([a-z ]+?)(, limited to .*)?$/.exec(message) ?? [];
  if (code !== 'forbidden' || needed === undefined || yours === undefined) return null;
  if (limit !== undefined) return i18next.t('may.otherPlugin', { needed: roleNames(needed, ' or ') });
  return i18next.t('may.refused', { needed: roleNames(needed, ' or '), yours: roleNames(yours, ' and ') });
}

/** What these pages say of a failure themselves; null where the words of the service are what is known. */
function ownText(error: ApiProblem): string | null {
  if (error.code === 'unreachable') return i18next.t('problem.unreachable');
  if (error.code === 'precondition_failed') {
    const members = error.changed.map(memberText).join(', ');
    return members === '' ? i18next.t('problem.changed') : i18next.t('problem.changedMembers', { members });
  }
  const roles = rolesText(error);
  if (roles !== null) return roles;
  // What the service says then is how a program goes on.
  if (!error.isDeclined) return null;
  return i18next.t(isLoggedOut(error) ? 'problem.loggedOut' : 'problem.declined');
}

/** Whether it asked for a login. */
const isLoggedOut = ({ code }: ApiProblem): boolean => code === 'unauthorized' || code === 'page_proof_required';

/** Whether a question other than a login was cancelled: what was asked is not done, and nothing has failed. */
const isCancelled = (error: unknown): boolean =>
  error instanceof NotConfirmed || (error instanceof ApiProblem && error.isDeclined && !isLoggedOut(error));

/** What a failure says to people. */
export function problemText(error: unknown): string {
  if (!(error instanceof ApiProblem)) return error instanceof Error ? error.message : String(error);
  const own = ownText(error);
  if (own !== null) return own;
  return error.message || i18next.t('problem.unknown', { status: error.status });
}

/** What kind of failure it is, in the language of the page. */
function problemTitle(error: unknown): string {
  const isKnown = error instanceof ApiProblem && error.code !== 'unknown' && i18next.exists(`refusal.${error.code}`);
  return isKnown ? i18next.t(`refusal.${error.code}`) : i18next.t('problem.title');
}

/** Whether what stands below, places or findings, says all that the words of the service say. */
const isSaidBelow = ({ findings, message, places }: ApiProblem): boolean =>
  findings.length > 0
    ? findings.some(f => message.includes(f.message))
    : places.length > 0 && places.every(p => message.includes(p.message));

/** What the service says of a refusal. It says it in English: a page in another language has said in its title what kind it is. */
function ServiceWords({ error }: { error: unknown }) {
  if (error instanceof ApiProblem && ownText(error) === null && isSaidBelow(error)) return null;
  const isWorded = error instanceof ApiProblem && currentLanguage() !== 'en' && i18next.exists(`refusal.${error.code}`);
  if (!isWorded || ownText(error) !== null) return <Text size="sm">{problemText(error)}</Text>;
  // Each place or finding below says it in the language of the page.
  if (error.places.length > 0 || error.findings.length > 0) return null;
  return (
    <Text size="xs" lang="en">
      {problemText(error)}
    </Text>
  );
}

/** A refusal in the words of the service, with each wrong place and the request id, and another try. */
export function ProblemAlert({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const { t } = useTranslation();
  if (error === null || error === undefined) return null;
  if (isCancelled(error))
    return (
      <Text size="sm" c="dimmed" role="status">
        {problemText(error)}
      </Text>
    );
  const findings = error instanceof ApiProblem ? error.findings : [];
  // What is wrong with a module is said by its findings.
  const places = error instanceof ApiProblem && findings.length === 0 ? error.places : [];
  const requestId = error instanceof ApiProblem ? error.requestId : '';
  // Another try gives nothing to a role that may not.
  const mayRetry = onRetry !== undefined && !(error instanceof ApiProblem && error.status === 403);
  return (
    <Alert color="red" icon={<IconAlertTriangle aria-hidden />} title={problemTitle(error)} role="alert">
      <ServiceWords error={error} />
      {findings.length > 0 && <Refusals findings={findings} />}
      {error instanceof ApiProblem && i18next.exists(`advice.${error.code}`) && (
        <Text size="sm">{t(`advice.${error.code}` as 'advice.body_too_large')}</Text>
      )}
      {places.length > 0 && (
        <List size="sm" mt="xs">
          {places.map(p => (
            <List.Item key={`${p.pointer} ${p.message}`}>
              {placeText(p.pointer) !== '' && <Code>{placeText(p.pointer)}</Code>} {p.message}
            </List.Item>
          ))}
        </List>
      )}
      {(requestId !== '' || mayRetry) && (
        <Group mt="xs" gap="md">
          {mayRetry && (
            <Button size="xs" variant="light" color="red" onClick={onRetry}>
              {t('common.retry')}
            </Button>
          )}
          {requestId !== '' && (
            <Text size="xs" c="dimmed">
              {t('problem.requestId')} <Code>{requestId}</Code>
            </Text>
          )}
        </Group>
      )}
    </Alert>
  );
}

/** Ids of failures that are shown. */
const shown = new Set<string>();

/** Takes back what failed on the screen that is left: it would lie over the buttons of the next one. */
export function hideProblems(): void {
  for (const id of shown) notifications.hide(id);
  shown.clear();
}

/** Shows a failure of an action that has no place of its own in the page. It says nothing when a question other than a login was cancelled. */
export function notifyProblem(error: unknown): void {
  if (isCancelled(error)) return;
  const requestId = error instanceof ApiProblem ? error.requestId : '';
  const findings = error instanceof ApiProblem ? error.findings : [];
  const places = error instanceof ApiProblem && findings.length === 0 ? error.places : [];
  const id = notifications.show({
    color: 'red',
    title: problemTitle(error),
    message: (
      <>
        <ServiceWords error={error} />
        {findings.length > 0 && <Refusals findings={findings} />}
        {places.map(p => (
          <Text key={`${p.pointer} ${p.message}`} size="sm">
            {placeText(p.pointer)} {p.message}
          </Text>
        ))}
        {requestId !== '' && (
          <Text size="xs" c="dimmed">
            {i18next.t('problem.requestId')} <Code>{requestId}</Code>
          </Text>
        )}
      </>
    ),
    // A request id is read and copied.
    autoClose: requestId === '' ? 10_000 : 30_000,
    onClose: ({ id }) => shown.delete(id ?? ''),
  });
  shown.add(id);
}

export function notifyDone(message: string): void {
  notifications.show({ color: 'teal', message });
}
