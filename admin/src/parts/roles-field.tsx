import { Checkbox, Radio, Stack, TagsInput } from '@mantine/core';
import { type ReactNode, useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { Role } from '../app/may.tsx';
import { useFoundPlugins } from './plugin-picker.tsx';

/** Roles in the order of what they open. */
export const ROLES: readonly Role[] = ['auditor', 'operator', 'plugin_manager', 'access_manager', 'owner'];

/** What an administrator may do; `plugins` null: a plugin manager manages all of them. */
export type MayDo = { roles: Role[]; plugins: string[] | null };

/** What to send: an owner needs no other role, and only a plugin manager is limited to plugins. */
export function sentRoles({ plugins, roles }: MayDo): MayDo {
  if (roles.includes('owner')) return { roles: ['owner'], plugins: null };
  return { roles, plugins: roles.includes('plugin_manager') ? plugins : null };
}

/** Chooses the roles of an administrator, with what each may do in plain words. */
export function RolesField(props: { value: MayDo; onChange: (value: MayDo) => void; error?: ReactNode }) {
  const { error, onChange, value } = props;
  const { t } = useTranslation();
  const isOwner = value.roles.includes('owner');
  return (
    <Checkbox.Group
      label={t('admins.roles')}
      withAsterisk
      value={value.roles}
      onChange={texts => onChange({ ...value, roles: ROLES.filter(r => texts.includes(r)) })}
      error={error}
    >
      <Stack gap="xs" mt={6} mb={4}>
        {ROLES.map(role => (
          <div key={role}>
            <Checkbox
              value={role}
              label={t(`admins.role.${role}.title`)}
              description={t(`admins.role.${role}.about`)}
              disabled={isOwner && role !== 'owner'}
            />
            {role === 'plugin_manager' && value.roles.includes(role) && !isOwner && (
              <ManagedPlugins plugins={value.plugins} onChange={plugins => onChange({ ...value, plugins })} />
            )}
          </div>
        ))}
      </Stack>
    </Checkbox.Group>
  );
}

/** All plugins, or those that are named. */
export function ManagedPlugins(props: { plugins: string[] | null; onChange: (plugins: string[] | null) => void }) {
  const { onChange, plugins } = props;
  const { t } = useTranslation();
  const [text, setText] = useState('');
  const found = useFoundPlugins(text);
  return (
    <Stack gap="xs" ml="xl" mt="xs">
      <Radio.Group
        label={t('adminKeys.deployWhich')}
        value={plugins === null ? 'all' : 'named'}
        onChange={v => onChange(v === 'all' ? null : [])}
      >
        <Stack gap={6} mt={4}>
          <Radio value="all" label={t('adminKeys.deployAll')} />
          <Radio value="named" label={t('adminKeys.deployNamed')} />
        </Stack>
      </Radio.Group>
      {plugins !== null && (
        <TagsInput
          label={t('adminKeys.deployIds')}
          description={t('adminKeys.deployIdsAbout')}
          data={found.data?.items.map(p => p.id) ?? []}
          value={plugins}
          onChange={onChange}
          searchValue={text}
          onSearchChange={setText}
          acceptValueOnBlur
        />
      )}
    </Stack>
  );
}
