import { api, type Schemas } from './client.ts';
import { ApiProblem } from './problem.ts';

export type Readiness = {
  status: 'ready' | 'degraded' | 'unavailable';
  /** Of a service that is not ready the check that failed, or `starting` or `draining`; empty otherwise. */
  missing: string;
  checks: Schemas['HealthCheck'][];
};

const SILENT_MS = 4000;

/** What the service needs, one by one. A service that is not ready answers 503 with what is missing. */
export async function readiness(): Promise<Readiness> {
  try {
    const { data } = await api.GET('/readyz', { signal: AbortSignal.timeout(SILENT_MS) });
    return { status: data?.status ?? 'unavailable', missing: '', checks: data?.checks ?? [] };
  } catch (error) {
    if (!(error instanceof ApiProblem) || error.status !== 503) throw error;
    return { status: 'unavailable', missing: error.missing, checks: error.checks };
  }
}
