import type { Actor } from '../audit/audit-log.ts';
import { ServiceError } from '../base/errors.ts';
import type { Queryable } from '../db/database.ts';
import type { Request } from '../http/message.ts';
import type { AdminAccount } from '../identity/admin-accounts.ts';
import { type AdminKey, type AdminScope, keyHas } from '../identity/admin-keys.ts';
import type { Session } from '../identity/sessions.ts';
import { findUser } from '../identity/users.ts';

/** Who was let in. */
export type Caller =
  | { kind: 'anyone' }
  | { kind: 'setup' }
  | { kind: 'api_key' }
  | { kind: 'admin_key'; key: AdminKey }
  | { kind: 'admin'; session: Session; account: AdminAccount }
  | { kind: 'user'; session: Session };

/** Who stands in the audit log for what a request changes. */
export function actorOf(caller: Caller, request: Request): Actor {
  const common = { requestId: request.requestId, address: request.remoteAddr };
  if (caller.kind === 'admin') return actorOfAccount(caller.account, request);
  if (caller.kind === 'setup') return { kind: 'setup', userId: null, name: 'setup mode', ...common };
  if (caller.kind === 'admin_key') {
    const { id, madeBy, name } = caller.key;
    return { kind: 'admin_key', userId: madeBy, keyId: id, name, ...common };
  }
  throw new Error('bug: this route needs a guard that lets administrators in');
}

export function actorOfAccount(account: AdminAccount, request: Request): Actor {
  const { remoteAddr, requestId } = request;
  return { kind: 'admin', userId: account.userId, name: account.email, requestId, address: remoteAddr };
}

/** A user who acts on credentials of their own. */
export async function actorOfUser(db: Queryable, userId: number, request: Request): Promise<Actor> {
  const { remoteAddr, requestId } = request;
  const name = (await findUser(db, userId))?.displayName ?? '';
  return { kind: 'user', userId, name, requestId, address: remoteAddr };
}

/** Who failed to log in. */
export function actorOfStranger({ remoteAddr, requestId }: Request): Actor {
  return { kind: 'anonymous', userId: null, name: '', requestId, address: remoteAddr };
}

/** The session of a caller that the guard `user` let in. */
export function userSessionOf(caller: Caller): Session {
  if (caller.kind !== 'user') throw new Error('bug: this route needs the guard "user"');
  return caller.session;
}

/** A refusal that names what an administration key lacks (RFC 6750 section 3.1, `insufficient_scope`). */
export function missingScope(key: AdminKey, scopes: readonly string[], what: string): ServiceError {
  const wanted = scopes.length === 1 ? `the scope ${scopes[0]}` : `one of the scopes ${scopes.join(', ')}`;
  const held = key.scopes.join(', ');
  return new ServiceError('forbidden', `${what} needs ${wanted}; the administration key "${key.name}" has ${held}`, {
    headers: [
      ['WWW-Authenticate', `Bearer realm="plugin-host admin", error="insufficient_scope", scope="${scopes[0]}"`],
    ],
    extra: { missing_scopes: scopes },
  });
}

/** Whether a caller may do what a scope stands for; only administration keys are limited. */
export function mayUse(caller: Caller, scope: AdminScope, pluginId?: string): boolean {
  return caller.kind !== 'admin_key' || keyHas(caller.key, scope, pluginId);
}

/**
 * Refuses what an administration key has no scope for, where the row alone cannot tell.
 *
 * @throws ServiceError `forbidden` that names the scope
 */
export function assertKeyHas(caller: Caller, scope: AdminScope, what: string, pluginId?: string): void {
  if (caller.kind !== 'admin_key' || keyHas(caller.key, scope, pluginId)) return;
  const named = scope === 'plugins:deploy' && pluginId !== undefined ? [scope, `${scope}:${pluginId}`] : [scope];
  throw missingScope(caller.key, named, what);
}
