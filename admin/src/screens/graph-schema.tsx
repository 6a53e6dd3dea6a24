import { Accordion, Alert, Anchor, Card, Code, Group, SimpleGrid, Stack, Table, Text, Title } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import type { useGraphSchema } from '../graph/schema.ts';
import { type Definition, useGraphWords } from '../graph/schema.ts';
import { CopyText } from '../parts/copy.tsx';
import { LinkAnchor } from '../parts/links.tsx';

type GraphSchema = NonNullable<ReturnType<typeof useGraphSchema>['data']>;

/** The rules of the graph: types, who may stand in which relation, and which permissions follow from that. */
export default function GraphSchemaView({ schema }: { schema: GraphSchema }) {
  const { t } = useTranslation();
  return (
    <Stack>
      <Text size="sm" c="dimmed" maw="48rem">
        {t('relationships.schemaAbout')}
      </Text>
      {schema.source === 'release' && <Alert color="orange">{t('relationships.schemaFromRelease')}</Alert>}
      <SimpleGrid cols={{ base: 1, md: 2, xl: 3 }}>
        {schema.definitions
          .filter(d => d.relations.length > 0)
          .map(d => (
            <TypeCard key={d.name} definition={d} />
          ))}
      </SimpleGrid>
      <Accordion variant="contained" chevronPosition="left">
        <Accordion.Item value="text">
          <Accordion.Control>{t('relationships.schemaText')}</Accordion.Control>
          <Accordion.Panel>
            <CopyText block value={schema.schema} />
          </Accordion.Panel>
        </Accordion.Item>
      </Accordion>
    </Stack>
  );
}

const idOf = (type: string): string => `type-${type}`;

function TypeCard({ definition: d }: { definition: Definition }) {
  const { t } = useTranslation();
  const { word } = useGraphWords();
  return (
    <Card withBorder id={idOf(d.name)} component="section" aria-label={d.name}>
      <Group justify="space-between" mb="xs" wrap="nowrap" align="flex-start">
        <div>
          <Title order={2} size="h5">
            {word(d.name)}
          </Title>
          <Code>{d.name}</Code>
        </div>
        <LinkAnchor to="." search={{ type: d.name }} size="sm">
          {t('relationships.show')}
        </LinkAnchor>
      </Group>
      <Table verticalSpacing={4} fz="sm" layout="fixed" aria-label={t('relationships.relations')}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>{t('relationships.relations')}</Table.Th>
            <Table.Th>{t('relationships.subjects')}</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {d.relations.map(r => (
            <Table.Tr key={r.name}>
              <Table.Td>
                {word(r.name)} <Code>{r.name}</Code>
              </Table.Td>
              <Table.Td>
                {r.subjects.map((x, k) => (
                  <span key={x}>
                    {k > 0 && ', '}
                    {x === 'user' ? (
                      word(x)
                    ) : (
                      <Anchor href={`#${idOf(x)}`} size="sm">
                        {word(x)}
                      </Anchor>
                    )}
                  </span>
                ))}
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
      {d.permissions.length > 0 && (
        <Table verticalSpacing={4} fz="sm" layout="fixed" mt="sm" aria-label={t('relationships.permissions')}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>{t('relationships.permissions')}</Table.Th>
              <Table.Th>{t('relationships.follows')}</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {d.permissions.map(p => (
              <Table.Tr key={p.name}>
                <Table.Td>
                  {word(p.name)} <Code>{p.name}</Code>
                </Table.Td>
                <Table.Td>
                  <Code style={{ whiteSpace: 'normal' }}>
                    {p.expression.split(' + ').map((term, k) => (
                      <span key={term}>
                        {k > 0 && ' + '}
                        <span style={{ whiteSpace: 'nowrap' }}>{term}</span>
                      </span>
                    ))}
                  </Code>
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      )}
    </Card>
  );
}
