import { Box, Card, Code, Group, Radio, Stack, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import type { Schemas } from '../api/client.ts';
import { AccessBadge } from '../parts/access-badge.tsx';
import { policyOf, RoleField } from '../parts/role-field.tsx';

type Upload = Schemas['Upload'];

const KINDS = ['users', 'role', 'suggested'] as const;
export type AccessChoice = { kind: (typeof KINDS)[number]; role: string };

/** The members of an installation that say who may call the new triggers. */
export function accessOf({ kind, role }: AccessChoice, upload: Upload) {
  const added = kind === 'role' ? upload.access.filter(a => a.new) : [];
  const settings = { allow_user_session: true, policy_expression: policyOf(role.trim()) };
  return {
    accept_suggested_access: kind === 'suggested',
    triggers: Object.fromEntries(added.map(a => [a.trigger, settings])),
  };
}

/** New triggers that the author would open to fewer users than the default does. */
const narrower = (upload: Upload): string[] =>
  upload.access.flatMap(a => (a.new && a.suggested?.users === true && a.suggested.policy !== '' ? [a.trigger] : []));

/** Whether a suggestion opens no more than to all users, and can be saved. */
const isModest = ({ suggested: s }: Upload['access'][number]): boolean =>
  s === null || (s.users && !s.service_keys && !s.public && s.policy_problems.length === 0);

/** As its author suggests, where that opens less than the default, and no trigger more. */
export const firstChoice = (upload: Upload): AccessChoice => ({
  kind: narrower(upload).length > 0 && upload.access.filter(a => a.new).every(isModest) ? 'suggested' : 'users',
  role: '',
});

/** Who may call the triggers that are new: all users, those with a role, or whom the author suggests. */
export function InstallAccess(props: {
  upload: Upload;
  value: AccessChoice;
  onChange: (choice: AccessChoice) => void;
  error: ReactNode;
}) {
  const { error, onChange, upload, value } = props;
  const { t } = useTranslation();
  const added = upload.access.filter(a => a.new);
  const suggestions = added.filter(a => a.suggested !== null);
  if (added.length === 0)
    return <Text size="sm">{t(upload.installed_version === null ? 'install.accessNone' : 'install.accessKept')}</Text>;
  return (
    <Radio.Group
      aria-label={t('install.access')}
      value={value.kind}
      onChange={text => onChange({ ...value, kind: KINDS.find(k => k === text) ?? value.kind })}
    >
      <Stack>
        {upload.installed_version !== null && (
          <Text size="sm">
            {t('install.accessNew', { count: added.length, triggers: added.map(a => a.trigger).join(', ') })}
          </Text>
        )}
        <Radio value="users" label={t('install.accessUsers')} description={t('install.accessUsersAbout')} />
        {value.kind === 'users' && narrower(upload).length > 0 && (
          <Text size="sm" c="orange" ml={32} role="status">
            {t('install.accessWider', { triggers: narrower(upload).join(', ') })}
          </Text>
        )}
        <div>
          <Radio value="role" label={t('install.accessRole')} description={t('install.accessRoleAbout')} />
          {value.kind === 'role' && (
            <Box ml={32} mt="xs" maw={400}>
              <RoleField value={value.role} onChange={role => onChange({ ...value, role })} error={error} isRequired />
            </Box>
          )}
        </div>
        {suggestions.length > 0 && (
          <>
            <Radio
              value="suggested"
              label={t('install.accessSuggested')}
              description={t('install.accessSuggestedAbout')}
            />
            {suggestions.map(a => (
              <Suggestion key={a.trigger} trigger={a.trigger} suggested={a.suggested} />
            ))}
          </>
        )}
      </Stack>
    </Radio.Group>
  );
}

function Suggestion({ suggested, trigger }: { trigger: string; suggested: Upload['access'][number]['suggested'] }) {
  return (
    <Card withBorder p="xs" ml={32}>
      <Group gap="xs">
        <Text size="sm" fw={500}>
          {trigger}
        </Text>
        <AccessBadge access={suggested?.effective_access ?? 'disabled'} hasPolicy={(suggested?.policy ?? '') !== ''} />
        <Text size="sm" c="dimmed">
          {suggested?.reason}
        </Text>
        {(suggested?.policy ?? '') !== '' && <Code style={{ overflowWrap: 'anywhere' }}>{suggested?.policy}</Code>}
      </Group>
    </Card>
  );
}
