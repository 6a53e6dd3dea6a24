import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { ApiProblem } from '../api/problem.ts';
import { ProblemAlert } from './problem.tsx';
import { Waiting } from './waiting.tsx';

/** Another try does not bring what is not there. */
const isThere = (error: Error): boolean => !(error instanceof ApiProblem && error.code === 'not_found');

/** Shows what a query brought, or that it is on its way, or why it failed. What was shown stays while it is read again. */
export function Loaded<T>({ children, query }: { query: UseQueryResult<T>; children: (data: T) => ReactNode }) {
  if (query.data !== undefined)
    return (
      <>
        {query.error !== null && <ProblemAlert error={query.error} onRetry={() => query.refetch()} />}
        {children(query.data)}
      </>
    );
  if (query.error !== null)
    return (
      <ProblemAlert error={query.error} {...(isThere(query.error) ? { onRetry: () => void query.refetch() } : {})} />
    );
  return <Waiting />;
}
