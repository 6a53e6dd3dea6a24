import { z } from 'zod';
import type { Actor } from '../audit/audit-log.ts';
import { type FieldError, ServiceError } from '../base/errors.ts';
import { LIMITS } from '../base/limits.ts';
import type { Queryable } from '../db/database.ts';
import { type BodySource, jsonReply, type Reply, type Request } from '../http/message.ts';
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
  /** What it takes and answers. */
  contract?: Contract;
  /** It changes nothing that hosts remember, so the answer does not wait until every host has heard of it. */
  skipChangeBarrier?: true;
  /** Largest JSON body; without it `openBodyBytesMax` where anybody may call, and `adminBodyBytesMax` elsewhere. */
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

/** Values of a query string by name; unknown names are refused, so that a typing error does not widen an answer. */
export function queryOf(request: Request, known: readonly string[]): Map<string, string> {
  const out = new Map<string, string>();
  const errors: FieldError[] = [];
  for (const [name, value] of new URLSearchParams(request.query)) {
    if (!known.includes(name))
      errors.push({ pointer: `query:${name}`, message: `is not a parameter here; known are ${known.join(', ')}` });
    if (value.includes('\0')) errors.push({ pointer: `query:${name}`, message: 'must not hold a NUL character' });
    out.set(name, value);
  }
  if (errors.length > 0)
    throw new ServiceError(
      'validation_failed',
      `query parameter ${errors[0]?.pointer.slice(6)} ${errors[0]?.message}`,
      { errors },
    );
  return out;
}

/** `limit` of a list, 1 to 200, 50 when absent. */
export function limitOf(query: ReadonlyMap<string, string>): number {
  const raw = query.get('limit');
  if (raw === undefined) return 50;
  const n = Number(raw);
  if (Number.isInteger(n) && n >= 1 && n <= LIMITS.listLimitMax) return n;
  throw new ServiceError('validation_failed', `limit must be a whole number from 1 to ${LIMITS.listLimitMax}`, {
    errors: [{ pointer: 'query:limit', message: `must be a whole number from 1 to ${LIMITS.listLimitMax}` }],
  });
}

/** A number in the path; undefined when it is none, so that the caller answers 404 in its own words. */
export function pathIdOf(request: Request, name: string): number | undefined {
  const id = Number(request.params[name]);
  return Number.isSafeInteger(id) && id > 0 ? id : undefined;
}

/** When something ends: a time that has not passed; null or absent for never. */
export const endTime = z.iso
  .datetime({ offset: true, message: 'must be a time like 2027-01-31T12:00:00Z' })
  .transform(text => new Date(text))
  .refine(date => date.getTime() > Date.now(), 'must lie in the future')
  .nullable()
  .default(null);

/** Keyset cursor of a list of descending ids; opaque to the client. */
function idCursorOf(query: ReadonlyMap<string, string>): number {
  const raw = query.get('cursor');
  if (raw === undefined) return Number.MAX_SAFE_INTEGER;
  if (/^\d{1,15}$/.test(raw)) return Number(raw);
  throw new ServiceError('validation_failed', 'cursor must be the next_cursor of the page before', {
    errors: [{ pointer: 'query:cursor', message: 'must be the next_cursor of the page before' }],
  });
}

/**
 * One page of a list in descending order of ids (docs/api.md "Lists").
 *
 * @param load the rows with ids below `before`, at most `limit` of them
 */
export async function pageOf<T extends { id: number }>(
  query: ReadonlyMap<string, string>,
  load: (before: number, limit: number) => Promise<T[]>,
  toJson: (row: T) => unknown,
): Promise<{ items: unknown[]; next_cursor: string | null }> {
  const limit = limitOf(query);
  // One more than asked for tells whether there is another page.
  const rows = await load(idCursorOf(query), limit + 1);
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  return {
    items: page.map(toJson),
    next_cursor: rows.length > limit && last !== undefined ? String(last.id) : null,
  };
}

/** The same as a reply. */
export async function pageReply<T extends { id: number }>(...of: Parameters<typeof pageOf<T>>): Promise<Reply> {
  return jsonReply(200, await pageOf(...of));
}

/** `since` of a list: a time, or undefined when absent. */
export function sinceOf(raw: string | undefined): Date | undefined {
  if (raw === undefined) return undefined;
  const date = new Date(raw);
  if (/^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?)?$/.test(raw) && !Number.isNaN(date.getTime()))
    return date;
  throw new ServiceError('validation_failed', 'since must be a time like 2026-01-31T12:00:00Z', {
    errors: [{ pointer: 'query:since', message: 'must be a time like 2026-01-31T12:00:00Z' }],
  });
}

/** A flag of a query string: 1 or 0; false when absent. */
export function flagOf(query: ReadonlyMap<string, string>, name: string): boolean {
  const given = query.get(name);
  if (given === undefined || given === '0' || given === 'false') return false;
  if (given === '1' || given === 'true') return true;
  throw new ServiceError('validation_failed', `${name} must be 1 or 0`, {
    errors: [{ pointer: `query:${name}`, message: 'must be 1 or 0' }],
  });
}
