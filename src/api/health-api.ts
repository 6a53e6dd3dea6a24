import { z } from 'zod';
import { notCurrent } from '../base/errors.ts';
import type { ChangeStatus } from '../db/notifications.ts';
import { NO_STORE } from '../http/message.ts';
import { resource } from './contract.ts';
import { type Handle, serve } from './endpoint.ts';
import type { Route } from './route.ts';

export type HealthParts = {
  state(): 'starting' | 'ready' | 'draining';
  /** Asks the database. */
  check(): Promise<void>;
  changes: ChangeStatus;
  /** What is wrong with the room on the disk; null when nothing is. */
  lackOfSpace(): string | null;
};

/** `/healthz` alive, `/readyz` ready to serve (docs/api.md "Health"). */
export const health = resource('Health', 'Whether the service lives and is ready.', {
  alive: {
    method: 'GET',
    path: '/healthz',
    guard: 'none',
    summary: 'Ask whether the process lives',
    replies: { 200: z.object({ status: z.literal('alive') }) },
  },
  ready: {
    method: 'GET',
    path: '/readyz',
    guard: 'none',
    summary: 'Ask whether the service is ready',
    replies: {
      200: z.object({ status: z.literal('ready') }),
      503: z.object({
        status: z.enum(['starting', 'draining', 'unavailable']),
        reason: z.string().optional().describe('What is missing'),
      }),
    },
  },
});

/** Answered as long as the process lives. */
export const HEALTH_PATHS: ReadonlySet<string> = new Set([health.alive.path, health.ready.path]);

const RETRY: Array<[string, string]> = [['Retry-After', '1'], NO_STORE];

const alive: Handle<typeof health.alive, HealthParts> = () => ({
  status: 200,
  json: { status: 'alive' },
  headers: [NO_STORE],
});

const ready: Handle<typeof health.ready, HealthParts> = async parts => {
  const state = parts.state();
  if (state !== 'ready') return { status: 503, json: { status: state }, headers: RETRY };
  const reason = await problemOf(parts);
  if (reason !== null) return { status: 503, json: { status: 'unavailable', reason }, headers: RETRY };
  return { status: 200, json: { status: 'ready' }, headers: [NO_STORE] };
};

/** Why the service is not ready; null when it is. */
async function problemOf({ changes, check, lackOfSpace }: HealthParts): Promise<string | null> {
  if (!(await changes.becomesCurrent())) return `${notCurrent().message}; public triggers go on`;
  try {
    await check();
    return lackOfSpace();
  } catch {
    return 'the database does not answer';
  }
}

export const healthRoutes = (parts: HealthParts): Route[] => serve(health, parts, { alive, ready });
