import { type AuditEntry, listAudit } from '../audit/audit-log.ts';
import { ServiceError } from '../base/errors.ts';
import type { Database } from '../db/database.ts';
import { pageReply, queryOf, type Route, sinceOf } from './route.ts';

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

function userIdOf(raw: string | undefined): number | undefined {
  if (raw === undefined) return undefined;
  const id = Number(raw);
  if (Number.isSafeInteger(id) && id > 0) return id;
  const message = 'must be the id of a user';
  throw new ServiceError('validation_failed', `actor ${message}`, { errors: [{ pointer: 'query:actor', message }] });
}

/** Who changed what, newest first; entries are never changed and never removed. */
export function auditRoutes({ db }: { db: Database }): Route[] {
  return [
    {
      method: 'GET',
      path: '/api/admin/audit',
      guard: 'admin',
      key: ['read'],
      async handle({ request }) {
        const query = queryOf(request, ['limit', 'cursor', 'action', 'actor', 'object_type', 'object_id', 'since']);
        const [action, objectType, objectId] = ['action', 'object_type', 'object_id'].map(name => query.get(name));
        const actorUserId = userIdOf(query.get('actor'));
        const since = sinceOf(query.get('since'));
        const filter = {
          ...(action === undefined ? {} : { action }),
          ...(actorUserId === undefined ? {} : { actorUserId }),
          ...(objectType === undefined ? {} : { objectType }),
          ...(objectId === undefined ? {} : { objectId }),
          ...(since === undefined ? {} : { since }),
        };
        return await pageReply(query, (before, limit) => listAudit(db, { ...filter, before, limit }), entryJson);
      },
    },
  ];
}
