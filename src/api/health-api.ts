import { notCurrent } from '../base/errors.ts';
import type { ChangeStatus } from '../db/notifications.ts';
import { jsonReply, NO_STORE } from '../http/message.ts';
import type { Route } from './route.ts';

export type HealthParts = {
  state(): 'starting' | 'ready' | 'draining';
  /** Asks the database. */
  check(): Promise<void>;
  changes: ChangeStatus;
  /** What is wrong with the room on the disk; null when nothing is. */
  lackOfSpace(): string | null;
};

/** Answered as long as the process lives. */
export const HEALTH_PATHS: ReadonlySet<string> = new Set(['/healthz', '/readyz']);

/** `/healthz` alive, `/readyz` ready to serve (docs/api.md "Health"). */
export function healthRoutes(parts: HealthParts): Route[] {
  return [
    { method: 'GET', path: '/healthz', guard: 'none', handle: () => jsonReply(200, { status: 'alive' }, [NO_STORE]) },
    {
      method: 'GET',
      path: '/readyz',
      guard: 'none',
      async handle() {
        const state = parts.state();
        if (state !== 'ready') return jsonReply(503, { status: state }, [['Retry-After', '1'], NO_STORE]);
        const unavailable = (reason: string) =>
          jsonReply(503, { status: 'unavailable', reason }, [['Retry-After', '1'], NO_STORE]);
        if (!(await parts.changes.becomesCurrent()))
          return unavailable(`${notCurrent().message}; public triggers go on`);
        try {
          await parts.check();
          const lack = parts.lackOfSpace();
          if (lack !== null) return unavailable(lack);
          return jsonReply(200, { status: 'ready' }, [NO_STORE]);
        } catch {
          return unavailable('the database does not answer');
        }
      },
    },
  ];
}
