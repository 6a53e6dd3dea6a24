import { z } from 'zod';
import type { Database } from '../../db/database.ts';
import { listQueues } from '../../db/job-tables.ts';
import { resource } from '../contract/contract.ts';
import { type Handle, serve } from '../contract/endpoint.ts';
import { time } from '../contract/fields.ts';
import { noParameters } from '../contract/query.ts';
import type { Route } from '../contract/route.ts';

export type JobsApiParts = { db: Database };

const count = z.int().nonnegative();

const queue = z
  .object({
    name: z.string(),
    waiting: count.describe('Jobs that may run now'),
    deferred: count.describe('Jobs whose time has not come, or that are tried again later'),
    active: count,
    failed: count.describe('Jobs that failed for the last time within the last day'),
    oldest_waiting_seconds: z.number().nullable(),
    last_error: z.string().nullable().describe('What the last failed job said, of those tried again too'),
    last_completed_at: time.nullable(),
  })
  .meta({ id: 'JobQueue' });

/** Background jobs (docs/operating.md "Jobs"). */
export const jobs = resource('Jobs', 'Queues of background work, shared by all hosts.', {
  list: {
    method: 'GET',
    path: '/api/admin/jobs',
    guard: 'admin',
    key: ['read', 'operate'],
    summary: 'List the queues with what waits, runs and failed',
    query: noParameters,
    replies: { 200: z.object({ items: z.array(queue) }) },
  },
});

const list: Handle<typeof jobs.list, JobsApiParts> = async ({ db }) => {
  const items = (await listQueues(db)).map(q => ({
    name: q.name,
    waiting: q.waiting,
    deferred: q.deferred,
    active: q.active,
    failed: q.failed,
    oldest_waiting_seconds: q.oldestSeconds,
    last_error: q.lastError,
    last_completed_at: q.lastCompletedAt,
  }));
  return { status: 200, json: { items } };
};

export const jobRoutes = (parts: JobsApiParts): Route[] => serve(jobs, parts, { list });
