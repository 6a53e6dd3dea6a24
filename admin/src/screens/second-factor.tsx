import { Alert, Button, Code, Group, Modal, SimpleGrid, Stack, Text, TextInput, Title } from '@mantine/core';
import { IconDeviceMobile, IconFingerprint, IconKey, IconTrash } from '@tabler/icons-react';
import { useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import { isBrokenOff, knowsPasskeys, makePasskey } from '../api/passkey.ts';
import { confirmed } from '../api/questions.ts';
import { useNewSession, useSecondFactor, useSession } from '../app/session.ts';
import { CopyIcon } from '../parts/copy.tsx';
import { LeaveGuard } from '../parts/leave-guard.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { notifyDone, notifyProblem, ProblemAlert } from '../parts/problem.tsx';
import { saveText } from '../parts/save-file.ts';
import { When } from '../parts/time.tsx';
import { TotpForm } from './totp-form.tsx';

type Factor = Schemas['SecondFactor'];

/** One's own passkeys, authenticator app and recovery codes. */
export default function SecondFactor() {
  const query = useSecondFactor();
  const [codes, setCodes] = useState<string[] | null>(null);
  return (
    <>
      <Loaded query={query}>{factor => <Factors factor={factor} onCodes={setCodes} />}</Loaded>
      <RecoveryCodes codes={codes} onClose={() => setCodes(null)} />
    </>
  );
}

function Factors({ factor, onCodes }: { factor: Factor; onCodes: (codes: string[]) => void }) {
  const { t } = useTranslation();
  const queries = useQueryClient();
  const [isAddingApp, setAddingApp] = useState(false);
  const isNone = factor.passkeys.length === 0 && factor.totp_since === null;
  const changed = async (codes: string[] | null): Promise<void> => {
    if (codes !== null) onCodes(codes);
    await queries.invalidateQueries({ queryKey: ['second-factor'] });
    // Codes are read first: the page goes on when they are closed.
    if (codes === null) await queries.invalidateQueries({ queryKey: ['session'] });
  };
  const removed = async (work: () => Promise<unknown>, text: string, action: string): Promise<void> => {
    if (!(await confirmed({ title: t('secondFactor.removeTitle'), text, action, isDangerous: true }))) return;
    try {
      await work();
    } catch (problem) {
      notifyProblem(problem);
    }
    await changed(null);
  };
  const removePasskey = (p: Schemas['Passkey']): Promise<void> =>
    removed(
      () => api.DELETE('/api/admin/auth/passkeys/{passkey}', { params: { path: { passkey: p.id } } }),
      t('secondFactor.removePasskey', { name: p.name }),
      t('common.remove'),
    );
  const renew = async (): Promise<void> => {
    const question = { title: t('secondFactor.renewTitle'), text: t('secondFactor.renewText') };
    if (!(await confirmed({ ...question, action: t('secondFactor.renew'), isDangerous: false }))) return;
    try {
      const { recovery_codes } = answered(await api.POST('/api/admin/auth/recovery-codes'));
      await changed(recovery_codes);
    } catch (problem) {
      notifyProblem(problem);
    }
  };
  return (
    <Stack gap="lg">
      {isNone && <Text size="sm">{t('secondFactor.none')}</Text>}
      <Stack gap="xs">
        <Title order={3} size="h5">
          {t('secondFactor.passkeys')}
        </Title>
        {factor.passkeys.map(p => (
          <Group key={p.id} justify="space-between" wrap="nowrap" align="flex-start">
            <div style={{ minWidth: 0 }}>
              <Text size="sm" fw={500} style={{ overflowWrap: 'anywhere' }}>
                {p.name}
              </Text>
              <Text size="xs" c="dimmed" component="div">
                {p.last_used_at === null ? (
                  <>
                    {t('secondFactor.made')} <When at={p.created_at} />
                  </>
                ) : (
                  <>
                    {t('secondFactor.used')} <When at={p.last_used_at} />
                  </>
                )}
              </Text>
              {!p.is_usable && (
                <Text size="xs" c="orange">
                  {t('secondFactor.elsewhere', { host: p.host })}
                </Text>
              )}
            </div>
            <Button
              size="compact-sm"
              variant="subtle"
              color="red"
              aria-label={t('secondFactor.removeNamed', { name: p.name })}
              onClick={() => void removePasskey(p)}
            >
              <IconTrash size={16} aria-hidden />
            </Button>
          </Group>
        ))}
        <AddPasskey factor={factor} onAdded={changed} />
      </Stack>
      <Stack gap="xs">
        <Title order={3} size="h5">
          {t('secondFactor.app')}
        </Title>
        {factor.totp_since !== null && !isAddingApp && (
          <Group justify="space-between">
            <Text size="sm" component="div">
              {t('secondFactor.appSince')} <When at={factor.totp_since} />
            </Text>
            <Button
              size="compact-sm"
              variant="subtle"
              color="red"
              onClick={() =>
                void removed(() => api.DELETE('/api/admin/auth/totp'), t('secondFactor.removeApp'), t('common.remove'))
              }
            >
              {t('common.remove')}
            </Button>
          </Group>
        )}
        {isAddingApp ? (
          <TotpForm
            onCancel={() => setAddingApp(false)}
            onAdded={async codes => {
              setAddingApp(false);
              notifyDone(t('secondFactor.appAdded'));
              await changed(codes);
            }}
          />
        ) : (
          <div>
            <Button
              variant="light"
              leftSection={<IconDeviceMobile size={18} aria-hidden />}
              onClick={() => setAddingApp(true)}
            >
              {t(factor.totp_since === null ? 'secondFactor.addApp' : 'secondFactor.changeApp')}
            </Button>
          </div>
        )}
      </Stack>
      {!isNone && (
        <Stack gap="xs">
          <Title order={3} size="h5">
            {t('secondFactor.codes')}
          </Title>
          <Group justify="space-between">
            <Text size="sm" c={factor.recovery_codes < 3 ? 'orange' : undefined}>
              {t('secondFactor.codesLeft', { count: factor.recovery_codes })}
            </Text>
            <Button size="compact-sm" variant="subtle" onClick={() => void renew()}>
              {t('secondFactor.renew')}
            </Button>
          </Group>
        </Stack>
      )}
    </Stack>
  );
}

function AddPasskey({ factor, onAdded }: { factor: Factor; onAdded: (codes: string[] | null) => Promise<void> }) {
  const { t } = useTranslation();
  const [name, setName] = useState<string | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [isSending, setSending] = useState(false);
  if (factor.passkey_problem !== null || !knowsPasskeys())
    return (
      <Text size="sm" c="dimmed">
        {knowsPasskeys() ? t('secondFactor.noHost') : t('secondFactor.noBrowser')}
      </Text>
    );
  if (name === null)
    return (
      <div>
        <Button
          variant="light"
          leftSection={<IconFingerprint size={18} aria-hidden />}
          onClick={() => setName(deviceName())}
        >
          {t('secondFactor.addPasskey')}
        </Button>
      </div>
    );
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setSending(true);
    setError(null);
    try {
      const { continuation, options } = answered(await api.POST('/api/admin/auth/passkeys/begin'));
      const response = await makePasskey(options);
      const body = { continuation, name: name.trim(), response };
      const { recovery_codes } = answered(await api.POST('/api/admin/auth/passkeys', { body }));
      setName(null);
      notifyDone(t('secondFactor.passkeyAdded'));
      await onAdded(recovery_codes);
    } catch (problem) {
      const isThere = problem instanceof Error && problem.name === 'InvalidStateError';
      setError(
        isThere
          ? new Error(t('secondFactor.passkeyThere'))
          : isBrokenOff(problem)
            ? new Error(t('secondFactor.brokenOff'))
            : problem,
      );
    } finally {
      setSending(false);
    }
  };
  return (
    <form onSubmit={submit}>
      <Stack gap="xs">
        <TextInput
          label={t('secondFactor.passkeyName')}
          description={t('secondFactor.passkeyNameAbout')}
          value={name}
          onChange={e => setName(e.currentTarget.value)}
          maxLength={100}
          required
          autoFocus
        />
        <ProblemAlert error={error} />
        <Group>
          <Button type="submit" loading={isSending}>
            {t('secondFactor.addPasskeyGo')}
          </Button>
          <Button variant="default" onClick={() => setName(null)}>
            {t('common.cancel')}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

/** What the device may be called: its system. */
function deviceName(): string {
  const system = /Windows|Mac OS X|Android|iPhone|iPad|CrOS|Linux/.exec(navigator.userAgent)?.[0] ?? '';
  return system.replace('Mac OS X', 'Mac').replace('CrOS', 'Chromebook');
}

/** Codes to keep, shown once. */
function RecoveryCodes({ codes, onClose }: { codes: string[] | null; onClose: () => void }) {
  const { t } = useTranslation();
  const begin = useNewSession();
  const session = useSession();
  const host = location.host;
  const close = async (): Promise<void> => {
    onClose();
    if (session.data?.admin?.must_add_second_factor === true) await begin();
  };
  const save = (): void => {
    const text = `${t('secondFactor.codesOf', { host })}\n\n${(codes ?? []).join('\n')}\n`;
    saveText(`recovery-codes-${host.replace(/[^a-z0-9.-]/gi, '-')}.txt`, text, 'text/plain');
  };
  return (
    <Modal
      opened={codes !== null}
      onClose={() => void close()}
      title={t('secondFactor.codesTitle')}
      closeOnClickOutside={false}
      closeOnEscape={false}
      withCloseButton={false}
      centered
    >
      {codes !== null && <LeaveGuard />}
      <Stack>
        <Alert color="orange" icon={<IconKey aria-hidden />}>
          {t('secondFactor.codesAbout')}
        </Alert>
        <SimpleGrid cols={2} spacing="xs">
          {codes?.map(code => (
            <Code key={code} fz="md" ta="center">
              {code}
            </Code>
          ))}
        </SimpleGrid>
        <Group justify="space-between">
          <Group gap="xs">
            <CopyIcon value={(codes ?? []).join('\n')} />
            <Button variant="default" onClick={save}>
              {t('secondFactor.saveCodes')}
            </Button>
          </Group>
          <Button onClick={() => void close()}>{t('secondFactor.codesKept')}</Button>
        </Group>
      </Stack>
    </Modal>
  );
}
