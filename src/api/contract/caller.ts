import type { Actor } from '../../audit/audit-log.ts';
import { ServiceError } from '../../base/errors.ts';
import type { Queryable } from '../../db/database.ts';
import type { Request } from '../../http/message.ts';
import type { AdminAccount } from '../../identity/admin-accounts.ts';
import type { AdminKey } from '../../identity/admin-keys.ts';
import {
  ADMIN_ROLES,
  ADMIN_SCOPES,
  type AdminScope,
  hasScope,
  rolesWith,
  scopesOf,
} from '../../identity/admin-roles.ts';
import { findUser } from '../../identity/find-users.ts';
import type { Session } from '../../identity/sessions.ts';

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
  if (caller.kind === 'api_key') return { kind: 'import_key', userId: null, name: 'admin.api_key', ...common };
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

/** Callers that scopes limit. */
export type Limited = Extract<Caller, { kind: 'admin' | 'admin_key' }>;

/** What a key or the roles of an administrator open. */
export const heldScopes = (caller: Limited): readonly string[] =>
  caller.kind === 'admin' ? scopesOf(caller.account) : caller.key.scopes;

/** A refusal that names what a caller lacks: a key scopes (RFC 6750 section 3.1, `insufficient_scope`), an administrator a role. */
export function missingScope(caller: Limited, scopes: readonly [string, ...string[]], what: string): ServiceError {
  if (caller.kind === 'admin') return missingRole(caller.account, scopes, what);
  const { key } = caller;
  const wanted = scopes.length === 1 ? `the scope ${scopes[0]}` : `one of the scopes ${scopes.join(', ')}`;
  const held = key.scopes.join(', ');
  return new ServiceError('forbidden', `${what} needs ${wanted}; the administration key "${key.name}" has ${held}`, {
    headers: [
      ['WWW-Authenticate', `Bearer realm="plugin-host admin", error="insufficient_scope", scope="${scopes[0]}"`],
    ],
    extra: { missing_scopes: scopes },
  });
}

const words = (roles: readonly string[]): string => roles.map(role => role.replace('_', ' ')).join(' or ');

/** @param scopes those of which one would do; `never` for what only an owner may do */
export function missingRole({ plugins, roles }: AdminAccount, scopes: readonly string[], what: string): ServiceError {
  const named = new Set(
    scopes.flatMap(s => rolesWith(s === 'never' ? s : (ADMIN_SCOPES.find(one => one === s) ?? 'plugins:deploy'))),
  );
  // From the one that may least to the owner, whatever the order of the scopes.
  const sufficient = ADMIN_ROLES.filter(role => named.has(role));
  const limit =
    plugins === null ? '' : `, limited to ${plugins.length === 1 ? 'the plugin' : 'the plugins'} ${plugins.join(', ')}`;
  return new ServiceError(
    'forbidden',
    `${what} needs the role ${words(sufficient)}; you are ${words(roles).replaceAll(' or ', ' and ')}${roles.includes('plugin_manager') ? limit : ''}`,
    { extra: { sufficient_roles: sufficient } },
  );
}

/** Whether a caller may do what a scope stands for; callers without scopes may. */
export function mayUse(caller: Caller, scope: AdminScope, pluginId?: string): boolean {
  return (caller.kind !== 'admin_key' && caller.kind !== 'admin') || hasScope(heldScopes(caller), scope, pluginId);
}

/**
 * Refuses what a caller has no scope for, where the row alone cannot tell.
 *
 * @throws ServiceError `forbidden` that names the scope or the role
 */
export function assertHasScope(caller: Caller, scope: AdminScope, what: string, pluginId?: string): void {
  if ((caller.kind !== 'admin_key' && caller.kind !== 'admin') || mayUse(caller, scope, pluginId)) return;
  const isOne = scope === 'plugins:deploy' && pluginId !== undefined;
  throw missingScope(caller, isOne ? [scope, `${scope}:${pluginId}`] : [scope], what);
}
