import { LIMITS } from '../base/limits.ts';

/**
 * Where a login goes back to: a path of our own origin, or `/` for everything else (docs/identity.md "Login with an identity provider"). Checked again after it
 * is resolved, because `/.//host` becomes `//host`.
 *
 * @param text as given by the page that links to the login
 */
export function safeReturnTo(text: string | undefined): string {
  if (text === undefined || !isLocalPath(text)) return '/';
  const base = 'http://here.invalid';
  if (!URL.canParse(text, base)) return '/';
  const url = new URL(text, base);
  const path = `${url.pathname}${url.search}${url.hash}`;
  // Counted as it travels: a letter that is not Latin has become six characters.
  return url.origin === base && path.length <= LIMITS.returnToCharsMax && isLocalPath(path) ? path : '/';
}

/** One leading slash, no backslash, which browsers read as a slash, and no control characters, which they drop. */
function isLocalPath(text: string): boolean {
  return /^\/(?!\/)[^\\\x00-\x1f\x7f]*$/.test(text);
}
