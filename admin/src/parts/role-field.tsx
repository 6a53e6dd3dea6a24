import { Alert, Autocomplete, Group, Stack, Text } from '@mantine/core';
import { IconUsersGroup } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api } from '../api/client.ts';
import { useRefusal } from '../app/may.tsx';
import { LinkButton } from './links.tsx';

/** Roles that people have, and those that imports give. */
export const useRoles = () =>
  useQuery({ queryKey: ['roles'], queryFn: async () => answered(await api.GET('/api/admin/roles')) });

/** As the service takes names of roles. */
export const isRoleName = (role: string): boolean => /^[\p{L}\p{N}_.:-]{1,100}$/u.test(role);

/** The policy that asks for a role; quotes in its name are escaped as in JSON, whose strings CEL takes. */
export const policyOf = (role: string): string => `has_role(${JSON.stringify(role)})`;

/** The role that a policy asks for and nothing else; null for any other policy. */
function roleOf(policy: string): string | null {
  const text = /^has_role\(("(?:[^"\\]|\\.)*")\)$/.exec(policy.trim())?.[1];
  if (text === undefined) return null;
  try {
    return String(JSON.parse(text));
  } catch {
    return null;
  }
}

/** The name of a role: those that are known are offered with how many people have them; another may be typed. */
export function RoleField(props: {
  value: string;
  onChange: (role: string) => void;
  description?: string;
  error?: ReactNode;
  isRequired?: boolean;
  isFocused?: boolean;
}) {
  const { description, error, isFocused = false, isRequired = false, onChange, value } = props;
  const { t } = useTranslation();
  const roles = useRoles();
  const known = roles.data?.items ?? [];
  const isWrong = value.trim() !== '' && !isRoleName(value.trim());
  const isUnknown =
    !isWrong && value.trim() !== '' && roles.data !== undefined && !known.some(r => r.role === value.trim());
  return (
    <div>
      <Autocomplete
        label={t('roleAccess.role')}
        description={description}
        data={known.map(r => r.role)}
        limit={20}
        renderOption={({ option }) => {
          const role = known.find(r => r.role === option.value);
          return (
            <div>
              <Text size="sm">{option.value}</Text>
              {role !== undefined && (
                <Text size="xs" c="dimmed">
                  {t('roleField.holders', { count: role.holders })}
                  {role.imported && ` · ${t('roleField.imported')}`}
                </Text>
              )}
            </div>
          );
        }}
        value={value}
        onChange={onChange}
        error={error ?? (isWrong && t('roleField.malformed'))}
        required={isRequired}
        data-autofocus={isFocused || undefined}
      />
      {isUnknown && (
        <Text size="sm" c="dimmed" role="status" mt={4}>
          {t('roleField.unknown', { role: value.trim() })}
        </Text>
      )}
    </div>
  );
}

/** Says of roles that policies ask for and no person has: nothing gets in before a person has one. */
export function UnheldRoles({ policies }: { policies: readonly string[] }) {
  const { t } = useTranslation();
  const roles = useRoles();
  const mayAdd = useRefusal()('admin') === null;
  if (roles.data === undefined) return null;
  const { items } = roles.data;
  const asked = new Set(policies.map(roleOf).filter(role => role !== null));
  return [...asked].map(role => {
    const known = items.find(r => r.role === role);
    if (known !== undefined && known.holders > 0) return null;
    return (
      <Alert key={role} color="orange" icon={<IconUsersGroup aria-hidden />} title={t('roleField.unheld', { role })}>
        <Stack gap="sm">
          <Text size="sm">{t(known?.imported === true ? 'roleField.unheldImported' : 'roleField.unheldAbout')}</Text>
          <Group gap="xs">
            {known?.imported === true && (
              <LinkButton to="/admin/university" size="xs">
                {t('people.import')}
              </LinkButton>
            )}
            {mayAdd && (
              <LinkButton to="/admin/people" search={{ add: '1', role }} size="xs" variant="default">
                {t('roleField.addPerson')}
              </LinkButton>
            )}
            <LinkButton to="/admin/people" size="xs" variant="default">
              {t('roleField.toPeople')}
            </LinkButton>
          </Group>
        </Stack>
      </Alert>
    );
  });
}
