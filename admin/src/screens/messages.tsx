import { Alert, Button, Group, Select, Text, UnstyledButton } from '@mantine/core';
import { IconMessage } from '@tabler/icons-react';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import { confirmed } from '../api/questions.ts';
import { May } from '../app/may.tsx';
import { useOverlay, useSearchState } from '../app/use-search-state.ts';
import { AddressedDetails } from '../parts/addressed-details.tsx';
import { ClearFilters } from '../parts/clear-filters.tsx';
import { Empty } from '../parts/empty.tsx';
import { Facts } from '../parts/facts.tsx';
import { FilterText } from '../parts/filter-text.tsx';
import { KeysetTable, useKeyset } from '../parts/keyset-list.tsx';
import { LinkAnchor } from '../parts/links.tsx';
import { Page } from '../parts/page.tsx';
import { PersonAnchor } from '../parts/person-anchor.tsx';
import { notifyDone, notifyProblem } from '../parts/problem.tsx';
import { RequestId } from '../parts/request-id.tsx';
import { StateBadge } from '../parts/state-badge.tsx';
import { When } from '../parts/time.tsx';
import { Section } from './review.tsx';

type Message = Schemas['Message'];

const STATES = ['queued', 'sending', 'sent', 'failed', 'uncertain'] as const satisfies ReadonlyArray<Message['state']>;
const CHANNELS = ['TELEGRAM', 'VK'] as const satisfies ReadonlyArray<Message['channel']>;
const KIND = { queued: 'wait', sending: 'wait', sent: 'good', failed: 'bad', uncertain: 'warn' } as const;
const REFRESH_MS = 10_000;
const CHANNEL_NAME = { TELEGRAM: 'Telegram', VK: 'VK' } as const;

/** What became of messages to users and chats. */
export default function Messages() {
  const { t } = useTranslation();
  const [search] = useSearchState();
  const overlay = useOverlay('message');
  const state = STATES.find(s => s === search.state);
  const { channel, message, plugin, request } = search;
  const list = useKeyset<Message, { items: Message[] }>(
    ['messages', 'list', state, channel, plugin, request],
    async cursor =>
      answered(
        await api.GET('/api/admin/messages', {
          params: { query: { limit: 50, cursor, state, channel, plugin, request_id: request } },
        }),
      ),
    REFRESH_MS,
  );
  const isFiltered = [state, channel, plugin, request].some(f => f !== undefined);
  return (
    <Page title={t('nav.messages')} about={t('messages.about')}>
      <Filters />
      <KeysetTable
        label={t('nav.messages')}
        query={list}
        rowKey={m => m.id}
        columns={[
          {
            key: 'text',
            title: t('messages.message'),
            cell: m => (
              <UnstyledButton onClick={() => overlay.open({ message: String(m.id) })} maw={420}>
                <Text size="sm" lineClamp={2} c="var(--mantine-color-anchor)" style={{ overflowWrap: 'anywhere' }}>
                  {m.message.text === '' ? t('messages.files', { count: m.message.files.length }) : m.message.text}
                </Text>
                <Text size="xs" c="dimmed">
                  {CHANNEL_NAME[m.channel]} · {m.chat_id}
                </Text>
              </UnstyledButton>
            ),
          },
          { key: 'state', title: t('common.state'), cell: m => <MessageState message={m} /> },
          { key: 'source', title: t('messages.source'), from: 'lg', cell: m => t(`messages.sources.${m.source}`) },
          { key: 'plugin', title: t('plugins.name'), from: 'md', cell: m => <Sender message={m} /> },
          { key: 'at', title: t('common.created'), from: 'sm', cell: m => <When at={m.created_at} /> },
          { key: 'actions', title: '', align: 'right', from: 'sm', cell: m => <Retry message={m} size="compact-sm" /> },
        ]}
        empty={
          <Empty
            icon={IconMessage}
            title={t('messages.emptyTitle')}
            text={t(isFiltered ? 'messages.emptyFilter' : 'messages.empty')}
            action={<ClearFilters of={['state', 'channel', 'plugin', 'request']} />}
          />
        }
      />
      <AddressedDetails
        id={message}
        listed={list.rows.find(m => String(m.id) === message)}
        queryKey={['messages', 'one']}
        load={async id =>
          answered(await api.GET('/api/admin/messages/{message}', { params: { path: { message: Number(id) } } }))
        }
        title={() => t('messages.one', { id: message ?? '' })}
        onClose={overlay.close}
      >
        {m => <OneMessage message={m} />}
      </AddressedDetails>
    </Page>
  );
}

function Filters() {
  const { t } = useTranslation();
  const [search, setSearch] = useSearchState();
  return (
    <Group align="flex-end">
      <Select
        label={t('common.state')}
        data={STATES.map(s => ({ value: s, label: t(`messages.state.${s}`) }))}
        value={STATES.find(s => s === search.state) ?? null}
        onChange={s => setSearch({ state: s ?? undefined })}
        placeholder={t('common.all')}
        clearable
        clearButtonProps={{ 'aria-label': t('common.clear') }}
        w={{ base: '100%', xs: 190 }}
      />
      <Select
        label={t('messages.channel')}
        data={CHANNELS.map(c => ({ value: c, label: CHANNEL_NAME[c] }))}
        value={CHANNELS.find(c => c === search.channel) ?? null}
        onChange={c => setSearch({ channel: c ?? undefined })}
        placeholder={t('common.all')}
        clearable
        clearButtonProps={{ 'aria-label': t('common.clear') }}
        w={{ base: '100%', xs: 140 }}
      />
      <FilterText
        label={t('plugins.name')}
        value={search.plugin}
        onChange={plugin => setSearch({ plugin })}
        width={160}
      />
      <FilterText
        label={t('problem.requestId')}
        value={search.request}
        onChange={request => setSearch({ request })}
        width={260}
      />
    </Group>
  );
}

const MessageState = ({ message }: { message: Message }) => {
  const { t } = useTranslation();
  const isAgain = message.state === 'queued' && message.attempts > 0;
  return isAgain ? (
    <StateBadge kind="warn" label={t('messages.backingOff')} />
  ) : (
    <StateBadge kind={KIND[message.state]} label={t(`messages.state.${message.state}`)} />
  );
};

function Sender({ message }: { message: Message }) {
  const { t } = useTranslation();
  const { plugin_id } = message;
  if (plugin_id === null) return t('messages.service');
  return (
    <LinkAnchor to="/admin/plugins/$id" params={{ id: plugin_id }} size="sm">
      {plugin_id}
    </LinkAnchor>
  );
}

/** Sends a message again that has failed, or that may not have arrived: then it may come twice, which is said before. */
function Retry({ message, size }: { message: Message; size: 'compact-sm' | 'sm' }) {
  const { t } = useTranslation();
  const queries = useQueryClient();
  const [isSending, setSending] = useState(false);
  const isUncertain = message.state === 'uncertain';
  if (message.state !== 'failed' && !isUncertain) return null;
  const retry = async (): Promise<void> => {
    const title = t('messages.retryTitle', { id: message.id });
    const text = t('messages.uncertainText', { to: `${CHANNEL_NAME[message.channel]} ${message.chat_id}` });
    if (isUncertain && !(await confirmed({ title, text, action: t('messages.retryAnyway'), isDangerous: true })))
      return;
    setSending(true);
    try {
      answered(await api.POST('/api/admin/messages/{message}/retry', { params: { path: { message: message.id } } }));
      notifyDone(t('messages.retried', { id: message.id }));
    } catch (problem) {
      notifyProblem(problem);
    } finally {
      setSending(false);
      await queries.invalidateQueries({ queryKey: ['messages'] });
    }
  };
  return (
    <May need="operate" isInline>
      <Button size={size} variant="light" loading={isSending} onClick={() => void retry()}>
        {t('messages.retry')}
      </Button>
    </May>
  );
}

function OneMessage({ message: m }: { message: Message }) {
  const { t } = useTranslation();
  return (
    <>
      <Facts
        facts={[
          { label: t('common.state'), value: <MessageState message={m} /> },
          { label: t('messages.to'), value: `${CHANNEL_NAME[m.channel]} · ${m.chat_id}` },
          m.user_id === null
            ? null
            : {
                label: t('files.user'),
                value: (
                  <PersonAnchor user={m.user_id} size="sm">
                    #{m.user_id}
                  </PersonAnchor>
                ),
              },
          { label: t('messages.source'), value: t(`messages.sources.${m.source}`) },
          { label: t('plugins.name'), value: <Sender message={m} /> },
          { label: t('common.created'), value: <When at={m.created_at} /> },
          { label: t('messages.attempts'), value: m.attempts },
          m.next_attempt_at === null ? null : { label: t('messages.next'), value: <When at={m.next_attempt_at} /> },
          m.ended_at === null ? null : { label: t('messages.ended'), value: <When at={m.ended_at} /> },
          { label: t('problem.requestId'), value: <RequestId id={m.request_id} /> },
        ]}
      />
      {m.last_error !== '' && (
        <Alert color={m.state === 'failed' ? 'red' : 'orange'} title={t('messages.lastError')}>
          {m.last_error}
        </Alert>
      )}
      {m.state === 'uncertain' && <Alert color="orange">{t('messages.uncertainAbout')}</Alert>}
      <Group>
        <Retry message={m} size="sm" />
      </Group>
      <Section title={t('messages.text')}>
        <Text size="sm" style={{ whiteSpace: 'pre-wrap', overflowWrap: 'anywhere' }}>
          {m.message.text === '' ? t('messages.noText') : m.message.text}
        </Text>
      </Section>
      {m.message.files.length > 0 && (
        <Section
          title={t('messages.files', { count: m.message.files.length })}
          about={t('messages.parts', { count: m.parts_sent })}
        >
          {m.message.files.map(f => (
            <Group key={f.id} gap="xs">
              <LinkAnchor to="/admin/files" search={{ file: f.id }} size="sm" ff="monospace">
                {f.id}
              </LinkAnchor>
              <Text size="sm">{f.caption}</Text>
            </Group>
          ))}
        </Section>
      )}
    </>
  );
}
