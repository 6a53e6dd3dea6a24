import { Alert, Button, Checkbox, Group, PasswordInput, Stack, TagsInput, Text, TextInput } from '@mantine/core';
import { useForm } from '@mantine/form';
import { IconAlertTriangle } from '@tabler/icons-react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { type ChangeEvent, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas, tagOf } from '../api/client.ts';
import { ApiProblem } from '../api/problem.ts';
import { May } from '../app/may.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { ProblemAlert } from '../parts/problem.tsx';
import { useLeaveQuestion } from '../parts/use-leave-question.ts';
import { type AccessChoice, accessOf, firstChoice, InstallAccess } from './install-access.tsx';
import { permissionOf, Section } from './review.tsx';

type Upload = Schemas['Upload'];
type Values = {
  config: Record<string, string>;
  databases: Record<string, string>;
  hosts: string[];
  ranges: string[];
  access: AccessChoice;
  accepted: boolean;
};

/** The configuration of an installation: what was not touched is not sent, and stays as it is. */
function configOf(values: Values, initial: Values): Record<string, unknown> {
  const changed = (all: Record<string, string>, was: Record<string, string>): Array<[string, string]> =>
    Object.entries(all).filter(([name, value]) => value !== was[name]);
  const databases = changed(values.databases, initial.databases);
  const isSame = String(values.hosts) === String(initial.hosts) && String(values.ranges) === String(initial.ranges);
  return {
    // Null takes a value away.
    ...Object.fromEntries(changed(values.config, initial.config).map(([name, v]) => [name, v === '' ? null : v])),
    ...(databases.length === 0 ? {} : { databases: Object.fromEntries(databases) }),
    ...(isSame ? {} : { network: { hosts: values.hosts, private: values.ranges } }),
  };
}

/** Refusals of what was sent over something else than was read. */
const OUTDATED: ReadonlySet<string> = new Set(['precondition_failed', 'permissions_not_accepted']);

type Props = { upload: Upload; onBack: () => void; onDone: () => void };

/** The form, when it is known what is installed: an upgrade begins with its values. */
export function InstallForm(props: Props) {
  const { id, installed_version } = props.upload;
  const before = useQuery({
    queryKey: ['plugins', id, 'to-install'],
    queryFn: async () => {
      const reply = await api.GET('/api/admin/plugins/{id}', { params: { path: { id } } });
      return { plugin: answered(reply), tag: tagOf(reply) };
    },
    enabled: installed_version !== null,
    // The form begins with what is there now, and with the tag of that.
    gcTime: 0,
  });
  if (installed_version === null) return <KnownForm {...props} before={null} tag={null} />;
  return <Loaded query={before}>{({ plugin, tag }) => <KnownForm {...props} before={plugin} tag={tag} />}</Loaded>;
}

/** Fields of the configuration, databases, hosts, and who may call: everything an installation needs, in one form. */
function KnownForm(props: Props & { before: Schemas['Plugin'] | null; tag: string | null }) {
  const { before, onBack, onDone, upload } = props;
  // Of the values the form began with: what is read again meanwhile may be another administrator's.
  const [tag, setTag] = useState(props.tag);
  const { t } = useTranslation();
  const queries = useQueryClient();
  const [error, setError] = useState<unknown>(null);
  /** Values as they were read again, by field; null for one that is not shown. */
  const [present, setPresent] = useState<ReadonlyMap<string, string | null>>(new Map());
  const isUpgrade = before !== null;
  const fields = upload.requirements.flatMap(r => r.config);
  const databases = upload.requirements.filter(r => r.kind === 'sql').map(r => r.name ?? 'default');
  const hadDatabases = new Set(before?.requirements.filter(r => r.kind === 'sql').map(r => r.name ?? 'default'));
  const hasNetwork = upload.permissions.includes('network');
  const held = new Map(before?.config.map(c => [c.name, c]));
  const initialValues: Values = {
    config: Object.fromEntries(fields.map(f => [f.name, held.get(f.name)?.value ?? ''])),
    databases: Object.fromEntries(databases.map(d => [d, ''])),
    hosts: before?.network?.hosts ?? [],
    ranges: before?.network?.private ?? [],
    access: firstChoice(upload),
    accepted: false,
  };
  const [initial] = useState(initialValues);
  const form = useForm<Values>({
    initialValues: initial,
    validate: {
      access: ({ kind, role }) => (kind === 'role' && role.trim() === '' ? t('install.roleMissing') : null),
    },
  });
  const isSet = (name: string): boolean => held.get(name)?.is_set === true;
  const saved = useLeaveQuestion(form.isDirty(), t('install.leaveText'));
  /** Names may hold a dot, in which the kit would see a path. */
  const typed = (group: 'config' | 'databases', name: string) => ({
    value: form.values[group][name] ?? '',
    error: form.errors[`${group}.${name}`],
    onChange: (event: ChangeEvent<HTMLInputElement>) => {
      form.setFieldValue(group, { ...form.values[group], [name]: event.currentTarget.value });
      form.clearFieldError(`${group}.${name}`);
    },
  });
  /** What is asked for is compared with what is installed now: it is read, and accepted, again. */
  const readAgain = async (): Promise<void> => {
    form.setFieldValue('accepted', false);
    await queries.invalidateQueries({ queryKey: ['plugins', upload.id, 'review'] });
    const reply = await api.GET('/api/admin/plugins/{id}', { params: { path: { id: upload.id } } });
    setTag(tagOf(reply));
    setPresent(new Map(answered(reply).config.map(c => [c.name, c.value ?? null])));
  };
  /** The value another administrator has given a field since the form was opened. */
  const changedTo = (name: string): string | null => {
    const value = present.get(name);
    const before = initial.config[name] ?? '';
    // A secret is not shown, neither then nor now.
    if (value === undefined || held.get(name)?.sensitive === true || (value ?? '') === before) return null;
    return value ?? t('install.cleared');
  };
  const submit = form.onSubmit(async values => {
    setError(null);
    try {
      const body = {
        wasm_key: upload.wasm_key,
        config: configOf(values, initial),
        accept_permissions: values.accepted ? upload.new_permissions : [],
        ...accessOf(values.access, upload),
      };
      const header = tag === null ? {} : { 'If-Match': tag };
      const params = { path: { id: upload.id }, header };
      answered(await api.POST('/api/admin/plugins/{id}/install', { params, body }));
      saved();
      await queries.invalidateQueries({ queryKey: ['plugins'] });
      onDone();
    } catch (problem) {
      // Before it is shown: who then sends it again knows of the change, and sends it over what is installed now.
      if (problem instanceof ApiProblem && OUTDATED.has(problem.code)) await readAgain().catch(() => {});
      setError(problem);
      if (problem instanceof ApiProblem) form.setErrors(placesOf(problem));
    }
  });
  return (
    <form onSubmit={submit}>
      <Stack gap="lg">
        {upload.new_permissions.length > 0 && (
          <Alert color="orange" title={t('install.newPermissions')}>
            <Text size="sm" mb="xs">
              {upload.requirements
                .filter(r => upload.new_permissions.includes(permissionOf(r)))
                .map(r => `${t(`permission.${r.kind}.title`)}${r.target === undefined ? '' : `: ${r.target}`}`)
                .join(', ')}
            </Text>
            <Checkbox label={t('install.accept')} {...form.getInputProps('accepted', { type: 'checkbox' })} />
          </Alert>
        )}
        {fields.length > 0 && (
          <Section title={t('install.config')}>
            <Stack maw={560}>
              {fields.map(f => {
                const common = {
                  label: f.name,
                  description:
                    changedTo(f.name) === null
                      ? f.description
                      : `${f.description} ${t('install.changedTo', { value: changedTo(f.name) })}`,
                  required: f.required && !isSet(f.name),
                  placeholder: isSet(f.name) ? t('install.unchanged') : '',
                  autoComplete: 'off',
                };
                return f.sensitive ? (
                  <PasswordInput key={f.name} {...common} {...typed('config', f.name)} />
                ) : (
                  <TextInput key={f.name} {...common} {...typed('config', f.name)} />
                );
              })}
            </Stack>
          </Section>
        )}
        {databases.length > 0 && (
          <Section title={t('install.databases')} about={t('install.databasesAbout')}>
            <Stack maw={720}>
              {databases.map(name => (
                <DatabaseField
                  key={name}
                  pluginId={upload.id}
                  name={name}
                  isRequired={!hadDatabases.has(name)}
                  value={form.values.databases[name] ?? ''}
                  input={typed('databases', name)}
                />
              ))}
            </Stack>
          </Section>
        )}
        {hasNetwork && (
          <Section title={t('install.network')} about={t('install.networkAbout')}>
            <Stack maw={560}>
              <TagsInput
                label={t('install.hosts')}
                description={t('install.hostsAbout')}
                placeholder="api.example.org"
                {...form.getInputProps('hosts')}
              />
              <TagsInput
                label={t('install.ranges')}
                description={t('install.rangesAbout')}
                placeholder="10.1.0.0/16"
                {...form.getInputProps('ranges')}
              />
            </Stack>
          </Section>
        )}
        <Section title={t('install.access')}>
          <InstallAccess
            upload={upload}
            value={form.values.access}
            onChange={access => form.setFieldValue('access', access)}
            error={form.errors.access}
          />
        </Section>
        <ProblemAlert error={error} />
        <Group>
          <Button variant="default" onClick={onBack}>
            {t('common.back')}
          </Button>
          <Button
            type="submit"
            loading={form.submitting}
            disabled={upload.new_permissions.length > 0 && !form.values.accepted}
          >
            {t(isUpgrade ? 'install.upgrade' : 'install.submit')}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

/** Errors at their fields: the service names them as pointers into the body. */
const placesOf = (problem: ApiProblem): Record<string, string> =>
  Object.fromEntries(
    problem.places.map(p => {
      const [, , first = '', second = ''] = p.pointer.split('/');
      if (first === 'databases') return [`databases.${second}`, p.message];
      if (first === 'network') return [second === 'private' ? 'ranges' : 'hosts', p.message];
      return [`config.${first}`, p.message];
    }),
  );

/** What a test of a connection has found; a warning stands out. */
function Trial({ trial }: { trial: Schemas['ConnectionTrial'] }) {
  const { t } = useTranslation();
  return (
    <>
      <Text size="sm" mt={4} c={trial.ok ? 'teal' : 'red'} role="status">
        {trial.ok
          ? t('install.testOk', {
              database: trial.database,
              user: trial.user,
              version: trial.server_version,
              ms: trial.latency_ms,
            })
          : `${t('install.testFailed')} ${trial.error.code}: ${trial.error.message}`}
      </Text>
      {trial.ok && trial.warnings.length > 0 && (
        <Alert color="orange" mt={4} icon={<IconAlertTriangle aria-hidden />}>
          {trial.warnings.map(w => (
            <Text key={w} size="sm" lang="en">
              {w}
            </Text>
          ))}
        </Alert>
      )}
    </>
  );
}

function DatabaseField(props: { pluginId: string; name: string; isRequired: boolean; value: string; input: object }) {
  const { input, isRequired, name, pluginId, value } = props;
  const { t } = useTranslation();
  /** What was found, or why it was refused, for the string that was tested. */
  const [tried, setTried] = useState<{
    of: string;
    trial: Schemas['ConnectionTrial'] | null;
    problem: unknown;
  } | null>(null);
  const [isTrying, setTrying] = useState(false);
  const tryIt = async (): Promise<void> => {
    setTrying(true);
    try {
      const body = { name, ...(value === '' ? {} : { connection_string: value }) };
      const params = { path: { id: pluginId } };
      const trial = answered(await api.POST('/api/admin/plugins/{id}/databases/test', { params, body }));
      setTried({ of: value, trial, problem: null });
    } catch (problem) {
      setTried({ of: value, trial: null, problem });
    } finally {
      setTrying(false);
    }
  };
  const now = tried?.of === value ? tried : null;
  return (
    <div>
      <Group align="flex-end" gap="xs">
        <PasswordInput
          style={{ flex: '1 1 16rem' }}
          label={name}
          placeholder={isRequired ? 'postgresql://user:password@host:5432/database' : t('install.unchanged')}
          required={isRequired}
          autoComplete="off"
          {...input}
        />
        <May need="plugins:accept" isInline>
          <Button variant="default" onClick={tryIt} loading={isTrying} disabled={isRequired && value === ''}>
            {t('install.test')}
          </Button>
        </May>
      </Group>
      <ProblemAlert error={now?.problem} />
      {now?.trial && <Trial trial={now.trial} />}
    </div>
  );
}
