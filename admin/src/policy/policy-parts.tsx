import { Code, Table, Text } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import type { PolicyPart } from './false-parts.ts';

/** Every part of a policy with its value for a person, the outermost first. */
export function PolicyParts({ parts }: { parts: readonly PolicyPart[] }) {
  const { t } = useTranslation();
  return (
    <Table.ScrollContainer tabIndex={0} minWidth={200} type="native">
      <Table verticalSpacing={4} fz="sm">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>{t('tryPolicy.part')}</Table.Th>
            <Table.Th>{t('tryPolicy.value')}</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {parts.map(p => (
            <Table.Tr key={`${p.position.start} ${p.position.end}`}>
              <Table.Td>
                <Code style={{ overflowWrap: 'anywhere' }}>{p.expression}</Code>
              </Table.Td>
              <Table.Td>
                {p.not_needed === true ? (
                  <Text size="sm" c="dimmed">
                    {t('tryPolicy.notNeeded')}
                  </Text>
                ) : p.error !== undefined ? (
                  <Text size="sm" c="red" lang="en">
                    {p.error}
                  </Text>
                ) : (
                  <Code>{JSON.stringify(p.value)}</Code>
                )}
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}
