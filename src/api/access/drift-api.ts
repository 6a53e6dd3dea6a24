import { z } from 'zod';
import type { Actor } from '../../audit/audit-log.ts';
import { ServiceError } from '../../base/errors.ts';
import { GraphError } from '../../graph/graph-store.ts';
import { tupleText } from '../../graph/tuple.ts';
import type { Drift } from '../../outbox/drift.ts';
import type { GraphComparison } from '../../outbox/graph-comparison.ts';
import { actorOf } from '../contract/caller.ts';
import { resource } from '../contract/contract.ts';
import { type Handle, serve } from '../contract/endpoint.ts';
import type { Route } from '../contract/route.ts';
import { graphAway } from './policies-api.ts';

export type DriftApiParts = { comparison: GraphComparison };

/** Tuples listed in one answer; the counts are whole. */
const SHOWN_MAX = 1000;

const count = z.int().nonnegative();
const driftReply = z
  .object({
    missing: z
      .array(z.string())
      .describe(`In the database and not in the store, like faculty:f1#dean@user:e1; the first ${SHOWN_MAX}`),
    missing_count: count,
    extra: z.array(z.string()).describe(`In the store and not in the database; the first ${SHOWN_MAX}`),
    extra_count: count,
    compared: count.describe('Relationships of the database that were compared'),
    pending: count.describe('Differences left out, because a change of them still waits for delivery'),
    repaired: z.boolean().describe('Whether the store was changed to what the database holds'),
  })
  .meta({ id: 'Drift' });

const path = '/api/admin/authz/drift';
/** A store that keeps another schema refuses the question itself. */
const refusals = ['conflict', 'validation_failed'] as const;

/** What the graph store and the database do not have in common (docs/outbox.md "Failures"). */
export const drift = resource('Drift of the graph store', 'Whether the graph store agrees with the database.', {
  get: {
    method: 'GET',
    path,
    guard: 'admin',
    key: ['read', 'operate'],
    summary: 'Compare the graph store with the database',
    description: 'It reads both graphs whole; a second comparison at the same time is refused.',
    replies: { 200: driftReply },
    refusals,
  },
  repair: {
    method: 'POST',
    path: `${path}/repair`,
    guard: 'admin_recent',
    key: ['operate'],
    summary: 'Compare, and make the graph store hold what the database holds',
    replies: { 200: driftReply },
    refusals,
  },
});

async function compare({ comparison }: DriftApiParts, repair: Actor | null) {
  try {
    const found = await comparison.run(repair);
    if (found !== null) return driftJson(found);
  } catch (error) {
    if (error instanceof GraphError) throw graphAway(error);
    throw error;
  }
  throw new ServiceError('conflict', 'a comparison is under way; try again when it has ended', {
    headers: [['Retry-After', '5']],
  });
}

const get: Handle<typeof drift.get, DriftApiParts> = async parts => ({ status: 200, json: await compare(parts, null) });

const repair: Handle<typeof drift.repair, DriftApiParts> = async (parts, { caller, request }) => ({
  status: 200,
  json: await compare(parts, actorOf(caller, request)),
});

export const driftRoutes = (parts: DriftApiParts): Route[] => serve(drift, parts, { get, repair });

const driftJson = (d: Drift) => ({
  missing: d.missing.slice(0, SHOWN_MAX).map(tupleText),
  missing_count: d.missing.length,
  extra: d.extra.slice(0, SHOWN_MAX).map(tupleText),
  extra_count: d.extra.length,
  compared: d.compared,
  pending: d.pending,
  repaired: d.repaired,
});
