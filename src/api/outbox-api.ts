import type { Actor } from '../audit/audit-log.ts';
import { ServiceError } from '../base/errors.ts';
import { LIMITS } from '../base/limits.ts';
import type { Database } from '../db/database.ts';
import type { Graph } from '../graph/graph.ts';
import type { GraphSchema } from '../graph/graph-schema.ts';
import { GraphError } from '../graph/graph-store.ts';
import { tupleText } from '../graph/tuple.ts';
import { jsonReply } from '../http/message.ts';
import type { Deliverer } from '../outbox/deliver.ts';
import { type Drift, findDrift, repairDrift } from '../outbox/drift.ts';
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
} from '../outbox/entries.ts';
import type { Outbox } from '../outbox/outbox.ts';
import { idOf } from './auth-api.ts';
import { graphAway } from './policies-api.ts';
import { actorOf, pageOf, queryOf, type Route } from './route.ts';

export type OutboxApiParts = {
  db: Database;
  graph: Graph;
  schema: GraphSchema;
  deliverer: Deliverer;
  outbox: Outbox;
};

const pauseJson = (p: StreamPause | null) => (p === null ? null : { since: p.since, until: p.until, reason: p.reason });

/** @param pause of the stream: what waits says why it does, although nothing is wrong with itself */
const entryJson = (r: OutboxRow, pause: StreamPause | null) => ({
  id: r.id,
  operation: r.operation,
  state: r.state,
  payload: r.payload,
  keys: r.keys,
  attempts: r.attempts,
  last_error: r.lastError,
  paused: r.state === 'pending' ? pauseJson(pause) : null,
  created_at: r.createdAt,
  processed_at: r.processedAt,
  locked_until: r.lockedUntil,
  dead_at: r.deadAt,
  resolution: r.resolution,
  resolved_by: r.resolvedBy,
  requeue_of: r.requeueOf,
});

/** Tuples listed in one answer; the counts are whole. */
const SHOWN_MAX = 1000;

export const driftJson = (d: Drift) => ({
  missing: d.missing.slice(0, SHOWN_MAX).map(tupleText),
  missing_count: d.missing.length,
  extra: d.extra.slice(0, SHOWN_MAX).map(tupleText),
  extra_count: d.extra.length,
  compared: d.compared,
  pending: d.pending,
  repaired: d.repaired,
});

function stateOf(raw: string | undefined): OutboxRow['state'] | undefined {
  const found = ENTRY_STATES.find(s => s === raw);
  if (raw === undefined || found !== undefined) return found;
  const message = `must be one of ${ENTRY_STATES.join(', ')}`;
  throw new ServiceError('validation_failed', `state ${message}`, { errors: [{ pointer: 'query:state', message }] });
}

const noSuch = (id: string | undefined): ServiceError =>
  new ServiceError('not_found', `there is no entry ${id} in the outbox`);
const notDead = (id: number): ServiceError =>
  new ServiceError(
    'conflict',
    `entry ${id} is not dead: only what has failed ${LIMITS.outboxAttemptsMax} times is resolved`,
  );

/** The outbox and the agreement of database and graph store (docs/outbox.md "Entries", docs/outbox.md "Failures"). */
export function outboxRoutes(parts: OutboxApiParts): Route[] {
  const { db, deliverer, graph, outbox, schema } = parts;
  const path = '/api/admin/outbox';
  /** It reads both graphs whole. */
  let comparing = false;
  const drift = async (repair: Actor | null) => {
    if (comparing)
      throw new ServiceError('conflict', 'a comparison is under way; try again when it has ended', {
        headers: [['Retry-After', '5']],
      });
    comparing = true;
    try {
      const compared = { db, deliverer, schema };
      const found =
        repair === null ? await findDrift(compared, graph.store) : await repairDrift(compared, graph.store, repair);
      return jsonReply(200, driftJson(found));
    } catch (error) {
      if (error instanceof GraphError) throw graphAway(error);
      throw error;
    } finally {
      comparing = false;
    }
  };
  return [
    {
      method: 'GET',
      path,
      guard: 'admin',
      key: ['read', 'operate'],
      async handle({ request }) {
        const query = queryOf(request, ['limit', 'cursor', 'state', 'key']);
        const filter = { state: stateOf(query.get('state')), key: query.get('key') };
        const pause = await findPause(db);
        const listed = (before: number, limit: number) => listEntries(db, filter, before, limit);
        const page = await pageOf(query, listed, row => entryJson(row, pause));
        const state = await outboxState(db);
        return jsonReply(200, {
          ...page,
          pending: state.pending,
          dead: state.dead,
          oldest_pending_seconds: state.oldestPendingSeconds,
          lag_ms: state.lagMs,
          paused: pauseJson(pause),
          paused_until: pause?.until ?? null,
          last_error: state.lastError,
          last_delivered_id: state.lastId,
        });
      },
    },
    {
      method: 'GET',
      path: `${path}/:entry`,
      guard: 'admin',
      key: ['read', 'operate'],
      async handle({ request }) {
        const entry = await findEntry(db, idOf(request, 'entry'));
        if (entry === undefined) throw noSuch(request.params.entry);
        return jsonReply(200, entryJson(entry, await findPause(db)));
      },
    },
    {
      method: 'POST',
      path: `${path}/:entry/retry`,
      guard: 'admin_recent',
      key: ['operate'],
      async handle({ caller, request }) {
        const id = idOf(request, 'entry');
        if ((await findEntry(db, id)) === undefined) throw noSuch(request.params.entry);
        const lastId = await retryEntry(db, id, actorOf(caller, request));
        if (lastId === null) throw notDead(id);
        // Nothing is left to deliver when the database wants none of it any more.
        const settled = lastId === 0 || (await outbox.settled({ firstId: lastId, lastId }, LIMITS.deliveryWaitMs));
        return jsonReply(200, { entry: id, requeued_as: lastId === 0 ? null : lastId, delivered: settled });
      },
    },
    {
      method: 'POST',
      path: `${path}/:entry/discard`,
      guard: 'admin_recent',
      key: ['operate'],
      async handle({ caller, request }) {
        const id = idOf(request, 'entry');
        if ((await findEntry(db, id)) === undefined) throw noSuch(request.params.entry);
        if (!(await discardEntry(db, id, actorOf(caller, request)))) throw notDead(id);
        return jsonReply(200, { entry: id, discarded: true });
      },
    },
    {
      method: 'GET',
      path: '/api/admin/authz/drift',
      guard: 'admin',
      key: ['read', 'operate'],
      handle: () => drift(null),
    },
    {
      method: 'POST',
      path: '/api/admin/authz/drift/repair',
      guard: 'admin_recent',
      key: ['operate'],
      handle: ({ caller, request }) => drift(actorOf(caller, request)),
    },
  ];
}
