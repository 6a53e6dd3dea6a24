import { exactJSON } from './exact-json.ts';
import { contentOf, parked, toJSON } from './host.ts';
import * as raw from './host-functions.js';

/** A request to another host. */
export type HTTPOrder = {
  /** `GET` without it. */
  Method?: string;
  URL: string;
  Headers?: Record<string, string>;
  Body?: string | Uint8Array;
  TimeoutMs?: number;
};

/** What a server outside answered. */
export class HTTPResponse {
  readonly Status: number;
  /** By names in lower case; several values of one name are one list with commas. */
  readonly Headers: Readonly<Record<string, string>>;
  /** Where the answer came from, behind redirects. */
  readonly URL: string;
  readonly BodyBytes: Uint8Array;

  constructor(head: { status: number; headers: Record<string, string>; url: string }, body: Uint8Array) {
    this.Status = head.status;
    this.Headers = head.headers;
    this.URL = head.url;
    this.BodyBytes = body;
  }
  /** A header by any spelling, empty when absent. */
  Header(name: string): string {
    return this.Headers[name.toLowerCase()] ?? '';
  }
  get Body(): string {
    return raw.utf8_text(this.BodyBytes);
  }
  /** The body as JSON, in the form its server gives; whole numbers beyond 2^53 are a `bigint`. @throws SyntaxError when it is none */
  JSON<T>(): T {
    return exactJSON(this.Body);
  }
}

export function sendRequest({ Body = '', Headers = {}, Method = 'GET', TimeoutMs, URL }: HTTPOrder): HTTPResponse {
  const order = {
    method: Method,
    url: URL,
    headers: Headers,
    ...(TimeoutMs === undefined ? {} : { timeout_ms: TimeoutMs }),
  };
  const head = parked<ConstructorParameters<typeof HTTPResponse>[0]>(
    raw.http_request(toJSON(order), contentOf('a body', Body)),
  );
  return new HTTPResponse(head, raw.body_bytes());
}
