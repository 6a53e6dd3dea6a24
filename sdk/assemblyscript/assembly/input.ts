import * as abi from "./plugin_host";
import { Json } from "./json";
import { pointer } from "./text";

/** For whom the host has let an execution in. */
export class HTTPAuthInfo {
  /** `Kind` is `user` or `service`; the id of the other kind is 0. */
  constructor(public Kind: string, public UserID: i64, public ServiceKeyID: i64) {}
}

/** The principal of an event, or null. */
export function authOf(event: Json): HTTPAuthInfo | null {
  const a = event.get("auth");
  return a.isNull ? null : new HTTPAuthInfo(a.str("kind"), a.i64("user_id"), a.i64("service_key_id"));
}

/** The raw body of the event. */
export function inputBody(): ArrayBuffer {
  const n = abi.input_len(1);
  const b = new ArrayBuffer(n);
  if (n > 0) abi.input_read(1, pointer(b), n);
  return b;
}
