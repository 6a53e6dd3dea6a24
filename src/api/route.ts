import type { Actor } from '../audit/audit-log.ts';
import { ServiceError } from '../base/errors.ts';
import type { Queryable } from '../db/database.ts';
import type { BodySource, Reply, Request } from '../http/message.ts';
import type { AdminAccount } from '../identity/admin-accounts.ts';
import { type AdminKey, type AdminScope, keyHas } from '../identity/admin-keys.ts';
import type { Session } from '../identity/sessions.ts';
import { findUser } from '../identity/users.ts';
import type { Contract } from './endpoint.ts';

/**
 * Who a route lets in. `admin`: an administrator, or in setup mode a caller that `admin.setup` admits (docs/identity.md "Setup mode");
 * `admin_recent`: the same with a password given in the last ten minutes; `admin_session`: an administrator, even one who
 * must change the password first; `admin_confirm`: the same from any page, for giving the password again; `import`: who has `admin.api_key`, or the same as `admin_recent`; `import_log`: who has the key, or the
 * same as `admin`; `user`: a logged-in user.
 */
export type AdminGuard = 'admin' | 'admin_recent' | 'admin_session' | 'admin_confirm' | 'import' | 'import_log';
export type Guard = 'none' | 'user' | AdminGuard;

/**
 * Which administration keys open a row of the admin API: those with one of the scopes, or `never`, which leaves it to
 * sessions. The scope `admin` opens every row but those. `plugins:deploy` of one plugin opens rows that name the plugin as
 * `:id`; `plugins:deploy:named` stands at a row whose handler learns later which plugin it is about, and then asks
 * `assertKeyHas`.
 */
export type KeyNeed = 'never' | readonly [RowScope, ...RowScope[]];
export type RowScope = AdminScope | 'plugins:deploy:named';

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

/** What a handler may read besides the request: its JSON body, or the body as it comes in. */
export type RouteInput = {
  request: Request;
  caller: Caller;
  /** The value of the JSON body. @param optional whether a request without a body has the value `undefined` */
  json(optional?: boolean): Promise<unknown>;
  body: BodySource;
  /** Whether the caller would be let in now, for answers that go on for long. */
  isStillAllowed(): Promise<boolean>;
};

/** Whom an endpoint lets in. An endpoint of the admin API also says which administration keys open it. */
export type Opens =
  | { readonly guard: 'none' | 'user'; readonly key?: never }
  | { readonly guard: AdminGuard; readonly key: KeyNeed };

/** One row of the API: method, path with `:name` segments and perhaps a last `*` for all that follows as it was sent, guard, handler. */
export type Route = {
  method: string;
  path: string;
  /** What it takes and answers. Only our own pages and preflights have none: they are no API. */
  contract?: Contract;
  /** It changes nothing that hosts remember, so the answer does not wait until this host has heard its own change. */
  skipChangeBarrier?: true;
  /** Largest JSON body; without it `openBodyBytesMax` where every caller is let in, and `adminBodyBytesMax` elsewhere. */
  jsonBytesMax?: number;
  handle(input: RouteInput): Promise<Reply> | Reply;
} & Opens;

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
