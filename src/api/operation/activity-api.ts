import { z } from 'zod';
import { ServiceError } from '../../base/errors.ts';
import { LIMITS } from '../../base/limits.ts';
import type { Database } from '../../db/database.ts';
import {
  ACTIVITY_FLUSH_MS,
  type ActivityStep,
  type ActivitySum,
  addUp,
  busiestPlugins,
  busiestTriggers,
  quantile,
  readActivity,
} from '../../records/activity.ts';
import { resource } from '../contract/contract.ts';
import { type Handle, serve } from '../contract/endpoint.ts';
import { pluginId, time } from '../contract/fields.ts';
import { text } from '../contract/query.ts';
import type { Route } from '../contract/route.ts';

export type ActivityApiParts = {
  db: Database;
  /** Writes what this process has counted. */
  flush(): Promise<void>;
};

/** What can be looked back on, with the steps it is shown in. */
const WINDOWS = {
  '15m': { seconds: 900, step: 60 },
  '1h': { seconds: 3600, step: 60 },
  '24h': { seconds: 86_400, step: 900 },
  '7d': { seconds: 7 * 86_400, step: 900 },
  '30d': { seconds: 30 * 86_400, step: 3600 },
} as const satisfies Record<string, { seconds: number; step: ActivityStep }>;
const windowName = z.enum(['15m', '1h', '24h', '7d', '30d']);

const BUSIEST_MAX = 20;

const figures = {
  requests: z.int().min(0).describe('Executions that ended'),
  failed: z
    .int()
    .min(0)
    .describe('Those that ended without an answer of the plugin, or with a status of 500 and above'),
  p50_ms: z.number().nullable().describe('How long half of them took at most, the wait for a slot included'),
  p95_ms: z.number().nullable(),
  p99_ms: z.number().nullable(),
  slots: z.number().describe('Execution slots in use on average'),
};
const point = z.object({ at: time, ...figures }).meta({ id: 'ActivityPoint' });
const sum = z.object(figures).meta({ id: 'ActivitySum' });

/** Executions over time (docs/administrators.md "What is going on"). */
export const activity = resource('Activity', 'Executions over time.', {
  read: {
    method: 'GET',
    path: '/api/admin/activity',
    guard: 'admin',
    key: ['read', 'operate'],
    summary: 'Read requests, failures, durations and slot use over time',
    description:
      'Durations are about right: they are counted in buckets. A step without executions is left out. What other serving processes count comes after ten seconds.',
    query: z.strictObject({
      window: windowName.default('1h').describe('How far to look back'),
      plugin: pluginId.optional().describe('The only plugin to count'),
      trigger: text('The only trigger of it to count'),
    }),
    replies: {
      200: z.object({
        window: windowName,
        step_seconds: z.int().positive(),
        since: time,
        until: time,
        slots_max: z.int().positive().describe('Execution slots of one plugin on one host'),
        total: sum,
        points: z.array(point),
        plugins: z
          .array(z.object({ plugin: pluginId, ...figures }))
          .describe(`The ${BUSIEST_MAX} with the most executions; empty where one plugin is asked for`),
        triggers: z
          .array(z.object({ trigger: z.string(), ...figures }))
          .describe(`Of the plugin asked for the ${BUSIEST_MAX} with the most executions`),
      }),
    },
  },
});

const read: Handle<typeof activity.read, ActivityApiParts> = async ({ db, flush }, { query }) => {
  await flush();
  const { plugin = null, trigger, window } = query;
  if (trigger !== undefined && plugin === null)
    throw new ServiceError('validation_failed', 'a trigger is one of a plugin; name the plugin too', {
      errors: [{ pointer: 'query:plugin', message: 'is needed with trigger', code: 'missing' }],
    });
  const { seconds, step } = WINDOWS[window];
  const until = new Date();
  // Whole steps, so that the first one is not cut.
  const since = new Date((Math.floor(until.getTime() / 1000 / step) * step - seconds + step) * 1000);
  const points = await readActivity(db, { plugin, trigger }, step, since);
  const busiest = plugin === null ? await busiestPlugins(db, step, since, BUSIEST_MAX) : [];
  const ofTriggers =
    plugin === null || trigger !== undefined ? [] : await busiestTriggers(db, plugin, step, since, BUSIEST_MAX);
  const lasted = (until.getTime() - since.getTime()) / 1000;
  const lastedOf = (at: Date): number =>
    Math.min(step, Math.max(ACTIVITY_FLUSH_MS / 1000, (until.getTime() - at.getTime()) / 1000));
  const json = {
    window,
    step_seconds: step,
    since,
    until,
    slots_max: LIMITS.slotsPerPlugin,
    total: figuresOf(addUp(points), lasted),
    points: points.map(p => ({ at: p.at, ...figuresOf(p, lastedOf(p.at)) })),
    plugins: busiest.map(b => ({ plugin: b.plugin, ...figuresOf(b.sum, lasted) })),
    triggers: ofTriggers.map(b => ({ trigger: b.trigger, ...figuresOf(b.sum, lasted) })),
  };
  return { status: 200, json };
};

/** @param seconds how long the counting lasted */
const figuresOf = (s: ActivitySum, seconds: number) => ({
  requests: s.requests,
  failed: s.failed,
  p50_ms: quantile(s.taken, 0.5),
  p95_ms: quantile(s.taken, 0.95),
  p99_ms: quantile(s.taken, 0.99),
  slots: s.runMs / 1000 / seconds,
});

export const activityRoutes = (parts: ActivityApiParts): Route[] => serve(activity, parts, { read });
