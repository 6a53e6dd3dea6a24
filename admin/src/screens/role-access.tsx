import { Alert, Button, Checkbox, Group, Stack } from '@mantine/core';
import { IconUsersGroup } from '@tabler/icons-react';
import { useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas, tagOf } from '../api/client.ts';
import { Dialog } from '../parts/dialog.tsx';
import { notifyDone, ProblemAlert } from '../parts/problem.tsx';
import { policyOf, RoleField } from '../parts/role-field.tsx';
import { useLeaveQuestion } from '../parts/use-leave-question.ts';

type Settings = Schemas['TriggerSettings'];

type Props = {
  pluginId: string;
  items: readonly Settings[];
  /** The plugin's commands of messengers, which the role does not change. */
  commands: readonly string[];
};

/** Lets people with one role call triggers, without writing a policy by hand. */
export function RoleAccess(props: Props) {
  const { t } = useTranslation();
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <div>
        <Button variant="light" leftSection={<IconUsersGroup size={18} aria-hidden />} onClick={() => setOpen(true)}>
          {t('roleAccess.open')}
        </Button>
      </div>
      <Dialog opened={isOpen} onClose={() => setOpen(false)} title={t('roleAccess.open')} size="md">
        <RoleForm {...props} onDone={() => setOpen(false)} />
      </Dialog>
    </>
  );
}

function RoleForm(props: Props & { onDone: () => void }) {
  const { commands, items, onDone, pluginId } = props;
  const { t } = useTranslation();
  const queries = useQueryClient();
  const [role, setRole] = useState('');
  const [chosen, setChosen] = useState<string[]>(items.map(s => s.trigger));
  const [error, setError] = useState<unknown>(null);
  const [isSending, setSending] = useState(false);
  const name = role.trim();
  const saved = useLeaveQuestion(name !== '', t('common.leaveText'));
  const replaced = items.filter(
    s => chosen.includes(s.trigger) && s.policy_expression !== '' && s.policy_expression !== policyOf(name),
  );
  const disabled = items.filter(s => chosen.includes(s.trigger) && !s.enabled);
  /** Only what was shown is replaced. */
  const allow = async ({ policy_expression, trigger }: Settings): Promise<void> => {
    const path = { id: pluginId, name: trigger };
    const now = await api.GET('/api/admin/plugins/{id}/triggers/{name}/settings', { params: { path } });
    if (answered(now).policy_expression !== policy_expression) throw new Error(t('roleAccess.changed', { trigger }));
    const params = { path, header: { 'If-Match': tagOf(now) } };
    const body = { allow_user_session: true, policy_expression: policyOf(name) };
    answered(await api.PUT('/api/admin/plugins/{id}/triggers/{name}/settings', { params, body }));
  };
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setSending(true);
    setError(null);
    try {
      for (const s of items.filter(item => chosen.includes(item.trigger))) {
        await allow(s);
        setChosen(left => left.filter(trigger => trigger !== s.trigger));
      }
      notifyDone(t('roleAccess.done', { role: name, triggers: chosen.join(', ') }));
      saved();
      onDone();
    } catch (problem) {
      setError(problem);
    } finally {
      setSending(false);
      await queries.invalidateQueries({ queryKey: ['plugins', pluginId] });
    }
  };
  return (
    <form onSubmit={submit}>
      <Stack>
        <RoleField value={role} onChange={setRole} description={t('roleAccess.roleAbout')} isRequired isFocused />
        <Checkbox.Group label={t('roleAccess.what')} value={chosen} onChange={setChosen}>
          <Stack gap={6} mt={6}>
            {items.map(s => (
              <Checkbox key={s.trigger} value={s.trigger} label={`${s.trigger} (${s.methods.join(', ')} ${s.path})`} />
            ))}
          </Stack>
        </Checkbox.Group>
        {name !== '' && replaced.length > 0 && (
          <Alert color="orange">
            {t('roleAccess.replaces', { triggers: replaced.map(s => s.trigger).join(', ') })}
          </Alert>
        )}
        {disabled.length > 0 && (
          <Alert>{t('roleAccess.disabled', { triggers: disabled.map(s => s.trigger).join(', ') })}</Alert>
        )}
        {commands.length > 0 && (
          <Alert>{t('roleAccess.commands', { commands: commands.map(c => `/${c}`).join(', ') })}</Alert>
        )}
        <ProblemAlert error={error} />
        <Group justify="flex-end">
          <Button variant="default" onClick={onDone}>
            {t('common.cancel')}
          </Button>
          <Button type="submit" loading={isSending} disabled={name === '' || chosen.length === 0}>
            {t('roleAccess.go')}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
