import { Accordion, Badge, Button, Code, Group, Table, Text } from '@mantine/core';
import { IconDownload } from '@tabler/icons-react';
import { useTranslation } from 'react-i18next';
import { LinkAnchor } from '../parts/links.tsx';
import { saveText } from '../parts/save-file.ts';
import { template } from './record-file.ts';
import type { UniversityType } from './types.ts';

export const LIST_EXAMPLE = '[{"channel": "TELEGRAM", "external_id": "123"}]';

/** The fields of a type: what a file must and may hold, with an empty table to begin from. */
export function FieldList({ type }: { type: UniversityType }) {
  const { t } = useTranslation();
  return (
    <Accordion variant="contained" chevronPosition="left">
      <Accordion.Item value="fields">
        <Accordion.Control>
          {t('university.fields')}{' '}
          <Text span size="sm" c="dimmed">
            {t('university.required')}:{' '}
            {type.fields
              .filter(f => f.required)
              .map(f => f.name)
              .join(', ')}
          </Text>
        </Accordion.Control>
        <Accordion.Panel>
          <Group justify="space-between" align="flex-start" mb="xs">
            <Text size="sm" maw="44rem">
              {t('university.fieldsAbout')}
            </Text>
            <Button
              variant="light"
              size="xs"
              leftSection={<IconDownload size={14} aria-hidden />}
              onClick={() => saveText(`${type.path}.csv`, template(type.fields), 'text/csv')}
            >
              {t('university.template')}
            </Button>
          </Group>
          <Table.ScrollContainer tabIndex={0} minWidth={280} type="native">
            <Table verticalSpacing={4} aria-label={t('university.fields')}>
              <Table.Thead>
                <Table.Tr>
                  <Table.Th>{t('university.field')}</Table.Th>
                  <Table.Th>{t('university.holds')}</Table.Th>
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {type.fields.map(f => (
                  <Table.Tr key={f.name}>
                    <Table.Td>
                      <Group gap={6}>
                        <Code style={{ overflowWrap: 'anywhere' }}>{f.name}</Code>
                        {f.required && (
                          <Badge variant="default" size="sm" tt="none">
                            {t('university.isRequired')}
                          </Badge>
                        )}
                      </Group>
                    </Table.Td>
                    <Table.Td>
                      {f.references !== null ? (
                        <LinkAnchor to="." search={{ type: f.references }} size="sm">
                          {t('university.idOf', { type: t(`university.type.${f.references}`) })}
                        </LinkAnchor>
                      ) : (
                        <Text size="sm">
                          {f.values === null
                            ? t(`university.kind.${f.kind}`, { name: f.name, example: LIST_EXAMPLE })
                            : f.values.join(', ')}
                        </Text>
                      )}
                    </Table.Td>
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
          </Table.ScrollContainer>
        </Accordion.Panel>
      </Accordion.Item>
    </Accordion>
  );
}
