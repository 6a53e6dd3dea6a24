import t from 'tap';
import { SECOND_FACTOR_LIMITS } from '../../src/identity/second-factor-limits.ts';
import { Authenticator, type Deviation } from '../support/authenticator.ts';
import { CookieJar } from '../support/identity-provider.ts';
import { ROOT_EMAIL, ROOT_PASSWORD, startWithRoot } from '../support/root-admin.ts';
import { appointSecondAdmin } from '../support/second-admin.ts';
import { type Answer, pageProof } from '../support/service.ts';

/**
 * Passkeys of administrators (docs/identity.md "Second factor"), with an authenticator in software that can be made to lie.
 * How they work in a browser: test/pages/stories/second-factor.ts.
 */

const HOST = 'passkeys.uni.example';
const ORIGIN = `https://${HOST}`;

/** @param publicUrl `http.public_url`; empty for none, so that the host name of the request counts */
async function world(t: { teardown(fn: () => unknown): void }, publicUrl = '') {
  const w = await startWithRoot(t, { BOT_HTTP_PUBLIC_URL: publicUrl }, { host: HOST });
  const { call, db, root } = w;
  /** The first half of an enrolment. */
  const begin = async (headers = root): Promise<Record<string, unknown>> => {
    const begun = await call(headers, 'POST', '/auth/passkeys/begin');
    if (begun.status !== 200) throw new Error(begun.text);
    return begun.json;
  };
  const add = (begun: Record<string, unknown>, response: unknown, headers = root): Promise<Answer> =>
    call(headers, 'POST', '/auth/passkeys', { continuation: begun.continuation, name: 'Key', response });
  /** An authenticator with a passkey of an administrator. */
  const enrol = async (headers = root): Promise<Authenticator> => {
    const authenticator = new Authenticator(ORIGIN);
    const begun = await begin(headers);
    const added = await add(begun, authenticator.make(begun.options), headers);
    if (added.status !== 201) throw new Error(added.text);
    return authenticator;
  };
  /** A right password, and what the service asks for then. */
  const ask = async (email = ROOT_EMAIL, host = HOST): Promise<Record<string, unknown>> => {
    const asked = await call({ host }, 'POST', '/auth/login', { email, password: ROOT_PASSWORD });
    if (asked.json.code !== 'second_factor_required') throw new Error(asked.text);
    return asked.json;
  };
  const complete = (continuation: unknown, passkey: unknown, host = HOST): Promise<Answer> =>
    call({ host }, 'POST', '/auth/login/second-factor', { continuation, passkey });
  /** A whole login with an answer that deviates; failures do not slow down the next one. */
  const logIn = async (authenticator: Authenticator, as: Deviation = {}): Promise<Answer> => {
    const { continuation, passkey_options } = await ask();
    const answer = await complete(continuation, authenticator.use(passkey_options, as));
    await w.forgetFailures();
    return answer;
  };
  const stored = async (): Promise<{ sign_count: number; is_used: boolean }> => {
    const { rows } = await db.query<{ sign_count: number; is_used: boolean }>(
      'SELECT sign_count::int, last_used_at IS NOT NULL AS is_used FROM admin_passkeys ORDER BY id',
    );
    return rows[0] ?? { sign_count: -1, is_used: false };
  };
  return { ...w, begin, add, enrol, ask, complete, logIn, stored };
}

const REFUSED = { status: 401, code: 'unauthorized', attempts_left: 4 };

t.test('a passkey completes a login, and stands in the audit log with it', async t => {
  const w = await world(t);
  const authenticator = await w.enrol();
  t.match(await w.newest('admin.add_passkey'), { after: { name: 'Key', host: HOST } });
  t.same(await w.stored(), { sign_count: 1, is_used: false });
  const opened = await w.logIn(authenticator);
  t.match(opened.json, { admin: { email: ROOT_EMAIL } });
  t.same(await w.stored(), { sign_count: 2, is_used: true });
  t.match(await w.newest('admin.login'), { after: { second_factor: 'passkey' } });
});

t.test('a sign counter that does not grow is refused, because the authenticator may be a copy', async t => {
  const w = await world(t);
  const authenticator = await w.enrol();
  t.equal((await w.logIn(authenticator, { counter: 7 })).status, 200);
  for (const counter of [7, 6, 0]) {
    t.match((await w.logIn(authenticator, { counter })).json, REFUSED, `${counter} after 7`);
    t.equal((await w.stored()).sign_count, 7, 'what was refused is not counted');
  }
  const failed = (await w.call(w.root, 'GET', '/audit?action=admin.second_factor_failed')).json.items as unknown[];
  t.equal(failed.length, 3, 'each is audited');
  t.match(failed[0], { actor: { kind: 'anonymous' }, object_id: String(w.rootId) });
  t.equal((await w.logIn(authenticator, { counter: 8 })).status, 200, 'the one that counts on goes on');
  t.equal((await w.stored()).sign_count, 8);
});

t.test('an authenticator that does not count always says 0, and is taken', async t => {
  const w = await world(t);
  const authenticator = new Authenticator(ORIGIN);
  const begun = await w.begin();
  t.equal((await w.add(begun, authenticator.make(begun.options, { counter: 0 }))).status, 201);
  for (let k = 0; k < 2; k++) t.equal((await w.logIn(authenticator, { counter: 0 })).status, 200);
});

/** What a page or an authenticator that is not the right one answers. */
const WRONG: ReadonlyArray<[string, Deviation]> = [
  ['an authenticator that does not know its user', { isVerified: false }],
  ['a page of another site', { origin: 'https://evil.example' }],
  ['a page of a host below', { origin: `https://evil.${HOST}` }],
  ['a page at another port', { origin: `${ORIGIN}:8443` }],
  ['an authenticator that signs for another site', { rpId: 'evil.example' }],
  ['an authenticator that signs for the domain above', { rpId: 'uni.example' }],
  ['another challenge', { challenge: Buffer.alloc(32, 1).toString('base64url') }],
];

for (const publicUrl of ['', ORIGIN])
  t.test(`${publicUrl === '' ? 'without' : 'with'} http.public_url a passkey counts at its own site alone`, async t => {
    const w = await world(t, publicUrl);
    for (const [what, as] of [...WRONG, ['an answer of the other kind', { type: 'webauthn.get' } as const]] as const) {
      const begun = await w.begin();
      const refused = await w.add(begun, new Authenticator(ORIGIN).make(begun.options, as));
      t.match(refused.json, { status: 422, errors: [{ pointer: '/response' }] }, `${what} makes none`);
    }
    t.same((await w.call(w.root, 'GET', '/auth/second-factor')).json.passkeys, []);
    const authenticator = await w.enrol();
    for (const [what, as] of [...WRONG, ['an answer of the other kind', { type: 'webauthn.create' } as const]] as const)
      t.match((await w.logIn(authenticator, as)).json, REFUSED, `${what} completes no login`);
    for (const [what, as] of WRONG) {
      const asked = await w.call(w.root, 'POST', '/auth/confirm/passkey');
      const passkey = authenticator.use(asked.json.options, as);
      t.match(
        (await w.call(w.root, 'POST', '/auth/confirm', { continuation: asked.json.continuation, passkey })).json,
        { status: 422, errors: [{ pointer: '/passkey' }] },
        `${what} is no recent password`,
      );
    }
    t.equal((await w.logIn(authenticator)).status, 200, 'the right page is let in after all of them');
    t.equal(
      (await w.logIn(authenticator, { origin: `http://${HOST}` })).status,
      publicUrl === '' ? 200 : 401,
      'http is another origin than the public address; without one a proxy may have ended TLS',
    );
  });

t.test('a passkey is not asked for, and not taken, at another host name', async t => {
  const evil = { origin: 'https://evil.example', rpId: 'evil.example' };
  for (const publicUrl of ['', ORIGIN]) {
    const w = await world(t, publicUrl);
    const authenticator = await w.enrol();
    const there = await w.ask(ROOT_EMAIL, 'evil.example');
    t.match(there, { methods: ['recovery_code'], passkey_options: null });
    const right = await w.ask();
    // A name that was pointed to this service: the browser signs for that name.
    const answer = authenticator.use(right.passkey_options, evil);
    t.match((await w.complete(right.continuation, answer, 'evil.example')).json, REFUSED);
    await w.forgetFailures();
    t.match((await w.complete(there.continuation, authenticator.use(right.passkey_options))).json, REFUSED);
    t.match((await w.call({ ...w.root, host: 'evil.example' }, 'POST', '/auth/confirm/passkey')).json, {
      status: 409,
    });
  }
});

t.test('a challenge counts once', async t => {
  const w = await world(t);
  // One that does not count, so that its counter does not give a repetition away.
  const authenticator = new Authenticator(ORIGIN);
  const uncounted = { counter: 0 };
  const begun = await w.begin();
  const made = authenticator.make(begun.options, uncounted);
  t.equal((await w.add(begun, made)).status, 201);
  t.match((await w.add(begun, made)).json, { status: 409, detail: /begin again/ });

  const { continuation, passkey_options } = await w.ask();
  const used = authenticator.use(passkey_options, uncounted);
  // At the same time, as from a browser and from a copy of what it sent.
  const both = await Promise.all([w.complete(continuation, used), w.complete(continuation, used)]);
  t.same(both.map(a => a.status).sort(), [200, 401]);
  await w.forgetFailures();
  t.match((await w.complete(continuation, used)).json, { status: 401, detail: /not completed in time/ });
  const next = await w.ask();
  t.match((await w.complete(next.continuation, used)).json, REFUSED, 'nor does it answer another question');

  const asked = (await w.call(w.root, 'POST', '/auth/confirm/passkey')).json;
  const answer = { continuation: asked.continuation, passkey: authenticator.use(asked.options, uncounted) };
  t.equal((await w.call(w.root, 'POST', '/auth/confirm', answer)).status, 200);
  t.match((await w.call(w.root, 'POST', '/auth/confirm', answer)).json, { status: 409, detail: /ask again/ });
});

t.test('a passkey that does not fit uses the question of a confirmation up, and is audited', async t => {
  const w = await world(t);
  const authenticator = await w.enrol();
  const { continuation, options } = (await w.call(w.root, 'POST', '/auth/confirm/passkey')).json;
  const wrong = { continuation, passkey: authenticator.use(options, { isVerified: false }) };
  t.equal((await w.call(w.root, 'POST', '/auth/confirm', wrong)).status, 422);
  t.match(await w.newest('admin.confirm_failed'), {
    actor: { kind: 'admin', name: ROOT_EMAIL },
    after: { second_factor: 'passkey' },
  });
  const right = { continuation, passkey: authenticator.use(options) };
  t.equal((await w.call(w.root, 'POST', '/auth/confirm', right)).status, 409);
});

t.test('a passkey is of one administrator', async t => {
  const w = await world(t);
  const second = await appointSecondAdmin(w.s, w.db, w.root, ROOT_PASSWORD, { roles: ['auditor'] });
  const headers = { host: HOST, ...second.headers };
  const [mine, theirs] = [await w.enrol(), await w.enrol(headers)];
  const { continuation, passkey_options } = await w.ask();
  t.same(
    (passkey_options as { allowCredentials: unknown[] }).allowCredentials.length,
    1,
    'those of others are not named',
  );
  t.match((await w.complete(continuation, theirs.use(passkey_options))).json, REFUSED);
  await w.forgetFailures();
  const begun = await w.begin(headers);
  t.match((await w.add(begun, mine.make(begun.options), headers)).json, { status: 422 }, 'one is not added twice');
  const { passkeys } = (await w.call(w.root, 'GET', '/auth/second-factor')).json as { passkeys: Array<{ id: number }> };
  t.equal((await w.call(headers, 'DELETE', `/auth/passkeys/${passkeys[0]?.id}`)).status, 404);
  t.equal((await w.logIn(mine)).status, 200);
});

t.test('an administrator has a bounded number of passkeys, also when two are added at once', async t => {
  const w = await world(t);
  const max = SECOND_FACTOR_LIMITS.passkeysMax;
  await w.db.query(
    `INSERT INTO admin_passkeys (global_user_id, name, rp_id, credential_id, public_key, sign_count, transports)
     SELECT $1, 'k' || n, 'passkeys.uni.example', 'c' || n, '\\x00', 0, '{}' FROM generate_series(1, $2) AS n`,
    [w.rootId, max - 1],
  );
  const halves = [await w.begin(), await w.begin()];
  const added = await Promise.all(halves.map(half => w.add(half, new Authenticator(ORIGIN).make(half.options))));
  t.same(added.map(a => a.status).sort(), [201, 409]);
  const full = { status: 409, detail: `you have ${max} passkeys, at most ${max}; remove one` };
  t.match(added.find(a => a.status === 409)?.json, full);
  t.match((await w.call(w.root, 'POST', '/auth/passkeys/begin')).json, full);
  const { passkeys } = (await w.call(w.root, 'GET', '/auth/second-factor')).json as { passkeys: Array<{ id: number }> };
  t.equal(passkeys.length, max);
  t.equal((await w.call(w.root, 'DELETE', `/auth/passkeys/${passkeys[0]?.id}`)).status, 204);
  t.equal((await w.call(w.root, 'POST', '/auth/passkeys/begin')).status, 200);
});

t.test('a passkey is a recent password in the session that asked', async t => {
  const w = await world(t);
  const authenticator = await w.enrol();
  const other = new CookieJar();
  other.take((await w.logIn(authenticator)).headers);
  const { continuation, options } = (await w.call(w.root, 'POST', '/auth/confirm/passkey')).json;
  const answer = { continuation, passkey: authenticator.use(options) };
  await w.db.query("UPDATE sessions SET password_at = now() - interval '11 minutes'");
  const stale = { status: 403, code: 'password_confirmation_required' };
  t.match((await w.call(w.root, 'POST', '/auth/recovery-codes')).json, stale);
  const there = { host: HOST, ...other.header };
  t.match((await w.call(there, 'POST', '/auth/confirm', answer)).json, { status: 409, detail: /in another session/ });
  t.equal((await w.call(w.root, 'POST', '/auth/confirm', answer)).status, 200);
  t.equal((await w.call(w.root, 'POST', '/auth/recovery-codes')).status, 200);
  t.match((await w.call(there, 'POST', '/auth/recovery-codes')).json, stale, 'the other session is as it was');
});

/** A login with a passkey alone, from a browser with these cookies. */
async function alone(w: Awaited<ReturnType<typeof world>>, authenticator: Authenticator, browser: CookieJar) {
  const headers = { host: HOST, ...browser.header };
  const begun = await w.call(headers, 'POST', '/auth/login/passwordless/begin');
  if (begun.status !== 200) throw new Error(begun.text);
  const { continuation, passkey_options } = begun.json;
  return { body: { continuation, passkey: authenticator.use(passkey_options) }, headers };
}

t.test('a passkey alone opens a browser in which its owner has logged in since it was made', async t => {
  const w = await world(t);
  const authenticator = await w.enrol();
  const browser = new CookieJar();
  browser.take((await w.logIn(authenticator)).headers);
  const may = async (headers: Record<string, string>) =>
    (await w.call(headers, 'GET', '/auth/check')).json.passwordless;
  t.same(await may({ host: HOST, ...browser.header }), ['passkey', 'recovery_code']);
  const { body, headers } = await alone(w, authenticator, browser);
  const opened = await w.call(headers, 'POST', '/auth/login/passwordless', body);
  t.match(opened.json, { admin: { email: ROOT_EMAIL, must_change_password: false } });
  t.match(await w.newest('admin.login'), { after: { instead_of_password: 'passkey' } });
  browser.take(opened.headers);
  t.same(
    opened.headers
      .getSetCookie()
      .map(c => c.split('=')[0])
      .sort(),
    [...['admin_session', 'known_browser', 'user_session']],
  );
  t.match((await w.call(headers, 'POST', '/auth/login/passwordless', body)).json, { status: 401 }, 'it counts once');

  // A page of a plugin that asked for the passkey has a session in this browser now, and not the proof of our pages.
  const session = { host: HOST, ...browser.header };
  t.equal('page_proof' in opened.json, false);
  t.match((await w.call(session, 'GET', '/admins')).json, { status: 403, code: 'page_proof_required' });
  const confirmed = await w.call(session, 'POST', '/auth/confirm', { password: ROOT_PASSWORD });
  const proven = { ...session, 'x-page-proof': String(confirmed.json.page_proof) };
  t.equal((await w.call(proven, 'GET', '/admins')).status, 200, 'with it the session is like any other');
  t.equal((await w.call(proven, 'POST', '/auth/recovery-codes')).status, 200, 'and a passkey is a recent password');
});

t.test('what a passkey signed elsewhere opens nothing without the cookie of a known browser', async t => {
  const w = await world(t);
  const authenticator = await w.enrol();
  const made = (await w.call(w.root, 'POST', '/auth/recovery-codes')).json as { recovery_codes: string[] };
  const browser = new CookieJar();
  browser.take((await w.logIn(authenticator)).headers);
  const stranger = { host: HOST };
  const none = { status: 409, detail: /log in with the password/ };
  t.match((await w.call(stranger, 'POST', '/auth/login/passwordless/begin')).json, none);
  t.same((await w.call(stranger, 'GET', '/auth/check')).json.passwordless, []);
  const forged = { ...stranger, cookie: 'known_browser=AAAA' };
  t.match((await w.call(forged, 'POST', '/auth/login/passwordless/begin')).json, none);

  // A page of a plugin in that browser takes the question and the answer out of it.
  const { body } = await alone(w, authenticator, browser);
  const elsewhere = { status: 401, detail: /in which the login was begun/ };
  const second = await appointSecondAdmin(w.s, w.db, w.root, ROOT_PASSWORD, { roles: ['auditor'] });
  const theirs = { host: HOST, ...second.headers };
  const otherPort = { ...browser.header, host: `${HOST}:8443` };
  for (const headers of [stranger, forged, theirs, otherPort])
    t.match((await w.call(headers, 'POST', '/auth/login/passwordless', body)).json, elsewhere);
  t.match((await w.call(theirs, 'POST', '/auth/login/passwordless/begin')).json, none, 'one without a passkey');
  t.match(
    (await w.call(otherPort, 'POST', '/auth/login/passwordless/begin')).json,
    none,
    'every port has the cookies of a host',
  );
  const { rows } = await w.db.query('SELECT 1 FROM login_failures');
  t.equal(rows.length, 0, 'what strangers send slows the administrator down nowhere');

  // Neither question answers the other, and no code or recovery code stands for the passkey.
  const question = await alone(w, authenticator, browser);
  const { continuation, passkey } = question.body;
  t.match((await w.complete(continuation, passkey)).json, { status: 401, detail: /not completed in time/ });
  const half = await w.ask();
  const crossed = { continuation: half.continuation, passkey: authenticator.use(half.passkey_options) };
  t.match((await w.call(question.headers, 'POST', '/auth/login/passwordless', crossed)).json, {
    ...{ status: 401, detail: /not completed in time/ },
  });
  const code = { continuation, recovery_code: made.recovery_codes[0] };
  t.equal((await w.call(question.headers, 'POST', '/auth/login/second-factor', code)).status, 401);
  t.equal(
    (await w.call(question.headers, 'POST', '/auth/login/passwordless', question.body)).status,
    200,
    'it still waits',
  );
});

t.test('wrong answers of a passkey alone leave the codes and the password of the account as they were', async t => {
  const w = await world(t);
  const authenticator = await w.enrol();
  const browser = new CookieJar();
  browser.take((await w.logIn(authenticator)).headers);
  const { body, headers } = await alone(w, authenticator, browser);
  const wrong = { ...body, passkey: { ...body.passkey, response: { ...body.passkey.response, signature: 'AAAA' } } };
  t.match((await w.call(headers, 'POST', '/auth/login/passwordless', wrong)).json, REFUSED);
  t.match(await w.newest('admin.login_failed'), { after: { passwordless: true } });
  t.equal(await w.newest('admin.second_factor_failed'), undefined, 'no password was right');
  t.match(
    (await w.call(headers, 'POST', '/auth/login/passwordless', body)).json,
    { status: 429 },
    'it slows itself down',
  );
  const login = { email: ROOT_EMAIL, password: ROOT_PASSWORD };
  const asked = await w.call(headers, 'POST', '/auth/login', login);
  t.match(asked.json, { code: 'second_factor_required' });
  const passkey = authenticator.use(asked.json.passkey_options);
  const half = { continuation: asked.json.continuation, passkey };
  t.equal((await w.call(headers, 'POST', '/auth/login/second-factor', half)).status, 200);
});

t.test('a browser of before the passkey or before the password of now opens nothing with a passkey alone', async t => {
  const w = await world(t);
  const before = new CookieJar();
  const login = { email: ROOT_EMAIL, password: ROOT_PASSWORD };
  before.take((await w.call({ host: HOST }, 'POST', '/auth/login', login)).headers);
  const authenticator = await w.enrol();
  const begin = (jar: CookieJar) => w.call({ host: HOST, ...jar.header }, 'POST', '/auth/login/passwordless/begin');
  t.equal((await begin(before)).status, 409, 'who knew the password alone');
  const browser = new CookieJar();
  browser.take((await w.logIn(authenticator)).headers);
  const { body, headers } = await alone(w, authenticator, browser);
  const own = new CookieJar();
  own.take((await w.logIn(authenticator)).headers);
  const change = { current_password: ROOT_PASSWORD, new_password: 'another horse, another battery' };
  const changed = await w.call({ host: HOST, ...own.header }, 'PUT', '/auth/password', change);
  t.equal(changed.status, 200);
  own.take(changed.headers);
  t.match((await w.call(headers, 'POST', '/auth/login/passwordless', body)).json, { status: 401 });
  t.equal((await begin(browser)).status, 409);
  t.equal((await begin(own)).status, 200, 'the one that changed it goes on');
  await w.db.query('UPDATE admin_credentials SET must_change_password = true');
  t.equal((await begin(own)).status, 409, 'a temporary password is changed first');
  await w.db.query('UPDATE admin_credentials SET must_change_password = false');
  const left = await alone(w, authenticator, own);
  await w.db.query('DELETE FROM admin_passkeys');
  t.same((await w.call(left.headers, 'GET', '/auth/check')).json.passwordless, ['recovery_code']);
  t.match((await w.call(left.headers, 'POST', '/auth/login/passwordless', left.body)).json, { status: 401 });
  await w.db.query('DELETE FROM admin_recovery_codes');
  t.equal((await begin(own)).status, 409);
  t.same((await w.call(left.headers, 'GET', '/auth/check')).json.passwordless, []);
});

t.test('a recovery code alone opens a browser in which its owner has logged in since it was made, once', async t => {
  const w = await world(t);
  const authenticator = await w.enrol();
  const browser = new CookieJar();
  browser.take((await w.logIn(authenticator)).headers);
  const made = (await w.call(w.root, 'POST', '/auth/recovery-codes')).json as { recovery_codes: string[] };
  const begin = async (jar: CookieJar) =>
    (await w.call({ host: HOST, ...jar.header }, 'POST', '/auth/login/passwordless/begin')).json;
  const give = async (jar: CookieJar, continuation: unknown, code: string | undefined) =>
    await w.call({ host: HOST, ...jar.header }, 'POST', '/auth/login/passwordless', {
      ...{ continuation, recovery_code: code },
    });
  const [first, second] = made.recovery_codes;
  t.match(await begin(browser), { status: 409 }, 'the codes are newer than the login');
  browser.take((await w.logIn(authenticator)).headers);

  const { continuation, methods } = await begin(browser);
  t.same(methods, ['passkey', 'recovery_code']);
  const elsewhere = { status: 401, detail: /in which the login was begun/ };
  t.match((await give(new CookieJar(), continuation, first)).json, elsewhere);
  t.match((await give(browser, continuation, 'aaaaa-aaaaa')).json, REFUSED);
  await w.forgetFailures();
  const opened = await give(browser, continuation, first);
  t.match(opened.json, { admin: { email: ROOT_EMAIL } });
  t.equal('page_proof' in opened.json, false);
  t.match(await w.newest('admin.login'), { after: { instead_of_password: 'recovery_code' } });
  browser.take(opened.headers);
  const again = await begin(browser);
  t.match((await give(browser, again.continuation, first)).json, REFUSED, 'it works once');
  await w.forgetFailures();

  // The session needs the proof of our pages, and the password for what asks for a recent one.
  const session = { host: HOST, ...browser.header };
  t.match((await w.call(session, 'GET', '/admins')).json, { status: 403, code: 'page_proof_required' });
  const proven = { ...session, 'x-page-proof': await pageProof(w.s.base, '/admin/', session) };
  t.equal((await w.call(proven, 'GET', '/admins')).status, 200);
  t.match((await w.call(proven, 'POST', '/auth/recovery-codes')).json, {
    status: 403,
    code: 'password_confirmation_required',
  });

  const { passkey } = (await alone(w, authenticator, browser)).body;
  // Where there is no passkey none is asked for, and none is taken: not one that signed nothing.
  await w.db.query('DELETE FROM admin_passkeys');
  const left = await begin(browser);
  t.same(left, { continuation: left.continuation, methods: ['recovery_code'], passkey_options: null });
  t.equal((await give(browser, left.continuation, second)).status, 200);
  const invalid = { status: 422, errors: [{ message: 'must have either passkey or recovery_code' }] };
  for (const answer of [{}, { recovery_code: second, passkey }]) {
    const body = { continuation: left.continuation, ...answer };
    t.match((await w.call(session, 'POST', '/auth/login/passwordless', body)).json, invalid);
  }
});

t.test('a passkey that signed an empty question opens nothing where none was asked for', async t => {
  const w = await world(t, ORIGIN);
  const authenticator = await w.enrol();
  const browser = new CookieJar();
  browser.take((await w.logIn(authenticator)).headers);
  // A page of another host has no passkeys, so that it is asked for a recovery code alone.
  const headers = { host: HOST, origin: 'https://other.example', 'sec-fetch-site': 'same-origin', ...browser.header };
  const begun = await w.call(headers, 'POST', '/auth/login/passwordless/begin');
  t.match(begun.json, { methods: ['recovery_code'], passkey_options: null });
  const { passkey_options } = (
    await w.call({ host: HOST, ...browser.header }, 'POST', '/auth/login/passwordless/begin')
  ).json as { passkey_options: object };
  const body = {
    continuation: begun.json.continuation,
    passkey: authenticator.use({ ...passkey_options, challenge: '' }),
  };
  const given = await w.call({ host: HOST, ...browser.header }, 'POST', '/auth/login/passwordless', body);
  t.match(given.json, REFUSED);
});

t.test('sessions that are ended, and new factors, let no browser in without the password', async t => {
  const w = await world(t);
  const authenticator = await w.enrol();
  const browser = new CookieJar();
  const logIn = async () => browser.take((await w.logIn(authenticator)).headers);
  const begin = () => w.call({ host: HOST, ...browser.header }, 'POST', '/auth/login/passwordless/begin');
  const may = async () => (await begin()).status === 200;
  await logIn();
  t.equal(await may(), true);
  await w.call({ host: HOST, ...browser.header }, 'POST', '/auth/logout');
  t.equal(await may(), true, 'a logout leaves the browser known');

  const root = { ...w.root };
  for (const [what, change] of [
    ['another passkey', () => w.enrol(root)],
    ['new codes', () => w.call(root, 'POST', '/auth/recovery-codes')],
    ['a session that is ended', () => w.call(root, 'DELETE', `/users/${w.rootId}/sessions/1`)],
  ] as const) {
    await logIn();
    t.equal(await may(), true);
    await change();
    t.equal(await may(), false, what);
  }
  await logIn();
  const { body, headers } = await alone(w, authenticator, browser);
  await w.db.query('UPDATE admin_credentials SET passwordless_after = now()');
  t.match((await w.call(headers, 'POST', '/auth/login/passwordless', body)).json, { status: 401 }, 'begun before');

  // A session that is ended while the answer waits for the row counts as well.
  await logIn();
  const late = await alone(w, authenticator, browser);
  let isAnswered = false;
  let answer: Promise<Answer> | undefined;
  await w.db.withTransaction(async client => {
    await client.query('SELECT FROM admin_credentials FOR UPDATE');
    answer = w.call(late.headers, 'POST', '/auth/login/passwordless', late.body).finally(() => (isAnswered = true));
    const waits = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    // Outside of the transaction, which keeps the list of connections it has seen.
    while (!isAnswered && (await w.db.query(waits)).rowCount === 0);
    t.notOk(isAnswered, 'it waits for the row');
    await client.query('UPDATE admin_credentials SET passwordless_after = clock_timestamp()');
  });
  t.match((await answer)?.json, { status: 401, detail: /in which the login was begun/ });
});
