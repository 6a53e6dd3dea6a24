import { execFile } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import PostalMime from 'postal-mime';
import t from 'tap';
import { openDatabase } from '../../src/db/database.ts';
import { giveUpMail } from '../../src/identity/admin-accounts.ts';
import { temporaryPasswordJob } from '../../src/messaging/temporary-password-job.ts';
import { BARE_ENV } from '../support/bare-env.ts';
import { CookieJar } from '../support/identity-provider.ts';
import { startMailServer } from '../support/mail-server.ts';
import { takePort } from '../support/ports.ts';
import { type Answer, request, startTestService, TOKEN } from '../support/service.ts';

const PASSWORD = 'correct horse battery';
const TEMPORARY = /[a-z2-9]{5}(?:-[a-z2-9]{5}){3}/;

type Jar = { header: Record<string, string> };
type Teardown = { teardown(fn: () => unknown): void };

async function world(t: Teardown, env: Record<string, string> = {}) {
  const s = await startTestService(env);
  t.teardown(() => s.stop());
  const db = openDatabase(s.databaseUrl, 2, () => {});
  t.teardown(() => db.close());
  const call = (jar: Jar | null, method: string, where: string, body?: unknown): Promise<Answer> =>
    request(`${s.base}${where}`, {
      method,
      headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...(jar?.header ?? {}) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  const logIn = async (
    email: string,
    password: string,
  ): Promise<{ status: number; jar: CookieJar; answer: Answer }> => {
    const answer = await call(null, 'POST', '/api/admin/auth/login', { email, password });
    // How callers wait after failures is shown in login.test.ts.
    if (answer.status === 401) await db.query('DELETE FROM login_failures');
    const jar = new CookieJar();
    jar.take(answer.headers);
    return { status: answer.status, jar, answer };
  };
  const first = await request(`${s.base}/api/admin/auth/setup`, {
    method: 'POST',
    headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify({ email: 'root@uni.example', password: PASSWORD, name: 'Root' }),
  });
  const root = new CookieJar();
  root.take(first.headers);
  const addUser = async (body: unknown): Promise<number> => {
    const a = await call(root, 'POST', '/api/admin/users', body);
    if (a.status !== 201) throw new Error(a.text);
    return Number(a.json.id);
  };
  const admin = async (id: number) => {
    const { json } = await call(root, 'GET', '/api/admin/admins');
    const items = json.items as Array<{ global_user_id: number; mail: { state: string; error: string | null } | null }>;
    return items.find(a => a.global_user_id === id);
  };
  /** Asks until the mail of an administrator has come to a state. */
  const mailOf = async (id: number, done: (mail: { state: string; error: string | null }) => boolean) => {
    for (;;) {
      const mail = (await admin(id))?.mail;
      if (mail != null && done(mail)) return mail;
      await new Promise(resolve => setTimeout(resolve, 50));
    }
  };
  return { s, db, call, logIn, root, addUser, admin, mailOf };
}

t.test(
  'an appointed administrator gets a temporary password by mail, which opens once and must be changed',
  async t => {
    const smtp = await startMailServer();
    t.teardown(() => smtp.close());
    const w = await world(t, {
      BOT_SMTP_HOST: '127.0.0.1',
      BOT_SMTP_PORT: String(smtp.port),
      BOT_SMTP_FROM: 'Plugins <plugins@uni.example>',
      BOT_HTTP_PUBLIC_URL: 'http://plugins.uni.example/',
    });
    const ada = await w.addUser({ display_name: 'Ada', locale: 'en' });
    const appointed = await w.call(w.root, 'POST', '/api/admin/admins', {
      global_user_id: ada,
      email: 'ada@uni.example',
      password: 'what legacy clients send',
    });
    t.equal(appointed.status, 201);
    t.match(appointed.json, {
      global_user_id: ada,
      email: 'ada@uni.example',
      must_change_password: true,
      mail: { state: 'pending' },
    });
    const mail = await smtp.nth(0);
    t.match(mail, { from: 'plugins@uni.example', to: ['ada@uni.example'], subject: 'Your access to the plugin host' });
    const password = TEMPORARY.exec(mail.text)?.[0] ?? '';
    t.ok(mail.html.includes(password), 'the password stands in text and HTML');
    t.match(mail.text, /http:\/\/plugins\.uni\.example\/admin\//);
    t.match(mail.html, /<html lang="en">/);
    await w.mailOf(ada, m => m.state === 'sent');
    t.notOk(appointed.text.includes(password), 'the assigning administrator does not see it');
    const { rows: stored } = await w.db.query<{ text: string }>(
      'SELECT a::text AS text FROM admin_credentials a UNION ALL SELECT j::text FROM pgboss.job j UNION ALL SELECT l::text FROM audit_log l',
    );
    t.notOk(
      stored.some(r => r.text.includes(password)),
      'it is stored nowhere',
    );

    t.equal((await w.logIn('ada@uni.example', 'what legacy clients send')).status, 401, 'the legacy field is ignored');
    const { answer, jar, status } = await w.logIn('ADA@uni.example', password);
    t.same(
      [status, answer.json.admin],
      [
        200,
        {
          ...{
            global_user_id: ada,
            email: 'ada@uni.example',
            must_change_password: true,
            must_add_second_factor: false,
          },
          ...{ roles: ['owner'], scopes: ['admin'] },
        },
      ],
    );
    t.equal((await w.logIn('ada@uni.example', password)).status, 401, 'it opens once');
    t.match((await w.call(jar, 'GET', '/api/admin/plugins')).json, { status: 403, code: 'password_change_required' });
    const changed = await w.call(jar, 'PUT', '/api/admin/auth/password', {
      current_password: password,
      new_password: 'a password of my own',
    });
    t.equal(changed.status, 200);
    jar.take(changed.headers);
    t.equal((await w.call(jar, 'GET', '/api/admin/plugins')).status, 200);
    t.equal((await w.logIn('ada@uni.example', 'a password of my own')).status, 200);
    t.equal((await w.logIn('ada@uni.example', password)).status, 401);

    const boris = await w.addUser({ display_name: 'Борис' });
    await w.call(w.root, 'POST', '/api/admin/admins', { global_user_id: boris, email: 'boris@uni.example' });
    const russian = await smtp.nth(1);
    t.match(russian, { subject: 'Доступ к управлению плагинами', text: /Временный пароль: / });
  },
);

t.test(
  'while the mail server is down the administrator sees that the mail is pending; it goes out when the server is back',
  async t => {
    const port = await takePort();
    const w = await world(t, { BOT_SMTP_HOST: '127.0.0.1', BOT_SMTP_PORT: String(port) });
    const ada = await w.addUser({ display_name: 'Ada' });
    const at = await w.call(w.root, 'POST', '/api/admin/admins', { global_user_id: ada, email: 'ada@uni.example' });
    t.equal(at.status, 201, 'a mail server that is down delays no request');
    const pending = await w.mailOf(ada, m => m.error !== null);
    t.match(pending, { state: 'pending', error: /ECONNREFUSED/ });
    const smtp = await startMailServer(port);
    t.teardown(() => smtp.close());
    const password = TEMPORARY.exec((await smtp.nth(0)).text)?.[0] ?? '';
    t.match(await w.mailOf(ada, m => m.state !== 'pending'), { state: 'sent', error: null });
    t.equal((await w.logIn('ada@uni.example', password)).status, 200);
  },
);

t.test('without an SMTP server mail is a file that only the account of the service can read', async t => {
  const w = await world(t);
  const ada = await w.addUser({ display_name: 'Ada' });
  await w.call(w.root, 'POST', '/api/admin/admins', { global_user_id: ada, email: 'ada@uni.example' });
  await w.mailOf(ada, m => m.state === 'sent');
  const directory = path.join(w.s.directory, 'mail');
  const files = fs.readdirSync(directory);
  t.equal(files.length, 1);
  t.match(files[0], /\.eml$/);
  const file = path.join(directory, files[0] ?? '');
  t.equal(fs.statSync(file).mode & 0o777, 0o600);
  const mail = await PostalMime.parse(fs.readFileSync(file));
  t.equal(mail.to?.[0]?.address, 'ada@uni.example');
  t.equal((await w.logIn('ada@uni.example', TEMPORARY.exec(mail.text ?? '')?.[0] ?? '')).status, 200);
});

t.test('wrong appointments are refused by field', async t => {
  const w = await world(t);
  const ada = await w.addUser({ display_name: 'Ada' });
  const bob = await w.addUser({ display_name: 'Bob' });
  const appoint = (body: unknown) => w.call(w.root, 'POST', '/api/admin/admins', body);
  t.equal((await appoint({ global_user_id: ada, email: 'ada@uni.example' })).status, 201);
  const rows: Array<[unknown, number, string]> = [
    [{ global_user_id: 99_999, email: 'x@uni.example' }, 422, '/global_user_id'],
    [{ global_user_id: ada, email: 'x@uni.example' }, 409, '/global_user_id'],
    [{ global_user_id: bob, email: 'ADA@uni.example' }, 409, '/email'],
    [{ global_user_id: bob, email: 'no address' }, 422, '/email'],
    [{ global_user_id: bob, email: 'a@b\r\nBcc: evil@uni.example' }, 422, '/email'],
    [{ global_user_id: '1', email: 'x@uni.example' }, 422, '/global_user_id'],
    [{ email: 'x@uni.example' }, 422, '/global_user_id'],
    [{ global_user_id: bob, email: 'x@uni.example', role: 'root' }, 422, '/role'],
  ];
  for (const [body, status, pointer] of rows) {
    const a = await appoint(body);
    t.match([a.status, a.json.errors], [status, [{ pointer }]], JSON.stringify(body));
  }
  t.equal(
    (await w.call(null, 'POST', '/api/admin/admins', { global_user_id: bob, email: 'b@uni.example' })).status,
    401,
  );
  const { rows: left } = await w.db.query('SELECT 1 FROM admin_credentials');
  t.equal(left.length, 2, 'refused appointments leave nothing behind');
});

t.test(
  'the last administrator cannot be removed, even when two remove each other at once; a removed one loses access at once',
  async t => {
    const w = await world(t);
    const { rows: roots } = await w.db.query<{ id: string }>('SELECT global_user_id AS id FROM admin_credentials');
    const root = Number(roots[0]?.id);
    t.match((await w.call(w.root, 'DELETE', `/api/admin/admins/${root}`)).json, {
      status: 409,
      detail: /last owner/,
    });
    t.equal((await w.call(w.root, 'DELETE', '/api/admin/admins/99999')).status, 404);
    for (let round = 0; round < 3; round++) {
      const ada = await w.addUser({ display_name: `Ada ${round}` });
      await w.call(w.root, 'POST', '/api/admin/admins', { global_user_id: ada, email: `ada${round}@uni.example` });
      const both = await Promise.all([root, ada].map(id => w.call(w.root, 'DELETE', `/api/admin/admins/${id}`)));
      const { rows } = await w.db.query<{ id: string }>('SELECT global_user_id AS id FROM admin_credentials');
      t.equal(rows.length, 1, `one stays: ${both.map(a => a.status).join(', ')}`);
      if (Number(rows[0]?.id) !== root) {
        t.equal((await w.call(w.root, 'GET', '/api/admin/plugins')).status, 401, 'who was removed is out');
        break;
      }
    }
  },
);

t.test(
  'a password is reset by another administrator: the old one and its sessions end, a temporary one is mailed',
  async t => {
    const smtp = await startMailServer();
    t.teardown(() => smtp.close());
    const w = await world(t, { BOT_SMTP_HOST: '127.0.0.1', BOT_SMTP_PORT: String(smtp.port) });
    const ada = await w.addUser({ display_name: 'Ada' });
    await w.call(w.root, 'POST', '/api/admin/admins', { global_user_id: ada, email: 'ada@uni.example' });
    const one = await w.logIn('ada@uni.example', TEMPORARY.exec((await smtp.nth(0)).text)?.[0] ?? '');
    await w.mailOf(ada, m => m.state === 'sent');
    t.match((await w.call(w.root, 'POST', `/api/admin/admins/${ada}/reset-password`)).json, {
      mail: { state: 'pending' },
    });
    t.equal((await w.call(one.jar, 'GET', '/api/admin/auth/check')).json.authenticated, false);
    const two = await w.logIn('ada@uni.example', TEMPORARY.exec((await smtp.nth(1)).text)?.[0] ?? '');
    t.equal(two.status, 200);
    const { rows } = await w.db.query<{ id: string }>(
      "SELECT global_user_id AS id FROM admin_credentials WHERE email LIKE 'root%'",
    );
    t.equal(
      (await w.call(w.root, 'POST', `/api/admin/admins/${rows[0]?.id}/reset-password`)).status,
      409,
      'not the own one',
    );
  },
);

t.test('a mail that is sent late does not change the state of a newer one', async t => {
  const smtp = await startMailServer();
  t.teardown(() => smtp.close());
  const w = await world(t, { BOT_SMTP_HOST: '127.0.0.1', BOT_SMTP_PORT: String(smtp.port) });
  const ada = await w.addUser({ display_name: 'Ada' });
  const release = smtp.hold();
  const only = async () => (await w.call(w.root, 'GET', `/api/admin/admins?user=${ada}`)).json.items;
  t.same(await only(), []);
  await w.call(w.root, 'POST', '/api/admin/admins', { global_user_id: ada, email: 'ada@uni.example' });
  t.match(await only(), [{ global_user_id: ada, email: 'ada@uni.example' }], 'of one user the list says whether');
  await smtp.nth(0);
  t.equal((await w.call(w.root, 'POST', `/api/admin/admins/${ada}/reset-password`)).status, 200);
  release();
  const password = TEMPORARY.exec((await smtp.nth(1)).text)?.[0] ?? '';
  await w.mailOf(ada, m => m.state === 'sent');
  t.equal((await w.logIn('ada@uni.example', TEMPORARY.exec(smtp.mails[0]?.text ?? '')?.[0] ?? '')).status, 401);
  const { jar, status } = await w.logIn('ada@uni.example', password);
  t.equal(status, 200);
  t.match((await w.call(jar, 'POST', '/api/auth/tokens', { name: 'x' })).json, { code: 'password_change_required' });
});

t.test('a mail that is given up shows as failed, unless another one was asked for', async t => {
  const w = await world(t, { BOT_SMTP_HOST: '127.0.0.1', BOT_SMTP_PORT: String(await takePort()) });
  const ada = await w.addUser({ display_name: 'Ada' });
  await w.call(w.root, 'POST', '/api/admin/admins', { global_user_id: ada, email: 'ada@uni.example' });
  await w.mailOf(ada, m => m.error !== null);
  const request = async () =>
    (
      await w.db.query<{ mail_request: string }>(
        'SELECT mail_request FROM admin_credentials WHERE global_user_id = $1',
        [ada],
      )
    ).rows[0]?.mail_request ?? '';
  const first = await request();
  await w.call(w.root, 'POST', `/api/admin/admins/${ada}/reset-password`);
  t.not(await request(), first);
  await giveUpMail(w.db, { userId: ada, request: first });
  t.match(await w.admin(ada), { mail: { state: 'pending' } });
  await w.mailOf(ada, m => m.error !== null);
  await giveUpMail(w.db, { userId: ada, request: await request() });
  t.match(await w.admin(ada), { mail: { state: 'failed', error: /ECONNREFUSED/ } });
});

t.test('lists of administrators, sessions and tokens come in pages', async t => {
  const w = await world(t);
  const pages = async (path: string): Promise<unknown[]> => {
    const seen: unknown[] = [];
    for (let cursor = ''; ; ) {
      const { json, status } = await w.call(w.root, 'GET', `${path}?limit=2${cursor}`);
      t.equal(status, 200);
      const items = json.items as Array<{ id?: number; global_user_id: number }>;
      t.ok(items.length > 0 && items.length <= 2);
      seen.push(...items.map(i => i.id ?? i.global_user_id));
      if (json.next_cursor === null) return seen;
      cursor = `&cursor=${String(json.next_cursor)}`;
    }
  };
  const admins = [1];
  for (const n of [2, 3, 4]) {
    const id = await w.addUser({ display_name: `A${n}` });
    await w.call(w.root, 'POST', '/api/admin/admins', { global_user_id: id, email: `a${n}@uni.example` });
    admins.push(id);
  }
  t.same(await pages('/api/admin/admins'), admins.reverse());
  const tokens: number[] = [];
  for (let n = 0; n < 5; n++)
    tokens.push(Number((await w.call(w.root, 'POST', '/api/auth/tokens', { name: `t${n}` })).json.id));
  tokens.reverse();
  t.same(await pages('/api/auth/tokens'), tokens);
  t.same(await pages('/api/admin/users/1/tokens'), tokens);
  for (let n = 0; n < 2; n++) t.equal((await w.logIn('root@uni.example', PASSWORD)).status, 200);
  const sessions = await pages('/api/auth/sessions');
  t.equal(sessions.length, 6, 'three logins, each with a session of a user and of an administrator');
  t.same(await pages('/api/admin/users/1/sessions'), sessions);
  t.equal((await w.call(w.root, 'GET', '/api/auth/tokens?limit=0')).status, 422);
  t.equal((await w.call(w.root, 'GET', '/api/auth/sessions?cursor=x')).status, 422);
  t.equal((await w.call(w.root, 'GET', '/api/admin/admins?page=2')).status, 422);
});

t.test('a temporary password expires after 72 hours', async t => {
  const smtp = await startMailServer();
  t.teardown(() => smtp.close());
  const w = await world(t, { BOT_SMTP_HOST: '127.0.0.1', BOT_SMTP_PORT: String(smtp.port) });
  const ada = await w.addUser({ display_name: 'Ada' });
  await w.call(w.root, 'POST', '/api/admin/admins', { global_user_id: ada, email: 'ada@uni.example' });
  const password = TEMPORARY.exec((await smtp.nth(0)).text)?.[0] ?? '';
  const { rows } = await w.db.query<{ hours: number }>(
    "SELECT extract(epoch FROM temporary_until - now())::float8 / 3600 AS hours FROM admin_credentials WHERE email = 'ada@uni.example'",
  );
  t.ok((rows[0]?.hours ?? 0) > 71.9 && (rows[0]?.hours ?? 0) <= 72);
  await w.db.query(
    "UPDATE admin_credentials SET temporary_until = now() - interval '1 second' WHERE email = 'ada@uni.example'",
  );
  t.match((await w.logIn('ada@uni.example', password)).answer.json, {
    status: 401,
    detail: 'email or password is wrong',
  });
});

t.test('the command line makes an administrator and gives back a lost account', async t => {
  const w = await world(t);
  const command = async (...args: string[]) => {
    const main = path.resolve(import.meta.dirname, '../../src/main.ts');
    const env = { ...BARE_ENV, BOT_DATABASE_URL: w.s.databaseUrl, BOT_DATA_DIR: w.s.directory };
    return await promisify(execFile)(process.execPath, [main, 'admin', ...args], { env }).then(
      ({ stdout }) => ({ code: 0, text: stdout }),
      (error: { code: number; stderr: string }) => ({ code: error.code, text: error.stderr }),
    );
  };
  const made = await command('create', '--email', 'ops@uni.example', '--name', 'Ops');
  t.equal(made.code, 0);
  const password = TEMPORARY.exec(made.text)?.[0] ?? '';
  const { answer, jar } = await w.logIn('ops@uni.example', password);
  t.match(answer.json, { admin: { must_change_password: true } });
  // After a wrong password the account waits; the recovery lets it in at once.
  await w.call(null, 'POST', '/api/admin/auth/login', { email: 'ops@uni.example', password: 'wrong' });
  const reset = await command('reset-password', '--email', 'ops@uni.example', '--json');
  const shown = JSON.parse(reset.text) as { temporary_password: string };
  t.equal((await w.call(jar, 'GET', '/api/admin/auth/check')).json.authenticated, false, 'its sessions end');
  const { rows: failures } = await w.db.query('SELECT 1 FROM login_failures');
  t.equal(failures.length, 0, 'and it waits no longer');
  t.equal((await w.logIn('ops@uni.example', shown.temporary_password)).status, 200);
  t.match((await command('list')).text, /root@uni\.example +Root +owner\n +\d+ +ops@uni\.example +Ops +owner/);
  t.match(await command('create', '--email', 'ops@uni.example'), {
    code: 1,
    text: /another administrator has this email/,
  });
  t.match(await command('create'), { code: 2, text: /needs --email/ });
  t.match(await command('create', '--email', 'x@y', '--user', 'me'), { code: 2, text: /--user is "me"/ });
  t.match(await command('reset-password', '--email', 'no@uni.example'), {
    code: 1,
    text: /no administrator with the email/,
  });
  const { rows } = await w.db.query("SELECT action FROM audit_log WHERE actor_kind = 'command_line' ORDER BY id");
  t.same(rows, [{ action: 'admin.appoint' }, { action: 'admin.reset_password' }]);
});

t.test('the job of a temporary password: of this request, and of an earlier one', async t => {
  const smtp = await startMailServer();
  t.teardown(() => smtp.close());
  const w = await world(t, { BOT_SMTP_HOST: '127.0.0.1', BOT_SMTP_PORT: String(await takePort()) });
  const ada = await w.addUser({ display_name: 'Ada' });
  await w.call(w.root, 'POST', '/api/admin/admins', { global_user_id: ada, email: 'ada@uni.example' });
  await w.mailOf(ada, m => m.error !== null);
  await w.s.service.stop(1000);
  const mails: Array<{ to: string }> = [];
  const job = temporaryPasswordJob({
    db: w.db,
    mailer: {
      send: async mail => {
        mails.push(mail);
        return 'here';
      },
      check: () => Promise.resolve(),
      close() {},
    },
    adminUrl: () => 'http://plugins/admin/',
    sent() {},
  });
  const state = async (): Promise<string | null | undefined> =>
    (
      await w.db.query<{ mail_state: string | null }>(
        'SELECT mail_state FROM admin_credentials WHERE global_user_id = $1',
        [ada],
      )
    ).rows[0]?.mail_state;
  const other = { userId: ada, request: '00000000-0000-4000-8000-000000000000' };
  await job.run(job.parse(other), new AbortController().signal);
  await job.gaveUp(job.parse(other));
  t.same([mails.length, await state()], [0, 'pending'], 'an earlier request has nothing to say');
  const { rows } = await w.db.query<{ request: string }>(
    'SELECT mail_request AS request FROM admin_credentials WHERE global_user_id = $1',
    [ada],
  );
  const order = job.parse({ userId: ada, request: rows[0]?.request });
  await job.gaveUp(order);
  t.equal(await state(), 'failed');
  await w.db.query("UPDATE admin_credentials SET mail_state = 'pending' WHERE global_user_id = $1", [ada]);
  await job.run(order, new AbortController().signal);
  t.match([mails, await state()], [[{ to: 'ada@uni.example' }], 'sent']);
  for (const odd of [{ userId: ada }, { ...order, userId: 'x' }]) t.throws(() => job.parse(odd));
});
