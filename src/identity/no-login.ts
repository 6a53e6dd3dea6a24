import { STATUS_OF } from '../base/errors.ts';
import { noticePage } from '../base/html.ts';
import { NO_CONTENT_POLICY, NO_STORE, type Reply } from '../http/message.ts';
import { NO_PROVIDER } from './idp-login.ts';

/** Path at which users log in. */
export const LOGIN_PATH = '/api/auth/idp/start';
/** Path at which users log in on the origin of a plugin. */
export const PLUGIN_LOGIN_PATH = '/api/auth/plugin-session/start';

/** Headers of a page of the service without scripts. */
export const PAGE_HEADERS: ReadonlyArray<[string, string]> = [
  ['Content-Type', 'text/html; charset=utf-8'],
  NO_CONTENT_POLICY,
  NO_STORE,
];

/** The page for a browser that needs a login when none is configured: it says what to configure. */
export function noLoginReply(requestId: string): Reply & { status: 503; body: string } {
  const body = noticePage(
    'No login is set up here',
    [
      `This page is for users who are logged in, and ${NO_PROVIDER}.`,
      'Administrators log in at the administration page and then open this page again.',
    ],
    requestId,
    { href: '/admin/', text: 'Administration' },
  );
  return { status: STATUS_OF.unavailable, headers: [...PAGE_HEADERS], body };
}
