import type { BodySource, Reply, Request } from '../../http/message.ts';
import type { Caller } from './caller.ts';
import type { Contract, Opens } from './contract.ts';

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

/** One row of the API: method, path with `:name` segments and perhaps a last `*` for all that follows as it was sent, guard, handler. */
export type Route = {
  method: string;
  path: string;
  /** What it takes and answers. Our own pages, the package of kits and preflights have none: they are no API. */
  contract?: Contract;
  /** It changes nothing that hosts remember, so the answer does not wait until this host has heard its own change. */
  skipChangeBarrier?: true;
  /** Largest JSON body; without it `openBodyBytesMax` where every caller is let in, and `adminBodyBytesMax` elsewhere. */
  jsonBytesMax?: number;
  handle(input: RouteInput): Promise<Reply> | Reply;
} & Opens;
