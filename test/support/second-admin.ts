import type { Database } from '../../src/db/database.ts';
import { CookieJar } from './identity-provider.ts';
import { type Answer, request, type TestService } from './service.ts';

export type SecondAdmin = { id: number; email: string; headers: Record<string, string>; appointed: Answer['json'] };

/**
 * A second administrator who has just logged in, with the password of the first one instead of the temporary one of the mail.
 *
 * @param root cookies of the first administrator
 * @param may `roles` and `plugins`, as POST /api/admin/admins takes them
 */
export async function appointSecondAdmin(
  { base }: TestService,
  db: Database,
  root: Record<string, string>,
  password: string,
  may: Record<string, unknown>,
): Promise<SecondAdmin> {
  const call = (where: string, headers: Record<string, string>, body: unknown): Promise<Answer> =>
    request(`${base}/api/admin${where}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
  const email = `${['second', ...Object.values(may)].join('.').replaceAll(',', '.')}@uni.example`;
  const user = await call('/users', root, { display_name: email });
  const id = Number(user.json.id);
  const appointed = await call('/admins', root, { global_user_id: id, email, ...may });
  if (appointed.status !== 201) throw new Error(appointed.text);
  await db.query(
    `UPDATE admin_credentials a SET must_change_password = false, temporary_until = NULL, mail_state = 'sent',
       password_hash = b.password_hash FROM admin_credentials b
     WHERE a.global_user_id = $1 AND b.global_user_id = (SELECT min(global_user_id) FROM admin_credentials)`,
    [id],
  );
  const jar = new CookieJar();
  const loggedIn = await call('/auth/login', {}, { email, password });
  if (loggedIn.status !== 200) throw new Error(loggedIn.text);
  jar.take(loggedIn.headers);
  return { id, email, headers: jar.header, appointed: appointed.json };
}
