import { LIMITS } from '../base/limits.ts';

/**
 * The path to return to after a login: a path of the service's origin, without its query where that is too long, or `/` for anything else
 * (docs/identity.md "Login with an identity provider"). Checked again after it is resolved, because `/.//host` becomes
 * `//host`.
 *
 * @param text as given by the page that links to the login
 */
export function safeReturnTo(text: string | undefined): string {
  if (text === undefined || !isLocalPath(text)) return '/';
  const base = 'http://here.invalid';
  if (!URL.canParse(text, base)) return '/';
  const url = new URL(text, base);
  const path = `${url.pathname}${url.search}${url.hash}`;
  if (url.origin !== base || !isLocalPath(path)) return '/';
  // Counted in encoded form, in which a letter that is not Latin has six characters.
  return [path, url.pathname].find(p => p.length <= LIMITS.returnToCharsMax) ?? '/';
}

/**
 * Whether it has one leading slash, no backslash (browsers read it as a slash) and no control characters (browsers drop
 * them).
 */
function isLocalPath(text: string): boolean {
  return /^\/(?!\/)[^\\\x00-\x1f\x7f]*$/.test(text);
}
