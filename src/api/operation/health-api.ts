import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import type { Request } from '../../http/message.ts';
import { NO_STORE } from '../../http/message.ts';
import { resource } from '../contract/contract.ts';
import { type Handle, serve } from '../contract/endpoint.ts';
import { type Guards, isFromThisMachine } from '../contract/guards.ts';
import type { Route } from '../contract/route.ts';

/** One thing the service needs. Without what is not `needed` it is degraded: some requests are answered, some are not. */
export type HealthCheck = { name: string; needed: boolean; look(): Promise<string | null> };

export type HealthParts = {
  state(): 'starting' | 'ready' | 'draining';
  checks: readonly HealthCheck[];
  guards: Pick<Guards, 'check'>;
  about: { version: string; startedAt: Date };
};

const INSIDE = 'for administrators, administration keys, and clients on this machine that come through no proxy';

const check = z
  .object({
    name: z.string(),
    state: z.enum(['ok', 'degraded', 'failed']),
    detail: z.string().nullable().describe('What is missing'),
  })
  .meta({ id: 'HealthCheck' });
const checks = z.array(check).optional().describe(`Each thing it needs, ${INSIDE}`);

/** `/healthz` alive, `/readyz` ready to serve (docs/api.md "Health"). */
export const health = resource('Health', 'Whether the service lives and is ready.', {
  alive: {
    method: 'GET',
    path: '/healthz',
    guard: 'none',
    summary: 'Ask whether the process lives',
    replies: {
      200: z.object({
        status: z.literal('alive'),
        version: z.string().optional().describe(`Release, ${INSIDE}`),
        pid: z.int().optional(),
        uptime_seconds: z.int().optional(),
      }),
    },
  },
  ready: {
    method: 'GET',
    path: '/readyz',
    guard: 'none',
    summary: 'Ask whether the service is ready',
    description:
      'degraded: the graph store does not answer or is slow, or the database is read-only. What needs them is refused or late.',
    replies: {
      200: z.object({ status: z.enum(['ready', 'degraded']), checks }),
      503: z.object({
        status: z.enum(['starting', 'draining', 'unavailable']),
        reason: z.string().optional().describe('What is missing'),
        check: z.string().optional().describe('The check that failed, by its name'),
        checks,
      }),
    },
  },
});

/** Answered as long as the process lives. */
export const HEALTH_PATHS: ReadonlySet<string> = new Set([health.alive.path, health.ready.path]);

const RETRY: Array<[string, string]> = [['Retry-After', '1'], NO_STORE];
/** A check that takes longer has failed: who asks does not wait for ever. */
const CHECK_MS = 3000;

/** Whether the client may read what is wrong inside. */
async function isInside({ guards }: HealthParts, request: Request): Promise<boolean> {
  const { headers } = request;
  if (isFromThisMachine(request) && headers.via === undefined) return true;
  if (headers.authorization === undefined && headers.cookie === undefined) return false;
  return await guards.check({ guard: 'admin', key: ['read', 'operate'] }, request).then(
    () => true,
    () => false,
  );
}

const alive: Handle<typeof health.alive, HealthParts> = async (parts, { request }) => {
  const { startedAt, version } = parts.about;
  const inside = await isInside(parts, request);
  const uptime = Math.round((Date.now() - startedAt.getTime()) / 1000);
  const more = inside ? { version, pid: process.pid, uptime_seconds: uptime } : {};
  return { status: 200, json: { status: 'alive', ...more }, headers: [NO_STORE] };
};

type Looked = HealthCheck & { problem: string | null };

async function look(one: HealthCheck): Promise<Looked> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<string>(resolve => {
    timer = setTimeout(
      () => resolve(`the check of the ${one.name} had no answer within ${CHECK_MS / 1000} s`),
      CHECK_MS,
    );
  });
  const problem = await Promise.race([one.look(), late]).finally(() => clearTimeout(timer));
  return { ...one, problem };
}

/** The checks that find something wrong now. */
export const failedChecks = async (checks: readonly HealthCheck[]): Promise<Looked[]> =>
  (await Promise.all(checks.map(look))).filter(c => c.problem !== null);

const checkJson = ({ name, needed, problem }: Looked) => ({
  name,
  state: problem === null ? ('ok' as const) : needed ? ('failed' as const) : ('degraded' as const),
  detail: problem,
});

const ready: Handle<typeof health.ready, HealthParts> = async (parts, { request }) => {
  const state = parts.state();
  if (state !== 'ready') return { status: 503, json: { status: state }, headers: RETRY };
  // Identifying the caller may need a database that does not answer.
  const late = sleep(CHECK_MS, false, { ref: false });
  const [isShown, ...looked] = await Promise.all([
    Promise.race([isInside(parts, request), late]),
    ...parts.checks.map(look),
  ]);
  const more = isShown ? { checks: looked.map(checkJson) } : {};
  const missing = looked.find(c => c.needed && c.problem !== null);
  if (missing?.problem != null)
    return {
      status: 503,
      json: { status: 'unavailable', reason: missing.problem, check: missing.name, ...more },
      headers: RETRY,
    };
  const status = looked.some(c => c.problem !== null) ? 'degraded' : 'ready';
  return { status: 200, json: { status, ...more }, headers: [NO_STORE] };
};

export const healthRoutes = (parts: HealthParts): Route[] => serve(health, parts, { alive, ready });
