import t from 'tap';
import type { Actor } from '../../src/audit/audit-log.ts';
import { LIMITS } from '../../src/base/limits.ts';
import { type Database, openDatabase } from '../../src/db/database.ts';
import { AddressSigner } from '../../src/files/signed-address.ts';
import { addCredentials, giveTemporaryPassword, useTemporaryPassword } from '../../src/identity/admin-accounts.ts';
import { addAdminKey, adminKeys } from '../../src/identity/admin-keys.ts';
import { secretMatches, sha256 } from '../../src/identity/bearer-secret.ts';
import { KnownBrowsers } from '../../src/identity/known-browsers.ts';
import { linkAccount, makeLinkCode } from '../../src/identity/messenger-accounts.ts';
import { addServiceKey, rotateServiceKey, serviceKeys } from '../../src/identity/service-keys.ts';
import { addSession, findSession, type SessionKind, touchSessions } from '../../src/identity/sessions.ts';
import { addUserToken, userTokens } from '../../src/identity/user-tokens.ts';
import { addUser } from '../../src/identity/users.ts';
import { makeSecretBox } from '../../src/secrets/secret-box.ts';
import { makeDatabase } from '../support/database.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const BY: Actor = { kind: 'setup', userId: null, name: 'test', requestId: 'r', address: '127.0.0.1' };
const box = makeSecretBox(Buffer.alloc(32, 1));

t.test('how long each credential and each grant is valid', async t => {
  // In the words of the documentation; a change here is a change of what users were told.
  const rows: Array<[string, number, number]> = [
    ['a session of a user, from its last use', LIMITS.userSessionMs, 30 * DAY],
    ['a session of an administrator', LIMITS.adminSessionMs, 12 * HOUR],
    ['the same without use', LIMITS.adminIdleMs, 2 * HOUR],
    ['a recent password', LIMITS.recentPasswordMs, 10 * MINUTE],
    ['a temporary password', LIMITS.temporaryPasswordHours * HOUR, 72 * HOUR],
    ['a login in progress at the identity provider', LIMITS.idpLoginMs, 10 * MINUTE],
    ['a known browser', LIMITS.knownBrowserMs, 180 * DAY],
    ['an administration key whose maker does not say', LIMITS.adminKeyDefaultMs, 90 * DAY],
    ['the overlap of a rotated service key, at most', LIMITS.serviceKeyOverlapSecondsMax * SECOND, 30 * DAY],
    ['a credential that was verified', LIMITS.verifiedCredentialMs, 10 * SECOND],
    ['failures of logins', LIMITS.loginFailureWindowSeconds * SECOND, 15 * MINUTE],
    ['the longest wait after them', LIMITS.loginDelaySecondsMax * SECOND, MINUTE],
    ['an attempt that was never answered', LIMITS.loginPendingSeconds * SECOND, 30 * SECOND],
    ['a code that links an account of a messenger', LIMITS.linkCodeMs, 10 * MINUTE],
    ['wrong codes', LIMITS.linkFailureWindowMs, 15 * MINUTE],
    ['an upload, from its announcement to its completion', LIMITS.uploadSeconds * SECOND, HOUR],
    ['an address a file is read at', LIMITS.fileLinkMs, 15 * MINUTE],
    ['a stream of events, before its reader is asked again', LIMITS.eventStreamMs, 10 * MINUTE],
    ['a file that came with a message', LIMITS.messageFileMs, 24 * HOUR],
    ['what is remembered of a user', LIMITS.subjectContextMs, 30 * SECOND],
    ['settings of a command', LIMITS.commandSettingsMs, MINUTE],
    ['an answer of the graph', LIMITS.graphAnswerMs, SECOND],
  ];
  for (const [what, held, told] of rows) t.equal(held, told, what);
});

t.test('a secret that is compared with no hash is never right, whatever it is', t => {
  for (const secret of ['absent', '', 'x']) {
    t.notOk(secretMatches(secret, null), secret);
    t.notOk(secretMatches(secret, null, null), secret);
    t.notOk(secretMatches(secret), secret);
    t.notOk(secretMatches(secret, sha256('another')), secret);
    t.ok(secretMatches(secret, null, sha256(secret)), secret);
    t.ok(secretMatches(secret, sha256(secret), null), secret);
  }
  t.end();
});

t.test('each credential is valid until its last moment and not after', async t => {
  const database = await makeDatabase();
  const db: Database = openDatabase(database.url, 2, () => {});
  t.teardown(async () => {
    await db.close();
    await database.drop();
  });
  const user = await addUser(db, { displayName: 'Ada' });
  const start = (await db.query<{ now: Date }>('SELECT now() AS now')).rows[0]?.now.getTime() ?? 0;
  const end = new Date(start + HOUR);
  const session = async (kind: SessionKind) =>
    await addSession(db, { kind, userId: user.id, withPassword: false, address: '', userAgent: '', browser: false });

  const asUser = await session('user');
  const asAdmin = await session('admin');
  const used = await session('admin');
  const usedAt = used.session.createdAt.getTime() + HOUR;
  await touchSessions(db, [{ id: used.session.id, at: new Date(usedAt) }]);
  const busy = await session('admin');
  const busyFrom = busy.session.createdAt.getTime();
  await touchSessions(db, [{ id: busy.session.id, at: new Date(busyFrom + LIMITS.adminSessionMs) }]);
  const slid = await session('user');
  const slidTo = slid.session.createdAt.getTime() + DAY;
  await touchSessions(db, [{ id: slid.session.id, at: new Date(slidTo) }]);
  const token = await addUserToken(db, 'pht_', { userId: user.id, name: 'n', expiresAt: end });
  const serviceKey = await addServiceKey(db, 'phk_', { name: 'k', scopes: [], expiresAt: end }, BY);
  const rotated = await addServiceKey(db, 'phk_', { name: 'k', scopes: [], expiresAt: null }, BY);
  const after = await rotateServiceKey(db, 'phk_', rotated.key.id, 60, BY);
  await db.withTransaction(client => addCredentials(client, { id: user.id, email: 'ada@uni.example' }));
  const ofAdmin = { name: 'k', scopes: ['read'], madeBy: user.id, expiresAt: end };
  const adminKey = await addAdminKey(db, 'pha_', ofAdmin, BY, null);
  const browsers = new KnownBrowsers(box);
  const browser = browsers.remember({ userId: user.id, at: new Date(start), credentials: '', host: '' });
  const signer = new AddressSigner(Buffer.alloc(32, 2));
  const endSeconds = Math.floor(end.getTime() / 1000);
  const query = (path: string) => new Map(new URLSearchParams(path.split('?')[1]));
  const upload = query(signer.uploadPath({ id: 'f', expires: endSeconds, size: 1, type: 'text/plain' }));
  const download = query(signer.downloadPath({ id: 'f', expires: endSeconds }));
  const opens = (check: () => unknown): boolean => {
    try {
      check();
      return true;
    } catch {
      return false;
    }
  };

  // The first moment at which it is over, and whether it is good at a time.
  const rows: Array<[string, number, (now: number) => unknown]> = [
    [
      'a user session',
      asUser.session.createdAt.getTime() + LIMITS.userSessionMs,
      now => findSession(db, 'user', asUser.secret, now),
    ],
    ['a user session that was used', slidTo + LIMITS.userSessionMs, now => findSession(db, 'user', slid.secret, now)],
    [
      'an idle admin session',
      asAdmin.session.createdAt.getTime() + LIMITS.adminIdleMs,
      now => findSession(db, 'admin', asAdmin.secret, now),
    ],
    ['an admin session that was used', usedAt + LIMITS.adminIdleMs, now => findSession(db, 'admin', used.secret, now)],
    [
      'an admin session in use all the time',
      busyFrom + LIMITS.adminSessionMs,
      now => findSession(db, 'admin', busy.secret, now),
    ],
    ['a user token', end.getTime(), now => userTokens.verify(db, 'pht_', token.text, now)],
    ['a service key', end.getTime(), now => serviceKeys.verify(db, 'phk_', serviceKey.text, now)],
    [
      'the secret before a rotation',
      after?.key.oldSecretUntil?.getTime() ?? 0,
      now => serviceKeys.verify(db, 'phk_', rotated.text, now),
    ],
    ['an administration key', end.getTime(), now => adminKeys.verify(db, 'pha_', adminKey.text, now)],
    ['a known browser', start + LIMITS.knownBrowserMs, now => browsers.find(browser, user.id, now)],
    ['an upload address', endSeconds * 1000, now => opens(() => signer.checkUpload('f', upload, now))],
    ['a download address', endSeconds * 1000, now => opens(() => signer.checkDownload('f', download, now))],
  ];
  for (const [what, over, good] of rows) {
    t.ok(await good(over - 1), `${what} is good to the last millisecond`);
    t.notOk(await good(over), `${what} is over then`);
  }

  // What the database's own clock decides: its rows are moved instead.
  const shift = (table: string, column: string, ms: number) =>
    db.query(`UPDATE ${table} SET ${column} = ${column} - make_interval(secs => $1::float8 / 1000)`, [ms]);
  const link = async (lateMs: number) => {
    const { code } = await makeLinkCode(db, user.id);
    await shift('messenger_link_codes', 'expires_at', lateMs);
    const account = { channel: 'TELEGRAM', accountId: '1', chatId: '1' } as const;
    return (await db.withTransaction(client => linkAccount(client, account, code))).kind;
  };
  t.equal(await link(LIMITS.linkCodeMs), 'wrong', 'a code that is ten minutes old');
  t.equal(await link(LIMITS.linkCodeMs - MINUTE), 'linked', 'and one of nine');
  const temporary = async (lateMs: number) => {
    const given = await giveTemporaryPassword(db, user.id, null);
    await shift('admin_credentials', 'temporary_until', lateMs);
    return await useTemporaryPassword(db, user.id, given?.hash ?? '');
  };
  t.notOk(await temporary(72 * HOUR), 'a temporary password that is 72 hours old');
  t.ok(await temporary(71 * HOUR), 'and one of 71');
  const { rows: left } = await db.query<{ hash: string }>('SELECT password_hash AS hash FROM admin_credentials');
  t.notOk(await useTemporaryPassword(db, user.id, left[0]?.hash ?? ''), 'it opens once');
});

t.test('an encrypted value can be decrypted only for its owner, unchanged, with its key', async t => {
  const sealed = box.seal('the secret', 'plugin:mine');
  t.equal(box.open(sealed, 'plugin:mine'), 'the secret');
  t.throws(() => box.open(sealed, 'plugin:theirs'));
  t.throws(() => makeSecretBox(Buffer.alloc(32, 3)).open(sealed, 'plugin:mine'));
  for (let k = 0; k < sealed.length; k++) {
    const changed = Buffer.from(sealed);
    changed[k] = (changed[k] ?? 0) ^ 1;
    t.throws(() => box.open(changed, 'plugin:mine'), `byte ${k} changed`);
  }
  t.not(
    box.seal('the secret', 'plugin:mine').toString('hex'),
    sealed.toString('hex'),
    'the same value is sealed differently',
  );
});
