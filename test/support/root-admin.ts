import { openDatabase } from '../../src/db/database.ts';
import { assertContract } from './contract.ts';
import { CookieJar } from './identity-provider.ts';
import { type Answer, rawRequest, startTestService, TOKEN } from './service.ts';

export const ROOT_EMAIL = 'root@uni.example';
export const ROOT_PASSWORD = 'correct horse battery';

/**
 * A service with its first administrator, who is logged in.
 *
 * @param more headers of the setup, for a service that is asked for by another host name
 */
export async function startWithRoot(
  t: { teardown(fn: () => unknown): void },
  env: Record<string, string> = {},
  more: Record<string, string> = {},
) {
  const s = await startTestService(env);
  t.teardown(() => s.stop());
  const db = openDatabase(s.databaseUrl, 2, () => {});
  t.teardown(() => db.close());
  /** A request to the admin API with these headers and no others, held to the document of the API. */
  const call = async (
    headers: Record<string, string>,
    method: string,
    where: string,
    body?: unknown,
  ): Promise<Answer> => {
    const url = new URL(`${s.base}/api/admin${where}`);
    const all = body === undefined ? headers : { 'content-type': 'application/json', ...headers };
    const answer = await rawRequest(url.href, all, method, body === undefined ? undefined : JSON.stringify(body));
    const type = answer.headers.get('content-type') ?? '';
    assertContract(method, url.pathname, answer.status, type, answer.text);
    return answer;
  };
  const first = { email: ROOT_EMAIL, password: ROOT_PASSWORD };
  const made = await call({ authorization: `Bearer ${TOKEN}`, ...more }, 'POST', '/auth/setup', first);
  if (made.status !== 200 && made.status !== 201) throw new Error(made.text);
  const jar = new CookieJar();
  jar.take(made.headers);
  const root: Record<string, string> = { ...more, ...jar.header };
  const rootId = Number((made.json.admin as { global_user_id: number }).global_user_id);
  /** The newest entry of the audit log with an action. */
  const newest = async (action: string): Promise<unknown> =>
    ((await call(root, 'GET', `/audit?action=${action}`)).json.items as unknown[])[0];
  /** How callers wait after failures is shown in login.test.ts. */
  const forgetFailures = () => db.query('DELETE FROM login_failures');
  return { s, db, call, root, rootId, newest, forgetFailures };
}
