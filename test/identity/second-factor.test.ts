import { Secret, TOTP } from 'otpauth';
import t from 'tap';
import { useTemporaryPassword } from '../../src/identity/admin-accounts.ts';
import { resetPasswordHere } from '../../src/identity/admin-appointments.ts';
import { SECOND_FACTOR_LIMITS } from '../../src/identity/second-factor-limits.ts';
import { stepOfCode } from '../../src/identity/totp.ts';
import { CookieJar } from '../support/identity-provider.ts';
import { ROOT_EMAIL, ROOT_PASSWORD, startWithRoot } from '../support/root-admin.ts';
import { appointSecondAdmin } from '../support/second-admin.ts';
import { type Answer, startTestService } from '../support/service.ts';
import { until } from '../support/until.ts';

/** The second factor (docs/identity.md "Second factor"). Passkeys: test/identity/passkeys.test.ts. */

const EMAIL = ROOT_EMAIL;
const PASSWORD = ROOT_PASSWORD;
const STEP_MS = 30_000;

/** The operator on the machine, who is given a temporary password to read out. */
const ACTOR = { kind: 'command_line', userId: null, name: 'operator', requestId: '', address: '' } as const;

type Headers_ = Record<string, string>;

async function world(t: { teardown(fn: () => unknown): void }, env: Record<string, string> = {}) {
  const w = await startWithRoot(t, env);
  const { call } = w;
  const logIn = (): Promise<Answer> => call({}, 'POST', '/auth/login', { email: EMAIL, password: PASSWORD });
  const complete = (answer: Record<string, unknown>): Promise<Answer> =>
    call({}, 'POST', '/auth/login/second-factor', answer);
  /** Adds an app. @returns what makes its codes, `steps` away from now */
  const addApp = async (headers: Headers_) => {
    const begun = await call(headers, 'POST', '/auth/totp/begin');
    if (begun.status !== 200) throw new Error(begun.text);
    const app = new TOTP({ secret: Secret.fromBase32(String(begun.json.secret)) });
    const code = (steps = 0): string => app.generate({ timestamp: Date.now() + steps * STEP_MS });
    const set = await call(headers, 'PUT', '/auth/totp', { continuation: begun.json.continuation, code: code() });
    if (set.status !== 200) throw new Error(set.text);
    return { code, codes: (set.json.recovery_codes ?? []) as string[], uri: String(begun.json.uri) };
  };
  return { ...w, logIn, complete, addApp };
}

t.test('codes count for the step before and after, and nothing else does', async t => {
  const secret = new Secret({ size: 20 });
  const app = new TOTP({ secret });
  const now = 1_800_000_015_000;
  const codeAt = (ms: number) => app.generate({ timestamp: ms });
  const step = Math.floor(now / STEP_MS);
  for (const [delta, expected] of [
    [-2, null],
    [-1, step - 1],
    [0, step],
    [1, step + 1],
    [2, null],
  ] as const)
    t.equal(stepOfCode(secret.base32, codeAt(now + delta * STEP_MS), now), expected, `${delta} steps away`);
  const code = codeAt(now);
  t.equal(stepOfCode(secret.base32, `${code.slice(0, 3)} ${code.slice(3)}`, now), step, 'as apps write it');
  for (const wrong of ['', '12345', '1234567', 'abcdef', `${code}0`])
    t.equal(stepOfCode(secret.base32, wrong, now), null, wrong);
});

t.test('with an app a password alone opens nothing, and a code completes the login once', async t => {
  const w = await world(t);
  t.match((await w.call(w.root, 'GET', '/auth/second-factor')).json, {
    required: false,
    passkeys: [],
    totp_since: null,
    recovery_codes: 0,
    passkey_problem: /do not work on an IP address; open .* http:\/\/localhost:\d+\/admin\//,
  });
  const { code, codes, uri } = await w.addApp(w.root);
  t.match(uri, /^otpauth:\/\/totp\/.*root%40uni\.example\?/);
  t.equal(codes.length, 10);
  t.equal(new Set(codes).size, 10);

  const asked = await w.logIn();
  t.match(asked.json, {
    status: 401,
    code: 'second_factor_required',
    methods: ['totp', 'recovery_code'],
    passkey_options: null,
  });
  t.equal(asked.headers.getSetCookie().length, 0, 'no session');
  const { continuation } = asked.json;
  t.match(
    (await w.complete({ continuation, code: code() })).json,
    { status: 401, attempts_left: 4 },
    'used when it was added',
  );
  await w.forgetFailures();
  // Made once: a moment later the next code may be another one.
  const next = code(1);
  const opened = await w.complete({ continuation, code: next });
  t.match(opened.json, { admin: { email: EMAIL } });
  const jar = new CookieJar();
  jar.take(opened.headers);
  t.equal((await w.call(jar.header, 'GET', '/plugins')).status, 200);
  t.equal((await w.complete({ continuation, code: next })).status, 401, 'a continuation counts once');
  await w.forgetFailures();
  const again = await w.logIn();
  t.equal((await w.complete({ continuation: again.json.continuation, code: next })).status, 401, 'and so does a code');
  const [entry] = (await w.call(w.root, 'GET', '/audit?action=admin.login')).json.items as unknown[];
  t.match(entry, { after: { second_factor: 'totp' } });
  const { rows } = await w.db.query<{ text: string }>(
    'SELECT t::text AS text FROM admin_totp t UNION ALL SELECT c::text FROM admin_recovery_codes c UNION ALL SELECT l::text FROM audit_log l',
  );
  const secret = new URL(uri).searchParams.get('secret') ?? '-';
  for (const one of [secret, ...codes])
    t.notOk(
      rows.some(r => r.text.includes(one)),
      'secrets are stored sealed or hashed',
    );
});

t.test('a login that waits while the first factor is added asks for the factor', async t => {
  const w = await world(t);
  let login: Promise<Answer> | undefined;
  await w.db.withTransaction(async client => {
    // An app is added: the account is held, then its sessions end.
    await client.query('SELECT 1 FROM admin_credentials WHERE global_user_id = $1 FOR UPDATE', [w.rootId]);
    await client.query('INSERT INTO admin_totp (global_user_id, secret, last_step) VALUES ($1, $2, 0)', [
      w.rootId,
      Buffer.alloc(60),
    ]);
    login = w.logIn();
    await until(
      async () =>
        (
          await w.db.query(
            "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%FOR UPDATE%'",
          )
        ).rowCount === 1,
    );
    await client.query("DELETE FROM sessions WHERE kind = 'admin'");
  });
  t.match(await login, { status: 401, json: { code: 'second_factor_required' } });
  t.same((await w.db.query("SELECT 1 FROM sessions WHERE kind = 'admin'")).rows, []);
});

t.test('a recovery code opens one login, however it is typed', async t => {
  const w = await world(t);
  const { codes } = await w.addApp(w.root);
  const first = (codes[0] ?? '').toUpperCase().replace('-', ' ');
  const asked = await w.logIn();
  t.equal((await w.complete({ continuation: asked.json.continuation, recovery_code: first })).status, 200);
  const again = await w.logIn();
  const refused = await w.complete({ continuation: again.json.continuation, recovery_code: first });
  t.match(refused.json, { status: 401, attempts_left: 4 });
  t.equal((await w.call(w.root, 'GET', '/auth/second-factor')).json.recovery_codes, 9);
  const renewed = await w.call(w.root, 'POST', '/auth/recovery-codes');
  t.equal((renewed.json.recovery_codes as string[]).length, 10);
  await w.forgetFailures();
  const third = await w.logIn();
  t.equal(
    (await w.complete({ continuation: third.json.continuation, recovery_code: codes[1] })).status,
    401,
    'the old ones are void',
  );
});

t.test('guesses are counted, slowed down, and end the login', async t => {
  const w = await world(t);
  const { code } = await w.addApp(w.root);
  const asked = await w.logIn();
  const { continuation } = asked.json;
  const guess = { continuation, code: '000000' };
  t.match((await w.complete(guess)).json, { attempts_left: 4, detail: /4 more attempts/ });
  const waiting = await w.complete({ continuation, code: code(1) });
  t.equal(waiting.status, 429, 'even the right one waits');
  t.ok(Number(waiting.headers.get('retry-after')) >= 1);
  t.match((await w.logIn()).json, { status: 429 }, 'and so does the password');
  for (let left = SECOND_FACTOR_LIMITS.challengeFailuresMax - 2; left >= 0; left--) {
    await w.forgetFailures();
    t.match((await w.complete(guess)).json, { attempts_left: left });
  }
  await w.forgetFailures();
  t.match((await w.complete({ continuation, code: code(1) })).json, {
    detail: /not completed in time, or failed too often/,
  });
  t.equal(
    ((await w.call(w.root, 'GET', '/audit?action=admin.second_factor_failed')).json.items as unknown[]).length,
    SECOND_FACTOR_LIMITS.challengeFailuresMax,
  );
  // Guesses in parallel do not get more attempts than guesses in a row.
  await w.forgetFailures();
  const next = (await w.logIn()).json.continuation;
  const many = await Promise.all(
    Array.from({ length: 20 }, (_, k) => w.complete({ continuation: next, code: String(k).padStart(6, '0') })),
  );
  t.ok(many.filter(a => a.json.attempts_left !== undefined).length <= SECOND_FACTOR_LIMITS.challengeFailuresMax);
});

t.test('guesses at several logins at once, from as many addresses, are as few as guesses in a row', async t => {
  const w = await world(t, { BOT_HTTP_TRUSTED_PROXIES: '127.0.0.0/8' });
  await w.addApp(w.root);
  const { challengeFailuresMax, wrongCodesMax } = SECOND_FACTOR_LIMITS;
  const logins = 2 + wrongCodesMax / challengeFailuresMax;
  const continuations: unknown[] = [];
  for (let k = 0; k < logins; k++) continuations.push((await w.logIn()).json.continuation);
  const guesses = continuations.flatMap((continuation, login) =>
    Array.from({ length: challengeFailuresMax }, (_, k) =>
      w.call({ 'x-forwarded-for': `203.0.${login}.${k}` }, 'POST', '/auth/login/second-factor', {
        continuation,
        code: '000000',
      }),
    ),
  );
  const compared = (await Promise.all(guesses)).filter(a => a.json.attempts_left !== undefined);
  t.ok(compared.length <= wrongCodesMax, `${compared.length} of ${guesses.length} were compared`);
  t.ok(compared.length > 0);
});

t.test('a continuation ends with time, with the password, and is no one else’s', async t => {
  const w = await world(t);
  const { code } = await w.addApp(w.root);
  const late = { detail: /not completed in time/ };
  const old = (await w.logIn()).json.continuation;
  await w.db.query("UPDATE admin_challenges SET expires_at = now() - interval '1 second'");
  t.match((await w.complete({ continuation: old, code: code(1) })).json, late);
  const before = (await w.logIn()).json.continuation;
  const change = { current_password: PASSWORD, new_password: 'another sentence of mine' };
  t.equal((await w.call(w.root, 'PUT', '/auth/password', change)).status, 200);
  t.match((await w.complete({ continuation: before, code: code(1) })).json, late);
  t.match((await w.complete({ continuation: 'made up', code: code(1) })).json, late);
  for (const body of [
    { continuation: before },
    { continuation: before, code: '123456', recovery_code: 'x' },
    { code: '123456' },
  ])
    t.equal((await w.complete(body)).status, 422, JSON.stringify(body));
});

t.test('an enrolment ends with its session, and the last factor may go unless one is required', async t => {
  const w = await world(t);
  const second = await appointSecondAdmin(w.s, w.db, w.root, PASSWORD, { roles: ['auditor'] });
  const begun = await w.call(w.root, 'POST', '/auth/totp/begin');
  const code = new TOTP({ secret: Secret.fromBase32(String(begun.json.secret)) }).generate();
  const half = { continuation: begun.json.continuation, code };
  t.match((await w.call(second.headers, 'PUT', '/auth/totp', half)).json, { status: 409, detail: /another session/ });
  t.match((await w.call(w.root, 'PUT', '/auth/totp', { ...half, code: '000000' })).json, {
    status: 422,
    errors: [{ pointer: '/code' }],
  });
  t.equal((await w.call(w.root, 'PUT', '/auth/totp', half)).status, 200);
  t.equal((await w.call(w.root, 'PUT', '/auth/totp', half)).status, 409, 'once');
  t.match((await w.call(w.root, 'GET', '/admins')).json, {
    items: [{ has_second_factor: false }, { has_second_factor: true }],
  });
  t.equal((await w.call(w.root, 'DELETE', '/auth/totp')).status, 204);
  t.equal((await w.call(w.root, 'GET', '/auth/second-factor')).json.recovery_codes, 0, 'with their codes');
  t.equal((await w.call(w.root, 'DELETE', '/auth/totp')).status, 404);
  t.equal((await w.call(w.root, 'POST', '/auth/recovery-codes')).status, 409);
  t.equal((await w.logIn()).status, 200, 'the password is enough again');
});

t.test('where a second factor is required, nothing else is open before there is one', async t => {
  const w = await world(t, { BOT_ADMIN_SECOND_FACTOR: 'required' });
  t.match((await w.call(w.root, 'GET', '/auth/check')).json, { admin: { must_add_second_factor: true } });
  t.match((await w.call(w.root, 'GET', '/plugins')).json, {
    status: 403,
    code: 'second_factor_setup_required',
    detail: /add a passkey .* or an authenticator app/,
  });
  await w.addApp(w.root);
  t.equal((await w.call(w.root, 'GET', '/plugins')).status, 200);
  t.match((await w.call(w.root, 'GET', '/auth/check')).json, { admin: { must_add_second_factor: false } });
  t.match((await w.call(w.root, 'DELETE', '/auth/totp')).json, { status: 409, detail: /your last second factor/ });
});

t.test('an owner takes the factors from an administrator who lost them, whose sessions end', async t => {
  const w = await world(t);
  const second = await appointSecondAdmin(w.s, w.db, w.root, PASSWORD, { roles: ['operator'] });
  await w.addApp(second.headers);
  t.equal((await w.call(second.headers, 'DELETE', `/admins/${second.id}/second-factor`)).status, 403);
  t.equal((await w.call(w.root, 'DELETE', `/admins/${w.rootId}/second-factor`)).status, 409, 'not the own ones');
  t.equal((await w.call(w.root, 'DELETE', `/admins/${second.id}/second-factor`)).status, 204);
  t.equal((await w.call(second.headers, 'GET', '/plugins')).status, 401);
  const login = { email: second.email, password: PASSWORD };
  t.equal((await w.call({}, 'POST', '/auth/login', login)).status, 200);
  const [entry] = (await w.call(w.root, 'GET', '/audit?action=admin.reset_second_factor')).json.items as unknown[];
  t.match(entry, { object_id: String(second.id), before: { totp: true } });
});

t.test(
  'wrong codes count over all callers: after twenty the app is refused, and a recovery code still opens',
  async t => {
    const w = await world(t, { BOT_HTTP_TRUSTED_PROXIES: '127.0.0.1' });
    const { code, codes } = await w.addApp(w.root);
    const from = (k: number): Headers_ => ({ 'x-forwarded-for': `2001:db8:${k.toString(16)}::1` });
    const login = { email: EMAIL, password: PASSWORD };
    const ask = async (k: number) => (await w.call(from(k), 'POST', '/auth/login', login)).json.continuation;
    for (let k = 1; k <= 20; k++) {
      const continuation = await ask(k);
      const wrong = await w.call(from(k), 'POST', '/auth/login/second-factor', { continuation, code: '000000' });
      t.equal(wrong.status, 401);
    }
    const continuation = await ask(50);
    const answer = (body: Record<string, unknown>) =>
      w.call(from(50), 'POST', '/auth/login/second-factor', { continuation, ...body });
    t.match((await answer({ code: code(1) })).json, { status: 429, detail: /too many wrong codes/ });
    t.equal((await answer({ recovery_code: codes[0] })).status, 200);
    const asked = (await w.call(w.root, 'GET', '/audit?action=admin.second_factor_asked&limit=50')).json
      .items as unknown[];
    t.equal(asked.length, 21, 'each right password that was asked for more is audited');
  },
);

t.test('a question counts for its purpose, and its own session', async t => {
  const w = await world(t);
  await w.addApp(w.root);
  const { continuation } = (await w.logIn()).json;
  t.equal((await w.call(w.root, 'PUT', '/auth/totp', { continuation, code: '123456' })).status, 409);
  const passkey = {
    ...{ id: 'AAAA', rawId: 'AAAA', type: 'public-key', clientExtensionResults: {} },
    response: { clientDataJSON: 'AAAA', authenticatorData: 'AAAA', signature: 'AAAA' },
  };
  t.equal((await w.call(w.root, 'POST', '/auth/confirm', { continuation, passkey })).status, 409);
  const begun = (await w.call(w.root, 'POST', '/auth/totp/begin')).json.continuation;
  t.match((await w.complete({ continuation: begun, code: '123456' })).json, {
    status: 401,
    detail: /not completed in time/,
  });
});

t.test('a passkey instead of the password needs the proof of our page in a session of a browser', async t => {
  const w = await world(t);
  const jar = new CookieJar();
  const browser = { 'sec-fetch-site': 'same-origin', 'sec-fetch-dest': 'empty', host: 'localhost' };
  const login = { email: EMAIL, password: PASSWORD };
  jar.take((await w.call(browser, 'POST', '/auth/login', login)).headers);
  const headers = { ...browser, ...jar.header };
  t.match((await w.call(headers, 'POST', '/auth/confirm/passkey')).json, { status: 403, code: 'page_proof_required' });
  const passkey = {
    ...{ id: 'AAAA', rawId: 'AAAA', type: 'public-key', clientExtensionResults: {} },
    response: { clientDataJSON: 'AAAA', authenticatorData: 'AAAA', signature: 'AAAA' },
  };
  t.match((await w.call(headers, 'POST', '/auth/confirm', { continuation: 'x', passkey })).json, {
    status: 403,
    code: 'page_proof_required',
  });
  t.equal(
    (await w.call(headers, 'POST', '/auth/confirm', { password: PASSWORD })).status,
    200,
    'a password needs none',
  );
});

t.test('of two factors that are removed at once one stays where one is required', async t => {
  const w = await world(t, { BOT_ADMIN_SECOND_FACTOR: 'required' });
  await w.addApp(w.root);
  for (let k = 0; k < 5; k++) {
    await w.db.query(
      `INSERT INTO admin_passkeys (global_user_id, name, rp_id, credential_id, public_key, sign_count, transports)
       VALUES (1, 'k', 'localhost', 'c' || $1::int, '\\x00', 0, '{}')`,
      [k],
    );
    const { rows } = await w.db.query<{ id: string }>('SELECT max(id) AS id FROM admin_passkeys');
    await Promise.all([
      w.call(w.root, 'DELETE', '/auth/totp'),
      w.call(w.root, 'DELETE', `/auth/passkeys/${rows[0]?.id}`),
    ]);
    const left = (await w.call(w.root, 'GET', '/auth/second-factor')).json;
    t.ok(left.totp_since !== null || (left.passkeys as unknown[]).length > 0, `round ${k}`);
    if (left.totp_since === null) await w.addApp(w.root);
  }
});

t.test('the first factor ends the other sessions, and setup mode has no own account', async t => {
  const w = await world(t);
  const other = new CookieJar();
  other.take((await w.logIn()).headers);
  t.equal((await w.call(other.header, 'GET', '/plugins')).status, 200);
  await w.addApp(w.root);
  t.equal((await w.call(other.header, 'GET', '/plugins')).status, 401);
  t.equal((await w.call(w.root, 'GET', '/plugins')).status, 200);
  const empty = await startTestService();
  t.teardown(() => empty.stop());
  for (const [method, where] of [
    ['GET', '/auth/second-factor'],
    ['POST', '/auth/totp/begin'],
    ['POST', '/auth/recovery-codes'],
  ] as const)
    t.match((await empty.admin(method, where)).json, { status: 409, detail: /make the first administrator first/ });
});

t.test(
  'a temporary password and a second factor: first both, then a password of their own, then everything else',
  async t => {
    const w = await world(t);
    const ada = await appointSecondAdmin(w.s, w.db, w.root, PASSWORD, { roles: ['operator'] });
    const { code } = await w.addApp(ada.headers);
    const { password } = await resetPasswordHere(w.db, ada.email, ACTOR);
    t.equal((await w.call(ada.headers, 'GET', '/plugins')).status, 401, 'the sessions have ended, the factor stays');
    const logIn = (text: string) => w.call({}, 'POST', '/auth/login', { email: ada.email, password: text });

    const [asked, again] = [await logIn(password), await logIn(password)];
    t.match(asked.json, { status: 401, code: 'second_factor_required', methods: ['totp', 'recovery_code'] });
    t.equal(asked.headers.getSetCookie().length, 0, 'no session without the factor');
    const change = { current_password: password, new_password: 'a password of my own' };
    t.equal((await w.call({}, 'PUT', '/auth/password', change)).status, 401, 'nor a new password');
    const { continuation } = asked.json;
    t.match((await w.complete({ continuation, code: '000000' })).json, { status: 401, attempts_left: 4 });
    await w.forgetFailures();
    const opened = await w.complete({ continuation, code: code(1) });
    t.match(opened.json, { admin: { email: ada.email, must_change_password: true, must_add_second_factor: false } });
    const jar = new CookieJar();
    jar.take(opened.headers);

    const late = { status: 401, detail: /not completed in time/ };
    const second = { continuation: again.json.continuation, recovery_code: 'none' };
    t.match((await w.complete({ ...second })).json, { status: 401 });
    await w.forgetFailures();
    t.match(
      (await logIn(password)).json,
      { status: 401, code: 'unauthorized' },
      'the temporary password has opened once',
    );
    await w.forgetFailures();

    const must = { status: 403, code: 'password_change_required' };
    for (const [method, where] of [
      ['GET', '/plugins'],
      ['GET', '/auth/second-factor'],
      ['POST', '/auth/totp/begin'],
      ['DELETE', '/auth/totp'],
      ['POST', '/auth/recovery-codes'],
    ] as const)
      t.match((await w.call(jar.header, method, where)).json, must, `${method} ${where}`);
    t.match((await w.call(jar.header, 'GET', '/auth/check')).json, { admin: { must_change_password: true } });
    const changed = await w.call(jar.header, 'PUT', '/auth/password', change);
    t.match(changed.json, { admin: { must_change_password: false } });
    jar.take(changed.headers);
    t.equal((await w.call(jar.header, 'GET', '/plugins')).status, 200);
    t.match((await w.call(jar.header, 'GET', '/auth/second-factor')).json, { totp_since: /^\d{4}-/ }, 'as before');
    t.match((await w.complete({ ...second, recovery_code: 'x' })).json, late, 'what was asked for before is void');
    t.match((await logIn(change.new_password)).json, { code: 'second_factor_required' });
  },
);

t.test(
  'a temporary password opens one login, whichever question is answered first, and none when it has lapsed',
  async t => {
    const w = await world(t);
    const ada = await appointSecondAdmin(w.s, w.db, w.root, PASSWORD, { roles: ['operator'] });
    const { codes } = await w.addApp(ada.headers);
    const { password } = await resetPasswordHere(w.db, ada.email, ACTOR);
    const logIn = () => w.call({}, 'POST', '/auth/login', { email: ada.email, password });
    const questions = [(await logIn()).json.continuation, (await logIn()).json.continuation];
    const answers = await Promise.all(
      questions.map((continuation, k) => w.complete({ continuation, recovery_code: codes[k] })),
    );
    t.same(answers.map(a => a.status).sort(), [200, 401]);
    await w.forgetFailures();

    const next = await resetPasswordHere(w.db, ada.email, ACTOR);
    const asked = await w.call({}, 'POST', '/auth/login', { email: ada.email, password: next.password });
    await w.db.query("UPDATE admin_credentials SET temporary_until = now() - interval '1 second'");
    const { continuation } = asked.json;
    t.match((await w.complete({ continuation, recovery_code: codes[2] })).json, {
      status: 401,
      detail: /not completed in time/,
    });
    t.match(
      (await w.call({}, 'POST', '/auth/login', { email: ada.email, password: next.password })).json,
      { status: 401, code: 'unauthorized', detail: 'email or password is wrong' },
      'a password that has lapsed is not asked for more',
    );
  },
);

t.test('of two logins with one temporary password the one that began first and waited gets nothing', async t => {
  const w = await world(t);
  const ada = await appointSecondAdmin(w.s, w.db, w.root, PASSWORD, { roles: ['operator'] });
  await resetPasswordHere(w.db, ada.email, ACTOR);
  const { rows } = await w.db.query<{ id: string; hash: string }>(
    'SELECT global_user_id AS id, password_hash AS hash FROM admin_credentials WHERE email = $1',
    [ada.email],
  );
  const [userId, hash] = [Number(rows[0]?.id), rows[0]?.hash ?? ''];
  const first = await w.db.pool.connect();
  t.teardown(() => first.release(true));
  await first.query('BEGIN');
  t.equal(await w.db.withTransaction(second => useTemporaryPassword(second, userId, hash)), true);
  t.equal(await useTemporaryPassword(first, userId, hash), false);
});

t.test(
  'where a second factor is required, a temporary password is changed first and the factor added then',
  async t => {
    const w = await world(t, { BOT_ADMIN_SECOND_FACTOR: 'required' });
    await w.addApp(w.root);
    const user = await w.call(w.root, 'POST', '/users', { display_name: 'Ada' });
    const email = 'ada@uni.example';
    t.equal((await w.call(w.root, 'POST', '/admins', { global_user_id: user.json.id, email })).status, 201);
    const { password } = await resetPasswordHere(w.db, email, ACTOR);
    const opened = await w.call({}, 'POST', '/auth/login', { email, password });
    t.match(opened.json, { admin: { must_change_password: true, must_add_second_factor: true } });
    const jar = new CookieJar();
    jar.take(opened.headers);
    const first = { status: 403, code: 'password_change_required' };
    t.match((await w.call(jar.header, 'GET', '/plugins')).json, first);
    t.match((await w.call(jar.header, 'POST', '/auth/totp/begin')).json, first, 'a factor is not added before');
    const change = { current_password: password, new_password: 'a password of my own' };
    jar.take((await w.call(jar.header, 'PUT', '/auth/password', change)).headers);
    t.match((await w.call(jar.header, 'GET', '/plugins')).json, { status: 403, code: 'second_factor_setup_required' });
    await w.addApp(jar.header);
    t.equal((await w.call(jar.header, 'GET', '/plugins')).status, 200);
  },
);
