/** Text as UTF-8. Half of a pair of surrogates becomes U+FFFD, because the host refuses what is not UTF-8. */
export function utf8(text: string): ArrayBuffer {
  return String.UTF8.encode(text, false, String.UTF8.ErrorMode.REPLACE);
}

/** Text of UTF-8; each byte that is part of none becomes U+FFFD. */
export function utf8Text(bytes: ArrayBuffer): string {
  return utf8TextAt(pointer(bytes), bytes.byteLength);
}

/** The same of bytes at an address. */
export function utf8TextAt(at: usize, end: i32): string {
  let text = "";
  let from = 0;
  for (let i = 0; i < end; ) {
    const length = sequenceAt(at + i, end - i);
    if (length > 0) {
      i += length;
      continue;
    }
    text += String.UTF8.decodeUnsafe(at + from, i - from) + "\uFFFD";
    from = ++i;
  }
  return text + String.UTF8.decodeUnsafe(at + from, end - from);
}

/** Length of the character that begins here (RFC 3629 section 4); 0 for bytes that are none. */
function sequenceAt(at: usize, left: i32): i32 {
  const first = load<u8>(at);
  if (first < 0x80) return 1;
  const length = first >= 0xc2 && first <= 0xdf ? 2 : (first & 0xf0) == 0xe0 ? 3 : first >= 0xf0 && first <= 0xf4 ? 4 : 0;
  if (length == 0 || length > left) return 0;
  const second = load<u8>(at, 1);
  const least: u8 = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const most: u8 = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (second < least || second > most) return 0;
  for (let k = 2; k < length; k++) if ((load<u8>(at + k) & 0xc0) != 0x80) return 0;
  return length;
}

/** Where the bytes of a buffer begin. */
export function pointer(bytes: ArrayBuffer): usize {
  return changetype<usize>(bytes);
}
