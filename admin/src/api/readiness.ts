import { api, type Schemas } from './client.ts';
import { ApiProblem } from './problem.ts';

export type Readiness = { status: 'ready' | 'degraded' | 'unavailable'; checks: Schemas['HealthCheck'][] };

/** What the service needs, one by one. A service that is not ready answers 503 with the same list. */
export async function readiness(): Promise<Readiness> {
  const { data } = await api.GET('/readyz').catch((error: unknown) => {
    if (error instanceof ApiProblem && error.status === 503) return { data: undefined };
    throw error;
  });
  return { status: data?.status ?? 'unavailable', checks: data?.checks ?? [] };
}
