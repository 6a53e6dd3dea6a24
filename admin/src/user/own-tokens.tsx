import { Button, Group, Stack, Text, TextInput, Title } from '@mantine/core';
import { IconKey } from '@tabler/icons-react';
import { useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import { Empty } from '../parts/empty.tsx';
import { KeyEnd } from '../parts/key-expiry.tsx';
import { KeyName } from '../parts/key-name.tsx';
import { KeysetTable, useKeyset } from '../parts/keyset-list.tsx';
import { ProblemAlert } from '../parts/problem.tsx';
import { RevokeKey } from '../parts/revoke-key.tsx';
import { SecretDialog } from '../parts/secret-once.tsx';
import { When } from '../parts/time.tsx';

type Token = Schemas['UserToken'];
const KEY = ['tokens'];

/** Tokens with which programs act in the user's name. */
export function OwnTokens() {
  const { t } = useTranslation();
  const queries = useQueryClient();
  const [name, setName] = useState('');
  const [made, setMade] = useState<{ name: string; token: string } | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [isSending, setSending] = useState(false);
  const list = useKeyset<Token, { items: Token[] }>(KEY, async cursor =>
    answered(await api.GET('/api/auth/tokens', { params: { query: { limit: 50, cursor } } })),
  );
  const make = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setSending(true);
    setError(null);
    try {
      const { token } = answered(await api.POST('/api/auth/tokens', { body: { name: name.trim() } }));
      setMade({ name: name.trim(), token });
      setName('');
      await queries.invalidateQueries({ queryKey: KEY });
    } catch (problem) {
      setError(problem);
    } finally {
      setSending(false);
    }
  };
  return (
    <Stack gap="sm" component="section">
      <div>
        <Title order={2} size="h4">
          {t('user.tokens')}
        </Title>
        <Text size="sm" c="dimmed">
          {t('user.tokensAbout')}
        </Text>
      </div>
      <form onSubmit={make}>
        <Group align="flex-end">
          <TextInput
            label={t('user.tokenName')}
            placeholder={t('user.tokenNameHint')}
            value={name}
            onChange={e => setName(e.currentTarget.value)}
            maxLength={200}
            autoComplete="off"
            required
            style={{ flex: '1 1 14rem' }}
            maw={360}
          />
          <Button type="submit" loading={isSending}>
            {t('user.makeToken')}
          </Button>
        </Group>
      </form>
      <ProblemAlert error={error} />
      <KeysetTable
        label={t('user.tokens')}
        query={list}
        rowKey={k => k.id}
        columns={[
          {
            key: 'name',
            title: t('user.tokenName'),
            cell: k => <KeyName of={k} />,
          },
          { key: 'used', title: t('keys.lastUsed'), cell: k => <When at={k.last_used_at} /> },
          { key: 'ends', title: t('keys.ends'), from: 'sm', cell: k => <KeyEnd at={k.expires_at} /> },
          {
            key: 'actions',
            title: '',
            align: 'right',
            cell: k => (
              <RevokeKey
                name={k.name}
                question={{ title: t('user.revokeTitle', { name: k.name }), text: t('user.revokeText') }}
                done={t('keys.revoked', { name: k.name })}
                list={KEY}
                revoke={() => api.DELETE('/api/auth/tokens/{token}', { params: { path: { token: k.id } } })}
              />
            ),
          },
        ]}
        empty={<Empty icon={IconKey} title={t('user.noTokensTitle')} text={t('user.noTokens')} />}
      />
      <SecretDialog
        title={t('user.tokenMade', { name: made?.name ?? '' })}
        about={t('user.tokenAbout')}
        secret={made?.token ?? null}
        onClose={() => setMade(null)}
      />
    </Stack>
  );
}
