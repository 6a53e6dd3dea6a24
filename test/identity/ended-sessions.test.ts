import { Secret, TOTP } from 'otpauth';
import t from 'tap';
import { LIMITS } from '../../src/base/limits.ts';
import { openDatabase } from '../../src/db/database.ts';
import { ROOT_EMAIL, ROOT_PASSWORD, startWithRoot } from '../support/root-admin.ts';
import { type Answer, request } from '../support/service.ts';
import { until } from '../support/until.ts';

/** What a session makes that outlives it: a thief of the session asks for it while its owner throws the thief out. */

async function world(t: { teardown(fn: () => unknown): void }) {
  const { call, s } = await startWithRoot(t);
  const db = openDatabase(s.databaseUrl, 3, () => {});
  t.teardown(() => db.close());
  const send = (method: string, path: string, body: unknown, cookie: string): Promise<Answer> =>
    request(`${s.base}/api${path}`, {
      method,
      headers: { 'content-type': 'application/json', cookie },
      body: JSON.stringify(body),
    });
  const logIn = async (): Promise<string> => {
    const answer = await call({}, 'POST', '/auth/login', { email: ROOT_EMAIL, password: ROOT_PASSWORD });
    return answer.headers
      .getSetCookie()
      .map(c => c.split(';')[0])
      .join('; ');
  };
  /** Does something while another transaction, which began before and ends it, has ended every session. */
  const whileEnding = async (act: () => Promise<Answer>): Promise<Answer> => {
    let answer: Promise<Answer> | null = null;
    await db.withTransaction(async client => {
      await client.query('DELETE FROM sessions');
      answer = act();
      await until(async () => {
        const { rows } = await db.query("SELECT 1 FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'");
        return rows.length > 0;
      });
    });
    if (answer === null) throw new Error('nothing was done');
    return await answer;
  };
  const count = async (table: string): Promise<number> =>
    Number((await db.query<{ n: string }>(`SELECT count(*) AS n FROM ${table}`)).rows[0]?.n);
  return { whileEnding, count, db, logIn, send };
}

t.test('nothing that a session makes while it is ended outlives it', async t => {
  const { whileEnding, count, logIn, send } = await world(t);
  let cookie = await logIn();
  const begun = await send('POST', '/admin/auth/totp/begin', {}, cookie);
  const app = new TOTP({ secret: Secret.fromBase32(String(begun.json.secret)) });
  const made: ReadonlyArray<[what: string, table: string, act: () => Promise<Answer>]> = [
    [
      'an app',
      'admin_totp',
      () => send('PUT', '/admin/auth/totp', { continuation: begun.json.continuation, code: app.generate() }, cookie),
    ],
    ['a token', 'user_tokens', () => send('POST', '/auth/tokens', { name: 'n' }, cookie)],
    ['an administration key', 'admin_keys', () => send('POST', '/admin/keys', { name: 'k', scopes: ['read'] }, cookie)],
  ];
  for (const [what, table, act] of made) {
    const answer = await whileEnding(act);
    t.same([answer.status, answer.json.code], [401, 'unauthorized'], what);
    t.equal(await count(table), 0, what);
    cookie = await logIn();
  }
});

t.test('a change of the password makes the code worth nothing that links a messenger', async t => {
  const { count, logIn, send } = await world(t);
  const cookie = await logIn();
  t.equal((await send('POST', '/messengers/link-code', {}, cookie)).status, 201);
  t.equal(await count('messenger_link_codes'), 1);
  const change = { current_password: ROOT_PASSWORD, new_password: 'another long password' };
  t.equal((await send('PUT', '/admin/auth/password', change, cookie)).status, 200);
  t.equal(await count('messenger_link_codes'), 0);
});

t.test('a user has so many tokens, and not one more', async t => {
  const { count, db, logIn, send } = await world(t);
  const cookie = await logIn();
  await db.query(
    `INSERT INTO user_tokens (global_user_id, name, public, secret_sha256)
     SELECT id, 'n', 'p' || n, sha256(n::text::bytea) FROM global_users, generate_series(1, $1) n`,
    [LIMITS.userTokensMax - 1],
  );
  const answers = await Promise.all(
    Array.from({ length: 4 }, () => send('POST', '/auth/tokens', { name: 'n' }, cookie)),
  );
  t.same(answers.map(a => a.status).sort(), [201, 409, 409, 409]);
  t.match(answers.find(a => a.status === 409)?.json.detail, /you have 100 tokens, the maximum \(userTokensMax\)/);
  t.equal(await count('user_tokens'), LIMITS.userTokensMax);
});
