import { Accordion, Group, Stack, Text } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import type { Schemas } from '../api/client.ts';
import { LinkAnchor } from '../parts/links.tsx';

export type Person = Schemas['PolicySubject'];

/** What a list shows before one looks for a person by name. */
const GROUPS_MAX = 20;
const NAMES_MAX = 50;

/** People by the first of their study groups, the largest group first. */
export function ChangedPeople({ people }: { people: readonly Person[] }) {
  const { t } = useTranslation();
  const byGroup = new Map<string, { name: string; people: Person[] }>();
  for (const person of people) {
    const [group] = person.groups;
    const key = group?.id ?? '';
    const known = byGroup.get(key) ?? { name: group?.name ?? t('comparePolicy.noGroup'), people: [] };
    known.people.push(person);
    byGroup.set(key, known);
  }
  const groups = [...byGroup].sort(([, a], [, b]) => b.people.length - a.people.length);
  const [only] = groups;
  if (groups.length === 1 && only !== undefined)
    return (
      <Stack gap={4}>
        <Text size="sm" fw={500}>
          {only[1].name}
        </Text>
        <Names people={only[1].people} />
      </Stack>
    );
  return (
    <Stack gap={4}>
      <Accordion multiple chevronPosition="left" styles={{ control: { paddingInline: 0 }, label: { paddingBlock: 6 } }}>
        {groups.slice(0, GROUPS_MAX).map(([id, group], k) => (
          // It becomes part of ids, which have no spaces.
          <Accordion.Item key={id} value={`group-${k}`}>
            <Accordion.Control>
              <Group justify="space-between" wrap="nowrap">
                <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
                  {group.name}
                </Text>
                <Text size="sm" ff="monospace">
                  {group.people.length}
                </Text>
              </Group>
            </Accordion.Control>
            <Accordion.Panel>
              <Names people={group.people} />
            </Accordion.Panel>
          </Accordion.Item>
        ))}
      </Accordion>
      {groups.length > GROUPS_MAX && (
        <Text size="sm">{t('comparePolicy.moreGroups', { count: groups.length - GROUPS_MAX })}</Text>
      )}
    </Stack>
  );
}

function Names({ people }: { people: readonly Person[] }) {
  const { t } = useTranslation();
  return (
    <Group gap="xs">
      {people.slice(0, NAMES_MAX).map(p => (
        <PersonLink key={p.id} person={p} />
      ))}
      {people.length > NAMES_MAX && (
        <Text size="sm">{t('comparePolicy.more', { count: people.length - NAMES_MAX })}</Text>
      )}
    </Group>
  );
}

export const PersonLink = ({ person }: { person: Person }) => (
  <LinkAnchor
    to="/admin/people/$user"
    params={{ user: String(person.id) }}
    size="sm"
    c="inherit"
    underline="always"
    style={{ overflowWrap: 'anywhere' }}
  >
    {person.display_name || person.external_id || `#${person.id}`}
  </LinkAnchor>
);
