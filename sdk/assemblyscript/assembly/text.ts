/** Text as UTF-8. Half of a pair of surrogates becomes U+FFFD, because the host refuses what is not UTF-8. */
export function utf8(text: string): ArrayBuffer {
  return String.UTF8.encode(text, false, String.UTF8.ErrorMode.REPLACE);
}

/** Where the bytes of a buffer begin. */
export function pointer(bytes: ArrayBuffer): usize {
  return changetype<usize>(bytes);
}
