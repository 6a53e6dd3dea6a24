import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Loaded } from './loaded.tsx';
import { Page } from './page.tsx';

/** The page of one thing. Its heading and the way back are there while it loads, and when that fails. */
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
