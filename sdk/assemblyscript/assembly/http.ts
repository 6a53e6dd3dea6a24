import * as abi from "./plugin_host";
import { Json, Obj, obj } from "./json";
import { errorOf, parked, parkedBody, Result } from "./result";
import { pointer, utf8Text } from "./text";

/** What a server outside answered. */
export class HTTPResponse {
  readonly Status: i32;
  /** By names in lower case; several values of one name are one list with commas. */
  readonly Headers: Json;
  /** Where the answer came from, behind redirects. */
  readonly URL: string;
  constructor(head: Json, readonly BodyBytes: ArrayBuffer) {
    this.Status = <i32>head.i64("status");
    this.Headers = head.get("headers");
    this.URL = head.str("url");
  }
  /** The body as text; bytes that are no UTF-8 become U+FFFD. */
  get Body(): string {
    return utf8Text(this.BodyBytes);
  }
  /** The body as JSON; absent when it is none. */
  JSON(): Json {
    return Json.parse(this.BodyBytes);
  }
  /** A header by any spelling, empty when absent. */
  Header(name: string): string {
    return this.Headers.str(name.toLowerCase());
  }
}

export function sendRequest(method: string, url: string, headers: Obj | null, body: ArrayBuffer, timeoutMs: i32): Result<HTTPResponse | null> {
  const order = obj().str("method", method).str("url", url).object("headers", headers === null ? obj() : headers);
  if (timeoutMs > 0) order.num("timeout_ms", timeoutMs);
  const json = order.finish();
  const n = abi.http_request(json.pointer, json.length, pointer(body), body.byteLength);
  if (n < 0) return new Result<HTTPResponse | null>(null, errorOf(n));
  const head = parked(n);
  return new Result<HTTPResponse | null>(new HTTPResponse(Json.trusted(head), parkedBody()));
}
