import type { z } from 'zod';
import type { ErrorCode } from '../../base/errors.ts';
import type { AdminScope } from '../../identity/admin-roles.ts';

/**
 * The contract of the API: each endpoint says what it takes and what it answers as zod schemas. From it come the types of its
 * handler, the checks of its input, the OpenAPI document, the reference page and the client (docs/api.md "Contract").
 */

/**
 * Who a route lets in. `admin`: an administrator, or in setup mode a caller that `admin.setup` admits (docs/identity.md "Setup mode");
 * `admin_recent`: the same with a password given in the last ten minutes; `admin_session`: an administrator, even one who
 * must change the password first; `admin_confirm`: the same from any page, for giving the password again; `import`: who has `admin.api_key`, or the same as `admin_recent`; `import_log`: who has the key, or the
 * same as `admin`; `user`: a logged-in user.
 */
export type AdminGuard = 'admin' | 'admin_recent' | 'admin_session' | 'admin_confirm' | 'import' | 'import_log';
export type Guard = 'none' | 'user' | AdminGuard;

/**
 * Which administration keys and roles of administrators open a row of the admin API: those with one of the scopes. The
 * scope `admin` opens all of them. `plugins:deploy` of one plugin opens rows that name the plugin as `:id`;
 * `plugins:deploy:named` stands at a row whose handler learns later which plugin it is about, and then asks
 * `assertHasScope`. `never` leaves a row to owners, `own` to every administrator, because it is about their own account.
 */
export type KeyNeed = 'never' | 'own' | readonly [RowScope, ...RowScope[]];
export type RowScope = AdminScope | 'plugins:deploy:named';

/** The callers that an endpoint lets in. An endpoint of the admin API also says which keys and roles open it. */
export type Opens =
  | { readonly guard: 'none' | 'user'; readonly key?: never }
  | { readonly guard: AdminGuard; readonly key: KeyNeed };

/** What a repeated request is answered: the answer itself, or, where it held a secret, a refusal that names what was made. */
export type Idempotency = 'answer' | 'secret';

/** A body that the handler reads itself, because it is large or no JSON. `schema` describes it for the document. */
export type RawBody = {
  media: string;
  description: string;
  schema?: z.ZodType;
  parts?: Readonly<Record<string, string>>;
};
/** An answer that the handler writes itself, because it is no JSON or holds JSON as it was stored. `schema` describes it. */
export type RawReply = { media: string; description: string; schema?: z.ZodType };
/** A JSON answer, one of another media type, or `null` for an answer without a body. */
export type ReplyShape = z.ZodType | RawReply | null;

export type Shapes = Readonly<Record<string, z.ZodType>>;
type Replies = Readonly<Record<number, ReplyShape>>;
type Body = z.ZodType | RawBody | null;

/** Credentials, as the document names them. */
export type Scheme =
  | 'user_session'
  | 'user_token'
  | 'admin_session'
  | 'admin_key'
  | 'import_key'
  | 'setup_token'
  | 'telegram_secret';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS';

/** What an endpoint says of itself. */
export type Contract = {
  method: Method;
  path: string;
  /** One line in the imperative, without a full stop: "Revoke an administration key". */
  summary: string;
  /** What a client has to know beyond the summary and the fields. */
  description?: string;
  /** Segments of the path that are more than text. */
  params?: Shapes;
  /** Parameters of the query; others are refused. */
  query?: z.ZodObject;
  body?: Body;
  replies: Replies;
  /** Who calls it, where the guard is `none` because the handler asks for a credential itself. */
  callers?: { words: string; schemes: readonly Scheme[] };
  /** Codes it refuses with, besides those that follow from its guard, its parameters and its body. */
  refusals?: readonly ErrorCode[];
  example?: { params?: Readonly<Record<string, string>>; query?: string; body?: unknown; reply?: unknown };
  /** It changes nothing that hosts remember, so the answer does not wait until this host has heard its own change. */
  skipChangeBarrier?: true;
  /** It honours `If-Match`: the read whose `ETag` it takes, for example "GET /api/admin/plugins/{id}". */
  ifMatch?: string;
  /** It shows what it answers with an `ETag`. */
  hasTag?: true;
  /** It honours `Idempotency-Key`: what a repeated request is answered. */
  idempotency?: Idempotency;
  /** Largest JSON body in bytes, where it is not the one of its guard. */
  jsonBytesMax?: number;
} & Opens;

export type Endpoints = Readonly<Record<string, Contract>>;

/** The endpoints of one resource, by the name of what they do. */
export type Resource = { readonly title: string; readonly description: string; readonly endpoints: Endpoints };

/**
 * A resource of the API.
 *
 * @param title how the reference page calls it
 * @param description what its endpoints are about
 */
export function resource<const Es extends Endpoints>(
  title: string,
  description: string,
  endpoints: Es,
): { readonly title: string; readonly description: string; readonly endpoints: Es } & Es {
  return { ...endpoints, title, description, endpoints };
}
