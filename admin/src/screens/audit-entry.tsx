import { Text } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import type { Schemas } from '../api/client.ts';
import { useRefusal } from '../app/may.tsx';
import { CopyText } from '../parts/copy.tsx';
import { Facts } from '../parts/facts.tsx';
import { LinkAnchor } from '../parts/links.tsx';
import { PersonAnchor } from '../parts/person-anchor.tsx';
import { StateDiff } from '../parts/state-diff.tsx';
import { When } from '../parts/time.tsx';
import { AUDIT_ACTIONS, OBJECT_TYPES } from './audit-actions.ts';
import { Section } from './review.tsx';

type Entry = Schemas['AuditEntry'];

/** An action in words; one of a newer release as it is named. */
export function useActionText(): (action: string) => string {
  const { t } = useTranslation();
  return action => {
    const known = AUDIT_ACTIONS.find(a => a === action);
    return known === undefined ? action : t(`audit.action.${known}`);
  };
}

/** What was changed, as a link to its screen where it has one. */
export function AuditObject({ entry }: { entry: Pick<Entry, 'object_type' | 'object_id'> }) {
  const { t } = useTranslation();
  const { object_id: id, object_type } = entry;
  const known = OBJECT_TYPES.find(o => o === object_type);
  const noun = known === undefined ? object_type : t(`audit.object.${known}`);
  const [plugin = '', name = ''] = id.split('/');
  // There is one graph store and one mail server: their id says nothing.
  const text = known === 'graph' || known === 'mail' ? noun : `${noun} ${id}`;
  const link = { size: 'sm', style: { overflowWrap: 'anywhere' } } as const;
  switch (known) {
    case 'plugin':
      return (
        <LinkAnchor to="/admin/plugins/$id" params={{ id }} {...link}>
          {text}
        </LinkAnchor>
      );
    case 'trigger':
      return (
        <LinkAnchor to="/admin/plugins/$id/triggers/$name" params={{ id: plugin, name }} {...link}>
          {text}
        </LinkAnchor>
      );
    case 'command':
      return (
        <LinkAnchor to="/admin/plugins/$id/commands/$name" params={{ id: plugin, name }} {...link}>
          {text}
        </LinkAnchor>
      );
    case 'user':
      return (
        <PersonAnchor user={Number(id)} {...link}>
          {text}
        </PersonAnchor>
      );
    case 'outbox':
      return (
        <LinkAnchor to="/admin/outbox" search={{ entry: id }} {...link}>
          {text}
        </LinkAnchor>
      );
    case 'import':
      // Columns of files are set for a type.
      if (!/^\d+$/.test(id)) return <span>{text}</span>;
      return (
        <LinkAnchor to="/admin/university/imports/$import" params={{ import: id }} {...link}>
          {text}
        </LinkAnchor>
      );
    case 'event_subscription':
      return (
        <LinkAnchor to="/admin/events/subscriptions/$subscription" params={{ subscription: id }} {...link}>
          {text}
        </LinkAnchor>
      );
    default:
      return <span style={{ overflowWrap: 'anywhere' }}>{text}</span>;
  }
}

/** What was changed about these is not shown to those who may not read people. */
const OF_PEOPLE: ReadonlySet<string> = new Set(['user', 'relationship', 'file']);

/** One entry: who, what, from where, and what differs. */
export function AuditDetails({ entry: e }: { entry: Entry }) {
  const { t } = useTranslation();
  const actionText = useActionText();
  const refusal = useRefusal()('people');
  const isHidden = refusal !== null && e.before === null && e.after === null && OF_PEOPLE.has(e.object_type);
  const { global_user_id: user } = e.actor;
  return (
    <>
      <Facts
        facts={[
          { label: t('audit.what'), value: actionText(e.action) },
          { label: t('audit.objectLabel'), value: <AuditObject entry={e} /> },
          {
            label: t('audit.who'),
            value:
              user === null ? (
                e.actor.kind === 'setup' ? (
                  t('audit.kind.setup')
                ) : (
                  e.actor.name
                )
              ) : (
                <PersonAnchor user={user} size="sm">
                  {e.actor.name}
                </PersonAnchor>
              ),
          },
          { label: t('audit.as'), value: t(`audit.kind.${e.actor.kind}`) },
          { label: t('audit.at'), value: <When at={e.at} /> },
          e.address === null ? null : { label: t('audit.address'), value: e.address },
          e.request_id === null ? null : { label: t('problem.requestId'), value: <CopyText value={e.request_id} /> },
        ]}
      />
      <Section title={t('audit.changes')}>
        {isHidden ? <Text size="sm">{refusal}</Text> : <StateDiff before={e.before} after={e.after} />}
      </Section>
    </>
  );
}
