import { Alert, Group, Stack, Text } from '@mantine/core';
import { IconHierarchy2 } from '@tabler/icons-react';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import { ObjectName } from '../graph/object-name.tsx';
import { useObjectNames } from '../graph/object-names.ts';
import { useGraphWords } from '../graph/schema.ts';
import { Empty } from '../parts/empty.tsx';
import { KeysetTable, useKeyset } from '../parts/keyset-list.tsx';
import { LinkButton } from '../parts/links.tsx';
import { OriginBadge } from '../parts/origin-badge.tsx';
import { When } from '../parts/time.tsx';

type Relationship = Schemas['Relationship'];

/** What the graph says of a person directly: member of a group, teacher of a stream, dean of a faculty. Roles have a tab of their own. */
export default function PersonRelationships({ person }: { person: Schemas['User'] }) {
  const { t } = useTranslation();
  const id = person.external_id;
  if (id === null) return <Alert color="orange">{t('personRelationships.needsExternalId')}</Alert>;
  return <Direct externalId={id} />;
}

function Direct({ externalId }: { externalId: string }) {
  const { t } = useTranslation();
  const list = useKeyset<Relationship, { items: Relationship[] }>(
    ['relationships', 'of-person', externalId],
    async cursor =>
      answered(
        await api.GET('/api/admin/relationships', {
          params: { query: { subject_type: 'user', subject_id: externalId, limit: 100, cursor } },
        }),
      ),
  );
  const rows = list.rows.filter(r => !r.resource_type.endsWith('_role'));
  const nameOf = useObjectNames(rows.map(r => ({ type: r.resource_type, id: r.resource_id })));
  const { word } = useGraphWords();
  return (
    <Stack>
      <Group justify="space-between" align="flex-start">
        <Text size="sm" c="dimmed" style={{ flex: '1 1 18rem' }}>
          {t('personRelationships.about')}
        </Text>
        <Group gap="xs">
          <LinkButton
            variant="default"
            to="/admin/relationships"
            search={{ tab: 'ask', question: 'objects', user: externalId }}
          >
            {t('personRelationships.rights')}
          </LinkButton>
          <LinkButton
            variant="default"
            to="/admin/relationships"
            search={{ tab: 'add', subject_type: 'user', subject: externalId }}
          >
            {t('personRelationships.add')}
          </LinkButton>
        </Group>
      </Group>
      <KeysetTable
        label={t('person.tab.relationships')}
        query={{ ...list, rows }}
        rowKey={r => `${r.resource_type}:${r.resource_id}#${r.relation}`}
        columns={[
          {
            key: 'relation',
            title: t('personRelationships.relation'),
            cell: r => (
              <Text size="sm" fw={500}>
                {word(r.relation)}
              </Text>
            ),
          },
          {
            key: 'object',
            title: t('personRelationships.object'),
            cell: r => (
              <ObjectName
                type={r.resource_type}
                id={r.resource_id}
                name={nameOf({ type: r.resource_type, id: r.resource_id })}
                side="object"
              />
            ),
          },
          { key: 'origin', title: t('personRelationships.origin'), cell: r => <OriginBadge origin={r.origin} /> },
          {
            key: 'since',
            title: t('personRelationships.since'),
            from: 'sm',
            cell: r => <When at={r.created_at} />,
          },
        ]}
        empty={
          <Empty
            icon={IconHierarchy2}
            title={t('personRelationships.emptyTitle')}
            text={t('personRelationships.empty')}
            action={
              <LinkButton to="/admin/relationships" search={{ tab: 'add', subject_type: 'user', subject: externalId }}>
                {t('personRelationships.add')}
              </LinkButton>
            }
          />
        }
      />
    </Stack>
  );
}
