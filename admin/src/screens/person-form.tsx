import { Button, Group, Select, SimpleGrid, Stack, Text, TextInput } from '@mantine/core';
import { useForm } from '@mantine/form';
import { notifications } from '@mantine/notifications';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import { ApiProblem } from '../api/problem.ts';
import { ProblemAlert, problemText } from '../parts/problem.tsx';
import { isRoleName, RoleField } from '../parts/role-field.tsx';
import { useLeaveQuestion } from '../parts/use-leave-question.ts';
import { currentLanguage } from '../texts/index.ts';

type User = Schemas['User'];

export const LOCALES = ['ru', 'en'] as const;
export const CHANNELS = ['TELEGRAM', 'VK'] as const;
const NATIONALITIES = ['domestic', 'foreign'] as const;
const FUNDINGS = ['budget', 'contract'] as const;
const EDUCATIONS = ['full_time', 'part_time', 'remote'] as const;

/** Fields as they are typed: empty is unknown. */
type Values = Record<keyof Omit<User, 'id' | 'created_at' | 'updated_at'>, string>;

const valuesOf = (u: User | null): Values => ({
  external_id: u?.external_id ?? '',
  idp_accounts_id: u?.idp_accounts_id ?? '',
  display_name: u?.display_name ?? '',
  primary_channel: u?.primary_channel ?? '',
  locale: u?.locale ?? currentLanguage(),
  nationality_type: u?.nationality_type ?? '',
  funding_type: u?.funding_type ?? '',
  education_form: u?.education_form ?? '',
});

const oneOf = <W extends string>(words: readonly W[], text: string): W | null => words.find(w => w === text) ?? null;

/** What is sent: only what has changed, so that a change of another administrator stays. */
function changesOf(before: Values, now: Values) {
  const has = (field: keyof Values): boolean => before[field] !== now[field];
  return {
    ...(has('external_id') ? { external_id: now.external_id.trim() || null } : {}),
    ...(has('idp_accounts_id') ? { idp_accounts_id: now.idp_accounts_id.trim() || null } : {}),
    ...(has('display_name') ? { display_name: now.display_name.trim() } : {}),
    ...(has('primary_channel') ? { primary_channel: oneOf(CHANNELS, now.primary_channel) } : {}),
    ...(has('locale') ? { locale: oneOf(LOCALES, now.locale) ?? 'ru' } : {}),
    ...(has('nationality_type') ? { nationality_type: oneOf(NATIONALITIES, now.nationality_type) } : {}),
    ...(has('funding_type') ? { funding_type: oneOf(FUNDINGS, now.funding_type) } : {}),
    ...(has('education_form') ? { education_form: oneOf(EDUCATIONS, now.education_form) } : {}),
  };
}

/** Gives a role to a person who was just added; the person stays when that fails, and it can be given again. */
async function giveRole(user: number, role: string): Promise<void> {
  try {
    const params = { path: { user, kind: 'database', role } } as const;
    answered(await api.PUT('/api/admin/users/{user}/roles/{kind}/{role}', { params }));
  } catch (problem) {
    // The person is added all the same, so that it was not confirmed is said, too.
    notifications.show({ color: 'red', message: problemText(problem), autoClose: false });
  }
}

/** Adds a person, or changes one. */
export function PersonForm(props: {
  person: User | null;
  /** A role for a new person, to begin with. */
  role?: string;
  onDone: (user: User) => void;
  onCancel: () => void;
}) {
  const { onCancel, onDone, person } = props;
  const { t } = useTranslation();
  const queries = useQueryClient();
  const [error, setError] = useState<unknown>(null);
  const [role, setRole] = useState(props.role ?? '');
  // As it was when one began to type: what another administrator changes meanwhile is no change of one's own.
  const [before] = useState(() => valuesOf(person));
  const form = useForm({
    initialValues: before,
    validate: { display_name: name => (name.trim() === '' ? t('person.nameNeeded') : null) },
  });
  const saved = useLeaveQuestion(form.isDirty() || role !== (props.role ?? ''), t('common.leaveText'));
  const submit = form.onSubmit(async values => {
    // The field says what is wrong; nothing is saved without it.
    if (role.trim() !== '' && !isRoleName(role.trim())) return;
    setError(null);
    try {
      const user =
        person === null
          ? answered(
              await api.POST('/api/admin/users', {
                body: { ...changesOf(before, values), locale: oneOf(LOCALES, values.locale) ?? 'ru' },
              }),
            )
          : answered(
              await api.PATCH('/api/admin/users/{user}', {
                params: { path: { user: person.id } },
                body: changesOf(before, values),
              }),
            );
      if (person === null && role.trim() !== '') await giveRole(user.id, role.trim());
      await queries.invalidateQueries({ queryKey: ['users'] });
      await queries.invalidateQueries({ queryKey: ['roles'] });
      saved();
      onDone(user);
    } catch (problem) {
      if (problem instanceof ApiProblem) form.setErrors(problem.fields);
      setError(problem);
    }
  });
  const choice = (field: keyof Values, label: string, options: Array<{ value: string; label: string }>) => (
    <Select
      label={label}
      placeholder={t('person.unknown')}
      data={options}
      clearable={field !== 'locale'}
      allowDeselect={false}
      {...form.getInputProps(field)}
      value={form.values[field] === '' ? null : form.values[field]}
      onChange={v => form.setFieldValue(field, v ?? '')}
    />
  );
  return (
    <form onSubmit={submit} noValidate>
      <Stack>
        <Text size="sm" c="dimmed">
          {t(person === null ? 'people.addAbout' : 'person.overwritten')}
        </Text>
        <TextInput label={t('person.name')} required data-autofocus {...form.getInputProps('display_name')} />
        <TextInput
          label={t('person.externalId')}
          description={t('person.externalIdAbout')}
          {...form.getInputProps('external_id')}
        />
        {person === null && <RoleField value={role} onChange={setRole} description={t('people.roleAbout')} />}
        <TextInput
          label={t('person.idp')}
          description={t('person.idpAbout')}
          {...form.getInputProps('idp_accounts_id')}
        />
        <SimpleGrid cols={{ base: 1, xs: 2 }}>
          {choice(
            'locale',
            t('person.language'),
            LOCALES.map(v => ({ value: v, label: t(`person.languages.${v}`) })),
          )}
          {choice(
            'primary_channel',
            t('person.primaryChannel'),
            CHANNELS.map(v => ({ value: v, label: t(`person.messengers.${v}`) })),
          )}
          {choice(
            'nationality_type',
            t('person.nationality'),
            NATIONALITIES.map(v => ({ value: v, label: t(`person.nationalities.${v}`) })),
          )}
          {choice(
            'funding_type',
            t('person.funding'),
            FUNDINGS.map(v => ({ value: v, label: t(`person.fundings.${v}`) })),
          )}
          {choice(
            'education_form',
            t('person.education'),
            EDUCATIONS.map(v => ({ value: v, label: t(`person.educations.${v}`) })),
          )}
        </SimpleGrid>
        {error !== null && <ProblemAlert error={error} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={onCancel}>
            {t('common.cancel')}
          </Button>
          <Button type="submit" loading={form.submitting} disabled={person !== null && !form.isDirty()}>
            {t(person === null ? 'people.add' : 'common.save')}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
