import { jsonReply } from '../message.ts';
import type { Route } from './route.ts';

/** `ready` is false while the service starts or drains; `check` asks the database. */
export type HealthParts = { state(): 'starting' | 'ready' | 'draining'; check(): Promise<void> };

const NO_STORE: Array<[string, string]> = [['Cache-Control', 'no-store']];

/** Answered as long as the process lives. */
export const HEALTH_PATHS: ReadonlySet<string> = new Set(['/healthz', '/readyz']);

/** `/healthz` alive, `/readyz` ready to serve (decisions.md 1b). */
export function healthRoutes(parts: HealthParts): Route[] {
  return [
    { method: 'GET', path: '/healthz', guard: 'none', handle: () => jsonReply(200, { status: 'alive' }, NO_STORE) },
    {
      method: 'GET',
      path: '/readyz',
      guard: 'none',
      async handle() {
        const state = parts.state();
        if (state !== 'ready') return jsonReply(503, { status: state }, [['Retry-After', '1'], ...NO_STORE]);
        try {
          await parts.check();
          return jsonReply(200, { status: 'ready' }, NO_STORE);
        } catch {
          return jsonReply(503, { status: 'unavailable', reason: 'the database does not answer' }, [
            ['Retry-After', '1'],
            ...NO_STORE,
          ]);
        }
      },
    },
  ];
}
