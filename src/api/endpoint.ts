import type { z } from 'zod';
import type { ErrorCode } from '../base/errors.ts';
import type { BodySource, Reply, Request } from '../http/message.ts';
import { parseBody } from './body.ts';
import type { Idempotency } from './idempotency.ts';
import { parseParams } from './params.ts';
import { parseQuery } from './query.ts';
import type { Caller, Opens, Route, RouteInput } from './route.ts';

/**
 * The contract of the API: each endpoint says what it takes and what it answers as zod schemas. From it come the types of its
 * handler, the checks of its input, the OpenAPI document, the reference page and the client (docs/api.md "Contract").
 */

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

type Shapes = Readonly<Record<string, z.ZodType>>;
type Replies = Readonly<Record<number, ReplyShape>>;
type Body = z.ZodType | RawBody | null;

/** Names of the `:name` segments of a path. */
type NamesOf<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? Name | NamesOf<`/${Rest}`>
  : Path extends `${string}:${infer Name}`
    ? Name
    : Path extends `${string}/*`
      ? '*'
      : never;

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

/** What a handler is given. */
export type Input<E extends Contract> = {
  request: Request;
  caller: Caller;
  /** Segments of the path. @throws ServiceError `not_found` when one cannot be what it names */
  readonly params: { [N in NamesOf<E['path']>]: N extends keyof E['params'] ? OutputOf<E['params'][N]> : string };
  /** @throws ServiceError `validation_failed` that names the parameter */
  readonly query: E['query'] extends z.ZodType ? z.output<E['query']> : Record<string, never>;
  /** The JSON body. @throws ServiceError `validation_failed` that names every place, or what makes it no JSON */
  body(): Promise<E['body'] extends z.ZodType ? z.output<E['body']> : never>;
  /** The value of a JSON body that the contract only describes. @throws ServiceError what makes it no JSON */
  json(): Promise<unknown>;
  /** The body as it comes in. */
  source: BodySource;
  /** Whether the caller would be let in now, for answers that go on for long. */
  isStillAllowed(): Promise<boolean>;
};
type OutputOf<S> = S extends z.ZodType ? z.output<S> : string;

type Headers = Array<[string, string]>;
/** What a handler answers: a status of the contract with a value of its schema. */
export type Answer<E extends Contract> = {
  [S in keyof E['replies'] & number]: E['replies'][S] extends z.ZodType
    ? { status: S; json: z.input<E['replies'][S]>; headers?: Headers }
    : E['replies'][S] extends null
      ? { status: S; headers?: Headers }
      : { status: S; headers: Headers; body: Reply['body'] };
}[keyof E['replies'] & number];

/** One endpoint: a function of the parts of its feature and of the request. */
export type Handle<E extends Contract, Parts> = (parts: Parts, input: Input<E>) => Answer<E> | Promise<Answer<E>>;

type Endpoints = Readonly<Record<string, Contract>>;

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

/** The rows of a resource: a handler for every endpoint, or the type check fails. */
export function serve<Es extends Endpoints, Parts>(
  { endpoints }: { readonly endpoints: Es },
  parts: Parts,
  handlers: { readonly [N in keyof Es]: Handle<Es[N], Parts> },
): Route[] {
  return Object.entries(endpoints).map(([name, contract]) => {
    const handle = handlers[name] as unknown as Handle<Contract, Parts>;
    return routeOf(contract, input => handle(parts, input as Input<Contract>));
  });
}

/** One row of an endpoint. */
export function routeOf<E extends Contract>(
  contract: E,
  handle: (input: Input<E>) => Answer<E> | Promise<Answer<E>>,
): Route {
  return {
    ...contract,
    contract,
    async handle(input) {
      const given = inputOf(contract, input);
      // A parameter that is not known is refused, whatever the handler reads.
      if (contract.query !== undefined) void given.query;
      return replyOf(await handle(given));
    },
  };
}

function inputOf<E extends Contract>(
  contract: E,
  { body, caller, isStillAllowed, json, request }: RouteInput,
): Input<E> {
  const input = {
    request,
    caller,
    get params() {
      return parseParams(contract.params ?? {}, request);
    },
    get query() {
      return parseQuery(contract.query, request.query);
    },
    async body() {
      const shape = contract.body;
      if (shape == null || 'media' in shape) throw new Error(`${contract.path} has no JSON body`);
      return parseBody(shape, await json(shape.safeParse(undefined).success));
    },
    json: () => json(),
    source: body,
    isStillAllowed,
  };
  // The schemas of the contract are what the members were read with.
  return input as unknown as Input<E>;
}

/** A handler's answer as it is sent. */
function replyOf(answer: { status: number; headers?: Headers; json?: unknown; body?: Reply['body'] }): Reply {
  const { body = '', headers = [], status } = answer;
  if (!('json' in answer)) return { status, headers, body };
  return {
    status,
    headers: [['Content-Type', 'application/json; charset=utf-8'], ...headers],
    body: JSON.stringify(answer.json),
  };
}
