import { Button, Card, Group, SimpleGrid, Stack, Table, Text } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import { confirmed } from '../api/questions.ts';
import { May } from '../app/may.tsx';
import { CopyText } from '../parts/copy.tsx';
import { LinkAnchor } from '../parts/links.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { notifyDone, notifyProblem } from '../parts/problem.tsx';
import { When } from '../parts/time.tsx';
import { nameOf } from './people.tsx';
import { PersonPositions } from './person-positions.tsx';
import { Section } from './review.tsx';

type User = Schemas['User'];

/** What is known of a person, how executions name them, and the messengers they can be reached by. */
export default function PersonAbout({ person: u }: { person: User }) {
  const { t } = useTranslation();
  const unknown = (
    <Text span size="sm" c="dimmed">
      {t('person.unknown')}
    </Text>
  );
  const facts: Array<[label: string, value: ReactNode]> = [
    [t('person.name'), u.display_name || unknown],
    [t('person.externalId'), u.external_id === null ? unknown : <CopyText key="external" value={u.external_id} />],
    [t('person.idp'), u.idp_accounts_id === null ? unknown : <CopyText key="idp" value={u.idp_accounts_id} />],
    [t('person.language'), t(`person.languages.${u.locale}`)],
    [t('person.primaryChannel'), u.primary_channel === null ? unknown : t(`person.messengers.${u.primary_channel}`)],
    [t('person.nationality'), u.nationality_type === null ? unknown : t(`person.nationalities.${u.nationality_type}`)],
    [t('person.funding'), u.funding_type === null ? unknown : t(`person.fundings.${u.funding_type}`)],
    [t('person.education'), u.education_form === null ? unknown : t(`person.educations.${u.education_form}`)],
    [t('people.since'), <When key="since" at={u.created_at} />],
    [t('person.changed'), <When key="changed" at={u.updated_at} />],
  ];
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }} spacing="xl">
      <Section title={t('person.attributes')} about={t('person.attributesAbout')}>
        <Table verticalSpacing="xs" aria-label={t('person.attributes')} layout="fixed">
          <Table.Tbody>
            {facts.map(([label, value]) => (
              <Table.Tr key={label}>
                <Table.Th w={{ base: '52%', xs: '45%' }} fw={500}>
                  {label}
                </Table.Th>
                <Table.Td style={{ overflowWrap: 'anywhere' }}>{value}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Section>
      <Stack gap="xl">
        <PersonPositions person={u} />
        <Section title={t('person.executions')} about={t('person.executionsAbout')}>
          <Group gap="md">
            <CopyText value={`user:${u.id}`} />
            <LinkAnchor to="/admin/executions" search={{ principal: `user:${u.id}` }} size="sm">
              {t('person.toExecutions')}
            </LinkAnchor>
            <LinkAnchor to="/admin/files" search={{ user: String(u.id) }} size="sm">
              {t('nav.files')}
            </LinkAnchor>
            <LinkAnchor to="/admin/audit" search={{ object_type: 'user', object_id: String(u.id) }} size="sm">
              {t('nav.audit')}
            </LinkAnchor>
          </Group>
        </Section>
        <MessengerAccounts person={u} />
      </Stack>
    </SimpleGrid>
  );
}

/** Accounts of messengers that the person has linked. */
function MessengerAccounts({ person }: { person: User }) {
  const { t } = useTranslation();
  const queries = useQueryClient();
  const key = ['users', 'messengers', person.id];
  const params = { path: { user: person.id } };
  const query = useQuery({
    queryKey: key,
    queryFn: async () => answered(await api.GET('/api/admin/users/{user}/messenger-accounts', { params })),
  });
  const unlink = async (channel: 'TELEGRAM' | 'VK'): Promise<void> => {
    const words = { name: nameOf(person), channel: t(`person.messengers.${channel}`) };
    const question = { title: t('person.unlink'), text: t('person.unlinkText', words), action: t('person.unlink') };
    if (!(await confirmed({ ...question, isDangerous: true }))) return;
    try {
      await api.DELETE('/api/admin/users/{user}/messenger-accounts/{channel}', {
        params: { path: { user: person.id, channel } },
      });
      notifyDone(t('person.unlinked'));
    } catch (problem) {
      notifyProblem(problem);
    }
    await queries.invalidateQueries({ queryKey: key });
  };
  return (
    <Section title={t('person.accounts')} about={t('person.accountsAbout')}>
      <Loaded query={query}>
        {({ items }) =>
          items.length === 0 ? (
            <Text size="sm">{t('person.noAccounts')}</Text>
          ) : (
            <Stack gap="xs">
              {items.map(a => (
                <Card withBorder key={a.channel} padding="sm">
                  <Group justify="space-between">
                    <div>
                      <Text size="sm" fw={500}>
                        {t(`person.messengers.${a.channel}`)}
                      </Text>
                      <Text size="sm" c="dimmed" component="div">
                        {t('person.linked')} <When at={a.linked_at} />
                      </Text>
                    </div>
                    <May need="admin" isInline>
                      <Button size="compact-sm" variant="light" color="red" onClick={() => void unlink(a.channel)}>
                        {t('person.unlink')}
                      </Button>
                    </May>
                  </Group>
                </Card>
              ))}
            </Stack>
          )
        }
      </Loaded>
    </Section>
  );
}
