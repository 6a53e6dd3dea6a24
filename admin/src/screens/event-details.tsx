import { Text } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import type { Schemas } from '../api/client.ts';
import { CopyText } from '../parts/copy.tsx';
import { JsonBlock } from '../parts/details.tsx';
import { Facts } from '../parts/facts.tsx';
import { LinkAnchor } from '../parts/links.tsx';
import { RequestId } from '../parts/request-id.tsx';
import { When } from '../parts/time.tsx';
import { Section } from './review.tsx';

/** An event as the list has it. What comes live names no request. */
export type ShownEvent = Omit<Schemas['Event'], 'request_id' | 'data'> & { request_id: string | null; data?: unknown };

const SHOWN_CHARS = 160;

/** The beginning of what an event carries, on one line. */
export function EventPreview({ event }: { event: ShownEvent }) {
  return (
    <Text size="xs" ff="monospace" c="dimmed" truncate maw={420}>
      {(JSON.stringify(event.data) ?? '').slice(0, SHOWN_CHARS)}
    </Text>
  );
}

/** One event with its payload. */
export function EventDetails({ event: e }: { event: ShownEvent }) {
  const { t } = useTranslation();
  return (
    <>
      <Facts
        facts={[
          { label: t('events.type'), value: e.type },
          {
            label: t('plugins.name'),
            value: (
              <LinkAnchor to="/admin/plugins/$id" params={{ id: e.plugin_id }} size="sm">
                {e.plugin_id}
              </LinkAnchor>
            ),
          },
          { label: t('events.at'), value: <When at={e.at} /> },
          { label: t('events.number'), value: e.number },
          { label: t('events.id'), value: <CopyText value={e.id} /> },
          e.request_id === null ? null : { label: t('problem.requestId'), value: <RequestId id={e.request_id} /> },
        ]}
      />
      <Section title={t('events.payload')}>
        <JsonBlock value={e.data} />
      </Section>
    </>
  );
}
