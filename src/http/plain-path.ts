/** Letters, digits, hyphen, dot, underscore and tilde mean the same with and without an escape (RFC 3986 section 2.3). */
const UNRESERVED = /%(2[DdEe]|3\d|[46][1-9A-Fa-f]|[57][0-9Aa]|5[Ff]|7[Ee])/g;

/**
 * A path in which no character is escaped that need not be (RFC 3986 section 6.2.2.2), so that `/gr%65et` is `/greet` wherever paths are
 * compared. All other escapes stay: an escaped slash divides nothing.
 */
export function plainPath(path: string): string {
  return path.includes('%')
    ? path.replace(UNRESERVED, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    : path;
}

/** A path in which letters are encoded alike, for comparisons: also the digits of what stays encoded (RFC 3986 section 6.2.2.1). */
export const canonicalPath = (path: string): string =>
  path.includes('%') ? plainPath(path).replace(/%[0-9a-f]{2}/gi, code => code.toUpperCase()) : path;
