import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { ApiProblem } from '../api/problem.ts';
import { ProblemAlert } from './problem.tsx';
import { Waiting } from './waiting.tsx';

/** Why a query failed. Another try does not bring what is not there. */
function Failed({ error, query }: { error: Error; query: UseQueryResult<unknown> }) {
  const isMissing = error instanceof ApiProblem && error.code === 'not_found';
  return <ProblemAlert error={error} {...(!isMissing ? { onRetry: () => void query.refetch() } : {})} />;
}

/** Shows what a query brought, or that it is on its way, or why it failed. What was shown stays while it is read again. */
export function Loaded<T>({ children, query }: { query: UseQueryResult<T>; children: (data: T) => ReactNode }) {
  if (query.data !== undefined)
    return (
      <>
        {query.error !== null && <Failed query={query} error={query.error} />}
        {children(query.data)}
      </>
    );
  if (query.error !== null) return <Failed query={query} error={query.error} />;
  return <Waiting />;
}
