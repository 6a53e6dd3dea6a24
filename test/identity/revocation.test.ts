import t from 'tap';
import type { Actor } from '../../src/audit/audit-log.ts';
import { LIMITS } from '../../src/base/limits.ts';
import { makeClient, openDatabase } from '../../src/db/database.ts';
import { addCredentials, storePassword } from '../../src/identity/admin-accounts.ts';
import {
  changePassword,
  removeAdmin,
  resetAdminPassword,
  resetPasswordHere,
} from '../../src/identity/admin-appointments.ts';
import { addAdminKey } from '../../src/identity/admin-keys.ts';
import { IDENTITY_CHANGED } from '../../src/identity/identity-changes.ts';
import { findAccountUser } from '../../src/identity/messenger-accounts.ts';
import { type Credential, Principals } from '../../src/identity/principals.ts';
import { addServiceKey } from '../../src/identity/service-keys.ts';
import { addSession } from '../../src/identity/sessions.ts';
import { addUserToken } from '../../src/identity/user-tokens.ts';
import { addUser, changeUser } from '../../src/identity/users.ts';
import { makeDatabase } from '../support/database.ts';

const BY: Actor = { kind: 'setup', userId: null, name: 'test', requestId: 'r', address: '127.0.0.1' };

const database = await makeDatabase();
const db = openDatabase(database.url, 4, () => {});
t.teardown(async () => {
  await db.close();
  await database.drop();
});

/** What tells who calls, on a clock of the test's. */
function makePrincipals(t: { teardown(fn: () => unknown): void }) {
  const time = { ms: 1000 };
  const prefixes = { userToken: 'pht_', serviceKey: 'phk_' };
  const current = { isCurrent: () => true, becomesCurrent: async () => true };
  const principals = new Principals(
    db,
    prefixes,
    current,
    () => {},
    () => time.ms,
  );
  t.teardown(() => principals.close());
  return { principals, time };
}

const session = async (userId: number): Promise<{ id: number; c: Credential }> => {
  const s = await addSession(db, {
    kind: 'user',
    userId,
    withPassword: false,
    address: '',
    userAgent: '',
    browser: false,
  });
  return { id: s.session.id, c: { kind: 'cookie', text: s.secret } };
};
const token = async (userId: number): Promise<{ id: number; c: Credential }> => {
  const made = await addUserToken(db, 'pht_', { userId, name: 'n', expiresAt: null });
  return { id: made.token.id, c: { kind: 'bearer', text: made.text } };
};

t.test('a verified credential is read from the database again after ten seconds', async t => {
  const { principals, time } = makePrincipals(t);
  const user = await addUser(db, { displayName: 'Ada' });
  const { c, id } = await token(user.id);
  t.ok(await principals.verify(c, Date.now()));
  // Gone without a word, as after a missed notice.
  await db.query('DELETE FROM user_tokens WHERE id = $1', [id]);
  time.ms += LIMITS.verifiedCredentialMs - 1;
  t.ok(principals.peek(c, Date.now()), 'remembered for less');
  time.ms += 2;
  t.equal(principals.peek(c, Date.now()), undefined);
  t.equal(await principals.verify(c, Date.now()), null);
});

t.test('a verified credential that ends is not remembered beyond its end', async t => {
  const { principals } = makePrincipals(t);
  const user = await addUser(db, { displayName: 'Ada' });
  const now = Date.now();
  const made = await addUserToken(db, 'pht_', { userId: user.id, name: 'n', expiresAt: new Date(now + 2000) });
  const c: Credential = { kind: 'bearer', text: made.text };
  t.ok(await principals.verify(c, now));
  t.ok(principals.peek(c, now + 1999));
  t.equal(principals.peek(c, now + 2000), undefined);
});

t.test('a credential that is revoked while it is verified is not remembered', async t => {
  const { principals } = makePrincipals(t);
  const user = await addUser(db, { displayName: 'Ada' });
  const { c, id } = await token(user.id);
  const other = makeClient(database.url);
  await other.connect();
  t.teardown(() => other.end());
  // Holds the answer of the database until the revocation has been heard.
  await other.query('BEGIN');
  await other.query('LOCK TABLE user_tokens IN ACCESS EXCLUSIVE MODE');
  const verified = principals.verify(c, Date.now());
  for (;;) {
    const { rows } = await other.query<{ waits: boolean }>(
      "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE relation = 'user_tokens'::regclass AND NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())) AS waits",
    );
    if (rows[0]?.waits === true) break;
  }
  principals.changed({ what: 'token', id });
  await other.query('ROLLBACK');
  t.ok(await verified, 'it was good when the database was asked');
  t.equal(principals.peek(c, Date.now()), undefined);
});

t.test('what was opened with an account that an administrator takes from a user ends', async t => {
  const { principals } = makePrincipals(t);
  const change = (id: number, wanted: Parameters<typeof changeUser>[2]) =>
    changeUser(db, id, wanted, BY, () => Promise.resolve(new Set()));
  const user = await addUser(db, { displayName: 'Ada', idpAccountsId: 'of a stranger' });
  const opened = [(await session(user.id)).c, (await token(user.id)).c];
  await db.query(
    "INSERT INTO messenger_accounts (channel, account_id, chat_id, global_user_id) VALUES ('VK', '7', '7', $1)",
    [user.id],
  );
  await change(user.id, { displayName: 'Ada L.', idpAccountsId: 'of a stranger' });
  for (const c of opened) t.ok(await principals.verify(c, Date.now()), 'another name ends nothing');
  t.match(await findAccountUser(db, 'VK', '7'), { userId: user.id });
  await change(user.id, { idpAccountsId: 'ada' });
  for (const c of opened) t.equal(await principals.verify(c, Date.now()), null, c.kind);
  t.equal(await findAccountUser(db, 'VK', '7'), undefined);

  const first = await addUser(db, { displayName: 'Bob' });
  const { c } = await session(first.id);
  await change(first.id, { idpAccountsId: 'bob' });
  t.ok(await principals.verify(c, Date.now()), 'a first account ends nothing');
});

t.test('a revocation removes only what it concerns from the caches', async t => {
  const { principals } = makePrincipals(t);
  const [ada, bob] = [await addUser(db, { displayName: 'Ada' }), await addUser(db, { displayName: 'Bob' })];
  const key = await addServiceKey(db, 'phk_', { name: 'k', scopes: [], expiresAt: null }, BY);
  const held: Array<{ what: string; id: number; c: Credential }> = [
    { what: 'session of Ada', ...(await session(ada.id)) },
    { what: 'token of Ada', ...(await token(ada.id)) },
    { what: 'session of Bob', ...(await session(bob.id)) },
    { what: 'token of Bob', ...(await token(bob.id)) },
    { what: 'key', id: key.key.id, c: { kind: 'bearer', text: key.text } },
  ];
  const idOf = (what: string): number => held.find(h => h.what === what)?.id ?? 0;
  const rows: Array<[Parameters<Principals['changed']>[0], string[]]> = [
    [{ what: 'user', id: ada.id }, ['session of Ada', 'token of Ada']],
    [{ what: 'session', id: idOf('session of Bob') }, ['session of Bob']],
    [{ what: 'token', id: idOf('token of Bob') }, ['token of Bob']],
    [{ what: 'key', id: key.key.id }, ['key']],
    [{ what: 'admin_key', id: key.key.id }, []],
    [null, held.map(h => h.what)],
  ];
  for (const [change, forgotten] of rows) {
    for (const h of held) t.ok(await principals.verify(h.c, Date.now()), h.what);
    principals.changed(change);
    const gone = held.filter(h => principals.peek(h.c, Date.now()) === undefined).map(h => h.what);
    t.same(gone, forgotten, JSON.stringify(change));
  }
});

t.test('a reset, a removal and a new password end every session and token, and tell the other hosts', async t => {
  const listener = makeClient(database.url);
  await listener.connect();
  t.teardown(() => listener.end());
  const heard: string[] = [];
  listener.on('notification', n => heard.push(n.payload ?? ''));
  await listener.query(`LISTEN ${IDENTITY_CHANGED}`);
  const last = await addUser(db, { displayName: 'the last one' });
  await db.withTransaction(client => addCredentials(client, { id: last.id, email: 'last@uni.example' }));
  const queueMail = async () => {};
  const rows: Array<[string, (userId: number, email: string) => Promise<unknown>, boolean]> = [
    ['a reset by another administrator', id => resetAdminPassword(db, id, queueMail, BY), true],
    ['a reset on the command line', (_, email) => resetPasswordHere(db, email, BY), true],
    ['a removal', id => removeAdmin(db, id, BY), true],
    ['a new password of one’s own', id => db.withTransaction(c => changePassword(c, id, 'hash', BY)), false],
  ];
  for (const [what, act, endsKeys] of rows) {
    const user = await addUser(db, { displayName: what });
    const email = `u${user.id}@uni.example`;
    await db.withTransaction(async client => {
      await addCredentials(client, { id: user.id, email });
      await storePassword(client, user.id, 'hash');
    });
    await session(user.id);
    await addSession(db, {
      kind: 'admin',
      userId: user.id,
      withPassword: true,
      address: '',
      userAgent: '',
      browser: false,
    });
    await token(user.id);
    const wanted = { name: 'k', scopes: ['read'], madeBy: user.id, expiresAt: null };
    const key = await addAdminKey(db, 'pha_', wanted, BY, null);
    const others = [await session(last.id), await token(last.id)];
    heard.length = 0;
    await act(user.id, email);
    // What was sent before has arrived when an answer on the same connection has.
    await listener.query('SELECT 1');
    t.ok(heard.includes(`user:${user.id}`), `other hosts are notified of ${what}`);
    t.equal(heard.includes(`admin_key:${key.key.id}`), endsKeys, `${what}: the administration key`);
    for (const [table, column] of [
      ['sessions', 'global_user_id'],
      ['user_tokens', 'global_user_id'],
    ]) {
      const { rows: left } = await db.query(`SELECT 1 FROM ${table} WHERE ${column} = $1`, [user.id]);
      t.equal(left.length, 0, `${what} ends all ${table}`);
    }
    const { rows: keys } = await db.query('SELECT 1 FROM admin_keys WHERE made_by = $1', [user.id]);
    t.equal(keys.length, endsKeys ? 0 : 1);
    const { rows: theirs } = await db.query(
      'SELECT 1 FROM sessions WHERE id = $1 UNION ALL SELECT 1 FROM user_tokens WHERE id = $2',
      others.map(o => o.id),
    );
    t.equal(theirs.length, 2, 'those of others stay');
  }
});
