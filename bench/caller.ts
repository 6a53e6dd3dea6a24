import { admin } from './host.ts';

/** An administrator's requests, and the bearer of the same person as a user. */
export type Caller = {
  post(where: string, body: unknown, method?: string): Promise<Response>;
  bearer: Record<string, string>;
  /** The administrator's cookies. */
  cookie: string;
  userId: number;
};
export type Account = Caller & { account: { email: string; password: string } };

/** Who calls in the rows below; ends setup mode. */
export async function makeCaller(port: number): Promise<Account> {
  const base = `http://127.0.0.1:${port}`;
  const account = { email: 'bench@uni.example', password: 'a password of the benchmark' };
  const made = await admin(port, 'POST', '/auth/setup', account);
  const cookie = made.headers
    .getSetCookie()
    .map(c => c.split(';')[0])
    .join('; ');
  const post = async (where: string, body: unknown, method = 'POST'): Promise<Response> =>
    await fetch(base + where, {
      method,
      headers: { 'content-type': 'application/json', cookie },
      body: JSON.stringify(body),
    });
  const { token } = (await (await post('/api/auth/tokens', { name: 'bench' })).json()) as { token: string };
  const { admin: me } = (await (await fetch(`${base}/api/admin/auth/check`, { headers: { cookie } })).json()) as {
    admin: { global_user_id: number };
  };
  return { account, cookie, post, bearer: { authorization: `Bearer ${token}` }, userId: me.global_user_id };
}
