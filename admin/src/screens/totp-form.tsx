import { Button, Group, Stack, Text, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { encode } from 'uqr';
import { answered, api } from '../api/client.ts';
import { ApiProblem } from '../api/problem.ts';
import { CopyText } from '../parts/copy.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { ProblemAlert } from '../parts/problem.tsx';

/** Adds an authenticator app: the secret as a picture and as text, then the first code as the proof that it arrived. */
export function TotpForm(props: { onAdded: (codes: string[] | null) => unknown; onCancel: () => void }) {
  const { onAdded, onCancel } = props;
  const { t } = useTranslation();
  const [code, setCode] = useState('');
  const [error, setError] = useState<unknown>(null);
  const [isSending, setSending] = useState(false);
  const begun = useQuery({
    queryKey: ['totp-enrolment'],
    queryFn: async () => answered(await api.POST('/api/admin/auth/totp/begin')),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
    retry: false,
  });
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    if (begun.data === undefined) return;
    setSending(true);
    setError(null);
    try {
      const body = { continuation: begun.data.continuation, code };
      const { recovery_codes } = answered(await api.PUT('/api/admin/auth/totp', { body }));
      await onAdded(recovery_codes);
    } catch (problem) {
      setError(problem);
      setCode('');
    } finally {
      setSending(false);
    }
  };
  const wrong = error instanceof ApiProblem ? error.fields.code : undefined;
  return (
    <Loaded query={begun}>
      {({ secret, uri }) => (
        <form onSubmit={submit}>
          <Stack gap="sm">
            <Text size="sm">{t('secondFactor.scan')}</Text>
            <QrCode text={uri} label={t('secondFactor.qr')} />
            <Text size="sm" component="div">
              {t('secondFactor.orType')} <CopyText value={secret} />
            </Text>
            <TextInput
              label={t('secondFactor.label.totp')}
              inputMode="numeric"
              autoComplete="one-time-code"
              value={code}
              onChange={e => setCode(e.currentTarget.value)}
              error={wrong === undefined ? undefined : t('secondFactor.wrongCode')}
              required
              autoFocus
            />
            {wrong === undefined && <ProblemAlert error={error} />}
            <Group>
              <Button type="submit" loading={isSending}>
                {t('secondFactor.addApp')}
              </Button>
              <Button variant="default" onClick={onCancel}>
                {t('common.cancel')}
              </Button>
            </Group>
          </Stack>
        </form>
      )}
    </Loaded>
  );
}

/** A QR code, black on white in both colour schemes, because cameras want it so. */
function QrCode({ label, text }: { text: string; label: string }) {
  const { data, size } = encode(text, { border: 2 });
  const dots = data.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? [`M${x} ${y}h1v1h-1z`] : [])));
  return (
    <svg viewBox={`0 0 ${size} ${size}`} width={200} height={200} role="img" aria-label={label}>
      <rect width={size} height={size} fill="#fff" />
      <path d={dots.join('')} fill="#000" shapeRendering="crispEdges" />
    </svg>
  );
}
