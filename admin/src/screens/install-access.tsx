import { Box, Card, Checkbox, Code, Group, Radio, Stack, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import type { Schemas } from '../api/client.ts';
import { AccessBadge } from '../parts/access-badge.tsx';
import { policyOf, RoleField } from '../parts/role-field.tsx';

type Upload = Schemas['Upload'];

const KINDS = ['users', 'role', 'suggested'] as const;
/** `keepsPolicies`: whether triggers that the author opens to fewer users keep the author's policy, where a role is asked of the others. */
export type AccessChoice = { kind: (typeof KINDS)[number]; role: string; keepsPolicies: boolean };

type Access = Upload['access'][number];

/** Whether a new trigger is one that the author would open to fewer users than the default does. */
const isNarrower = (a: Access): boolean => a.new && a.suggested?.users === true && a.suggested.policy !== '';

/** New triggers that the author would open to fewer users than the default does. */
const narrower = (upload: Upload): string[] => upload.access.filter(isNarrower).map(a => a.trigger);

/** Those of them whose policy can be saved; none when the role would then be asked of no trigger. */
function keepable({ access }: Upload): Access[] {
  const kept = access.filter(a => isNarrower(a) && a.suggested?.policy_problems.length === 0);
  return kept.length < access.filter(a => a.new).length ? kept : [];
}

/** The members of an installation that say who may call the new triggers. */
export function accessOf({ keepsPolicies, kind, role }: AccessChoice, upload: Upload) {
  const added = kind === 'role' ? upload.access.filter(a => a.new) : [];
  const kept = new Map(keepsPolicies ? keepable(upload).map(a => [a.trigger, a.suggested?.policy ?? '']) : []);
  const settings = ({ trigger }: Access) => ({
    allow_user_session: true,
    policy_expression: kept.get(trigger) ?? policyOf(role.trim()),
  });
  return {
    accept_suggested_access: kind === 'suggested',
    triggers: Object.fromEntries(added.map(a => [a.trigger, settings(a)])),
  };
}

/** Whether a suggestion opens no more than to all users, and can be saved. */
const isModest = ({ suggested: s }: Access): boolean =>
  s === null || (s.users && !s.service_keys && !s.public && s.policy_problems.length === 0);

/** As its author suggests, where that opens less than the default, and no trigger more. */
export const firstChoice = (upload: Upload): AccessChoice => ({
  kind: narrower(upload).length > 0 && upload.access.filter(a => a.new).every(isModest) ? 'suggested' : 'users',
  role: '',
  keepsPolicies: true,
});

/** Who may call a trigger when the form of the installation is sent as it opens. */
export function accessUnchanged(a: Access, upload: Upload): { access: Access['effective_access']; hasPolicy: boolean } {
  const suggested = a.new && firstChoice(upload).kind === 'suggested' ? a.suggested : null;
  return suggested === null
    ? { access: a.effective_access, hasPolicy: a.has_policy }
    : { access: suggested.effective_access, hasPolicy: suggested.policy !== '' };
}

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
              <KeptPolicies upload={upload} value={value} onChange={onChange} />
              {upload.triggers.some(a => a.type === 'messenger') && (
                <Text size="sm" mt="xs">
                  {t('install.commandsOpen', {
                    commands: upload.triggers.flatMap(a => (a.type === 'messenger' ? [`/${a.name}`] : [])).join(', '),
                  })}
                </Text>
              )}
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

/** Triggers whose author lets fewer people in than everyone with a login: a role must not open them by the way. */
function KeptPolicies(props: { upload: Upload; value: AccessChoice; onChange: (choice: AccessChoice) => void }) {
  const { onChange, upload, value } = props;
  const { t } = useTranslation();
  const kept = keepable(upload);
  const widened = narrower(upload).filter(name => !value.keepsPolicies || kept.every(a => a.trigger !== name));
  return (
    <>
      {kept.length > 0 && (
        <Checkbox
          mt="xs"
          checked={value.keepsPolicies}
          onChange={e => onChange({ ...value, keepsPolicies: e.currentTarget.checked })}
          label={t('install.keepsPolicies', { triggers: kept.map(a => a.trigger).join(', ') })}
          description={kept.map(a => `${a.trigger}: ${a.suggested?.policy}`).join('; ')}
        />
      )}
      {widened.length > 0 && (
        <Text size="sm" c="orange" mt="xs" role="status">
          {t('install.accessWider', { triggers: widened.join(', ') })}
        </Text>
      )}
    </>
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
