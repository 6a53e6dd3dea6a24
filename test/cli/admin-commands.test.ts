import { Secret, TOTP } from 'otpauth';
import t from 'tap';
import { type Ran, runCommand } from '../support/commands.ts';
import { CookieJar } from '../support/identity-provider.ts';
import { ROOT_EMAIL, ROOT_PASSWORD, startWithRoot } from '../support/root-admin.ts';
import { appointSecondAdmin } from '../support/second-admin.ts';

/** Recovery on the machine itself: `admin reset-second-factor`, `admin key` (docs/operating.md "Lost access"). */

async function world(t: { teardown(fn: () => unknown): void }) {
  const w = await startWithRoot(t);
  const admin = (...args: string[]): Promise<Ran> =>
    runCommand(['admin', ...args], { BOT_DATABASE_URL: w.s.databaseUrl, BOT_DATA_DIR: w.s.directory });
  const addApp = async (headers: Record<string, string>): Promise<void> => {
    const { continuation, secret } = (await w.call(headers, 'POST', '/auth/totp/begin')).json;
    const code = new TOTP({ secret: Secret.fromBase32(String(secret)) }).generate();
    const set = await w.call(headers, 'PUT', '/auth/totp', { continuation, code });
    if (set.status !== 200) throw new Error(set.text);
  };
  const entries = async (query: string): Promise<unknown[]> =>
    (await w.call(w.root, 'GET', `/audit?${query}`)).json.items as unknown[];
  return { ...w, admin, addApp, entries };
}

t.test('admin reset-second-factor takes every factor, ends the sessions, is audited, and says what it did', async t => {
  const w = await world(t);
  const ada = await appointSecondAdmin(w.s, w.db, w.root, ROOT_PASSWORD, { roles: ['operator'] });
  await w.addApp(ada.headers);
  await w.db.query(
    `INSERT INTO admin_passkeys (global_user_id, name, rp_id, credential_id, public_key, sign_count, transports)
     VALUES ($1, 'Laptop', 'localhost', 'c', '\\x00', 0, '{}')`,
    [ada.id],
  );
  t.same(await w.admin('reset-second-factor', '--email', ada.email.toUpperCase()), {
    code: 0,
    out: `${ada.email.toUpperCase()} logs in with the password alone now; the sessions have ended\n`,
    err: '',
  });
  t.equal((await w.call(ada.headers, 'GET', '/plugins')).status, 401, 'the running service ends the sessions');
  t.equal((await w.call(w.root, 'GET', '/plugins')).status, 200, 'and no other ones');
  const opened = await w.call({}, 'POST', '/auth/login', { email: ada.email, password: ROOT_PASSWORD });
  t.equal(opened.status, 200, 'the password alone logs in');
  const jar = new CookieJar();
  jar.take(opened.headers);
  t.match((await w.call(jar.header, 'GET', '/auth/second-factor')).json, {
    passkeys: [],
    totp_since: null,
    recovery_codes: 0,
  });
  t.match(await w.entries('action=admin.reset_second_factor'), [
    {
      actor: { kind: 'command_line', global_user_id: null, name: /on the command line$/ },
      object_id: String(ada.id),
      before: { passkeys: ['Laptop'], totp: true },
    },
  ]);

  t.match(await w.admin('reset-second-factor', '--email', ada.email), {
    code: 0,
    out: `${ada.email} had no second factor; the sessions have ended\n`,
  });
  t.equal((await w.call(jar.header, 'GET', '/plugins')).status, 401, 'also where there was none');
  const json = await w.admin('reset-second-factor', '--email', ROOT_EMAIL, '--json');
  t.same(JSON.parse(json.out), { global_user_id: w.rootId, email: ROOT_EMAIL });
});

t.test('admin reset-second-factor names the mistake of an email that no administrator has', async t => {
  const w = await world(t);
  for (const [code, args, err] of [
    [1, ['--email', 'who@uni.example'], /there is no administrator who@uni\.example: plugin-host admin list/],
    [2, ['--email', 'who'], /--email is "who"; it must be an email address/],
    [2, [], /this command needs --email ADDRESS/],
  ] as const)
    t.match(await w.admin('reset-second-factor', ...args), { code, out: '', err }, args.join(' '));
  t.same(await w.entries('action=admin.reset_second_factor'), []);
  t.equal((await w.call(w.root, 'GET', '/plugins')).status, 200);
});

t.test('admin key makes what the roles of the administrator include, and nothing beyond', async t => {
  const w = await world(t);
  const may = { roles: ['auditor', 'plugin_manager'], plugins: ['mine'] };
  const ada = await appointSecondAdmin(w.s, w.db, w.root, ROOT_PASSWORD, may);
  const key = (email: string, ...more: string[]) => w.admin('key', '--email', email, '--name', 'ops', ...more);
  for (const scope of ['operate', 'plugins:deploy', 'plugins:deploy:other', 'admin'])
    t.match(
      await key(ada.email, '--scope', 'read', '--scope', scope),
      { code: 1, out: '', err: new RegExp(`has the roles auditor, plugin_manager, .* the scope ${scope} of this key`) },
      scope,
    );
  t.match(await key(ada.email, '--scope', 'everything'), {
    code: 2,
    err: /--scope is "everything"; it must be one of/,
  });
  t.match(await key(ada.email), { code: 2, err: /needs --scope/ });
  t.match(await key('who@uni.example', '--scope', 'read'), { code: 1, err: /there is no administrator who@uni/ });
  t.match(await w.admin('key', '--email', ada.email, '--scope', 'read'), { code: 2, err: /needs --name/ });
  t.same(await w.entries('action=admin_key.create'), [], 'nothing was made');

  const made = await key(ada.email, '--scope', 'read', '--scope', 'plugins:deploy:mine', '--json');
  const { expires_at, id, key: text, scopes } = JSON.parse(made.out) as Record<string, unknown>;
  t.same(scopes, ['read', 'plugins:deploy:mine']);
  const days = (Date.parse(String(expires_at)) - Date.now()) / 86_400_000;
  t.ok(days > 89.9 && days <= 90, 'it is good for 90 days');
  const using = (where: string) => w.call({ authorization: `Bearer ${text}` }, 'GET', where);
  t.equal((await using('/plugins')).status, 200, 'the running service takes it at once');
  t.match(await w.entries('action=admin_key.create'), [
    { actor: { kind: 'command_line' }, object_id: String(id), after: { made_by: ada.id, scopes } },
  ]);
  const shown = await key(ada.email, '--scope', 'read');
  t.match(shown.out, new RegExp(`^pha_\\S+\nvalid until \\S+, and as long as ${ada.email} is an administrator\n$`));
});

t.test('a key ends when the roles of its maker are narrowed below it, wherever it was made', async t => {
  const w = await world(t);
  const ada = await appointSecondAdmin(w.s, w.db, w.root, ROOT_PASSWORD, { roles: ['operator', 'plugin_manager'] });
  const make = async (...scopes: string[]): Promise<string> => {
    const args = scopes.flatMap(scope => ['--scope', scope]);
    const { out } = await w.admin('key', '--email', ada.email, '--name', scopes.join('+'), '--json', ...args);
    return String((JSON.parse(out) as { key: string }).key);
  };
  const keys: Record<string, string> = {
    read: await make('read'),
    operate: await make('read', 'operate'),
    all: await make('plugins:deploy'),
    mine: await make('plugins:deploy:mine'),
    other: await make('plugins:deploy:other'),
  };
  const good = async (): Promise<string[]> => {
    const found: string[] = [];
    for (const [name, text] of Object.entries(keys))
      if ((await w.call({ authorization: `Bearer ${text}` }, 'GET', '/plugins')).status !== 401) found.push(name);
    return found;
  };
  const narrow = (may: Record<string, unknown>) => w.call(w.root, 'PATCH', `/admins/${ada.id}`, may);
  t.same(await good(), ['read', 'operate', 'all', 'mine', 'other']);
  t.equal((await narrow({ roles: ['operator', 'plugin_manager'], plugins: ['mine'] })).status, 200);
  t.same(await good(), ['read', 'operate', 'mine'], 'limited to one plugin');
  t.equal((await narrow({ roles: ['plugin_manager'], plugins: ['mine'] })).status, 200);
  t.same(await good(), ['read', 'mine'], 'no operator any more');
  t.equal((await narrow({ roles: ['auditor'], plugins: null })).status, 200);
  t.same(await good(), ['read']);
  t.equal((await narrow({ roles: ['owner'], plugins: null })).status, 200);
  t.same(await good(), ['read'], 'a role that comes back brings no key back');
  const revoked = (await w.entries('action=admin_key.revoke')) as Array<{ before: { name: string } }>;
  t.same(revoked.map(e => e.before.name).sort(), [
    'plugins:deploy',
    'plugins:deploy:mine',
    'plugins:deploy:other',
    'read+operate',
  ]);
});
