import { ServiceError } from '../base/errors.ts';
import { NO_STORE, type TriggerExchange } from '../http/message.ts';
import { LOGIN_PATH, noLoginReply, PLUGIN_LOGIN_PATH } from '../identity/no-login.ts';
import { credentialOf } from '../identity/principals.ts';

/**
 * Answers a caller without a valid credential: redirects a browser navigation to the login, or shows a page if there is
 * no login. Every other request gets 401 (docs/access.md "Browsers").
 */
export function refuseUnknown(
  x: TriggerExchange,
  cors: ReadonlyArray<readonly [string, string]>,
  place: string | null,
  hasLogin: boolean,
): void {
  if (isNavigation(x)) {
    if (!hasLogin && place === null) {
      const { body, headers, status } = noLoginReply(x.requestId);
      return x.replyFlat(status, '', body, [...headers, ...cors]);
    }
    const back = encodeURIComponent(x.query === '' ? x.path : `${x.path}?${x.query}`);
    return x.replyFlat(302, '', '', [
      ['Location', `${place === null ? LOGIN_PATH : PLUGIN_LOGIN_PATH}?return_to=${back}`],
      NO_STORE,
      ...cors,
    ]);
  }
  const given = credentialOf(x.headers)?.kind === 'bearer';
  throw new ServiceError(
    'unauthorized',
    given
      ? 'the token or key is not valid: unknown, expired or revoked (setup tokens and administration keys are only for /api/admin)'
      : 'this trigger needs a login, or a user token or service key in the header Authorization: Bearer TOKEN',
    {
      headers: [
        // RFC 6750 section 3.1: the error is named only when a token was given.
        ['WWW-Authenticate', `Bearer realm="plugin-host"${given ? ', error="invalid_token"' : ''}`],
        ...cors.map(([n, v]): [string, string] => [n, v]),
      ],
    },
  );
}

/** docs/access.md "Browsers": `Sec-Fetch-Mode: navigate`, or without that header an Accept with text/html first. */
function isNavigation(x: TriggerExchange): boolean {
  if (x.method !== 'GET') return false;
  const mode = x.headers['sec-fetch-mode'];
  if (mode !== undefined) return mode === 'navigate';
  return /^\s*text\/html\b/i.test(x.headers.accept ?? '');
}
