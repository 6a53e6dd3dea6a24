import type { z } from 'zod';
import type { BodySource, Reply, Request } from '../../http/message.ts';
import { parseBody } from './body.ts';
import type { Caller } from './caller.ts';
import type { Contract, Endpoints } from './contract.ts';
import { parseParams } from './params.ts';
import { parseQuery } from './query.ts';
import type { Route, RouteInput } from './route.ts';

/** Names of the `:name` segments of a path. */
type NamesOf<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? Name | NamesOf<`/${Rest}`>
  : Path extends `${string}:${infer Name}`
    ? Name
    : Path extends `${string}/*`
      ? '*'
      : never;

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
      // The schemas of the contract are what the members are read with.
      const given = new EndpointInput(contract, input) as unknown as Input<E>;
      // A parameter that is not known is refused, whatever the handler reads.
      if (contract.query !== undefined) void given.query;
      return replyOf(await handle(given));
    },
  };
}

/**
 * What a handler is given, each part read when it is asked for. A class, because getters of an object literal make V8
 * give each object a shape of its own, which is slow and stays in memory until the next full collection.
 */
class EndpointInput {
  readonly request: Request;
  readonly caller: Caller;
  readonly source: BodySource;
  readonly isStillAllowed: () => Promise<boolean>;
  readonly json: () => Promise<unknown>;
  readonly body: () => Promise<unknown>;
  readonly #contract: Contract;

  constructor(contract: Contract, { body, caller, isStillAllowed, json, request }: RouteInput) {
    this.#contract = contract;
    this.request = request;
    this.caller = caller;
    this.source = body;
    this.isStillAllowed = isStillAllowed;
    this.json = () => json();
    this.body = async () => {
      const shape = contract.body;
      if (shape == null || 'media' in shape) throw new Error(`${contract.path} has no JSON body`);
      return parseBody(shape, await json(shape.safeParse(undefined).success));
    };
  }

  get params(): unknown {
    return parseParams(this.#contract.params ?? {}, this.request);
  }

  get query(): unknown {
    return parseQuery(this.#contract.query, this.request.query);
  }
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
