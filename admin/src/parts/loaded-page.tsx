import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Loaded } from './loaded.tsx';
import { Page } from './page.tsx';

/** The page of one thing. While it is on its way, and when it cannot be had, its heading and the way back are there. */
export function LoadedPage<T>(props: {
  query: UseQueryResult<T>;
  title: string;
  crumbs: ReactNode;
  children: (data: T) => ReactNode;
}) {
  const { children, crumbs, query, title } = props;
  if (query.data !== undefined) return <Loaded query={query}>{children}</Loaded>;
  return (
    <Page title={title} crumbs={crumbs}>
      <Loaded query={query}>{children}</Loaded>
    </Page>
  );
}
