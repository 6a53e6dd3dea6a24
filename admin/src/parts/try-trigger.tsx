import { Badge, Button, Code, Group, Select, Stack, Text, Textarea, TextInput } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { Schemas } from '../api/client.ts';
import { useRefusal } from '../app/may.tsx';
import { useSession } from '../app/session.ts';
import { CopyText } from './copy.tsx';
import { LinkAnchor } from './links.tsx';
import { durationText } from './quantities.ts';

type HttpTrigger = Schemas['HttpTrigger'];
type Answer = { of: string; status: number; text: string; ms: number; requestId: string };

const SHOWN_CHARS = 20_000;
/** What plugins are sent most: JSON, where it is. */
function typeOf(body: string): string {
  try {
    JSON.parse(body);
    return 'application/json';
  } catch {
    return 'text/plain;charset=UTF-8';
  }
}
const isPublic = (trigger: HttpTrigger): boolean =>
  'effective_access' in trigger && trigger.effective_access === 'public';
const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** Calls a trigger with the session of this browser, and shows the same call for a terminal. */
export function TryTrigger({
  pluginId,
  triggers,
}: {
  pluginId: string;
  triggers: ReadonlyArray<HttpTrigger | Schemas['MessengerTrigger']>;
}) {
  const { t } = useTranslation();
  const own = useSession().data?.admin?.global_user_id;
  const mayAsk = useRefusal()('people') === null;
  const http = triggers.filter((x): x is HttpTrigger => x.type === 'http');
  // Of a trigger: what is typed for one means nothing for another, which an upgrade may have put in its place.
  const [typed, setTyped] = useState<{ name: string; method?: string; path?: string }>({ name: '' });
  const trigger = http.find(x => x.name === typed.name) ?? http[0];
  const [body, setBody] = useState('');
  const [answer, setAnswer] = useState<Answer | null>(null);
  const [isSending, setSending] = useState(false);
  if (trigger === undefined) return null;
  const given = typed.name === trigger.name ? typed : { name: trigger.name };
  const method = given.method ?? trigger.methods[0] ?? 'GET';
  const path = given.path ?? trigger.path;
  const choose = (to: string | null): void => {
    setTyped({ name: to ?? '' });
    setAnswer(null);
  };
  const url = `/api/triggers/http/${pluginId}${path}`;
  const hasBody = !['GET', 'HEAD', 'DELETE', 'OPTIONS'].includes(method);
  const call = async (): Promise<void> => {
    setSending(true);
    const at = performance.now();
    try {
      const sent = hasBody && body !== '' ? { body, headers: { 'Content-Type': typeOf(body) } } : {};
      const response = await fetch(url, { method, ...sent });
      const requestId = response.headers.get('x-request-id') ?? '';
      setAnswer({
        of: trigger.name,
        status: response.status,
        text: await response.text(),
        ms: performance.now() - at,
        requestId,
      });
    } catch (error) {
      setAnswer({ of: trigger.name, status: 0, text: String(error), ms: performance.now() - at, requestId: '' });
    } finally {
      setSending(false);
    }
  };
  const command = `curl${method === 'GET' ? '' : ` -X ${method}`}${hasBody && body !== '' ? ` -H 'Content-Type: ${typeOf(body)}' --data-raw ${quoted(body)}` : ''}${isPublic(trigger) ? '' : " -H 'Authorization: Bearer TOKEN'"} ${quoted(location.origin + url)}`;
  return (
    <Stack gap="sm">
      <Group align="flex-end" gap="xs">
        <Select
          label={t('access.trigger')}
          data={http.map(x => x.name)}
          value={trigger.name}
          onChange={choose}
          allowDeselect={false}
          w={{ base: '100%', xs: 180 }}
        />
        <Select
          label={t('try.method')}
          data={trigger.methods}
          value={method}
          onChange={m => setTyped({ ...given, method: m ?? 'GET' })}
          allowDeselect={false}
          w={{ base: '100%', xs: 110 }}
        />
        <TextInput
          label={t('try.path')}
          leftSection={
            <Text size="xs" c="dimmed" px={4} style={{ whiteSpace: 'nowrap' }}>
              …/{pluginId}
            </Text>
          }
          leftSectionWidth={pluginId.length * 7 + 32}
          value={path}
          onChange={e => setTyped({ ...given, path: e.currentTarget.value })}
          style={{ flex: '1 1 16rem' }}
        />
        <Button onClick={call} loading={isSending}>
          {t('try.call')}
        </Button>
      </Group>
      {hasBody && (
        <Textarea
          label={t('try.body')}
          autosize
          minRows={2}
          maxRows={10}
          ff="monospace"
          value={body}
          onChange={e => setBody(e.currentTarget.value)}
        />
      )}
      {answer?.of === trigger.name && (
        <div role="status">
          <Group gap="xs" mb={4}>
            <Badge color={answer.status >= 200 && answer.status < 300 ? 'teal' : 'orange'} variant="light">
              {answer.status === 0 ? t('try.failed') : `HTTP ${answer.status}`}
            </Badge>
            <Text size="sm" c="dimmed">
              {durationText(answer.ms)}
            </Text>
          </Group>
          <Code block style={{ maxHeight: 320, overflow: 'auto', whiteSpace: 'pre-wrap', overflowWrap: 'anywhere' }}>
            {answer.text === '' ? t('try.emptyBody') : answer.text.slice(0, SHOWN_CHARS)}
          </Code>
          {answer.status >= 500 && answer.requestId !== '' && (
            <LinkAnchor
              to="/admin/plugins/$id"
              params={{ id: pluginId }}
              search={{ tab: 'executions', id: answer.requestId }}
              size="sm"
            >
              {t('try.why')}
            </LinkAnchor>
          )}
          {(answer.status === 401 || answer.status === 403) && (
            <Group gap="xs" mt={6}>
              <Text size="sm">{t('try.refused')}</Text>
              {mayAsk && (
                <LinkAnchor
                  to="/admin/why"
                  search={{
                    user: own === undefined ? undefined : String(own),
                    plugin: pluginId,
                    trigger: trigger.name,
                  }}
                  size="sm"
                >
                  {t('nav.why')}
                </LinkAnchor>
              )}
            </Group>
          )}
        </div>
      )}
      <CopyText value={command} />
      <Text size="xs" c="dimmed">
        {t('try.about')}
      </Text>
    </Stack>
  );
}
