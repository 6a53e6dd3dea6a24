import { z } from 'zod';
import { ServiceError } from '../../base/errors.ts';
import { LIMITS } from '../../base/limits.ts';
import type { Database } from '../../db/database.ts';
import {
  discardEntry,
  ENTRY_STATES,
  findEntry,
  findPause,
  listEntries,
  type OutboxRow,
  outboxState,
  retryEntry,
  type StreamPause,
} from '../../outbox/entries.ts';
import { type ComparisonResult, findNewestComparison } from '../../outbox/graph-comparison.ts';
import type { Outbox } from '../../outbox/outbox.ts';
import { actorOf } from '../contract/caller.ts';
import { resource } from '../contract/contract.ts';
import { type Handle, serve } from '../contract/endpoint.ts';
import { id, time } from '../contract/fields.ts';
import { loadPage, pageOf } from '../contract/paging.ts';
import { idParam } from '../contract/params.ts';
import { list as listWith, oneOf, text } from '../contract/query.ts';
import { replyWriter } from '../contract/reply-writer.ts';
import type { Route } from '../contract/route.ts';
import { type DriftApiParts, driftRoutes } from './drift-api.ts';

export type OutboxApiParts = DriftApiParts & { db: Database; outbox: Outbox };

const count = z.int().nonnegative();
const pauseReply = z
  .object({
    since: time,
    until: time.nullable().describe('Delivery is tried again then at the latest; null: all the time'),
    reason: z.string(),
  })
  .meta({ id: 'StreamPause' });

const entryReply = z
  .object({
    id,
    operation: z.enum(['TOUCH', 'DELETE', 'DELETE_BY_OBJECT', 'DELETE_BY_SUBJECT', 'REPLACE']),
    state: z.enum(ENTRY_STATES),
    payload: z.record(z.string(), z.unknown()).describe('What it does to the graph: tuples, removed, and a filter'),
    keys: z.array(z.string()).describe('Every entity it names, as type:id; entries that share one keep their order'),
    attempts: count,
    last_error: z.string().nullable(),
    paused: pauseReply.nullable().describe('Why the whole stream waits, for an entry that waits with it'),
    created_at: time,
    processed_at: time.nullable(),
    locked_until: time.nullable(),
    dead_at: time.nullable(),
    resolution: z.enum(['requeued', 'discarded']).nullable().describe('What became of a dead entry'),
    resolved_by: z.string().nullable(),
    requeue_of: id.nullable().describe('Id of the dead entry that goes on under this one'),
  })
  .meta({ id: 'OutboxEntry' });

const milliseconds = z.number();
const entriesReply = pageOf(entryReply).extend({
  pending: count,
  backing_off: count.describe('How many of the pending have failed before, and are tried again later'),
  dead: count,
  oldest_pending_seconds: z.number().nullable().describe('Age of what waits longest'),
  lag_ms: z
    .object({ p50: milliseconds, p99: milliseconds })
    .nullable()
    .describe('From commit to the store, of what was delivered in the last five minutes'),
  paused: pauseReply.nullable(),
  paused_until: time.nullable(),
  last_error: z.string().nullable(),
  last_delivered_id: count,
  last_comparison: z
    .object({ at: time, missing_count: count, extra_count: count, repaired: z.boolean() })
    .nullable()
    .describe('What the newest comparison of the graph store with the database found; null when none was made'),
});

const path = '/api/admin/outbox';
const params = { entry: idParam('outbox entry') };
/** Only what is dead is resolved. */
const refusals = ['conflict'] as const;

/** The outbox of the graph (docs/outbox.md "Entries"). */
export const outbox = resource('Outbox of the graph', 'Changes on their way from the database to the graph store.', {
  list: {
    method: 'GET',
    path,
    guard: 'admin',
    key: ['read', 'operate'],
    summary: 'List outbox entries, with how far delivery is',
    query: listWith({
      state: oneOf(ENTRY_STATES, 'Only entries in this state'),
      key: text('Only entries that name this entity, as type:id'),
    }),
    replies: { 200: entriesReply },
  },
  get: {
    method: 'GET',
    path: `${path}/:entry`,
    guard: 'admin',
    key: ['read', 'operate'],
    summary: 'Read an outbox entry',
    params,
    replies: { 200: entryReply },
  },
  retry: {
    method: 'POST',
    path: `${path}/:entry/retry`,
    guard: 'admin_recent',
    key: ['operate'],
    summary: 'Deliver what a dead entry would mean now',
    params,
    replies: {
      200: z.object({
        entry: id,
        requeued_as: id.nullable().describe('Entry it goes on under; null when nothing is left to deliver'),
        delivered: z.boolean(),
      }),
    },
    refusals,
  },
  discard: {
    method: 'POST',
    path: `${path}/:entry/discard`,
    guard: 'admin_recent',
    key: ['operate'],
    summary: 'Give up a dead entry',
    params,
    replies: { 200: z.object({ entry: id, discarded: z.literal(true) }) },
    refusals,
  },
});

const list: Handle<typeof outbox.list, OutboxApiParts> = async ({ db }, { query }) => {
  const filter = { state: query.state, key: query.key };
  const pause = await findPause(db);
  const load = (before: number, limit: number) => listEntries(db, filter, before, limit);
  const page = await loadPage(query, load, row => entryJson(row, pause));
  const state = await outboxState(db);
  const json = {
    ...page,
    pending: state.pending,
    backing_off: state.backingOff,
    dead: state.dead,
    oldest_pending_seconds: state.oldestPendingSeconds,
    lag_ms: state.lagMs,
    paused: pause,
    paused_until: pause?.until ?? null,
    last_error: state.lastError,
    last_delivered_id: state.lastId,
    last_comparison: comparisonJson(await findNewestComparison(db)),
  };
  return { status: 200, json };
};

const get: Handle<typeof outbox.get, OutboxApiParts> = async ({ db }, { params }) => {
  const entry = await load(db, params.entry);
  return { status: 200, json: entryJson(entry, await findPause(db)) };
};

const retry: Handle<typeof outbox.retry, OutboxApiParts> = async (parts, { caller, params, request }) => {
  const { id } = await load(parts.db, params.entry);
  const lastId = await retryEntry(parts.db, id, actorOf(caller, request));
  if (lastId === null) throw notDead(id);
  // Nothing is left to deliver when the database wants none of it any more.
  const settled = lastId === 0 || (await parts.outbox.settled({ firstId: lastId, lastId }, LIMITS.deliveryWaitMs));
  return { status: 200, json: { entry: id, requeued_as: lastId === 0 ? null : lastId, delivered: settled } };
};

const discard: Handle<typeof outbox.discard, OutboxApiParts> = async ({ db }, { caller, params, request }) => {
  const { id } = await load(db, params.entry);
  if (!(await discardEntry(db, id, actorOf(caller, request)))) throw notDead(id);
  return { status: 200, json: { entry: id, discarded: true } };
};

/** The outbox, and whether database and graph store agree. */
export const outboxRoutes = (parts: OutboxApiParts): Route[] => [
  ...serve(outbox, parts, { list, get, retry, discard }),
  ...driftRoutes(parts),
];

async function load(db: Database, entry: number): Promise<OutboxRow> {
  const found = await findEntry(db, entry);
  if (found === undefined) throw new ServiceError('not_found', `there is no entry ${entry} in the outbox`);
  return found;
}

const notDead = (id: number): ServiceError =>
  new ServiceError(
    'conflict',
    `entry ${id} is not dead: only what has failed ${LIMITS.outboxAttemptsMax} times is resolved`,
  );

const comparisonJson = (c: ComparisonResult | null) =>
  c === null ? null : { at: c.at, missing_count: c.missing, extra_count: c.extra, repaired: c.repaired };

/** @param pause of the stream: what waits says why it does, although nothing is wrong with itself */
const writeEntry = replyWriter(entryReply);
const entryJson = (r: OutboxRow, pause: StreamPause | null) =>
  writeEntry({ ...r, paused: r.state === 'pending' ? pause : null });
