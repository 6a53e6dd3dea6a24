import { Alert, Button, Checkbox, Group, Stack, Text, TextInput } from '@mantine/core';
import { useForm } from '@mantine/form';
import { type ReactNode, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import { ApiProblem } from '../api/problem.ts';
import { type Expiry, ExpiryField, expiryTime } from '../parts/key-expiry.tsx';
import { KeySecret } from '../parts/key-secret.tsx';
import { ProblemAlert } from '../parts/problem.tsx';
import { ManagedPlugins } from '../parts/roles-field.tsx';
import { useLeaveQuestion } from '../parts/use-leave-question.ts';

export const DEPLOY_ONE = 'plugins:deploy:';

/** Scopes as the service names them, with the names of their texts; those of least harm first. */
export const SCOPES = [
  { scope: 'read', text: 'read' },
  { scope: 'people', text: 'people' },
  { scope: 'university', text: 'university' },
  { scope: 'operate', text: 'operate' },
  { scope: 'plugins:deploy', text: 'deploy' },
  { scope: 'plugins:accept', text: 'accept' },
  { scope: 'access', text: 'access' },
  { scope: 'admin', text: 'admin' },
] as const;
type Scope = (typeof SCOPES)[number]['scope'];

type Made = Schemas['AdminKey'] & { key: string; unknown_plugins?: string[] };
type Values = { name: string; scopes: Scope[]; plugins: string[] | null; expiry: Expiry };

/** Scopes to send: what another holds is left out, and deploying is limited to the plugins that are named. */
function sentScopes({ plugins, scopes }: Pick<Values, 'scopes' | 'plugins'>): string[] {
  if (scopes.includes('admin')) return ['admin'];
  return scopes.flatMap((s): string[] =>
    s === 'plugins:deploy' && plugins !== null ? plugins.map(p => `${DEPLOY_ONE}${p}`) : [s],
  );
}

/** The secret of an administration key, with a call that uses it. */
export const AdminKeySecret = (props: {
  made: { name: string; key: string };
  children: ReactNode;
  onDone: () => void;
}) => (
  <KeySecret
    name={props.made.name}
    secret={props.made.key}
    example={`curl -H 'Authorization: Bearer ${props.made.key}' ${location.origin}/api/admin/plugins`}
    onDone={props.onDone}
  >
    {props.children}
  </KeySecret>
);

/** Makes a key with the scopes one picks in plain words, and shows its text once. */
export function AdminKeyForm({ onDone, onMade }: { onDone: () => void; onMade: () => void }) {
  const { t } = useTranslation();
  const [error, setError] = useState<unknown>(null);
  const [made, setMade] = useState<Made | null>(null);
  const form = useForm<Values>({
    initialValues: { name: '', scopes: [], plugins: null, expiry: { choice: 'd90', day: '' } },
    validate: {
      scopes: (_, all) => (sentScopes(all).length === 0 ? t('adminKeys.chooseScope') : null),
      expiry: value => (expiryTime(value) === undefined ? t('keys.pickDay') : null),
    },
  });
  const saved = useLeaveQuestion(form.isDirty() && made === null, t('common.leaveText'));
  const submit = form.onSubmit(async values => {
    setError(null);
    try {
      const body = {
        name: values.name.trim(),
        scopes: sentScopes(values),
        expires_at: expiryTime(values.expiry) ?? null,
      };
      setMade(answered(await api.POST('/api/admin/keys', { body })));
      saved();
      onMade();
    } catch (problem) {
      const { expires_at, ...fields } = problem instanceof ApiProblem ? problem.fields : {};
      form.setErrors({ ...fields, ...(expires_at === undefined ? {} : { expiry: expires_at }) });
      setError(problem);
    }
  });
  if (made !== null)
    return (
      <AdminKeySecret made={made} onDone={onDone}>
        {made.unknown_plugins !== undefined && (
          <Alert color="orange">{t('adminKeys.unknown', { plugins: made.unknown_plugins.join(', ') })}</Alert>
        )}
      </AdminKeySecret>
    );
  return (
    <form onSubmit={submit}>
      <Stack>
        <TextInput
          label={t('keys.name')}
          description={t('keys.nameAbout')}
          required
          maxLength={200}
          data-autofocus
          {...form.getInputProps('name')}
        />
        <ScopePicker
          scopes={form.values.scopes}
          plugins={form.values.plugins}
          onChange={change => {
            form.setValues(change);
            form.clearFieldError('scopes');
          }}
          error={form.errors.scopes}
        />
        <ExpiryField
          value={form.values.expiry}
          onChange={expiry => form.setFieldValue('expiry', expiry)}
          error={form.errors.expiry}
        />
        <Text size="sm" c="dimmed">
          {t('adminKeys.limits')} {t('adminKeys.removedWith')}
        </Text>
        {error !== null && <ProblemAlert error={error} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={onDone}>
            {t('common.cancel')}
          </Button>
          <Button type="submit" loading={form.submitting}>
            {t('adminKeys.make')}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

function ScopePicker(props: {
  scopes: Scope[];
  plugins: string[] | null;
  onChange: (change: Partial<Pick<Values, 'scopes' | 'plugins'>>) => void;
  error: React.ReactNode;
}) {
  const { error, onChange, plugins, scopes } = props;
  const { t } = useTranslation();
  const hasAll = scopes.includes('admin');
  const hasDeploy = scopes.includes('plugins:deploy');
  const choose = (texts: string[]): void => {
    const chosen = SCOPES.map(s => s.scope).filter(s => texts.includes(s));
    // Accepting permissions adds to deploying and opens nothing alone.
    onChange({ scopes: chosen.filter(s => s !== 'plugins:accept' || chosen.includes('plugins:deploy')) });
  };
  return (
    <Checkbox.Group label={t('keys.scopes')} value={scopes} onChange={choose} error={error} withAsterisk>
      <Stack gap="xs" mt={6} mb={4}>
        {SCOPES.map(({ scope, text }) => {
          const isHeld = hasAll && scope !== 'admin';
          return (
            <div key={scope}>
              <Checkbox
                value={scope}
                label={t(`adminKeys.scope.${text}.title`)}
                description={t(`adminKeys.scope.${text}.about`)}
                disabled={isHeld || (scope === 'plugins:accept' && !hasDeploy && !hasAll)}
                ml={scope === 'plugins:accept' ? 'xl' : undefined}
              />
              {scope === 'plugins:deploy' && hasDeploy && !hasAll && (
                <ManagedPlugins plugins={plugins} onChange={to => onChange({ plugins: to })} />
              )}
            </div>
          );
        })}
      </Stack>
    </Checkbox.Group>
  );
}
