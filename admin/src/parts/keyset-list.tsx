import { Button, Group, Stack, Table, Text } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { ProblemAlert } from './problem.tsx';
import { Waiting } from './waiting.tsx';

/** Where the head of a table stays while its rows scroll (page.css). */
const HEAD = 'var(--table-head-top, 0px)';

/** What is loaded of a list. */
type Loads = { state: { data?: { pages: readonly unknown[] } | undefined } };
type PageOf<Row> = { items: Row[]; next_cursor?: string | null };

/** @param load one page; the cursor is undefined for the first */
export function useKeyset<Row, P extends PageOf<Row>>(
  key: readonly unknown[],
  load: (cursor: string | undefined) => Promise<P & PageOf<Row>>,
  refetchMs?: number,
) {
  const query = useInfiniteQuery({
    queryKey: key,
    queryFn: ({ pageParam }) => load(pageParam),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: page => page.next_cursor ?? undefined,
    // Many pages are not read again behind the back of one who reads on.
    ...(refetchMs === undefined
      ? {}
      : { refetchInterval: (q: Loads) => ((q.state.data?.pages.length ?? 0) > 1 ? false : refetchMs) }),
  });
  return { ...query, rows: query.data?.pages.flatMap(p => p.items) ?? [], first: query.data?.pages[0] };
}

export type Column<Row> = {
  key: string;
  title: string;
  cell(row: Row): ReactNode;
  /** Below this width the column is left out; its facts stand on the page of the row. */
  from?: 'xs' | 'sm' | 'md' | 'lg';
  align?: 'left' | 'right';
  /** Whether it holds one small sign, which a phone shows next to the first column. */
  isSign?: boolean;
};

export type KeysetQuery<Row> = {
  rows: Row[];
  isPending: boolean;
  error: unknown;
  refetch(): unknown;
  hasNextPage: boolean;
  isFetchingNextPage: boolean;
  fetchNextPage(): unknown;
};

/** A table of one page after another: the list is never loaded as a whole. */
export function KeysetTable<Row>(props: {
  label: string;
  query: KeysetQuery<Row>;
  columns: ReadonlyArray<Column<Row>>;
  rowKey(row: Row): string | number;
  empty: ReactNode;
}) {
  const { columns, empty, label, query, rowKey } = props;
  const { t } = useTranslation();
  if (query.isPending) return <Waiting />;
  if (query.error !== null && query.rows.length === 0)
    return <ProblemAlert error={query.error} onRetry={() => query.refetch()} />;
  if (query.rows.length === 0) return empty;
  return (
    <Stack gap="sm">
      {query.error !== null && <ProblemAlert error={query.error} onRetry={() => query.refetch()} />}
      <Table.ScrollContainer tabIndex={0} minWidth={280} type="native" className="whole-table">
        <Table
          verticalSpacing="xs"
          highlightOnHover
          aria-label={label}
          className="stacked"
          stickyHeader
          stickyHeaderOffset={HEAD}
        >
          <Table.Thead>
            <Table.Tr>
              {columns.map(c => (
                <Table.Th key={c.key} visibleFrom={c.from} ta={c.align}>
                  {c.title}
                </Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {query.rows.map(row => (
              <Table.Tr key={rowKey(row)}>
                {columns.map((c, k) => (
                  <Table.Td
                    key={c.key}
                    visibleFrom={c.from}
                    ta={c.align}
                    data-sign={c.isSign === true || undefined}
                    data-label={k === 0 || c.title === '' ? undefined : c.title}
                  >
                    <div>{c.cell(row)}</div>
                  </Table.Td>
                ))}
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
      <Group justify="space-between">
        <Text size="sm" c="dimmed">
          {t(query.hasNextPage ? 'common.shownMore' : 'common.shown', { count: query.rows.length })}
        </Text>
        {query.hasNextPage && (
          <Button variant="default" loading={query.isFetchingNextPage} onClick={() => query.fetchNextPage()}>
            {t('common.more')}
          </Button>
        )}
      </Group>
    </Stack>
  );
}
