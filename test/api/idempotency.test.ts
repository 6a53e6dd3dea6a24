import t from 'tap';
import { openDatabase } from '../../src/db/database.ts';
import { beginRequest, forgetRequest, keepAnswer, removeOldRequests } from '../../src/records/idempotent-requests.ts';
import { CookieJar } from '../support/identity-provider.ts';
import { appointSecondAdmin } from '../support/second-admin.ts';
import { type Answer, type Json, request, startTestService, TOKEN } from '../support/service.ts';

/** docs/api.md "Repeating a request". */

const s = await startTestService();
t.teardown(() => s.stop());
const db = openDatabase(s.databaseUrl, 2, () => {});
t.teardown(() => db.close());

/** The administrator, from when there is one. */
const root = new CookieJar();

type Sent = { method?: string; headers?: Record<string, string>; body?: unknown };

function send(where: string, { body, headers = {}, method = 'POST' }: Sent): Promise<Answer> {
  return request(`${s.base}/api/admin${where}`, {
    method,
    headers: {
      'content-type': 'application/json',
      ...(root.names.length > 0 ? root.header : { authorization: `Bearer ${TOKEN}` }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}
const withKey = (key: string, more: Record<string, string> = {}) => ({ 'idempotency-key': key, ...more });
const users = async (search: string): Promise<Json[]> =>
  (await send(`/users?search=${search}`, { method: 'GET' })).json.items as Json[];

t.test('a repeated request gets the answer of the first one, and does nothing', async t => {
  const body = { external_id: 'repeat-1', display_name: 'Once' };
  const first = await send('/users', { headers: withKey('a-key-of-mine'), body });
  t.equal(first.status, 201);
  t.equal(first.headers.get('idempotent-replayed'), null);
  const again = await send('/users', { headers: withKey('a-key-of-mine'), body });
  t.equal(again.status, 201);
  t.equal(again.headers.get('idempotent-replayed'), 'true');
  t.equal(again.text, first.text, 'the same answer, to the byte');
  t.equal((await users('repeat-1')).length, 1);
  const other = await send('/users', { headers: withKey('another-key'), body });
  t.equal(other.status, 409, 'with another key it is another request, which finds the user there');
});

t.test('a key that comes with another body is refused with 422', async t => {
  await send('/users', { headers: withKey('two-bodies'), body: { external_id: 'body-1' } });
  const a = await send('/users', { headers: withKey('two-bodies'), body: { external_id: 'body-2' } });
  t.equal(a.status, 422);
  t.equal(a.json.code, 'idempotency_key_reused');
  t.same(await users('body-2'), []);
});

t.test('a refusal is not kept: the same request may succeed later', async t => {
  const wrong = await send('/users', { headers: withKey('mend-me'), body: { external_id: '' } });
  t.equal(wrong.status, 422);
  const right = await send('/users', { headers: withKey('mend-me'), body: { external_id: 'mended' } });
  t.equal(right.status, 201);
});

t.test('of many at a time one is done; the others get its answer, or 409 while it is under way', async t => {
  const body = { external_id: 'crowd', display_name: 'One of many' };
  const all = await Promise.all(Array.from({ length: 12 }, () => send('/users', { headers: withKey('crowd'), body })));
  const made = all.filter(a => a.status === 201);
  t.ok(made.length >= 1);
  t.equal(new Set(made.map(a => a.text)).size, 1);
  t.equal(made.filter(a => a.headers.get('idempotent-replayed') === null).length, 1);
  for (const a of all.filter(a => a.status !== 201)) {
    t.equal(a.status, 409);
    t.match(a.json.detail, /under way/);
    t.equal(a.headers.get('retry-after'), '1');
  }
  t.equal((await users('crowd')).length, 1);
});

t.test('a key that is no visible text is refused', async t => {
  const a = await send('/users', { headers: withKey('x'.repeat(256)), body: {} });
  t.equal(a.status, 400);
  t.match(a.json.detail, /Idempotency-Key must be 1 to 255 visible ASCII characters/);
});

t.test('an answer goes out also when it cannot be kept, and the work is not done again', async t => {
  await db.query(
    `CREATE FUNCTION refuse_update() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION $$no$$; END'`,
  );
  await db.query(
    'CREATE TRIGGER refuse BEFORE UPDATE ON idempotent_requests FOR EACH ROW EXECUTE FUNCTION refuse_update()',
  );
  const body = { external_id: 'not-kept' };
  const first = await send('/users', { headers: withKey('not-kept'), body });
  t.equal(first.status, 201, 'the user was made, so the client gets the answer');
  await db.query('DROP TRIGGER refuse ON idempotent_requests');
  const again = await send('/users', { headers: withKey('not-kept'), body });
  t.equal(again.status, 409);
  t.match(again.json.detail, /under way/);
});

t.test('a request that failed behind its work is not done again', async t => {
  // The answer of a new service key reads nothing more; that of an administration key reads the plugins of its scopes.
  const setup = await send('/auth/setup', { body: { email: 'root@uni.example', password: 'correct horse battery' } });
  root.take(setup.headers);
  const make = () =>
    send('/keys', {
      headers: withKey('fails-late', { ...root.header, authorization: '' }),
      body: { name: 'late', scopes: ['plugins:deploy:later'] },
    });
  await db.query('ALTER TABLE plugins RENAME TO plugins_away');
  const first = await make();
  await db.query('ALTER TABLE plugins_away RENAME TO plugins');
  t.equal(first.status, 500, 'the key is there, its answer is not');
  const again = await make();
  t.equal(again.status, 409, 'it is not made a second time');
  const { rows } = await db.query(`SELECT 1 FROM admin_keys WHERE name = 'late'`);
  t.equal(rows.length, 1);
});

t.test('what became of a request is not guessed when its host ended', async t => {
  const body = { external_id: 'cut-off' };
  await send('/users', { headers: withKey('cut-off'), body });
  await db.query(
    `UPDATE idempotent_requests SET status = NULL, body = NULL, begun_at = now() - interval '61 seconds' WHERE key = 'cut-off'`,
  );
  const a = await send('/users', { headers: withKey('cut-off'), body });
  t.equal(a.status, 409);
  t.match(a.json.detail, /look whether it was done/);
});

t.test('after 24 hours a key is free again', async t => {
  const body = { external_id: 'old-1' };
  await send('/users', { headers: withKey('old-key'), body });
  await db.query(`UPDATE idempotent_requests SET begun_at = now() - interval '25 hours' WHERE key = 'old-key'`);
  const a = await send('/users', { headers: withKey('old-key'), body: { external_id: 'old-2' } });
  t.equal(a.status, 201);
  t.equal(a.headers.get('idempotent-replayed'), null);
});

t.test('an answer with a secret is not kept: the refusal of a repeated request names what was made', async t => {
  const body = { name: 'a key', scopes: [{ plugin_id: 'later', trigger: '*' }], allow_unknown: true };
  const first = await send('/service-keys', { headers: withKey('secret-one'), body });
  t.equal(first.status, 201);
  const again = await send('/service-keys', { headers: withKey('secret-one'), body });
  t.equal(again.status, 409);
  t.equal(again.json.id, first.json.id);
  const { rows } = await db.query<{ kept: string }>(`SELECT row_to_json(r)::text AS kept FROM idempotent_requests r`);
  const secret = String(first.json.key).split('.')[1] ?? '';
  t.ok(secret.length > 20);
  for (const { kept } of rows) t.notOk(kept.includes(secret), 'the database does not hold the secret');
});

t.test('of one caller 10,000 requests are kept, and the next one is refused with 429', async t => {
  const body = { external_id: 'among-many' };
  t.equal((await send('/users', { headers: withKey('among-many'), body })).status, 201);
  const { rows } = await db.query<{ caller: string }>(
    `SELECT caller FROM idempotent_requests WHERE key = 'among-many'`,
  );
  const mine = rows[0]?.caller ?? '';
  await db.query(
    `INSERT INTO idempotent_requests (caller, key, request_sha256)
     SELECT $1, 'many-' || n, '' FROM generate_series(1, 10000 - (SELECT count(*) FROM idempotent_requests WHERE caller = $1)) n`,
    [mine],
  );
  const refused = await send('/users', { headers: withKey('one-too-many'), body: { external_id: 'one-too-many' } });
  t.equal(refused.status, 429);
  t.match(refused.json.detail, /^10000 requests of this caller/);
  t.ok(Number(refused.headers.get('retry-after')) > 0);
  t.same(await users('one-too-many'), [], 'nothing was done');
  const again = await send('/users', { headers: withKey('among-many'), body });
  t.equal(again.headers.get('idempotent-replayed'), 'true', 'a repeated request is answered as before');
  t.equal(
    (await send('/users', { body: { external_id: 'without-key' } })).status,
    201,
    'and one without a key is served',
  );
  await db.query(`DELETE FROM idempotent_requests WHERE caller = $1 AND key = 'many-1'`, [mine]);
  const next = await send('/users', { headers: withKey('one-too-many'), body: { external_id: 'one-too-many' } });
  t.equal(next.status, 201, 'there is room again');
  await db.query(`DELETE FROM idempotent_requests WHERE key LIKE 'many-%'`);
});

t.test('a key belongs to its caller', async t => {
  const jar = root;
  const body = { external_id: 'of-two-callers' };
  const made = await send('/keys', {
    headers: { ...jar.header, authorization: '' },
    body: { name: 'k', scopes: ['admin'] },
  });
  t.equal(made.status, 201);
  const asKey = { authorization: `Bearer ${made.json.key}` };
  t.equal(
    (await send('/users', { headers: withKey('shared', { ...jar.header, authorization: '' }), body })).status,
    201,
  );
  const other = await send('/users', { headers: withKey('shared', asKey), body });
  t.equal(other.status, 409, 'it is a request of its own, which finds the user there');
  t.match(other.json.detail, /external_id/);
});

t.test('equal keys of two administrators, two administration keys and two users are not one', async t => {
  const own = { ...root.header, authorization: '' };
  const second = await appointSecondAdmin(s, db, root.header, 'correct horse battery', { roles: ['owner'] });
  const keys: Array<Record<string, string>> = [];
  for (const name of ['one', 'other']) {
    const made = await send('/keys', { headers: own, body: { name, scopes: ['admin'] } });
    keys.push({ authorization: `Bearer ${made.json.key}`, cookie: '' });
  }
  const pairs: Array<[string, Record<string, string>, Record<string, string>]> = [
    ['administrators', own, { ...second.headers, authorization: '' }],
    ['keys', keys[0] ?? {}, keys[1] ?? {}],
  ];
  for (const [what, one, other] of pairs) {
    const body = { external_id: `same-${what}` };
    t.equal((await send('/users', { headers: withKey('same', one), body })).status, 201, what);
    t.equal(
      (await send('/users', { headers: withKey('same', other), body })).status,
      409,
      `${what}: it is asked again`,
    );
  }
  const tokens: string[] = [];
  for (const email of ['root@uni.example', second.email]) {
    const jar = new CookieJar();
    const login = await send('/auth/login', {
      headers: { authorization: '', cookie: '' },
      body: { email, password: 'correct horse battery' },
    });
    jar.take(login.headers);
    const made = await request(`${s.base}/api/auth/tokens`, {
      method: 'POST',
      headers: { ...jar.header, 'content-type': 'application/json', 'idempotency-key': 'same' },
      body: '{"name":"t"}',
    });
    t.equal(made.status, 201, `user ${email}: ${made.text}`);
    tokens.push(String(made.json.token));
  }
  t.not(tokens[0], tokens[1]);
});

t.test('the same key at another path or with another query is another request', async t => {
  const own = { ...root.header, authorization: '' };
  const body = { external_id: 'of-two-paths' };
  t.equal((await send('/users', { headers: withKey('paths', own), body })).status, 201);
  const elsewhere = await send('/events/subscriptions', { headers: withKey('paths', own), body });
  t.match(elsewhere.json, { status: 422, code: 'idempotency_key_reused' });
});

t.test('a failure of the service frees no key: what was begun may have been done', async t => {
  const own = { ...root.header, authorization: '' };
  await db.query('ALTER TABLE global_users RENAME TO global_users_away');
  const body = { external_id: 'while-away' };
  const first = await send('/users', { headers: withKey('away', own), body });
  await db.query('ALTER TABLE global_users_away RENAME TO global_users');
  t.equal(first.status, 500, first.text);
  t.equal((await send('/users', { headers: withKey('away', own), body })).status, 409);
});

t.test('an answer that is kept is not removed by a refusal that comes late, nor within 24 hours', async t => {
  const kept = { caller: 'admin:7', key: 'late', sha256: Buffer.alloc(32) };
  const answer = { status: 201, headers: [], body: '{}', madeId: null };
  await beginRequest(db, kept);
  await keepAnswer(db, kept, answer);
  await forgetRequest(db, kept);
  const held = async (): Promise<number | null> =>
    (await db.query("SELECT FROM idempotent_requests WHERE caller = 'admin:7' AND key = 'late'")).rowCount;
  t.equal(await held(), 1);
  for (const [hours, rows] of [
    [23, 1],
    [25, 0],
  ]) {
    await db.query(
      "UPDATE idempotent_requests SET begun_at = now() - make_interval(hours => $1) WHERE caller = 'admin:7' AND key = 'late'",
      [hours],
    );
    await removeOldRequests(db);
    t.equal(await held(), rows, `${hours} hours`);
  }
});
