import * as abi from "./abi";
import { Json, Obj, obj } from "./json";

/** What a server outside answered. */
export class HTTPResponse {
  readonly Status: i32;
  readonly Headers: Json;
  /** Where the answer came from, behind redirects. */
  readonly URL: string;
  constructor(head: Json, readonly BodyBytes: ArrayBuffer) {
    this.Status = <i32>head.i64("status");
    this.Headers = head.get("headers");
    this.URL = head.str("url");
  }
  get Body(): string {
    return String.UTF8.decode(this.BodyBytes);
  }
  /** A header by any spelling, empty when absent. */
  Header(name: string): string {
    return this.Headers.str(name.toLowerCase());
  }
}

/** The answer, or null; then `lastError` says why. */
export function sendRequest(method: string, url: string, headers: Obj | null, body: ArrayBuffer, timeoutMs: i32): HTTPResponse | null {
  const order = obj().str("method", method).str("url", url).object("headers", headers === null ? obj() : headers);
  if (timeoutMs > 0) order.num("timeout_ms", timeoutMs);
  const json = order.finish();
  const n = abi.http_request(json.pointer, json.length, changetype<usize>(body), body.byteLength);
  if (n < 0) return null;
  const head = new ArrayBuffer(n);
  abi.result_read(changetype<usize>(head), n);
  const bytes = new ArrayBuffer(abi.body_len());
  abi.body_read(0, changetype<usize>(bytes), bytes.byteLength);
  return new HTTPResponse(Json.trusted(head), bytes);
}
