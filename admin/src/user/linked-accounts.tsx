import { Alert, Anchor, Button, Card, Group, Stack, Text } from '@mantine/core';
import { IconLink } from '@tabler/icons-react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api } from '../api/client.ts';
import { confirmed } from '../api/questions.ts';
import { CopyText } from '../parts/copy.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { notifyDone, notifyProblem } from '../parts/problem.tsx';
import { When } from '../parts/time.tsx';
import { dateLocale } from '../texts/index.ts';

type Channel = 'TELEGRAM' | 'VK';
const NAMES: Readonly<Record<Channel, string>> = { TELEGRAM: 'Telegram', VK: 'VK' };
const KEY = ['linked'];
/** While a code waits, the list is read again so often: the account comes when the bot has the code. */
const WAITING_MS = 3_000;

/** Accounts of messengers the user has linked, and a code for another one. */
export function LinkedAccounts() {
  const { t } = useTranslation();
  const [code, setCode] = useState<Awaited<ReturnType<typeof askCode>> | null>(null);
  const query = useQuery({
    queryKey: KEY,
    queryFn: async () => answered(await api.GET('/api/messengers/accounts')),
    refetchInterval: code === null ? false : WAITING_MS,
  });
  const ask = async (): Promise<void> => {
    try {
      setCode(await askCode());
    } catch (problem) {
      notifyProblem(problem);
    }
  };
  return (
    <Loaded query={query}>
      {({ bots, items }) => (
        <Stack gap="lg">
          <Text size="sm" c="dimmed" maw="44rem">
            {t('user.linkAbout')}
          </Text>
          {items.map(a => (
            <Linked key={a.channel} channel={a.channel} since={a.linked_at} />
          ))}
          {bots.length === 0 ? (
            <Alert color="orange" title={t('user.noBotTitle')} maw={560}>
              {t('user.noBot')}
            </Alert>
          ) : bots.every(b => items.some(a => a.channel === b)) ? null : code === null ? (
            <div>
              <Button leftSection={<IconLink size={18} aria-hidden />} onClick={() => void ask()}>
                {t('user.getCode')}
              </Button>
            </div>
          ) : (
            <Code code={code} />
          )}
        </Stack>
      )}
    </Loaded>
  );
}

const askCode = async () => answered(await api.POST('/api/messengers/link-code'));

function Linked({ channel, since }: { channel: Channel; since: string }) {
  const { t } = useTranslation();
  const queries = useQueryClient();
  const name = NAMES[channel];
  const unlink = async (): Promise<void> => {
    const question = { title: t('user.unlinkTitle', { name }), text: t('user.unlinkText') };
    if (!(await confirmed({ ...question, action: t('user.unlink'), isDangerous: true }))) return;
    try {
      await api.DELETE('/api/messengers/accounts/{channel}', { params: { path: { channel } } });
      notifyDone(t('user.unlinked', { name }));
    } catch (problem) {
      notifyProblem(problem);
    }
    await queries.invalidateQueries({ queryKey: KEY });
  };
  return (
    <Card withBorder maw={560}>
      <Group justify="space-between">
        <div>
          <Text fw={500}>{name}</Text>
          <Text size="sm" c="dimmed" component="div">
            {t('user.linkedSince')} <When at={since} />
          </Text>
        </div>
        <Button size="compact-sm" variant="light" color="red" onClick={() => void unlink()}>
          {t('user.unlink')}
        </Button>
      </Group>
    </Card>
  );
}

function Code({ code }: { code: Awaited<ReturnType<typeof askCode>> }) {
  const { t } = useTranslation();
  const until = new Date(code.expires_at).toLocaleTimeString(dateLocale(), { timeStyle: 'short' });
  return (
    <Card withBorder maw={560} role="status">
      <Stack gap="sm">
        <Text size="sm">{t('user.sendCode')}</Text>
        <CopyText value={`/link ${code.code}`} />
        <Text size="sm" c="dimmed">
          {t('user.codeUntil', { time: until })}
        </Text>
        <Group>
          {code.channels.map(c =>
            c.url === null ? (
              <Text key={c.channel} size="sm">
                {NAMES[c.channel]}
              </Text>
            ) : (
              <Anchor key={c.channel} href={c.url} target="_blank" rel="noopener" size="sm">
                {t('user.openChat', { name: NAMES[c.channel] })}
              </Anchor>
            ),
          )}
        </Group>
      </Stack>
    </Card>
  );
}
