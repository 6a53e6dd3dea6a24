import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Details } from './details.tsx';
import { Loaded } from './loaded.tsx';

/**
 * The details of the entry that the address names: from the list while the list has it, otherwise from the service. A
 * link opens them wherever the entry stands, and they stay open when it leaves the list.
 *
 * @param id of the entry; undefined: nothing is open
 * @param listed the entry, if the list has it
 */
export function AddressedDetails<Row>(props: {
  id: string | undefined;
  listed: Row | undefined;
  queryKey: readonly unknown[];
  load: (id: string) => Promise<Row>;
  title: (row: Row | undefined) => string;
  onClose: () => void;
  children: (row: Row) => ReactNode;
}) {
  const { children, id, listed, load, onClose, queryKey, title } = props;
  const query = useQuery({
    queryKey: [...queryKey, id],
    queryFn: () => load(id ?? ''),
    enabled: id !== undefined && listed === undefined,
  });
  return (
    <Details title={title(listed ?? query.data)} isOpen={id !== undefined} onClose={onClose}>
      {listed === undefined ? <Loaded query={query}>{children}</Loaded> : children(listed)}
    </Details>
  );
}
