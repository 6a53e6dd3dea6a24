import { Accordion, Anchor, Group, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { Schemas } from '../api/client.ts';
import { LinkAnchor } from '../parts/links.tsx';

export type Person = Schemas['PolicySubject'];

/** What a list shows before one looks for a person by name. */
const GROUPS_SHOWN = 20;
const NAMES_SHOWN = 50;
/** How many more of either come at once. */
const MORE = 200;

/** People by the first of their study groups, the largest group first. */
export function ChangedPeople({ people }: { people: readonly Person[] }) {
  const { t } = useTranslation();
  const [shown, setShown] = useState(GROUPS_SHOWN);
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
        {groups.slice(0, shown).map(([id, group], k) => (
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
      {groups.length > shown && (
        <Anchor component="button" type="button" size="sm" ta="left" onClick={() => setShown(shown + MORE)}>
          {t('comparePolicy.moreGroups', { count: groups.length - shown })}
        </Anchor>
      )}
    </Stack>
  );
}

function Names({ people }: { people: readonly Person[] }) {
  const { t } = useTranslation();
  const [shown, setShown] = useState(NAMES_SHOWN);
  return (
    <Group gap="xs">
      {people.slice(0, shown).map(p => (
        <PersonLink key={p.id} person={p} />
      ))}
      {people.length > shown && (
        <Anchor component="button" type="button" size="sm" onClick={() => setShown(shown + MORE)}>
          {t('comparePolicy.more', { count: people.length - shown })}
        </Anchor>
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
