import { z } from 'zod';
import { ACTOR_KINDS, type AuditEntry, findAuditEntry, listAudit } from '../../audit/audit-log.ts';
import { ServiceError } from '../../base/errors.ts';
import type { Database } from '../../db/database.ts';
import { assertHasScope, type Caller, mayUse } from '../contract/caller.ts';
import { resource } from '../contract/contract.ts';
import { type CsvColumns, csvReply, csvTable } from '../contract/csv.ts';
import { type Handle, serve } from '../contract/endpoint.ts';
import { id, time } from '../contract/fields.ts';
import { loadPage, pageOf } from '../contract/paging.ts';
import { idParam } from '../contract/params.ts';
import { idFilter, list as listOf, present, since, text, until } from '../contract/query.ts';
import type { Route } from '../contract/route.ts';

export type AuditApiParts = { db: Database };

const state = z.record(z.string(), z.unknown()).nullable();
const entry = z
  .object({
    id,
    at: time,
    actor: z.object({
      kind: z.enum(ACTOR_KINDS),
      global_user_id: id.nullable().describe('The user; of an administration key the administrator who made it'),
      admin_key_id: id.optional(),
      name: z.string(),
    }),
    action: z.string().describe('What was done, for example trigger.settings'),
    object_type: z.string(),
    object_id: z.string(),
    before: state.describe(
      'The object before the change; never a secret. Null for a person, to callers who may not read people',
    ),
    after: state.describe('The object after the change'),
    request_id: z.string().nullable(),
    address: z.string().nullable().describe('Address of the client'),
  })
  .meta({ id: 'AuditEntry' });

const FILTERS = {
  action: text('Only this action, for example trigger.settings'),
  actor: idFilter('user'),
  object_type: text('Only changes of objects of this type'),
  object_id: text('Only changes of the object with this id'),
  since,
  until,
};
const filters = z.strictObject(FILTERS);

/** Who changed what, newest first. */
export const audit = resource(
  'Audit log',
  'Who changed what. No request changes or removes an entry; entries older than retention.audit are removed.',
  {
    list: {
      method: 'GET',
      path: '/api/admin/audit',
      guard: 'admin',
      key: ['read'],
      summary: 'List what was changed, and by whom',
      query: listOf(FILTERS),
      replies: { 200: pageOf(entry) },
    },
    table: {
      method: 'GET',
      path: '/api/admin/audit.csv',
      guard: 'admin',
      key: ['read'],
      summary: 'Download what was changed, and by whom, as a table',
      description: 'All entries that the filters leave, newest first.',
      query: filters,
      replies: { 200: csvTable },
    },
    get: {
      method: 'GET',
      path: '/api/admin/audit/:entry',
      guard: 'admin',
      key: ['read'],
      summary: 'Read an entry of the audit log',
      params: { entry: idParam('entry of the audit log') },
      replies: { 200: entry },
    },
  },
);

const filterOf = ({ action, actor, object_id, object_type, since, until }: z.output<typeof filters>) =>
  present({ action, actorUserId: actor, objectType: object_type, objectId: object_id, since, until });

/** Entries about these say what people are called, and what they have. */
const OF_PEOPLE: ReadonlySet<string> = new Set(['user', 'relationship', 'file']);

/** An entry as this caller may read it. */
const shownTo = (caller: Caller): ((e: AuditEntry) => AuditEntry) =>
  mayUse(caller, 'people') ? e => e : withoutPeople;

function withoutPeople(e: AuditEntry): AuditEntry {
  const { actor } = e;
  return {
    ...e,
    ...(OF_PEOPLE.has(e.objectType) ? { before: null, after: null } : {}),
    // The id of a relationship is the relationship.
    ...(e.objectType === 'relationship' ? { objectId: '' } : {}),
    ...(actor.kind === 'user' ? { actor: { ...actor, name: `user:${actor.userId}`, address: '' } } : {}),
  };
}

/**
 * The id of a relationship names people: whether there are entries about it is not told to callers who may not read people.
 *
 * @throws ServiceError `forbidden`
 */
function assertMayFilter(caller: Caller, { object_id, object_type }: z.output<typeof filters>): void {
  if (object_id !== undefined && (object_type === undefined || object_type === 'relationship'))
    assertHasScope(caller, 'people', 'object_id for relationships, or without object_type,');
}

const list: Handle<typeof audit.list, AuditApiParts> = async ({ db }, { caller, query }) => {
  assertMayFilter(caller, query);
  const shown = shownTo(caller);
  const load = (before: number, limit: number) => listAudit(db, { ...filterOf(query), before, limit });
  return { status: 200, json: await loadPage(query, load, e => entryJson(shown(e))) };
};

const jsonText = (s: AuditEntry['before']): string | null => (s === null ? null : JSON.stringify(s));
const COLUMNS: CsvColumns<AuditEntry> = [
  ['id', e => e.id],
  ['at', e => e.at],
  ['actor', e => e.actor.name],
  ['actor_kind', e => e.actor.kind],
  ['global_user_id', e => e.actor.userId],
  ['admin_key_id', e => e.actor.keyId],
  ['action', e => e.action],
  ['object_type', e => e.objectType],
  ['object_id', e => e.objectId],
  ['before', e => jsonText(e.before)],
  ['after', e => jsonText(e.after)],
  ['request_id', e => e.actor.requestId],
  ['address', e => e.actor.address],
];

const table: Handle<typeof audit.table, AuditApiParts> = ({ db }, { caller, isStillAllowed, query }) => {
  assertMayFilter(caller, query);
  const shown = shownTo(caller);
  const load = async (last: AuditEntry | undefined, limit: number) => {
    const before = last?.id ?? Number.MAX_SAFE_INTEGER;
    return (await listAudit(db, { ...filterOf(query), before, limit })).map(shown);
  };
  return csvReply('audit', COLUMNS, load, isStillAllowed);
};

const get: Handle<typeof audit.get, AuditApiParts> = async ({ db }, { caller, params }) => {
  const found = await findAuditEntry(db, params.entry);
  if (found === undefined) throw new ServiceError('not_found', `there is no entry of the audit log ${params.entry}`);
  return { status: 200, json: entryJson(shownTo(caller)(found)) };
};

export const auditRoutes = (parts: AuditApiParts): Route[] => serve(audit, parts, { list, table, get });

const entryJson = (e: AuditEntry) => ({
  id: e.id,
  at: e.at,
  actor: {
    kind: e.actor.kind,
    global_user_id: e.actor.userId,
    ...(e.actor.keyId === undefined ? {} : { admin_key_id: e.actor.keyId }),
    name: e.actor.name,
  },
  action: e.action,
  object_type: e.objectType,
  object_id: e.objectId,
  before: e.before,
  after: e.after,
  request_id: e.actor.requestId === '' ? null : e.actor.requestId,
  address: e.actor.address === '' ? null : e.actor.address,
});
