import * as abi from "./abi";

/** Text of the last error a host function gave. */
export function lastError(): string {
  const n = abi.error_len();
  const b = new ArrayBuffer(n);
  abi.error_read(changetype<usize>(b), n);
  return String.UTF8.decode(b);
}
