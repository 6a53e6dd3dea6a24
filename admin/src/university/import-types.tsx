import { Table, Text } from '@mantine/core';
import { Fragment } from 'react';
import { useTranslation } from 'react-i18next';
import { numberText } from '../parts/quantities.ts';
import { StateBadge } from '../parts/state-badge.tsx';
import { useFound } from './stopped-types.tsx';
import { type ImportRun, PHASE, PHASES, TYPE_STATE } from './types.ts';

const COLUMNS = 7;

/** The types of an import in the order of the work, with what it did to each. */
export function ImportTypes({ run }: { run: ImportRun }) {
  const { t } = useTranslation();
  return (
    <Table.ScrollContainer tabIndex={0} minWidth={280} type="native">
      <Table
        verticalSpacing="xs"
        horizontalSpacing={6}
        highlightOnHover
        aria-label={t('university.types')}
        className="stacked"
      >
        <Table.Thead>
          <Table.Tr>
            <Table.Th>{t('university.typeOf')}</Table.Th>
            <Table.Th>{t('common.state')}</Table.Th>
            <Table.Th ta="right">{t('university.count.total')}</Table.Th>
            <Table.Th ta="right" className="not-on-tablets">
              {t('university.count.created')}
            </Table.Th>
            <Table.Th ta="right" className="not-on-tablets">
              {t('university.count.updated')}
            </Table.Th>
            <Table.Th ta="right" className="not-on-tablets">
              {t('university.count.deactivated')}
            </Table.Th>
            <Table.Th ta="right">{t('university.count.failed')}</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {PHASES.map(phase => (
            <Fragment key={phase}>
              {run.types.length > 1 && (
                <Table.Tr>
                  <Table.Th colSpan={COLUMNS} scope="rowgroup">
                    <Text size="xs" c="dimmed" fw={600}>
                      {t(`university.phase.${phase}.title`)}
                    </Text>
                  </Table.Th>
                </Table.Tr>
              )}
              {run.types
                .filter(x => PHASE[x.type] === phase)
                .map(x => (
                  <TypeRow key={x.type} type={x} />
                ))}
            </Fragment>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}

function TypeRow({ type: x }: { type: ImportRun['types'][number] }) {
  const { t } = useTranslation();
  const foundBy = useFound();
  const count = (n: number, isBad = false) => (
    <Text size="sm" c={n === 0 ? 'dimmed' : isBad ? 'red' : undefined}>
      {numberText(n)}
    </Text>
  );
  return (
    <>
      <Table.Tr>
        <Table.Td>
          <Text size="sm" fw={500}>
            {t(`university.type.${x.type}`)}
          </Text>
        </Table.Td>
        <Table.Td data-label={t('common.state')}>
          <StateBadge kind={TYPE_STATE[x.state]} label={t(`university.state.${x.state}`)} />
        </Table.Td>
        <Table.Td ta="right" data-label={t('university.count.total')}>
          {count(x.total)}
        </Table.Td>
        <Table.Td ta="right" className="not-on-tablets" data-label={t('university.count.created')}>
          {count(x.created)}
        </Table.Td>
        <Table.Td ta="right" className="not-on-tablets" data-label={t('university.count.updated')}>
          {count(x.updated)}
        </Table.Td>
        <Table.Td ta="right" className="not-on-tablets" data-label={t('university.count.deactivated')}>
          {count(x.deactivated)}
        </Table.Td>
        <Table.Td ta="right" data-label={t('university.count.failed')}>
          {count(x.failed, true)}
        </Table.Td>
      </Table.Tr>
      {x.problem !== null && (
        <Table.Tr>
          <Table.Td colSpan={COLUMNS}>
            <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
              {x.state === 'stopped' ? foundBy(x) : <span lang="en">{x.problem}</span>}
            </Text>
          </Table.Td>
        </Table.Tr>
      )}
    </>
  );
}
