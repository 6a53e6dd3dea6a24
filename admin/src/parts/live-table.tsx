import { Alert, Group, Text } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import type { Live } from '../api/use-live.ts';
import { type Column, KeysetTable } from './keyset-list.tsx';
import { ProblemAlert } from './problem.tsx';
import { StateBadge } from './state-badge.tsx';

const KIND = { connecting: 'wait', open: 'good', lost: 'warn' } as const;

/** A table of what comes, with the state of the stream above it. */
export function LiveTable<Row>(props: {
  label: string;
  live: Live<Row>;
  columns: ReadonlyArray<Column<Row>>;
  rowKey(row: Row): string | number;
  /** What the table shows. */
  about: string;
  /** What stands there while nothing has come. */
  empty: string;
}) {
  const { about, columns, empty, label, live, rowKey } = props;
  const { t } = useTranslation();
  const query = {
    rows: [...live.rows],
    isPending: false,
    error: null,
    refetch: () => {},
    hasNextPage: false,
    isFetchingNextPage: false,
    fetchNextPage: () => {},
  };
  return (
    <>
      <Group mb="sm" gap="xs" role="status">
        <StateBadge kind={KIND[live.state]} label={t(`live.${live.state}`)} />
        <Text size="sm" c="dimmed">
          {about}
        </Text>
      </Group>
      <ProblemAlert error={live.error} />
      {live.rows.length === 0 ? (
        <Alert color="gray">{empty}</Alert>
      ) : (
        <KeysetTable label={label} query={query} rowKey={rowKey} columns={columns} empty={null} />
      )}
    </>
  );
}
